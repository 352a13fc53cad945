# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs of all rows, tuned by the evidence: what few rows are best served by.

Leave-one-out scores of few rows are too noisy to tune many hyperparameters by, and more so to
choose among many models. The marginal likelihood makes more of the rows where a GP is about
right, and its maxima under a prior are weights for models: Bayesian model averaging.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.dense import Dense
from lsgp.backends.dense_host import HOST, dense_for
from lsgp.method.contract import SHARED_PARAMETERS, LocalModel, LocalProblem
from lsgp.method.trend import solve_trend, trend_basis
from lsgp.tuning.clock import Clock
from lsgp.tuning.descent import descend
from lsgp.tuning.parameters import Parameters
from lsgp.tuning.plan import BAD_EVIDENCE, FLAT, NEGLIGIBLE_EVIDENCE
from lsgp.tuning.priors import negative_log_prior

Array = NDArray[np.float64]

#: Hyperparameters that an exact GP has no use for, or that stay as they are.
NOT_TUNED = frozenset({"constant_variance", "localizer_decay", "scale_dof"})


class ExactGP(NamedTuple):
    """A local model whose neighborhood is all rows, and how likely it makes them."""

    model: LocalModel
    log_evidence: float  # with the prior's density at the maximum


def make_exact(
    model: LocalModel, given: frozenset[str] = frozenset(), has_constant: bool = False
) -> LocalModel:
    """The model without localizing, which is an exact GP if all rows are neighbors.

    ``has_constant`` says that its constant is the kernel's, and to be tuned.
    """
    constant = model.constant_variance
    if constant > 0 and "constant_variance" not in given and not has_constant:
        constant = FLAT
    return model.replace(
        localizer="rectangular", localizer_decay=1.0, scale_dof=np.inf, constant_variance=constant
    )


def maximize_evidence(
    problem: LocalProblem,
    parameters: Parameters,
    n_iterations: int,
    clock: Clock,
    has_prior: bool = True,
    dense: Dense = HOST,
) -> ExactGP:
    """Tune an exact GP from the problem's model on, by the marginal likelihood and the prior."""
    model = problem.model

    def function(vector: Array) -> tuple[float, Array]:
        clock.check()
        changed = parameters.unpack(vector, model)
        value, gradient = negative_log_evidence(problem._replace(model=changed), dense)
        if not math.isfinite(value) or not np.isfinite(gradient).all():
            return BAD_EVIDENCE, np.zeros(len(vector))
        if not has_prior:
            return value, parameters.restrict(gradient, model)
        prior, prior_gradient = negative_log_prior(changed, parameters.groups)
        return value + prior, parameters.restrict(gradient + prior_gradient, model)

    best, value = descend(
        function, parameters, model, n_iterations, gain=lambda _: NEGLIGIBLE_EVIDENCE
    )
    return ExactGP(best, -value)


class Evidence(NamedTuple):
    """The negative log marginal likelihood of all rows, mean over the targets, and derivatives."""

    value: float
    gradient: Array  # in log hyperparameters, in the order of `Scores`
    by_rows: Array  # (n, d) in the inputs of the rows


def negative_log_evidence(problem: LocalProblem, dense: Dense = HOST) -> tuple[float, Array]:
    """Negative log marginal likelihood of all rows, mean over the targets, and its gradient.

    The gradient is in log hyperparameters, in the order of `Scores`. The trend is centered at
    the mean of the rows.
    """
    found = evidence_of(problem, dense)
    return found.value, found.gradient


def evidence_of(problem: LocalProblem, dense: Dense = HOST) -> Evidence:
    """As `negative_log_evidence`, and what it changes by where rows move."""
    X, y, noise, model = problem
    n, n_targets = y.shape
    s2 = model.signal_variance
    z = (X - X.mean(axis=0)) / model.lengthscale
    is_apart = model.has_large_trend
    dense = dense_for(model, dense)
    with dense.alone():
        A = dense.covariance(z, model, noise)
        if A is None:
            n_own = model.correlation.n_parameters(X.shape[1])
            nothing = np.zeros(n_own + len(SHARED_PARAMETERS))
            return Evidence(math.inf, nothing, np.zeros_like(z))
        alpha = A.solve(y)
        misfit = float((y * alpha).sum()) / n_targets
        half_log_determinant = A.half_log_determinant
        by_basis = None
        if is_apart:  # [E10]
            basis = trend_basis(model, z)
            by_H = A.solve(basis.H)
            trend = solve_trend(basis, basis.H.T @ by_H, by_H.T @ y, basis.at_query)
            alpha = alpha - by_H @ trend.theta
            misfit = float(((y - basis.H @ trend.theta) * alpha).sum() + trend.explained.sum())
            misfit /= n_targets
            half_log_determinant += trend.log_evidence_part(model.lengthscale)
            by_basis = by_H @ trend.inverse_precision, by_H
        value = 0.5 * (misfit / s2 + n * math.log(2.0 * math.pi * s2)) + half_log_determinant
        sums = A.adjoint_sums(alpha, s2 * n_targets, by_basis)
    by_kernel, by_z = sums.through_correlations(z)
    if by_basis is not None:
        by_constant, by_slopes = trend.evidence_by_variance(s2)
        if by_slopes.size:
            # Of A = C⁻¹ + H B Hᵀ in H: A⁻¹H B, which is C H P⁻¹, less what the targets say.
            by_H = by_basis[0] - alpha @ trend.theta.T / (s2 * n_targets)
            by_z += by_H[:, basis.inputs >= 0]
    else:
        by_constant = model.constant_variance * sums.total
        by_slopes = model.slope_variance * np.einsum("ij,ij->j", z, sums.by_z)
        by_z += 2.0 * model.slope_variance * sums.by_z
    if by_slopes.size:
        by_kernel[: X.shape[1]] -= 2.0 * by_slopes
    shared = [
        0.5 * (n - misfit / s2),
        model.noise_variance * float(sums.diagonal @ noise),
        by_constant,
        float(by_slopes.sum()),
        0.0,
        0.0,
    ]
    # All are centered, so that a row moves the others too.
    by_rows = (by_z - by_z.mean(axis=0)) / model.lengthscale
    return Evidence(value, np.concatenate([by_kernel, shared]), by_rows)
