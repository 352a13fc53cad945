# SPDX-License-Identifier: BSD-3-Clause
"""The evidence of an exact GP: the log marginal likelihood of all rows, with derivatives."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Dense
from lsgp.backends.dense_host import HOST, dense_for
from lsgp.method.contract import SHARED_PARAMETERS, LocalProblem
from lsgp.method.trend import solve_trend, trend_basis

Array = NDArray[np.float64]

#: Negative log evidence of a matrix that has no factor.
BAD_EVIDENCE = 1e10
#: Variance of an exact GP's constant, relative to the signal variance. Its slope is centered at the
#: mean of the rows, and that of a local model at the query; a nearly flat prior of the constant
#: makes both models agree.
FLAT = 50.0


class Evidence(NamedTuple):
    """The negative log marginal likelihood of all rows, mean over the targets, and derivatives."""

    value: float
    gradient: Array  # in log hyperparameters, in the order of `Scores`
    by_rows: Array  # (n, d) in the inputs of the rows


def negative_log_evidence(problem: LocalProblem, dense: Dense = HOST) -> Evidence:
    """Compute the negative log evidence of a problem, with the trend centered at the row mean."""
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
    by_kernel, by_z = sums.by_logarithms, sums.by_rows
    if by_basis is not None:
        by_constant, by_slopes = trend.evidence_by_variance(s2)
        if by_slopes.size:
            # Derivative in H through A = C⁻¹ + H B Hᵀ: A⁻¹H B = C H P⁻¹, minus the misfit's part.
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
    # The mean of the rows is subtracted, so each row also shifts all others.
    by_rows = (by_z - by_z.mean(axis=0)) / model.lengthscale
    return Evidence(value, np.concatenate([by_kernel, shared]), by_rows)
