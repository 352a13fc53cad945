# SPDX-License-Identifier: BSD-3-Clause
"""Coarse neighborhoods [E9]: far rows that are close to each other stand as one.

A *unit* of a neighborhood is a row, or a node of a tree with many rows. Units are numbered: the
rows first, then the nodes. The tree is one of its own, of small leaves, made for one metric: it
follows from the rows alone, whatever happened to the index before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp import _core
from lsgp.search.contract import (
    NO_EXCLUSIONS,
    Array,
    Exclusions,
    Rows,
    SearchIndex,
    SearchRequest,
    require_array,
    require_scale,
)
from lsgp.search.index import empty_aligned

#: Rows of the smallest nodes. Nodes are then half as many as rows. With fewer, pairs of rows would
#: stand as one, which saves little.
SMALLEST_NODE = 4
#: Shares of rows are not taken for less, nor for more: of rows whose noise is 0, or infinite.
SHARE_LIMITS = (1e-75, 1e75)


class CoarseTree(NamedTuple):
    """Nodes of rows, numbered as a heap: those of node i are 2i + 1 and 2i + 2."""

    leaves: Array  # (n_leaves, d, SMALLEST_NODE) rows divided by the unit, NaN where there is none
    order: Rows  # (n_leaves, SMALLEST_NODE) number of each row, -1 for none
    boxes: Array  # (n_nodes, 2, d)
    places: Rows  # (n,) of each row in the order
    unit: Array  # (d,)
    row_shares: Array  # (n,) of the rows in the means of their nodes, 1 / multiplier of the noise
    shares: Array  # (n_nodes,) sums of these
    same: Array  # (n_nodes,) sums of the squares of these, relative to the squares of the sums
    means: Array  # (n_nodes, d) in units
    variances: Array  # (n_nodes, d) of the rows of a node around its mean, in units
    squared_radii: Array  # (n_nodes,) sums of these

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.places)

    @property
    def n_nodes(self) -> int:
        return len(self.shares)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)

    def average(self, values: Array) -> Array:
        """Means of the values of rows (n, t) over the rows of each node, (n_nodes, t)."""
        return _sum(self.order, self.row_shares[:, None] * values) / self.shares[:, None]

    def spans(self, nodes: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the rows of nodes (k,) begin and end in the order of the tree, (k,) each."""
        k = len(self.order)
        first, last = nodes.astype(np.int64), nodes.astype(np.int64)
        while (first < k - 1).any() or (last < k - 1).any():
            first = np.where(first < k - 1, 2 * first + 1, first)
            last = np.where(last < k - 1, 2 * last + 2, last)
        # Leaves are in the order of memory. The heap's deepest level comes last, and holds the
        # first leaves: see `_core/tree.h`.
        first_deepest = (1 << ((2 * k - 1).bit_length() - 1)) - 1
        positions = (np.arange(self.n_nodes) - first_deepest) % k
        begins, ends = positions[first] * SMALLEST_NODE, (positions[last] + 1) * SMALLEST_NODE
        return begins, np.minimum(ends, self.n)

    def nodes_of_size(self, size: int) -> NDArray[np.int64]:
        """Nodes that together hold every row once, of at most so many rows, and half as many."""
        first = 2 ** max(0, int(np.ceil(np.log2(self.n / size)))) - 1
        return np.arange(first, min(2 * first + 1, self.n_nodes))


class UnitRequest(NamedTuple):
    """The units that are wanted around each query [E9]."""

    tree: CoarseTree
    row_index: SearchIndex  # of the same rows
    queries: Array  # (q, d)
    n_units: int
    reach: float  # how many times as far as that many nearest rows units reach
    exclusions: Exclusions = NO_EXCLUSIONS

    @property
    def size(self) -> int:
        return len(self.queries)

    def block(self, start: int, stop: int) -> UnitRequest:
        """The same for the queries from start to stop - 1."""
        return self.of_queries(slice(start, stop))

    def of_queries(self, which: slice | NDArray[np.integer]) -> UnitRequest:
        """The same for some of the queries."""
        exclusions = self.exclusions.of_queries(which)
        return self._replace(queries=self.queries[which], exclusions=exclusions)

    @property
    def of_rows(self) -> SearchRequest:
        """The nearest rows, as many as units are wanted."""
        size = min(self.n_units, self.tree.n)
        return SearchRequest(self.queries, self.tree.unit, size, self.exclusions)


def search_units(request: UnitRequest) -> Rows:
    """Units of each query (q, n_units), nearest first; -1 where there are fewer.

    A node that holds a row that is left out is opened.
    """
    tree, queries, exclusions = request.tree, request.queries, request.exclusions
    require_array("queries", queries, np.float64, (None, tree.leaves.shape[1]))
    exclusions.require_fit(len(queries), tree.n)
    nearest = request.row_index.measure(request.of_rows)
    limits = (request.reach * nearest.distances[:, -1]) ** 2
    units = np.full((len(queries), request.n_units), -1, np.int32)
    nodes = (tree.leaves, tree.order, tree.boxes), tree.means, tree.squared_radii, tree.places
    excluded = exclusions.arguments(tree.unit)
    _core.core.find_units(*nodes, queries / tree.unit, limits, excluded, units)
    # As many rows on top of the query leave nothing to reach for.
    is_on_top = limits == 0
    units[is_on_top] = -1
    units[is_on_top, : nearest.neighbors.shape[1]] = nearest.neighbors[is_on_top]
    return units


def build_coarse_tree(X: Array, unit: Array, noise: Array, n_threads: int = 1) -> CoarseTree:
    """Nodes of the rows of X (n, d), for the metric of the unit (d,).

    A row has a share in the means of its nodes of one over the multiplier of its noise (n,): so
    they are the most precise.
    """
    require_array("X", X, np.float64, (None, None))
    n, d = X.shape
    require_scale("unit", unit, d)
    n_leaves = -(-n // SMALLEST_NODE)
    n_nodes = 2 * n_leaves - 1
    points = empty_aligned((n_leaves * SMALLEST_NODE, d))
    np.divide(X, unit, out=points[:n])
    order, boxes = np.empty((n_leaves, SMALLEST_NODE), np.int32), np.empty((n_nodes, 2, d))
    _core.core.build_tree(points, n, order, boxes, n_threads)
    leaves = points.reshape(n_leaves, d, SMALLEST_NODE)
    places = np.empty(n, np.int32)
    is_row = order.ravel() >= 0
    places[order.ravel()[is_row]] = np.flatnonzero(is_row)
    row_shares = 1.0 / np.clip(noise.astype(float), *SHARE_LIMITS)
    shares, means, variances = np.empty(n_nodes), np.empty((n_nodes, d)), np.empty((n_nodes, d))
    _core.core.find_moments((leaves, order, boxes), row_shares, shares, means, variances)
    same = _sum(order, row_shares[:, None] ** 2)[:, 0] / shares**2
    found = row_shares, shares, same, means, variances, variances.sum(axis=1)
    return CoarseTree(leaves, order, boxes, places, unit.copy(), *found)


def _sum(order: Rows, values: Array) -> Array:
    """Sums of the values of rows (n, t) over the rows of each node, (n_nodes, t)."""
    sums = np.empty((2 * len(order) - 1, values.shape[1]))
    _core.core.sum_nodes(order, np.ascontiguousarray(values, dtype=float), sums)
    return sums
