# SPDX-License-Identifier: BSD-3-Clause
"""Samples of the prior, localized around a query (Figure 2 of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.local_system import add_trend, correlate
from lsgp.ensemble.ensemble import Ensemble
from lsgp.method import localizers
from lsgp.method.contract import LocalModel
from lsgp.search.contract import SearchRequest

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
    (p, d) at the query (d,), or k/h where the model normalizes them; ``bandwidth`` is in
    the metric of the localizer.
    """
    root = localized_root(model, query, points, bandwidth)
    return rng.standard_normal((n_samples, len(points))) @ root.T


def localized_root(model: LocalModel, query: Array, points: Array, bandwidth: float) -> Array:
    """A square root of the covariance of the localized prior, (p, p)."""
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
    covariance = add_trend(model, correlations, z).K
    # Functions on many close points: eigenvalues, since a Cholesky factor would need jitter.
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(np.sqrt(model.signal_variance * weight)[:, None] * root)


def sample_prior(
    ensemble: Ensemble, query: Array, points: Array, n_samples: int, rng: np.random.Generator
) -> Array:
    """Functions of the heaviest model, localized at the query (1, d), at the points (p, d).

    (n_samples, p), or (n_samples, p, t) for y of shape (n, t): a priori, targets are independent.
    """
    fitted, model = ensemble.heaviest, ensemble.heaviest.model
    query = fitted.inputs_of(query)
    bandwidth = model.scaled_bandwidth
    if fitted.n_neighbors is not None:
        request = SearchRequest(query, model.localizer_scale, fitted.n_neighbors)
        found = fitted.index.measure(request)
        bandwidth = model.reach * float(found.distances[0].max())
    root = localized_root(
        model, query[0], fitted.inputs_of(points), bandwidth if bandwidth > 0 else 1.0
    )
    shape = (n_samples, len(points))
    draws = [std * (rng.standard_normal(shape) @ root.T) for std in ensemble.target_scaler.std]
    return np.stack(draws, axis=-1).reshape(*shape, *ensemble.target_shape)
