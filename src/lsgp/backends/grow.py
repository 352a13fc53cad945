# SPDX-License-Identifier: BSD-3-Clause
"""Boosted trees, which the native core grows on binned inputs: of numbers, or of labels' log odds.

Trees are arrays (`Nodes`), whose leaves the core sums up. A tree of log odds is a Newton step: a
tree of the weighted squared errors of (y - p) / (p (1 - p)), with weights p (1 - p).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from lsgp import _core

Array = NDArray[np.float64]
Numbers = NDArray[np.uint8]

#: Trees that are grown before anyone may interrupt: at most so many, and fewer of more rows times
#: inputs, so that they take half a second at most.
TREES_AT_A_TIME, CELLS_AT_A_TIME = 10, 20_000_000
#: Bins of an input, at most and at least; their numbers have a byte.
MOST_BINS, FEWEST_BINS = 255, 15
#: Bytes that the histograms of the leaves of a tree may take, unless they had too few bins.
BYTES_OF_HISTOGRAMS = 64_000_000
BYTES_OF_BIN = 16
#: Trees of labels end where the last ones gain less than this fraction of the log loss without any.
LEAST_GAIN = 1e-5
#: No probability is nearer to 0 or 1 where a Newton step is taken.
SUREST = 1e-6
#: The curvature p (1 - p) of a label that nothing is known of: that of the rows without a residual.
CURVATURE = 0.25


class Nodes(NamedTuple):
    """Trees as arrays, one behind the other; children lie behind their parents."""

    feature: NDArray[np.int32]  # (N,) the input that is asked for; -1: a leaf
    threshold: Array  # (N,) up to which a row goes to the left
    left: NDArray[np.int32]  # (N,)
    right: NDArray[np.int32]  # (N,)
    value: Array  # (N,) of leaves
    roots: NDArray[np.int32]  # (T,)
    ends: NDArray[np.int64]  # (k,) of the trees that are summed up, for each sum

    @property
    def n_leaves(self) -> int:
        """Of the tree that has the most."""
        is_leaf = (self.feature < 0).astype(np.int64)
        return int(np.add.reduceat(is_leaf, self.roots).max())

    def first(self, n_trees: int) -> Nodes:
        """So many trees of those of one sum, without the nodes of the others."""
        stop = int(self.roots[n_trees]) if n_trees < len(self.roots) else len(self.feature)
        own: list[Any] = [array[:stop] for array in self[:5]]
        return Nodes._make([*own, self.roots[:n_trees], np.array([n_trees])])

    def only(self, first: int, last: int) -> Nodes:
        """Those of the sums from the first to before the last."""
        start = int(self.ends[first - 1]) if first else 0
        stop = int(self.ends[last - 1])
        return self._replace(roots=self.roots[start:stop], ends=self.ends[first:last] - start)

    def sums(self, X: Array) -> Array:
        """(q, k) of the leaves that rows (q, d) fall into."""
        found = np.empty((len(X), len(self.ends)))
        _core.core.sum_leaves(np.ascontiguousarray(X, dtype=float), *self, found)
        return found


def join(parts: Sequence[Nodes]) -> Nodes:
    """The trees of all, with the sums of all."""
    offsets = np.cumsum([0, *(len(part.feature) for part in parts)])
    before = np.cumsum([0, *(len(part.roots) for part in parts)])
    moved = [
        part._replace(
            left=part.left + np.int32(offset),
            right=part.right + np.int32(offset),
            roots=part.roots + np.int32(offset),
            ends=part.ends + earlier,
        )
        for part, offset, earlier in zip(parts, offsets, before, strict=False)
    ]
    return Nodes(*(np.concatenate(arrays) for arrays in zip(*moved, strict=True)))


class Growth(NamedTuple):
    """How trees are grown."""

    n_trees: int
    n_leaves: int  # at most
    n_rows_of_leaf: int  # at least, each of the mean weight
    learning_rate: float
    l2: float = 1.0  # so many rows without a residual are in each leaf
    patience: int | None = None  # trees since the best for what is watched; None: all are grown


class Bins(NamedTuple):
    """Where the values of inputs are parted."""

    firsts: NDArray[np.int64]  # (d + 1,) number of the first bin of each input
    edges: Array  # (firsts[d],) up to which the values of a bin go; the last of an input: infinite

    @classmethod
    def of(cls, X: Array, n_leaves: int) -> Bins:
        """Between values where these are few, and with as many rows in each bin where not."""
        room = BYTES_OF_HISTOGRAMS // (BYTES_OF_BIN * n_leaves * max(X.shape[1], 1))
        most = int(np.clip(room, FEWEST_BINS, MOST_BINS))
        edges = [_edges(column, most) for column in X.T]
        firsts = np.cumsum([0, *(len(own) + 1 for own in edges)], dtype=np.int64)
        return cls(firsts, np.concatenate([np.append(own, np.inf) for own in edges]))

    def number(self, X: Array) -> Numbers:
        """The bins of rows (n, d), from 0 on for each input."""
        numbers = np.empty(X.shape, dtype=np.uint8)
        for j, column in enumerate(X.T):
            own = self.edges[self.firsts[j] : self.firsts[j + 1] - 1]
            numbers[:, j] = np.searchsorted(own, column)
        return numbers


def _edges(values: Array, most: int) -> Array:
    """Edges between up to so many bins; the last one has none."""
    distinct = np.unique(values)
    if len(distinct) > most:
        ranks = np.linspace(0, len(values) - 1, most + 1)[1:-1].astype(np.intp)
        at = np.searchsorted(distinct, np.sort(values)[ranks])
        at = np.unique(np.minimum(at, len(distinct) - 2))
    else:
        at = np.arange(len(distinct) - 1)
    return np.unique(0.5 * distinct[at] + 0.5 * distinct[at + 1])


class Watched(NamedTuple):
    """Rows that trees do not see, on which they are judged."""

    bins: Numbers
    y: Array


class Grown(NamedTuple):
    """Trees of one target."""

    nodes: Nodes
    baseline: float  # what they are added to
    errors: Array  # (trees,) mean square of what so many of them leave of what is watched

    def predict(self, X: Array, n_trees: int) -> Array:
        """(q,), of the first trees."""
        return self.nodes.first(n_trees).sums(X)[:, 0] + self.baseline


def grow(
    growth: Growth,
    bins: Bins,
    numbers: Numbers,
    y: Array,
    weight: Array | None,
    watched: Watched,
    check: Callable[[], None],
) -> Grown:
    """Trees of targets (n,), of rows of these weights (None: all alike).

    ``check`` is called now and then, and may raise.
    """
    baseline = float(np.average(y, weights=weight))
    residuals, unseen = y - baseline, watched.y - baseline
    room = _Room.of(growth)
    errors = room.errors
    # As many in all as there are rows, so that what is asked of a leaf means the same.
    weights = np.empty(0) if weight is None else weight / weight.mean()
    at_a_time = int(np.clip(CELLS_AT_A_TIME // max(numbers.size, 1), 1, TREES_AT_A_TIME))
    for start in range(0, growth.n_trees, at_a_time):
        check()
        own = slice(start, start + at_a_time)
        rows = numbers, *bins, weights, residuals, watched.bins, unseen
        room.grow(own, growth, growth.l2, *rows)
        n_grown = min(own.stop, growth.n_trees)
        since_best = n_grown - 1 - int(np.argmin(errors[:n_grown]))
        if growth.patience is not None and since_best >= growth.patience:
            break
    return Grown(room.nodes(n_grown), baseline, errors[:n_grown])


def grow_log_odds(
    growth: Growth,
    bins: Bins,
    numbers: Numbers,
    y: Array,
    weight: Array,
    watched: Watched,
    check: Callable[[], None],
) -> tuple[Grown, ...]:
    """Trees of the log odds of labels: one fit for each column of ``y`` (n, t), 0 or 1.

    One column is that of the second of two classes; of several, each row has a single 1. Errors are
    log losses of what is watched, the same for all fits.
    """
    n_columns = y.shape[1]
    shares = (weight @ y + 1.0) / (weight.sum() + max(2, n_columns))
    baseline = np.log(shares / (1.0 - shares)) if n_columns == 1 else np.log(shares)
    now, unseen = (np.tile(baseline, (len(rows), 1)) for rows in (y, watched.y))
    rooms = [_Room.of(growth) for _ in range(n_columns)]
    errors: list[float] = []
    for k in range(growth.n_trees):
        check()
        proba = np.exp(log_proba_of_odds(now))[:, -n_columns:]
        for j, room in enumerate(rooms):
            p = np.clip(proba[:, j], SUREST, 1.0 - SUREST)
            slope = p * (1.0 - p)
            own = weight * slope
            mean = float(own.mean())
            residuals = (y[:, j] - p) / slope
            before, left = residuals.copy(), np.zeros(len(unseen))
            rows = numbers, *bins, own / mean, residuals, watched.bins, left
            room.grow(slice(k, k + 1), growth, growth.l2 * CURVATURE / mean, *rows)
            now[:, j] += before - residuals
            unseen[:, j] -= left
        log_p, labels = log_proba_of_odds(unseen), watched.y
        if n_columns == 1:
            labels = np.concatenate([1.0 - labels, labels], axis=1)
        errors.append(-float(np.mean((log_p * labels).sum(axis=1))))
        if growth.patience is not None and k >= growth.patience:
            # The loss of labels that trees separate falls for ever, and soon by next to nothing.
            gained = min(errors[: -growth.patience]) - min(errors)
            if gained <= LEAST_GAIN * errors[0]:
                break
    found = np.array(errors)
    pairs = zip(rooms, baseline.tolist(), strict=True)
    return tuple(Grown(room.nodes(len(found)), start, found) for room, start in pairs)


def log_proba_of_odds(log_odds: Array) -> Array:
    """Log probabilities (q, C) of classes from log odds (q, t), as trees add them up."""
    if log_odds.shape[1] == 1:
        log_odds = np.concatenate([np.zeros_like(log_odds), log_odds], axis=1)
    return np.asarray(log_odds - logsumexp(log_odds, axis=1, keepdims=True))


class _Room(NamedTuple):
    """What the core writes trees to."""

    feature: NDArray[np.int32]  # (trees, room)
    threshold: Array
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Array
    n_nodes: NDArray[np.int32]  # (trees,)
    errors: Array  # (trees,)

    @classmethod
    def of(cls, growth: Growth) -> _Room:
        shape = growth.n_trees, 2 * growth.n_leaves - 1
        feature, left, right = (np.empty(shape, dtype=np.int32) for _ in range(3))
        n_nodes, errors = np.empty(growth.n_trees, dtype=np.int32), np.empty(growth.n_trees)
        return cls(feature, np.empty(shape), left, right, np.empty(shape), n_nodes, errors)

    def grow(self, own: slice, growth: Growth, l2: float, *rows: NDArray[Any]) -> None:
        """Some of the trees; of rows, the residuals and those of the watched change."""
        limits = float(growth.n_rows_of_leaf), growth.learning_rate, l2
        _core.core.grow_trees(*rows, *limits, *(array[own] for array in self))

    def nodes(self, n_trees: int) -> Nodes:
        """Of the first trees, without the room that they have not taken, one behind the other."""
        n_nodes = self.n_nodes[:n_trees]
        is_there = np.arange(self.feature.shape[1]) < n_nodes[:, None]
        starts = np.concatenate([[0], np.cumsum(n_nodes)[:-1]]).astype(np.int32)
        moved = self._replace(
            left=self.left[:n_trees] + starts[:, None], right=self.right[:n_trees] + starts[:, None]
        )
        own: list[Any] = [array[:n_trees][is_there] for array in moved[:5]]
        return Nodes._make([*own, starts, np.array([n_trees])])
