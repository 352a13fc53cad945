# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of local solves in the query, at a fixed neighborhood: the oracle of all others.

The rows of the neighborhood stay; everything that [E1] to [E7] compute from the query moves: the
cross-covariance, the slope of the trend, which is centered at the query, the weights and the
adaptive bandwidth. With the smooth and the Epanechnikov localizer the prediction is continuous,
and this is its derivative wherever no two rows compete for the last place of the neighborhood.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.local_system import SMALLEST_VARIANCE, LocalSystem, scale_and_dof
from lsgp.method import localizers
from lsgp.method.contract import LocalModel, LocalProblem

Array = NDArray[np.float64]


class SystemGradient(NamedTuple):
    """Derivatives of one local solve in the inputs of its query; fields as `QueryGradients`."""

    mean: Array  # (t, d) of [E4]
    variance: Array  # (d,) of [E5]
    scale: Array  # (t, d) of [E6]
    dof: Array  # (d,) of [E6]
    noise_unit: Array  # (d,) of the logarithm of what an observation's noise is multiplied by [E7]


def differentiate_system(
    problem: LocalProblem, query: Array, rows: NDArray[np.int32], system: LocalSystem
) -> SystemGradient:
    """Derivatives of one local solve in the query's inputs; ``rows`` are its neighborhood."""
    model = problem.model
    alpha, beta, z, weight = (
        np.asarray(part, dtype=float)
        for part in (system.alpha, system.beta, system.z, system.weight)
    )
    z_by_query = -1.0 / model.lengthscale  # (d,), of z in its own input
    X = problem.X[system.rows].astype(float)
    by_weight, by_unit = _differentiate_weights(
        model, problem.X[rows].astype(float) - query, X - query, system
    )
    by_k, by_k00 = model.correlation.differentiate(X, query, z, model.lengthscale)  # [E1]
    # [E2] The noise over the weight, per alpha beta, which vanish with the weight.
    by_noise = -model.noise_variance * system.noise[:, None] * by_weight

    slope_by_alpha, slope_by_beta = (  # (d, t) and (d,)
        np.asarray(part, dtype=float) for part in system.slopes(model)
    )

    def through_A(left: Array, left_slope: Array, right: Array, right_slope: Array) -> Array:
        """leftᵀ dA right, (d,): noise and the slope's b zᵢ·zⱼ depend on the query."""
        slope = left_slope * right.sum() + left.sum() * right_slope
        noise = (left / weight) * (right / weight) @ by_noise
        return np.asarray(noise + slope * z_by_query)

    targets = list(zip(alpha.T, slope_by_alpha.T, strict=True))
    mean = np.array([a @ by_k - through_A(a, s, beta, slope_by_beta) for a, s in targets])
    variance = np.asarray(by_k00 - 2.0 * beta @ by_k)
    variance += through_A(beta, slope_by_beta, beta, slope_by_beta)
    if system.variance <= SMALLEST_VARIANCE * system.covariance.k00:
        variance = np.zeros_like(variance)
    if np.isinf(model.scale_dof):
        flat = np.zeros_like(mean), np.zeros_like(variance)
        return SystemGradient(mean, variance, *flat, by_unit)
    scale, nu = scale_and_dof(model, system)
    dof = (weight < 1.0) @ by_weight
    misfit = np.array([-through_A(a, s, a, s) for a, s in targets])
    return SystemGradient(mean, variance, (misfit - np.outer(scale, dof)) / nu, dof, by_unit)


def _differentiate_weights(
    model: LocalModel, neighborhood: Array, offsets: Array, system: LocalSystem
) -> tuple[Array, Array]:
    """Derivatives (m, d) of the weights of the system, and (d,) of the logarithm of its noise unit.

    ``neighborhood`` and ``offsets`` are all neighbors, and those in the system, from the query.
    """
    unit = model.localizer_scale
    z = offsets / unit
    r2_by_query = -2.0 * z / unit
    h2, h2_by_query = model.scaled_bandwidth**2, np.zeros(len(unit))
    if model.bandwidth is None:
        all_z = neighborhood / unit
        r2 = (all_z**2).sum(axis=1)
        h2 = r2.max(initial=0.0)
        if h2 == 0:
            return np.zeros_like(r2_by_query), h2_by_query
        h2_by_query = -2.0 * all_z[r2.argmax()] / unit
    s = (z**2).sum(axis=1) / h2
    by_s = localizers.evaluate(model.localizer, s, model.localizer_decay)[1]
    by_query = by_s[:, None] * (r2_by_query - np.outer(s, h2_by_query)) / h2
    if not model.normalize:
        return by_query, np.zeros(len(unit))
    by_unit = 0.5 * h2_by_query / h2
    return by_query / system.noise_unit - np.outer(system.weight, by_unit), by_unit
