# SPDX-License-Identifier: BSD-3-Clause
"""Boosted trees of squared errors, which the native core grows on binned inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp import _core
from lsgp.backends.leaves import Nodes

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
        """Between values where these are few, and with as many rows in each bin where not.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp.backends.grow import Bins
        >>> bins = Bins.of(np.array([[1.0], [3.0], [3.0], [7.0]]), n_leaves=2)
        >>> bins.edges, bins.number(np.array([[2.0], [2.5], [100.0]])).ravel()
        (array([ 2.,  5., inf]), array([0, 1, 2], dtype=uint8))
        """
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
    room = growth.n_trees, 2 * growth.n_leaves - 1
    feature, left, right = (np.empty(room, dtype=np.int32) for _ in range(3))
    threshold, value = np.empty(room), np.empty(room)
    n_nodes, errors = np.empty(growth.n_trees, dtype=np.int32), np.empty(growth.n_trees)
    # As many in all as there are rows, so that what is asked of a leaf means the same.
    weights = np.empty(0) if weight is None else weight / weight.mean()
    at_a_time = int(np.clip(CELLS_AT_A_TIME // max(numbers.size, 1), 1, TREES_AT_A_TIME))
    for start in range(0, growth.n_trees, at_a_time):
        check()
        own = slice(start, start + at_a_time)
        _core.core.grow_trees(
            numbers,
            *bins,
            weights,
            residuals,
            watched.bins,
            unseen,
            float(growth.n_rows_of_leaf),
            growth.learning_rate,
            growth.l2,
            *(array[own] for array in (feature, threshold, left, right, value, n_nodes, errors)),
        )
        n_grown = min(own.stop, growth.n_trees)
        since_best = n_grown - 1 - int(np.argmin(errors[:n_grown]))
        if growth.patience is not None and since_best >= growth.patience:
            break
    return Grown(
        _compact(feature[:n_grown], threshold, left, right, value, n_nodes[:n_grown]),
        baseline,
        errors[:n_grown],
    )


def _compact(
    feature: NDArray[np.int32],  # (trees, room), of others too
    threshold: Array,
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    value: Array,
    n_nodes: NDArray[np.int32],  # (trees,)
) -> Nodes:
    """Without the room that trees have not taken, and one behind the other."""
    n_trees, room = feature.shape
    is_there = np.arange(room) < n_nodes[:, None]
    starts = np.concatenate([[0], np.cumsum(n_nodes)[:-1]]).astype(np.int32)
    return Nodes(
        feature[is_there],
        threshold[:n_trees][is_there],
        (left[:n_trees] + starts[:, None])[is_there],
        (right[:n_trees] + starts[:, None])[is_there],
        value[:n_trees][is_there],
        starts,
        np.array([n_trees], dtype=np.int64),
    )
