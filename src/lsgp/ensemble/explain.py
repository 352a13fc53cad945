# SPDX-License-Identifier: BSD-3-Clause
"""Why a prediction is what it is: neighbors, their contributions, and distance from the data.

The mean is linear in the targets: [E4] is kᵀα = Σ βᵢ yᵢ with β = A⁻¹k, in every local system, and
the combination of several models is a weighted sum of them. So each training row has one
coefficient, and its contribution is exact, not an approximation of the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.backends.local_system import scale_and_dof
from lsgp.compute.text import count
from lsgp.ensemble import view
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.predict import widen
from lsgp.inputs.frames import make_frame, name_columns
from lsgp.inputs.transforms import Sphere
from lsgp.method.combination import combine
from lsgp.method.contract import Predictions
from lsgp.method.distribution import PredictiveDistribution, distribution_of
from lsgp.search.exclusions import Exclusions
from lsgp.solvers.failures import Failures

Array = NDArray[np.float64]


class NeighborContributions(NamedTuple):
    """The neighbors of one query, nearest first; fields are as in `Explanation`.

    Attributes
    ----------
    rows : array of shape (k,)
    distances : array of shape (k,)
    weights : array of shape (k,)
    coefficients : array of shape (k,)
    observed : array of shape (k,) or (k, t)
    contributions : array of shape (k,) or (k, t)
    kilometers : array of shape (k,) or None
    n_rows : integer array of shape (k,) or None
    """

    rows: NDArray[np.int64]
    distances: Array
    weights: Array
    coefficients: Array
    observed: Array
    contributions: Array
    kilometers: Array | None = None
    n_rows: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        nearest = f", nearest row {self.rows[0]}" if len(self.rows) else ""
        return f"NeighborContributions({count(len(self.rows), 'neighbor')}{nearest})"

    def name_of(self, k: int, count_from: int = 0) -> str:
        """What a neighbor is, for people: a row, or a group of them."""
        row = f"row {self.rows[k] + count_from:,}"
        if self.n_rows is None or self.n_rows[k] == 1:
            return row
        return f"a group of {self.n_rows[k]:,} rows around {row}"


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the predictions of q queries are made of; from `LSGPRegressor.explain`.

    Arrays of neighbors have shape (q, w), nearest first, padded to the largest number w of
    neighbors; `of_query` gives those of one query without the padding. Only rows of positive
    weight are listed: they alone enter the prediction. Several models are combined by the
    estimator, and a row that is a neighbor in some of them is listed once. Where far rows stand
    together (``reach``), a group of rows is listed as one neighbor: by the row nearest to its
    mean, with the mean of its targets, and ``n_rows`` says how many they are.

    Attributes
    ----------
    rows : integer array of shape (q, w)
        Training rows, as numbered by `loo` (rows of zero sample weight do not count); -1 pads.
    distances : array of shape (q, w)
        In the scaled metric of the heaviest model; infinite where padded.
    weights : array of shape (q, w)
        The localizer's weight, averaged over the models; 0 in those that do not see the row.
    coefficients : array of shape (q, w), or (q, w, t) where the noise of targets differs
        What the prediction changes by when the row's target changes by one.
    observed : array of shape (q, w) or (q, w, t)
        The row's target.
    contributions : array of shape (q, w) or (q, w, t)
        The row's part of the mean, coefficient × (observed − `baseline`):
        ``baseline + contributions.sum(axis=1)``, and what trees add, is the predicted mean.
    baseline : array of shape () or (t,)
        Mean of the training targets, where predictions start (0 with ``normalize_y=False``).
    predicted : PredictiveDistribution
        Of an observation, as `predict_distribution`.
    n_effective : array of shape (q,)
        Effective number of neighbors Σ min(w, 1), averaged over the models.
    local_scale : array of shape (q,) or (q, t)
        Standard deviation of the latent function near the query [E6], in the units of y: the
        geometric mean over the models, calibrated as the predictions are.
    dof : array of shape (q,)
        Degrees of freedom of the prediction [E6], infinite for a Gaussian.
    extrapolation : array of shape (q,)
        Mean distance to the 5 nearest training rows, relative to what 99 % of the training rows
        have to their own nearest others; averaged over the models, each in its own metric.
        0 on top of the data, 1 at its edge or in gaps as wide as its widest, more beyond.
    is_extrapolating : boolean array of shape (q,)
        Whether ``extrapolation`` exceeds 1. About 1 in 100 of queries that are distributed as
        the training data is flagged.
    is_beyond_range : boolean array of shape (q, d)
        Inputs of the query that are outside the range of the training rows.
    input_names : list of str
    target_names : list of str
    kilometers : array of shape (q, w) or None
        Along the ground, where two inputs are on the sphere; infinite where padded.
    by_trees : array of shape (q,) or (q, t), or None
        What boosted trees add to the mean, with their share; None if there are none.
    n_rows : integer array of shape (q, w) or None
        Rows that a neighbor stands for, 0 where padded; None where every one is a row.
    """

    rows: NDArray[np.int64]
    distances: Array
    weights: Array
    coefficients: Array
    observed: Array
    contributions: Array
    baseline: Array
    predicted: PredictiveDistribution
    n_effective: Array
    local_scale: Array
    dof: Array
    extrapolation: Array
    is_extrapolating: NDArray[np.bool_]
    is_beyond_range: NDArray[np.bool_]
    input_names: list[str]
    target_names: list[str]
    kilometers: Array | None = None
    by_trees: Array | None = None
    n_rows: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        n = self.n_neighbors
        sizes = f"{n.min()} to {n.max()} neighbors each" if len(n) else "no neighbors"
        if len(n) and n.min() == n.max():
            sizes = f"{count(int(n[0]), 'neighbor')} each"
        return (
            f"Explanation({len(self)} {'query' if len(self) == 1 else 'queries'}, {sizes}, "
            f"{np.count_nonzero(self.is_extrapolating)} extrapolating)"
        )

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.rows)

    @property
    def n_neighbors(self) -> NDArray[np.int64]:
        """Number of neighbors that each prediction is made from, (q,): of rows, or groups."""
        return np.count_nonzero(self.rows >= 0, axis=1)

    def of_query(self, query: int) -> NeighborContributions:
        """The neighbors of one query, without padding."""
        kept = self.rows[query] >= 0
        return NeighborContributions(
            self.rows[query][kept],
            self.distances[query][kept],
            self.weights[query][kept],
            self.coefficients[query][kept],
            self.observed[query][kept],
            self.contributions[query][kept],
            None if self.kilometers is None else self.kilometers[query][kept],
            None if self.n_rows is None else self.n_rows[query][kept],
        )

    def to_frame(self, library: str = "pandas") -> Any:
        """One row per query and neighbor; ``library`` is "pandas" or "polars"."""
        kept = self.rows >= 0
        columns: dict[str, Any] = {
            "query": np.nonzero(kept)[0],
            "row": self.rows[kept],
            **({} if self.n_rows is None else {"n_rows": self.n_rows[kept]}),
            "distance": self.distances[kept],
            **({} if self.kilometers is None else {"kilometers": self.kilometers[kept]}),
            "weight": self.weights[kept],
        }
        columns |= name_columns("coefficient", self.coefficients[kept], self.target_names)
        columns |= name_columns("observed", self.observed[kept], self.target_names)
        columns |= name_columns("contribution", self.contributions[kept], self.target_names)
        return make_frame(columns, library)

    def summary_frame(self, library: str = "pandas") -> Any:
        """One row per query; ``library`` is "pandas" or "polars"."""
        columns: dict[str, Any] = {"query": np.arange(len(self))}
        columns |= name_columns("mean", self.predicted.mean, self.target_names)
        columns |= name_columns("std", np.asarray(self.predicted.std), self.target_names)
        if self.by_trees is not None:
            columns |= name_columns("by_trees", self.by_trees, self.target_names)
        columns["n_neighbors"] = self.n_neighbors
        columns["n_effective"] = self.n_effective
        columns |= name_columns("local_scale", self.local_scale, self.target_names)
        columns["dof"] = self.dof
        columns["extrapolation"] = self.extrapolation
        columns["is_extrapolating"] = self.is_extrapolating
        names = np.array(self.input_names, dtype=object)
        columns["beyond_range"] = [", ".join(names[beyond]) for beyond in self.is_beyond_range]
        return make_frame(columns, library)


def explain(ensemble: Ensemble, X: Array, exclude: ArrayLike | None = None) -> Explanation:
    """Neighbors of each query, what each contributes to the mean, and how far the data are.

    Solved one query at a time in double precision.
    """
    left_out = check_left_out(exclude, len(X), ensemble)
    failures = Failures()
    queries = [fitted.inputs_of(X) for fitted in ensemble.models]
    parts = [
        explain_one(fitted, transformed, failures, left_out, ensemble.group_numbers)
        for fitted, transformed in zip(ensemble.models, queries, strict=True)
    ]
    heaviest, scaler, shares = ensemble.heaviest, ensemble.target_scaler, ensemble.weights
    failures.raise_if_any(len(X), heaviest.model)
    failures.warn_if_jittered(len(X), heaviest.model)
    merged = [
        _merge([part.neighbors[q] for part in parts], shares, heaviest, queries[0][q])
        for q in range(len(X))
    ]
    rows = pad([m.rows for m in merged], -1, np.int64)
    n_columns = parts[0].n_columns
    coefficients = np.stack(
        [pad([m.coefficients[:, c] for m in merged], 0.0, np.float64) for c in range(n_columns)],
        axis=2,
    )
    scaled = np.stack(
        [pad([m.y[:, c] for m in merged], 0.0, np.float64) for c in range(ensemble.n_targets)],
        axis=2,
    )
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
    shape = (*rows.shape, *ensemble.target_shape)
    extrapolation = np.asarray(sum(w * p.distance for w, p in zip(shares, parts, strict=True)))
    return Explanation(
        rows=ensemble.given_rows(rows),
        distances=pad([m.distances for m in merged], np.inf, np.float64),
        weights=pad([m.weights for m in merged], 0.0, np.float64),
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
        n_effective=np.asarray(sum(w * p.n_effective for w, p in zip(shares, parts, strict=True))),
        local_scale=ensemble.in_shape(scaler.inverse_scale(scale)),
        dof=dof,
        extrapolation=extrapolation,
        is_extrapolating=extrapolation > 1.0,
        is_beyond_range=is_beyond_range_of(ensemble, X, queries[0]),
        input_names=view.input_names(ensemble),
        target_names=view.target_names(ensemble),
        kilometers=kilometers_of(ensemble, rows, queries[0]),
        by_trees=_by_trees(ensemble, aside),
        n_rows=pad([m.n_rows for m in merged], 0, np.int64) if is_coarse else None,
    )


def _contrast(ensemble: Ensemble, parts: list[Part], aside: Array | None) -> Array:
    """What calibration multiplies the scale of each query by, (q, t), beside the factor."""
    observed = combine([part.predicted for part in parts], ensemble.weights)
    observed = ensemble.leaning(observed, aside)
    return ensemble.shape.factor(observed.scale)


def _by_trees(ensemble: Ensemble, aside: Array | None) -> Array | None:
    """What trees add to the mean, in the units of y, from what they say in scaled ones (q, t)."""
    if ensemble.boosted is None or aside is None:
        return None
    return ensemble.in_shape(ensemble.boosted.share * ensemble.target_scaler.std * aside)


def kilometers_of(ensemble: Ensemble, rows: NDArray[np.int64], queries: Array) -> Array | None:
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
    return ensemble.model_rows(rows).astype(np.int32)


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
                standing = fitted.solver.stand_for(system.rows)
                own = standing.n_rows, standing.y
                neighbors.append(Neighbors(standing.rows, r, system.weight, shares, *own))
                n_effective[i] = np.minimum(system.weight, 1.0).sum()
                noise_unit[i] = system.noise_unit
            into = columns if len(levels) > 1 else [0]
            neighbors[i].coefficients[:, into] = system.beta[:, None]
    status = np.zeros(q, np.int32)  # failures are noted
    solved = Predictions(mean, variance, scale, dof, status, noise_unit)
    predicted = distribution_of(solved, fitted.model.noise_of(np.ones(q)))
    distance = fitted.extent.distance(queries, Exclusions.of_rows(left_out, groups))
    return Part(neighbors, predicted, n_effective, np.sqrt(scale), distance, n_columns)


def _merge(parts: list[Neighbors], shares: Array, heaviest: FittedModel, query: Array) -> Neighbors:
    """The neighbors of one query in all models, each row once, nearest first; groups apart."""
    every_row = np.concatenate([p.rows for p in parts])
    n_rows, y = np.concatenate([p.n_rows for p in parts]), np.concatenate([p.y for p in parts])
    keys = np.where(n_rows == 1, every_row, len(heaviest.problem.X) + np.arange(len(every_row)))
    _, first, position = np.unique(keys, return_index=True, return_inverse=True)
    rows, n_rows, y = every_row[first], n_rows[first], y[first]

    def total(columns: list[NDArray[Any]]) -> NDArray[Any]:
        weighted = [w * values for w, values in zip(shares, columns, strict=True)]
        return np.bincount(position, np.concatenate(weighted), len(rows))

    weights = total([p.weights for p in parts])
    n_columns = parts[0].coefficients.shape[1]
    coefficients = np.stack(
        [total([p.coefficients[:, c] for p in parts]) for c in range(n_columns)], axis=1
    )
    z = (heaviest.problem.X[rows].astype(float) - query) / heaviest.model.lengthscale
    distances = np.sqrt((z**2).sum(axis=1))
    order = np.lexsort([rows, distances])
    return Neighbors(
        rows[order],
        distances[order],
        weights[order],
        coefficients[order],
        n_rows[order],
        y[order],
    )


def pad(parts: list[NDArray[Any]], fill: Any, dtype: Any) -> NDArray[Any]:
    padded = np.full((len(parts), max(map(len, parts), default=0)), fill, dtype)
    for row, part in zip(padded, parts, strict=True):
        row[: len(part)] = part
    return padded


def is_beyond_range_of(ensemble: Ensemble, X: Array, queries: Array) -> NDArray[np.bool_]:
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
    return np.column_stack(
        [
            each.is_unseen(X[:, span]) if each.kind == "category" else beyond[:, span].any(axis=1)
            for each, span in zip(ensemble.encoder.encodings, ensemble.spans, strict=True)
        ]
    )
