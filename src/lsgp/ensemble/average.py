# SPDX-License-Identifier: BSD-3-Clause
"""Averages of the latent function over areas, each given by points that are spread over it.

An area that is small against its neighborhood is predicted as a block is in kriging: from the
neighborhood of its center, by one system whose covariances are averaged over the points. A larger
one has a prediction at each of its points, and their errors belong together as [J1] says. The mean
is, in either case, that of a map's cells over the area, up to the choice of neighbors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.backends.contract import Resources
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.joint import correlations
from lsgp.ensemble.predict import Asked, ask, gather, predict_distribution
from lsgp.method.distribution import PredictiveDistribution
from lsgp.search.contract import SearchRequest
from lsgp.solvers.boosted import BoostedTrees
from lsgp.solvers.solver import Block

Array = NDArray[np.float64]

#: An area whose points are nearer to its center than this part of the neighborhood's radius is
#: small against it.
SMALL = 0.5

NEIGHBORHOODS = ("auto", "area", "point")


def block_offsets(block: ArrayLike, n_inputs: int, n_points: int) -> Array:
    """Centers of the cells of a block, relative to its own, (p, d)."""
    size = np.asarray(block, dtype=float)
    if size.ndim > 1 or (size.ndim == 1 and len(size) != n_inputs):
        raise ValueError(
            f"block has shape {size.shape}, but the model has {n_inputs} inputs. Give one size, or "
            "one for each input."
        )
    if not (np.isfinite(size) & (size >= 0)).all():
        raise ValueError(f"block={block!r} is no size. Give finite numbers of at least 0.")
    if n_points < 1:
        raise ValueError(f"n_points is {n_points}, but must be at least 1.")
    places = (np.arange(n_points) + 0.5) / n_points - 0.5
    sides = [places * each if each > 0 else np.zeros(1) for each in np.broadcast_to(size, n_inputs)]
    return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, n_inputs)


def predict_average(
    ensemble: Ensemble, areas: Sequence[Array] | Array, neighborhood: str, resources: Resources
) -> PredictiveDistribution:
    """Distribution of the average of the latent function over the points (p, d) of each area."""
    if neighborhood not in NEIGHBORHOODS:
        listed = ", ".join(map(repr, NEIGHBORHOODS))
        raise ValueError(f"neighborhood={neighborhood!r} is not one of {listed}.")
    shape = (len(areas), ensemble.n_targets)
    mean, scale, dof = np.empty(shape), np.empty(shape), np.empty(len(areas))
    is_block = np.full(len(areas), neighborhood == "area")
    if neighborhood == "auto":
        is_block = _are_small(ensemble.heaviest, areas)
    sizes = np.array([len(points) for points in areas], dtype=int)
    for size in np.unique(sizes[is_block]):
        own = np.flatnonzero(is_block & (sizes == size))
        solved = _predict_blocks(ensemble, np.stack([areas[int(i)] for i in own]), resources)
        mean[own], scale[own] = (ensemble.in_columns(v) for v in (solved.mean, solved.scale))
        dof[own] = ensemble.in_columns(solved.dof)[:, 0]
    for i in np.flatnonzero(~is_block):
        mean[i], scale[i], dof[i] = _average_points(ensemble, areas[int(i)], resources)
    return PredictiveDistribution(ensemble.in_shape(mean), ensemble.in_shape(scale), dof)


def _are_small(fitted: FittedModel, areas: Sequence[Array] | Array) -> NDArray[np.bool_]:
    """Whether areas lie well within the neighborhoods of their centers, (a,)."""
    model = fitted.model
    centers = fitted.inputs_of(np.array([points.mean(axis=0) for points in areas]))
    if fitted.n_neighbors is None:
        bandwidth = np.full(len(areas), model.scaled_bandwidth)
    elif fitted.n_neighbors >= len(fitted.problem.X):
        return np.ones(len(areas), dtype=bool)
    else:
        request = SearchRequest(centers, model.localizer_scale, fitted.n_neighbors)
        found = fitted.index.measure(request)
        bandwidth = model.reach * found.distances.max(axis=1)
    radius = np.empty(len(areas))
    for i, points in enumerate(areas):
        z = (fitted.inputs_of(points) - centers[i]) / model.localizer_scale
        radius[i] = np.sqrt((z * z).sum(axis=1).max())
    return np.asarray(radius <= SMALL * bandwidth)


def _predict_blocks(
    ensemble: Ensemble, areas: Array, resources: Resources
) -> PredictiveDistribution:
    """Of areas (a, p, d), from the neighborhoods of their centers."""
    _, p, d = areas.shape
    centers = areas.mean(axis=1)

    def answer(fitted: FittedModel, start: int, stop: int, block: Block) -> Asked:
        points = fitted.inputs_of(areas[start:stop].reshape(-1, d)).reshape(stop - start, p, -1)
        at = fitted.inputs_of(centers[start:stop])
        return ask(fitted, fitted.solver.predict_areas(at, points, block), "latent")

    def aside(trees: BoostedTrees, start: int, stop: int) -> Array:
        said = trees.locate(areas[start:stop].reshape(-1, d))
        return np.asarray(said.reshape(stop - start, p, -1).mean(axis=1))

    return gather(ensemble, answer, centers, resources, aside)


def _average_points(
    ensemble: Ensemble, points: Array, resources: Resources
) -> tuple[Array, Array, float]:
    """Mean (t,), scale (t,) and degrees of freedom of the average over points (p, d)."""
    predicted = predict_distribution(ensemble, points, "latent", resources)
    scale = ensemble.in_columns(predicted.scale) / len(points)
    correlation = correlations(ensemble, points, resources)
    variance = np.einsum("pt,pqt,qt->t", scale, correlation, scale)
    dof = 1.0 / max(float(np.mean(1.0 / predicted.dof)), 1e-300)
    mean = ensemble.in_columns(predicted.mean).mean(axis=0)
    return mean, np.sqrt(np.maximum(variance, 0.0)), np.inf if dof > 1e299 else dof
