# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs of all rows, tuned by the evidence: what few rows are best served by.

Leave-one-out scores of few rows are too noisy to tune many hyperparameters by, and more so to
choose among many models. The marginal likelihood makes more of the rows where a GP is about
right, and its maxima under a prior are weights for models: Bayesian model averaging.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.spatial.distance import cdist

from lsgp.compute import lapack
from lsgp.method.contract import SHARED_PARAMETERS, LocalModel, LocalProblem
from lsgp.method.trend import solve_trend, trend_basis
from lsgp.tuning.clock import Clock
from lsgp.tuning.descent import descend
from lsgp.tuning.parameters import Parameters
from lsgp.tuning.plan import BAD_EVIDENCE, FLAT, NEGLIGIBLE_EVIDENCE
from lsgp.tuning.priors import negative_log_prior

Array = NDArray[np.float64]

#: Rows of a matrix that are worked on at a time.
ROWS_AT_A_TIME = 64
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
) -> ExactGP:
    """Tune an exact GP from the problem's model on, by the marginal likelihood and the prior."""
    model = problem.model

    def function(vector: Array) -> tuple[float, Array]:
        clock.check()
        changed = parameters.unpack(vector, model)
        value, gradient = negative_log_evidence(problem._replace(model=changed))
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


def negative_log_evidence(problem: LocalProblem) -> tuple[float, Array]:
    """Negative log marginal likelihood of all rows, mean over the targets, and its gradient.

    The gradient is in log hyperparameters, in the order of `Scores`. The trend is centered at
    the mean of the rows. Matrices are symmetric: of all of them only the lower triangle is made,
    a few rows at a time, which stay in the cache.
    """
    X, y, noise, model = problem
    n, n_targets = y.shape
    s2 = model.signal_variance
    z = (X - X.mean(axis=0)) / model.lengthscale
    formula = model.correlation.formula
    assert formula is not None, "the evidence is one of correlations of the scaled distance"
    is_apart = model.has_large_trend
    A, by_r2 = np.empty((n, n)), np.empty((n, n))
    for rows, below in _blocks(n):
        rho, slope = formula(cdist(z[rows], z[below], "sqeuclidean"))
        A[rows, below], by_r2[rows, below] = rho, slope
        if not is_apart:
            A[rows, below] += model.constant_variance
            A[rows, below] += model.slope_variance * (z[rows] @ z[below].T)
    A[np.diag_indices(n)] += model.noise_variance * noise
    if not lapack.factor(A):
        return math.inf, np.zeros(X.shape[1] + len(SHARED_PARAMETERS))
    alpha = cho_solve((A, True), y, check_finite=False)
    misfit = float((y * alpha).sum()) / n_targets
    half_log_determinant = float(np.log(np.diag(A)).sum())
    # What is taken from the inverse, as a product of two thin matrices.
    left = right = alpha / math.sqrt(s2 * n_targets)
    if is_apart:  # [E10]
        basis = trend_basis(model, z)
        by_H = cho_solve((A, True), basis.H, check_finite=False)
        trend = solve_trend(basis, basis.H.T @ by_H, by_H.T @ y, basis.at_query)
        alpha = alpha - by_H @ trend.theta
        misfit = float(((y - basis.H @ trend.theta) * alpha).sum() + trend.explained.sum())
        misfit /= n_targets
        half_log_determinant += trend.log_evidence_part(model.lengthscale)
        scaled = alpha / math.sqrt(s2 * n_targets)
        left = np.column_stack([scaled, by_H @ trend.inverse_precision])
        right = np.column_stack([scaled, by_H])
    value = 0.5 * (misfit / s2 + n * math.log(2.0 * math.pi * s2)) + half_log_determinant

    lapack.invert_from_factor(A)
    # The adjoint of the matrix is half of the inverse without that product. Sums over pairs of
    # M_ij (z_i - z_j)² need no array of the differences: they are those of M_ij z_i² and z_j²,
    # less 2 z'Mz.
    by_lengthscale, total, on_diagonal = np.zeros(X.shape[1]), 0.0, np.empty(n)
    by_slopes: Array = np.zeros(X.shape[1])
    squares = z * z
    for rows, below in _blocks(n):
        adjoint = A[rows, below]
        adjoint -= left[rows] @ right[below].T
        on_diagonal[rows] = 0.5 * np.diag(adjoint, rows.start)
        size = rows.stop - rows.start
        adjoint[:, rows] *= np.tri(size, size, -1)  # each pair once, so twice a half
        if not is_apart:
            total += float(adjoint.sum())
            by_slopes += np.einsum("ij,ij->j", z[rows], adjoint @ z[below])
        adjoint *= by_r2[rows, below]
        by_lengthscale += adjoint.sum(axis=1) @ squares[rows] + adjoint.sum(axis=0) @ squares[below]
        by_lengthscale -= 2.0 * np.einsum("ij,ij->j", z[rows], adjoint @ z[below])
    by_lengthscale *= -2.0
    if is_apart:
        by_constant, variances = trend.evidence_by_variance(s2)
        by_slopes = np.asarray(variances)
    else:
        by_constant = model.constant_variance * (total + float(on_diagonal.sum()))
        by_slopes = model.slope_variance * (by_slopes + on_diagonal @ squares)
    if by_slopes.size:
        by_lengthscale -= 2.0 * by_slopes
    shared = [
        0.5 * (n - misfit / s2),
        model.noise_variance * float(on_diagonal @ noise),
        by_constant,
        float(by_slopes.sum()),
        0.0,
        0.0,
    ]
    return value, np.concatenate([by_lengthscale, shared])


def _blocks(n: int) -> Iterator[tuple[slice, slice]]:
    """Rows of a lower triangle, a few at a time, and the columns that they have."""
    for start in range(0, n, ROWS_AT_A_TIME):
        stop = min(start + ROWS_AT_A_TIME, n)
        yield slice(start, stop), slice(0, stop)
