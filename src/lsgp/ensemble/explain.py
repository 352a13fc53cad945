# SPDX-License-Identifier: BSD-3-Clause
"""Why a prediction is what it is: neighbors, their contributions, and distance from the data.

The mean is linear in the targets: [E4] is kᵀα = Σ βᵢ yᵢ with β = A⁻¹k, in every local system, and
the combination of several models is a weighted sum of them. So each training row has one
coefficient, and its contribution is exact, not an approximation of the model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lsgp.backends.local_system import scale_and_dof
from lsgp.ensemble import view
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.explanation import Explanation
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.predict import widen
from lsgp.inputs.transforms import Sphere
from lsgp.method.combination import combine
from lsgp.method.contract import Predictions
from lsgp.method.distribution import PredictiveDistribution, distribution_of
from lsgp.search.contract import Exclusions
from lsgp.solvers.failures import Failures

Array = NDArray[np.float64]


def explain(ensemble: Ensemble, X: Array, exclude: ArrayLike | None = None) -> Explanation:
    """Neighbors of each query, what each contributes to the mean, and how far the data are.

    Solved one query at a time in double precision.
    """
    left_out = check_left_out(exclude, len(X), ensemble)
    together = None if left_out is None else ensemble.left_out_together()
    parts, merged, near, failures = explain_neighbors(ensemble, X, left_out, together)
    failures.warn_if_jittered(len(X), ensemble.heaviest.model)
    scaler, shares = ensemble.target_scaler, ensemble.weights
    n_columns, t = parts[0].n_columns, ensemble.n_targets
    coefficients = pad([m.neighbors.coefficients for m in merged], 0.0, np.float64, n_columns)
    scaled = pad([m.neighbors.y for m in merged], 0.0, np.float64, t)
    is_coarse = any(fitted.model.is_coarse for fitted in ensemble.models)
    scale = np.exp(sum(w * np.log(p.scale) for w, p in zip(shares, parts, strict=True)))
    aside, boosted = None, ensemble.boosted
    if boosted is not None:
        nothing = np.full(len(X), -1)
        aside = boosted.locate_without(X, nothing if left_out is None else left_out)
        coefficients *= 1.0 - boosted.share
    predicted = ensemble.combine([part.predicted for part in parts], aside=aside)
    scale = ensemble.scale_factor * scale * _contrast(ensemble, parts, aside)
    dof = predicted.dof[:, 0]
    shape = (*near.rows.shape, *ensemble.target_shape)
    return Explanation(
        **near._asdict(),
        coefficients=coefficients[:, :, 0] if n_columns == 1 else coefficients,
        observed=scaler.inverse_mean(scaled).reshape(shape),
        contributions=(scaled * coefficients * scaler.std).reshape(shape),
        baseline=scaler.mean.reshape(ensemble.target_shape),
        predicted=widen(
            ensemble,
            X,
            PredictiveDistribution(
                ensemble.in_shape(predicted.mean),
                ensemble.in_shape(predicted.scale),
                dof,
                failures.is_jittered(len(X)),
            ),
        ),
        local_scale=ensemble.in_shape(scaler.inverse_scale(scale)),
        dof=dof,
        target_names=view.target_names(ensemble),
        by_trees=_by_trees(ensemble, aside),
        n_rows=pad([m.neighbors.n_rows for m in merged], 0, np.int64) if is_coarse else None,
    )


class Near(NamedTuple):
    """What explanations of numbers and of classes share; fields are as in `Explanation`."""

    rows: NDArray[np.int64]
    distances: Array
    weights: Array
    n_effective: Array
    extrapolation: Array
    is_extrapolating: NDArray[np.bool_]
    is_beyond_range: NDArray[np.bool_]
    input_names: list[str]
    kilometers: Array | None


def explain_neighbors(
    ensemble: Ensemble,
    X: Array,
    left_out: NDArray[np.int32] | None,
    together: NDArray[np.int32] | None,
) -> tuple[list[Part], list[Merged], Near, Failures]:
    """What each model says of queries, the neighbors of each query in all of them, and the rest."""
    failures, heaviest = Failures(), ensemble.heaviest
    queries = [fitted.inputs_of(X) for fitted in ensemble.models]
    parts = [
        explain_one(fitted, transformed, failures, left_out, together)
        for fitted, transformed in zip(ensemble.models, queries, strict=True)
    ]
    failures.raise_if_any(len(X), heaviest.model)
    shares = ensemble.weights / ensemble.weights.sum()
    merged = [
        _merge([part.neighbors[q] for part in parts], shares, heaviest, query)
        for q, query in enumerate(queries[0])
    ]
    rows = pad([m.neighbors.rows for m in merged], -1, np.int64)
    extrapolation = np.asarray(sum(w * p.distance for w, p in zip(shares, parts, strict=True)))
    near = Near(
        rows=rows,
        distances=pad([m.neighbors.distances for m in merged], np.inf, np.float64),
        weights=pad([m.neighbors.weights for m in merged], 0.0, np.float64),
        n_effective=np.asarray(sum(w * p.n_effective for w, p in zip(shares, parts, strict=True))),
        extrapolation=extrapolation,
        is_extrapolating=extrapolation > 1.0,
        is_beyond_range=_is_beyond_range(ensemble, X, queries[0]),
        input_names=view.input_names(ensemble),
        kilometers=_kilometers(ensemble, rows, queries[0]),
    )
    return parts, merged, near, failures


def _contrast(ensemble: Ensemble, parts: list[Part], aside: Array | None) -> Array:
    """What calibration multiplies the scale of each query by, (q, t), beside the factor."""
    observed = combine([part.predicted for part in parts], ensemble.weights)
    observed = ensemble.leaning(observed, aside)
    return ensemble.shape.factor(observed.scale)


def _by_trees(ensemble: Ensemble, aside: Array | None) -> Array | None:
    """What trees add to the mean, in the units of y, from what they say in scaled ones (q, t)."""
    if aside is None or ensemble.boosted is None:
        return None
    return ensemble.in_shape(ensemble.boosted.share * ensemble.target_scaler.std * aside)


def _kilometers(ensemble: Ensemble, rows: NDArray[np.int64], queries: Array) -> Array | None:
    """Of neighbors (q, w) from queries in the heaviest model's inputs; None if not on a sphere."""
    if not isinstance(ensemble.projection, Sphere):
        return None
    heaviest = ensemble.heaviest
    found = np.full(rows.shape, np.inf)
    for own, neighbors, query in zip(found, rows, queries, strict=True):
        kept = neighbors >= 0
        X = heaviest.problem.X[neighbors[kept]]
        own[kept] = heaviest.transform.kilometers(X, query)
    return found


class Neighbors(NamedTuple):
    """Of one query in one model, or merged over all models."""

    rows: NDArray[np.int64]  # (k,)
    distances: NDArray[Any]  # (k,)
    weights: NDArray[Any]  # (k,)
    coefficients: NDArray[Any]  # (k, c): of all targets alike, or of each
    n_rows: NDArray[np.int64]  # (k,) 1, or those of a group
    y: NDArray[Any]  # (k, t) in scaled units


class Merged(NamedTuple):
    """The neighbors of one query in all models, each row once, nearest first; groups apart."""

    neighbors: Neighbors
    places: list[NDArray[np.intp]]  # of the neighbors of each model among them


class Part(NamedTuple):
    """What one model says about all queries, in scaled units."""

    neighbors: list[Neighbors]
    predicted: PredictiveDistribution
    n_effective: Array  # (q,)
    scale: Array  # (q, t), a standard deviation
    distance: Array  # (q,) from the data, relative to the data's own
    n_columns: int  # of the coefficients


def check_left_out(
    exclude: ArrayLike | None, n_queries: int, ensemble: Ensemble
) -> NDArray[np.int32] | None:
    """A training row for each query that it is predicted without."""
    if exclude is None:
        return None
    rows, n_rows = np.asarray(exclude), ensemble.n_rows
    is_valid = rows.shape == (n_queries,) and np.issubdtype(rows.dtype, np.integer)
    if not is_valid or np.any((rows < -1) | (rows >= n_rows)):
        raise ValueError(
            f"exclude of shape {rows.shape} and type {rows.dtype} does not name one of the "
            f"{n_rows} training rows for each of {n_queries} queries. Give one row number per "
            "query, or -1 for none."
        )
    return rows.astype(np.int32)


def explain_one(
    fitted: FittedModel,
    queries: Array,
    failures: Failures,
    left_out: NDArray[np.int32] | None,
    groups: NDArray[np.int32] | None,
) -> Part:
    """What one model says about queries in its own inputs, and from which rows."""
    q, t = len(queries), fitted.problem.y.shape[1]
    levels = fitted.solver.parts()
    mean, variance, scale = np.empty((q, t)), np.empty((q, t)), np.empty((q, t))
    dof, noise_unit, n_effective = np.empty(q), np.empty(q), np.empty(q)
    neighbors: list[Neighbors] = []
    n_columns = t if len(levels) > 1 else 1
    for number, (columns, solver) in enumerate(levels):
        for i, (_, system) in enumerate(solver.systems(queries, failures, left_out, groups)):
            mean[i, columns] = system.mean
            variance[i, columns] = system.variance
            scale[i, columns], dof[i] = scale_and_dof(fitted.model, system)  # [E6]
            if number == 0:
                r = np.sqrt((system.z**2).sum(axis=1))
                shares = np.empty((len(r), n_columns))
                units = fitted.solver.unit_info(system.rows)
                own = units.n_rows, units.y
                neighbors.append(Neighbors(units.rows, r, system.weight, shares, *own))
                n_effective[i] = np.minimum(system.weight, 1.0).sum()
                noise_unit[i] = system.noise_unit
            into = columns if len(levels) > 1 else [0]
            neighbors[i].coefficients[:, into] = system.beta[:, None]
    status = np.zeros(q, np.int32)  # failures are noted
    solved = Predictions(mean, variance, scale, dof, status, noise_unit)
    predicted = distribution_of(solved, fitted.model.noise_of(np.ones(q)))
    distance = fitted.extent.distance(queries, Exclusions.of_rows(left_out, groups))
    return Part(neighbors, predicted, n_effective, np.sqrt(scale), distance, n_columns)


def _merge(parts: list[Neighbors], shares: Array, heaviest: FittedModel, query: Array) -> Merged:
    """The neighbors of one query in all models, with weights and coefficients averaged."""
    every_row = np.concatenate([p.rows for p in parts])
    n_rows, y = np.concatenate([p.n_rows for p in parts]), np.concatenate([p.y for p in parts])
    keys = np.where(n_rows == 1, every_row, len(heaviest.problem.X) + np.arange(len(every_row)))
    _, first, position = np.unique(keys, return_index=True, return_inverse=True)
    rows = every_row[first]
    z = (heaviest.problem.X[rows].astype(float) - query) / heaviest.model.lengthscale
    distances = np.sqrt((z**2).sum(axis=1))
    order = np.lexsort([rows, distances])
    place = np.argsort(order)[position]

    def total(columns: list[NDArray[Any]]) -> NDArray[Any]:
        weighted = [w * values for w, values in zip(shares, columns, strict=True)]
        return np.bincount(place, np.concatenate(weighted), len(rows))

    coefficients = [
        total([p.coefficients[:, c] for p in parts]) for c in range(parts[0].coefficients.shape[1])
    ]
    neighbors = Neighbors(
        rows[order],
        distances[order],
        total([p.weights for p in parts]),
        np.stack(coefficients, axis=1),
        n_rows[first][order],
        y[first][order],
    )
    ends = np.cumsum([len(p.rows) for p in parts])[:-1]
    return Merged(neighbors, np.split(place, ends))


def pad(parts: list[NDArray[Any]], fill: float, dtype: DTypeLike, *rest: int) -> NDArray[Any]:
    """Arrays (k, *rest) of several lengths in one, (q, w, *rest)."""
    longest = max(map(len, parts), default=0)
    padded = np.full((len(parts), longest, *rest), fill, dtype)
    for row, part in zip(padded, parts, strict=True):
        row[: len(part)] = part
    return padded


def _is_beyond_range(ensemble: Ensemble, X: Array, queries: Array) -> NDArray[np.bool_]:
    """Whether columns are outside the training range, or at a level never seen, (q, d).

    Transforms are monotone, so compare there.
    """
    fitted = ensemble.heaviest
    low, high = fitted.extent.input_range
    queries = queries.astype(low.dtype)
    beyond: NDArray[np.bool_] = (queries < low) | (queries > high)
    # A constant column is 0 after its transform: only its center remembers the constant.
    constant = np.isinf(fitted.transform.scale)
    columns = fitted.transform.project(X)
    beyond[:, constant] = columns[:, constant] != fitted.transform.center[constant]
    beyond = fitted.transform.of_inputs(beyond)
    if ensemble.encoder is None:
        return beyond
    unseen, encodings = ensemble.encoder.is_unseen(X), ensemble.encoder.encodings
    return np.column_stack(
        [
            unseen[:, j] if each.kind == "category" else beyond[:, span].any(axis=1)
            for j, (each, span) in enumerate(zip(encodings, ensemble.spans, strict=True))
        ]
    )
