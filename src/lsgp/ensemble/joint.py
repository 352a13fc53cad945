# SPDX-License-Identifier: BSD-3-Clause
"""How predictions belong together: their covariance, and averages over areas.

Each model says how the errors of its predictions are correlated [J1]; an ensemble has the weighted
mean of that. With it go the standard deviations that are predicted, so that the diagonal of the
covariance is what `predict` says.

An area is given by points that are spread over it. One that is small against its neighborhood is
predicted as a block is in kriging: from the neighborhood of its center, by one system whose
covariances are averaged over the points. A larger one has a prediction at each of its points. The
mean is, in either case, that of a map's cells over the area, up to the choice of neighbors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.backends.contract import Resources
from lsgp.compute import blas
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.predict import check_kind, gather, predict_distribution
from lsgp.method.contract import Predictions
from lsgp.method.distribution import PredictiveDistribution
from lsgp.solvers.boosted import BoostedTrees
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block, Solver

Array = NDArray[np.float64]

#: Matrices of all pairs of queries that are there at once.
N_MATRICES = 4
#: Eigenvalues of correlations that are negative by this much are 0.
ROUNDING = 1e-10
#: An area whose points are nearer to its center than this part of the neighborhood's radius is
#: small against it.
SMALL = 0.5

NEIGHBORHOODS = ("auto", "area", "point")


def predict_covariance(
    ensemble: Ensemble, X: Array, kind: str, resources: Resources
) -> tuple[Array, Array]:
    """Means (q,) or (q, t), and covariances (q, q) or (q, q, t)."""
    check_kind(kind)
    latent = predict_distribution(ensemble, X, "latent", resources)
    std = ensemble.in_columns(latent.std)
    covariance = correlations(ensemble, X, resources)
    with np.errstate(invalid="ignore"):
        covariance *= std[:, None, :] * std[None, :, :]
    if kind == "observation":
        observed = predict_distribution(ensemble, X, kind, resources)
        noise = np.square(ensemble.in_columns(observed.std)) - np.square(std)
        covariance[np.diag_indices(len(X))] += np.maximum(noise, 0.0)
    return latent.mean, covariance.reshape(len(X), len(X), *ensemble.target_shape)


def correlations(ensemble: Ensemble, X: Array, resources: Resources) -> Array:
    """Of the errors of predictions, for each target, (q, q, t)."""
    q, t = len(X), ensemble.n_targets
    needed = 8 * q * q * (t + N_MATRICES)
    if needed > resources.memory_budget:
        raise ValueError(
            f"The covariance of {q} queries needs {needed} bytes, more than memory_budget="
            f"{resources.memory_budget}. Increase memory_budget, or draw samples with sample_y, "
            "which takes any number of queries."
        )
    total = np.zeros((q, q, t))
    for fitted in ensemble.models:
        for columns, solver in fitted.solver.parts():
            own = correlation_of_errors(fitted, solver, X, resources)
            total[:, :, columns] += fitted.weight * own[:, :, None]
    # Weights sum to 1, but for rounding.
    total[np.diag_indices(q)] = 1.0
    return total


def correlation_of_errors(
    fitted: FittedModel, solver: Solver, X: Array, resources: Resources
) -> Array:
    """[J1] of one model, (q, q), with ones on the diagonal."""
    failures = Failures()
    plan = solver.plan(max(len(X), 1), resources)
    covariance = solver.covariance(fitted.inputs_of(X), Block(plan, 0, failures))
    failures.raise_if_any(len(X), solver.problem.model)
    variance = np.diag(covariance).copy()
    unit = 1.0 / np.sqrt(np.where(variance > 0, variance, np.inf))
    covariance = 0.5 * (covariance + covariance.T)
    correlation = np.clip(covariance * np.outer(unit, unit), -1.0, 1.0)
    correlation[np.diag_indices(len(X))] = 1.0
    return nearest_correlation(correlation)


def nearest_correlation(matrix: Array) -> Array:
    """A matrix with ones on the diagonal, without what rounding has made negative of it.

    Variances of functions without noise are differences of much larger numbers, and what is left of
    these may be no covariance. Eigenvalues below 0 become 0, and the diagonal is 1 again.
    """
    shifted = matrix.copy()
    shifted[np.diag_indices(len(matrix))] += ROUNDING
    if not np.isfinite(matrix).all() or blas.factor(shifted):
        return matrix
    root = root_of(matrix)
    root /= np.sqrt((root**2).sum(axis=1, keepdims=True))
    mended = root @ root.T
    mended[np.diag_indices(len(matrix))] = 1.0
    return np.asarray(mended)


def root_of(matrix: NDArray[np.floating]) -> Array:
    """A root R of a covariance, R Rᵀ, that takes negative eigenvalues for 0."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


# -- averages over areas -----------------------------------------------------------------------


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
    if fitted.n_neighbors is not None and fitted.n_neighbors >= len(fitted.problem.X):
        return np.ones(len(areas), dtype=bool)
    centers = fitted.inputs_of(np.array([points.mean(axis=0) for points in areas]))
    radius = np.empty(len(areas))
    for i, points in enumerate(areas):
        z = (fitted.inputs_of(points) - centers[i]) / fitted.model.localizer_scale
        radius[i] = np.sqrt((z * z).sum(axis=1).max())
    return np.asarray(radius <= SMALL * fitted.bandwidths(centers))


def _predict_blocks(
    ensemble: Ensemble, areas: Array, resources: Resources
) -> PredictiveDistribution:
    """Of areas (a, p, d), from the neighborhoods of their centers."""
    p, d = areas.shape[1:]
    centers = areas.mean(axis=1)

    def answer(fitted: FittedModel, part: slice, block: Block) -> Predictions:
        at = fitted.inputs_of(centers[part])
        points = fitted.inputs_of(areas[part].reshape(-1, d)).reshape(len(at), p, -1)
        return fitted.solver.predict_areas(at, points, block)

    def aside(trees: BoostedTrees, part: slice) -> Array:
        said = trees.locate(areas[part].reshape(-1, d))
        return np.asarray(said.reshape(-1, p, said.shape[1]).mean(axis=1))

    return gather(ensemble, answer, centers, resources, aside, "latent")


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
