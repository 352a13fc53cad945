# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of an exact GP's predictions in the queries, many queries at a time.

The special case of `lsgp.backends.local_system` in which all weights are 1: only the correlations
with the query and the center of the trend depend on the query.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.dense_host import TILE, are_finite, correlate_with_slopes
from lsgp.backends.local_system import SMALLEST_VARIANCE
from lsgp.method.contract import Predictions, QueryGradients
from lsgp.solvers.exact_system import ExactSystem

Array = NDArray[np.float64]


def differentiate(system: ExactSystem, queries: Array) -> tuple[Predictions, QueryGradients]:
    """Predictions of queries (q, d), and their derivatives."""
    solved = system.predict(queries)
    q, d = queries.shape
    gradients = QueryGradients.empty(q, system.alpha.shape[1], d)
    gradients.dof[:], gradients.noise_unit[:] = 0.0, 0.0
    z = system.scale(queries)
    z = np.where(are_finite(z)[:, None], z, 0.0)
    for start in range(0, q, TILE):
        part = slice(start, min(start + TILE, q))
        # The last tile is padded, so that results do not depend on the number of queries.
        tile = np.zeros((TILE, d))
        tile[: part.stop - start] = z[part]
        mean, variance, misfit = _differentiate_tile(system, tile)
        gradients.mean[part] = mean[: part.stop - start]
        gradients.variance[part] = variance[: part.stop - start]
        gradients.scale[part] = misfit[: part.stop - start]
    gradients.variance[solved.variance <= SMALLEST_VARIANCE] = 0.0
    if math.isinf(system.problem.model.scale_dof):
        gradients.scale[:] = 0.0
    else:
        gradients.scale[:] /= solved.dof[:, None, None]  # [E6]
    return solved, gradients


def _differentiate_tile(system: ExactSystem, z: Array) -> tuple[Array, Array, Array]:
    """Derivatives of mean (q, t, d), variance (q, d) and misfit (q, t, d) at scaled queries."""
    model, d = system.problem.model, z.shape[1]
    k, sum_slopes = correlate_with_slopes(model, z, system.z)
    T = system.centering(z)
    trend = system.trend(T, system.gram, system.moment)
    rest = system.at_center() - np.einsum("qp,qpa->qa", k @ system.by_trend, T)
    theta, kappa = trend.mean, trend.solve(rest[:, :, None])
    # [E10] alpha and beta of each query.
    alpha = system.alpha - system.by_trend @ (T @ theta)  # (q, n, t)
    beta = system.factor.solve(k.T).T[:, :, None] + system.by_trend @ (T @ kappa)  # (q, n, 1)
    slope = np.zeros((len(z), d, theta.shape[2])), np.zeros((len(z), d, 1))
    if model.slope_variance > 0:
        slope = theta[:, -d:], -kappa[:, -d:]
    sums = alpha.sum(axis=1), beta.sum(axis=1)  # (q, t) and (q, 1)
    unit = 1.0 / model.lengthscale

    def through_k(solution: Array) -> Array:
        """Solution (q, n, t) times the derivatives of the correlations [E1], (q, t, d)."""
        return np.asarray(sum_slopes(solution) * unit)

    def through_A(left: int, right: int) -> Array:
        """leftᵀ dA right, (q, t, d), through the center of the slope."""
        crossed = slope[left] * sums[right][:, None, :] + sums[left][:, None, :] * slope[right]
        return np.asarray(-crossed.transpose(0, 2, 1) * unit)

    mean = through_k(alpha) - through_A(0, 1)
    variance = -2.0 * through_k(beta) + through_A(1, 1)
    return mean, variance[:, 0], -through_A(0, 0)
