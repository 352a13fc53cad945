# SPDX-License-Identifier: BSD-3-Clause
"""The heaviest model as the paper has it: its marginal likelihood, and samples of its prior."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.local_system import add_trend, correlate, solve_system
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.joint import root_of
from lsgp.method import localizers
from lsgp.method.contract import LocalModel
from lsgp.solvers.failures import Failures

Array = NDArray[np.float64]


def local_log_marginal_likelihood(ensemble: Ensemble, X: Array) -> Array:
    """Of the neighborhood of each query under the heaviest model, (q,) or (q, t), in units of y.

    log p(y) = -½ yᵀ A⁻¹ y / s² - ½ log |s² A| - ½ m log 2π with [E2] A of the m neighbors.
    """
    fitted, failures = ensemble.heaviest, Failures()
    queries = fitted.inputs_of(X)
    s2, values = fitted.model.signal_variance, np.empty((len(X), ensemble.n_targets))
    for columns, solver in fitted.solver.parts():
        for i, (rows, system) in enumerate(solver.systems(queries, failures)):
            if len(system.factor[0]) != len(system.rows):
                # The system of all rows keeps no factor of its own.
                system = solve_system(solver.problem, queries[i], rows, False)
            m = len(system.rows)
            log_determinant = 2.0 * float(np.log(np.diag(system.factor[0])).sum())
            if system.trend is not None:
                log_determinant += 2.0 * system.trend.log_evidence_part(fitted.model.lengthscale)
            constant = log_determinant + m * math.log(2.0 * math.pi * s2)
            unit = m * np.log(ensemble.target_scaler.std[columns])
            values[i, columns] = -0.5 * (system.misfit / s2 + constant) - unit
    failures.raise_if_any(len(X), fitted.model)
    return ensemble.in_shape(values)


def sample_prior(
    ensemble: Ensemble, query: Array, points: Array, n_samples: int, rng: np.random.Generator
) -> Array:
    """Functions of the heaviest model, localized at the query (1, d), at the points (p, d).

    (n_samples, p), or (n_samples, p, t) for y of shape (n, t): a priori, targets are independent.
    """
    fitted, query = ensemble.heaviest, ensemble.heaviest.inputs_of(query)
    bandwidth = float(fitted.bandwidths(query)[0])
    around = (query[0], fitted.inputs_of(points), bandwidth if bandwidth > 0 else 1.0)
    t, shape = ensemble.n_targets, (n_samples, len(points))
    draws = sample_localized_prior(fitted.model, *around, t * n_samples, rng).reshape(t, *shape)
    scaled = np.moveaxis(draws, 0, -1) * ensemble.target_scaler.std
    return scaled.reshape(*shape, *ensemble.target_shape)


def sample_localized_prior(
    model: LocalModel,
    query: Array,
    points: Array,
    bandwidth: float,
    n_samples: int,
    rng: np.random.Generator,
) -> Array:
    """Functions drawn from the prior times the square root of the localizer, (n_samples, p).

    Their covariance is ``k(x)^½ K(x, x') k(x')^½`` with the weights k of the points (p, d) at the
    query (d,), or k/h where the model normalizes them; ``bandwidth`` is in the metric of the
    localizer (Figure 2 of the paper).
    """
    if np.isinf([model.constant_variance, model.slope_variance]).any():
        raise ValueError(
            f"trend=({model.constant_variance:g}, {model.slope_variance:g}) is no distribution to "
            "sample functions from. Give the trend finite prior variances."
        )
    offsets = points - query
    s = ((offsets / model.localizer_scale) ** 2).sum(axis=1) / bandwidth**2
    weight = localizers.evaluate(model.localizer, s, model.localizer_decay)[0]
    if model.normalize:
        weight = weight / (bandwidth * model.localizer_unit)
    z = offsets / model.lengthscale
    correlations = correlate(model, points, query, z, with_derivatives=False)
    # Functions on many close points: eigenvalues, since a Cholesky factor would need jitter.
    root = root_of(add_trend(model, correlations, z).K)
    root = np.sqrt(model.signal_variance * weight)[:, None] * root
    return np.asarray(rng.standard_normal((n_samples, len(points))) @ root.T)
