# SPDX-License-Identifier: BSD-3-Clause
"""What predictions are made of, as users read it: arrays of all queries, and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import count
from lsgp.inputs.containers import make_frame, name_columns
from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]


class NeighborContributions(NamedTuple):
    """The neighbors of one query, nearest first; fields are as in `Explanation`."""

    rows: NDArray[np.int64]  # (k,)
    distances: Array  # (k,)
    weights: Array  # (k,)
    coefficients: Array  # (k,), or (k, t) where the noise of targets differs
    observed: Array  # (k,) or (k, t)
    contributions: Array  # (k,) or (k, t)
    kilometers: Array | None = None  # (k,)
    n_rows: NDArray[np.int64] | None = None  # (k,)

    def __repr__(self) -> str:
        nearest = f", nearest row {self.rows[0]}" if len(self.rows) else ""
        return f"NeighborContributions({count(len(self.rows), 'neighbor')}{nearest})"

    def name_of(self, k: int, count_from: int = 0) -> str:
        """What a neighbor is, for people: a row, or a group of them."""
        row = f"row {self.rows[k] + count_from:,}"
        if self.n_rows is None or self.n_rows[k] == 1:
            return row
        return f"a group of {self.n_rows[k]:,} rows around {row}"


class ClassNeighbors(NamedTuple):
    """The neighbors of one query, nearest first; fields are as in `ClassExplanation`."""

    rows: NDArray[np.int64]  # (k,)
    distances: Array  # (k,)
    weights: Array  # (k,)
    labels: NDArray[Any]  # (k,)
    contributions: Array  # (k, C)
    kilometers: Array | None = None  # (k,)


Neighbors = TypeVar("Neighbors", NeighborContributions, ClassNeighbors)


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedQueries:
    """What explanations of numbers and of classes share; fields are as in `Explanation`."""

    rows: NDArray[np.int64]  # (q, w)
    distances: Array  # (q, w)
    weights: Array  # (q, w)
    n_effective: Array  # (q,)
    extrapolation: Array  # (q,)
    is_extrapolating: NDArray[np.bool_]  # (q,)
    is_beyond_range: NDArray[np.bool_]  # (q, d)
    input_names: list[str]
    kilometers: Array | None = None  # (q, w)

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.rows)

    @property
    def n_neighbors(self) -> NDArray[np.int64]:
        """Number of neighbors that each prediction is made from, (q,): of rows, or groups."""
        return np.count_nonzero(self.rows >= 0, axis=1)

    def _without_padding(self, query: int, kind: type[Neighbors]) -> Neighbors:
        kept = self.rows[query] >= 0
        padded: list[Any] = [getattr(self, name) for name in kind._fields]
        own: list[Any] = [None if each is None else each[query][kept] for each in padded]
        return kind(*own)

    def _neighbor_columns(self, **more: NDArray[Any] | None) -> dict[str, object]:
        """Columns of all neighbors without padding, with ``more`` (q, w) behind the rows."""
        kept = self.rows >= 0
        padded = {
            **{"row": self.rows, **more, "distance": self.distances},
            **{"kilometers": self.kilometers, "weight": self.weights},
        }
        known = {name: values[kept] for name, values in padded.items() if values is not None}
        return {"query": np.nonzero(kept)[0], **known}

    def _distance_columns(self) -> dict[str, object]:
        """How far each query is from the data."""
        names = np.array(self.input_names, dtype=object)
        return {
            "extrapolation": self.extrapolation,
            "is_extrapolating": self.is_extrapolating,
            "beyond_range": [", ".join(names[beyond]) for beyond in self.is_beyond_range],
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation(ExplainedQueries):
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
        The localizer's weight, averaged over the models; 0 in a model that does not see it.
    coefficients : array of shape (q, w), or (q, w, t) where the noise of targets differs
        What the prediction changes by when the row's target changes by one.
    observed : array of shape (q, w) or (q, w, t)
        The row's target.
    contributions : array of shape (q, w) or (q, w, t)
        The row's part of the mean, coefficient × (observed − `baseline`):
        ``baseline + contributions.sum(axis=1)``, and what trees add, is the predicted mean.
    baseline : array of shape () or (t,)
        Mean of the training targets, where predictions start (``prior_mean``, where it is given).
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

    coefficients: Array
    observed: Array
    contributions: Array
    baseline: Array
    predicted: PredictiveDistribution
    local_scale: Array
    dof: Array
    target_names: list[str]
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

    def of_query(self, query: int) -> NeighborContributions:
        """The neighbors of one query, without padding."""
        return self._without_padding(query, NeighborContributions)

    def to_frame(self, library: str = "pandas") -> Any:
        """One row per query and neighbor; ``library`` is "pandas" or "polars"."""
        kept, columns = self.rows >= 0, self._neighbor_columns(n_rows=self.n_rows)
        columns |= name_columns("coefficient", self.coefficients[kept], self.target_names)
        columns |= name_columns("observed", self.observed[kept], self.target_names)
        columns |= name_columns("contribution", self.contributions[kept], self.target_names)
        return make_frame(columns, library)

    def summary_frame(self, library: str = "pandas") -> Any:
        """One row per query; ``library`` is "pandas" or "polars"."""
        columns: dict[str, object] = {"query": np.arange(len(self))}
        columns |= name_columns("mean", self.predicted.mean, self.target_names)
        columns |= name_columns("std", np.asarray(self.predicted.std), self.target_names)
        if self.by_trees is not None:
            columns |= name_columns("by_trees", self.by_trees, self.target_names)
        columns |= {"n_neighbors": self.n_neighbors, "n_effective": self.n_effective}
        columns |= name_columns("local_scale", self.local_scale, self.target_names)
        return make_frame(columns | {"dof": self.dof} | self._distance_columns(), library)


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassExplanation(ExplainedQueries):
    """What the probabilities of q queries are made of; from `LSGPClassifier.explain`.

    Arrays of neighbors have shape (q, w), nearest first, padded to the largest number w of
    neighbors; `of_query` gives those of one query without the padding. ``rows``, ``distances``,
    ``weights``, ``kilometers``, ``n_effective``, ``extrapolation``, ``is_extrapolating``,
    ``is_beyond_range`` and ``input_names`` are as in `Explanation`.

    Attributes
    ----------
    codes : integer array of shape (q, w)
        The row's class, as a place in ``classes``; -1 pads.
    contributions : array of shape (q, w, C)
        What the row moved the probability of each class by.
    others : array of shape (q, C)
        What members that are no local models moved it by: logistic regression and GPs of log odds,
        where rows are few; 0 elsewhere.
    start : array of shape (q, C)
        Probabilities without any neighbor's word:
        ``start + contributions.sum(axis=1) + others`` are the probabilities.
    probabilities : array of shape (q, C)
    classes : array of shape (C,)
    """

    codes: NDArray[np.int64]
    contributions: Array
    others: Array
    start: Array
    probabilities: Array
    classes: NDArray[Any]

    @property
    def labels(self) -> NDArray[Any]:
        """The class of each row, (q, w); of padding, the last class."""
        return self.classes[self.codes]

    def of_query(self, query: int) -> ClassNeighbors:
        """The neighbors of one query, without padding."""
        return self._without_padding(query, ClassNeighbors)

    def to_frame(self, library: str = "pandas") -> Any:
        """One row per query and neighbor; ``library`` is "pandas" or "polars"."""
        kept, names = self.rows >= 0, [str(label) for label in self.classes.tolist()]
        columns = self._neighbor_columns() | {"label": self.labels[kept]}
        columns |= name_columns("contribution", self.contributions[kept], names)
        return make_frame(columns, library)

    def summary_frame(self, library: str = "pandas") -> Any:
        """One row per query; ``library`` is "pandas" or "polars"."""
        names = [str(label) for label in self.classes.tolist()]
        columns: dict[str, object] = {
            "query": np.arange(len(self)),
            "label": self.classes[np.argmax(self.probabilities, axis=1)],
        }
        columns |= name_columns("probability", self.probabilities, names)
        columns |= name_columns("start", self.start, names)
        columns |= {"n_neighbors": self.n_neighbors, "n_effective": self.n_effective}
        return make_frame(columns | self._distance_columns(), library)
