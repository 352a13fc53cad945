# SPDX-License-Identifier: BSD-3-Clause
"""Samples of the prior, localized around a query (Figure 2 of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import reference
from lsgp.ensemble.ensemble import Ensemble
from lsgp.method import localizers
from lsgp.method.contract import LocalModel

Array = NDArray[np.float64]


def sample_localized_prior(
    model: LocalModel,
    query: Array,
    points: Array,
    bandwidth: float,
    n_samples: int,
    rng: np.random.Generator,
) -> Array:
    """Functions drawn from the prior times the square root of the localizer, (n_samples, p).

    Their covariance is ``k(x)^½ K(x, x') k(x')^½`` with the weights k of the points
    (p, d) at the query (d,); ``bandwidth`` is in the scaled metric.
    """
    z = (points - query) / model.lengthscale
    s = (z * z).sum(axis=1) / bandwidth**2
    weight = localizers.evaluate(model.localizer, s, model.localizer_decay)[0]
    covariance = reference.covary(model, points, query, z).K
    # Functions on many close points: eigenvalues, since a Cholesky factor would need jitter.
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    functions = rng.standard_normal((n_samples, len(points))) @ root.T
    return np.sqrt(model.signal_variance * weight) * functions


def sample_prior(
    ensemble: Ensemble, query: Array, points: Array, n_samples: int, rng: np.random.Generator
) -> Array:
    """Functions of the heaviest model, localized at the query (1, d), at the points (p, d)."""
    fitted, model = ensemble.heaviest, ensemble.heaviest.model
    query = fitted.inputs_of(query)
    bandwidth = model.scaled_bandwidth
    if fitted.n_neighbors is not None:
        lengthscale = np.asarray(model.lengthscale, dtype=float)
        found = fitted.index.nearest_with_distances(query, lengthscale, fitted.n_neighbors)
        bandwidth = float(found.distances[0].max())
    functions = sample_localized_prior(
        model,
        query[0],
        fitted.inputs_of(points),
        bandwidth if bandwidth > 0 else 1.0,
        n_samples,
        rng,
    )
    return functions * ensemble.target_scaler.std[0]
