# SPDX-License-Identifier: BSD-3-Clause
"""Exact neighbor search in the scaled metric of any lengthscale.

Neighbors are ordered by distance, equal distances by row, so that a neighborhood is unique: it
depends neither on the block of queries nor on the instruction set of the machine. An index holds
points divided by a `unit`; a search is given the lengthscale, and its distances are between inputs
divided by that. In few dimensions the native tree visits a few leaves per query. In many it scans
much of the data: many queries at once then ask the codes of points first, in the inputs that matter
to the metric, with a proof that none is missed (`_core/nearest.h`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lsgp import _core
from lsgp.compute.memory import empty_aligned
from lsgp.search.arrays import is_finite, require_array, require_scale
from lsgp.search.contract import Neighborhoods, SearchIndex, SearchRequest
from lsgp.search.growing import grow, nearest_of
from lsgp.search.metric import factor_between

#: Points per leaf of the tree.
LEAF_SIZE = 64
#: The tree is rebuilt when rows that left are more than this share of its places.
LARGEST_EMPTY_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class NeighborIndex:
    """One tree, a `SearchIndex`: plain arrays, which can be saved and memory-mapped."""

    leaves: NDArray[np.float64]  # (n_leaves, d, LEAF_SIZE) points divided by the unit
    order: NDArray[np.int32]  # (n_leaves, LEAF_SIZE) row of each point, -1 for padding
    boxes: NDArray[np.float64]  # (2 * n_leaves - 1, 2, d) bounds of the points of each node
    unit: NDArray[np.float64]  # (d,)
    n: int

    @property
    def d(self) -> int:
        return int(self.leaves.shape[1])

    @property
    def recall(self) -> float:
        return 1.0

    def describe(self) -> str:
        return (
            f"exact search (recall 1.0) among {self.n} points of {self.d} inputs, "
            f"bounding-box tree with {len(self.leaves)} leaves"
        )

    @property
    def tree(self) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]:
        """The arrays that every search reads."""
        return self.leaves, self.order, self.boxes

    def search(self, request: SearchRequest) -> NDArray[np.int32]:
        if request.n_neighbors is not None:
            return self._nearest(request, request.n_neighbors, None)
        found, counts = self._within(request, request.max_neighbors)
        request.require_few(counts)
        neighbors = np.full((len(counts), counts.max(initial=0)), -1, np.int32)
        neighbors[np.arange(neighbors.shape[1]) < counts[:, None]] = found
        return neighbors

    def measure(self, request: SearchRequest) -> Neighborhoods:
        if request.n_neighbors is None:
            counts = self.count(request)
            request.require_few(counts)
            return nearest_of(self, request, counts)
        squares = np.empty((len(request.queries), max(request.n_neighbors, 0)))
        return Neighborhoods(self._nearest(request, request.n_neighbors, squares), squares)

    def count(self, request: SearchRequest) -> NDArray[np.int64]:
        """How many rows each query has within the radius, (q,)."""
        return self._within(request, 0)[1]

    def add_rows(self, X: NDArray[np.float64]) -> SearchIndex:
        """As in `SearchIndex`.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp.search.contract import SearchRequest
        >>> from lsgp.search.index import build_index
        >>> index = build_index(np.arange(100.0)[:, None], np.ones(1))
        >>> grown = index.add_rows(np.array([[10.4]]))
        >>> grown.search(SearchRequest(np.array([[10.3]]), np.ones(1), 3))
        array([[100,  10,  11]], dtype=int32)
        """
        return grow(self, X / self.unit)

    def keep_rows(self, kept: NDArray[np.bool_]) -> NeighborIndex:
        if kept.all():
            return self
        n = int(np.count_nonzero(kept))
        if self.order.size - n > max(LARGEST_EMPTY_SHARE * self.order.size, LEAF_SIZE):
            return self.of_points(self.points()[kept])
        # Padding has row -1, for whoever reads the points, and NaN, which no search finds.
        numbers = np.where(kept, np.cumsum(kept, dtype=np.int32) - np.int32(1), np.int32(-1))
        order = np.where(self.order >= 0, numbers[self.order], np.int32(-1))
        leaves = empty_aligned((self.order.size, self.d)).reshape(self.leaves.shape)
        np.copyto(leaves, self.leaves)
        leaf, place = np.nonzero(order < 0)
        leaves[leaf, :, place] = np.nan
        return replace(self, leaves=leaves, order=order, n=n)

    def compact(self) -> NeighborIndex:
        is_full = len(self.leaves) == -(-self.n // LEAF_SIZE)
        return self if is_full else self.of_points(self.points())

    def points(self) -> NDArray[np.float64]:
        """The points divided by the unit, in the order of the rows, (n, d)."""
        rows = self.order.reshape(-1)
        is_point = rows >= 0
        points = np.empty((self.n, self.d))
        points[rows[is_point]] = self.leaves.transpose(0, 2, 1).reshape(-1, self.d)[is_point]
        return points

    def of_points(self, points: NDArray[np.float64]) -> NeighborIndex:
        """The index of other points that have been divided by the unit, (k, d)."""
        return replace(build_index(np.ascontiguousarray(points), np.ones(self.d)), unit=self.unit)

    def _nearest(
        self,
        request: SearchRequest,
        n_neighbors: int,
        squares: NDArray[np.float64] | None,  # (q, n_neighbors), written
    ) -> NDArray[np.int32]:
        entered, exclusions = self.enter(request), request.exclusions.arguments(self.unit)
        neighbors = np.empty((len(request.queries), n_neighbors), np.int32)
        _core.core.find_nearest(self.tree, *entered, exclusions, neighbors, squares)
        return neighbors

    def _within(
        self, request: SearchRequest, max_neighbors: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Neighbors of all queries one after another, and the number of each query's."""
        entered, exclusions = self.enter(request), request.exclusions.arguments(self.unit)
        counts = np.empty(len(request.queries), np.int64)
        limits = float(request.radius) ** 2, max_neighbors
        found = _core.core.find_within(self.tree, *entered, *limits, exclusions, counts)
        return found, counts

    def enter(
        self, request: SearchRequest
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """The queries in units and the factor of the metric, once all of a request is checked."""
        queries, n_neighbors, radius = request.queries, request.n_neighbors, request.radius
        require_array("queries", queries, np.float64, (None, self.d))
        factor = factor_between(self.unit, request.lengthscale)
        with np.errstate(over="ignore"):
            in_units = queries / self.unit
        if not is_finite(in_units):
            raise ValueError("queries divided by the unit are not finite. Remove NaN and inf.")
        if n_neighbors is not None and n_neighbors < 1:
            raise ValueError(f"n_neighbors={n_neighbors} is not positive.")
        if n_neighbors is None and not (np.isfinite(radius) and radius >= 0):
            raise ValueError(f"radius={radius} is not a finite distance.")
        request.exclusions.require_fit(len(queries), self.n)
        return in_units, factor


def build_index(
    X: NDArray[np.float64], unit: NDArray[np.float64], n_threads: int = 1
) -> NeighborIndex:
    """Arrange the rows of X, divided by the unit, for the search in any diagonal metric.

    The tree, which does not depend on the number of threads, is made for metrics near the unit:
    ones for standardized inputs, or a model's lengthscale (see `suits`).
    """
    require_array("X", X, np.float64, (None, None))
    n, d = X.shape
    if n == 0 or d == 0:
        raise ValueError(f"X has shape {X.shape}. Neighbor search needs a row and a column.")
    require_scale("unit", unit, d)
    n_leaves = -(-n // LEAF_SIZE)
    if n_leaves * LEAF_SIZE > np.iinfo(np.int32).max:
        raise ValueError(f"X has {n} rows, more than 32-bit row numbers can count. Split the data.")
    # The tree is built inside this array, the only copy of the points.
    points = empty_aligned((n_leaves * LEAF_SIZE, d))
    with np.errstate(over="ignore"):
        np.divide(X, unit, out=points[:n])
    if not is_finite(points[:n]):
        raise ValueError("X divided by the unit is not finite. Remove NaN and infinity.")
    order = np.empty((n_leaves, LEAF_SIZE), np.int32)
    boxes = np.empty((2 * n_leaves - 1, 2, d))
    _core.core.build_tree(points, n, order, boxes, n_threads)
    return NeighborIndex(points.reshape(n_leaves, d, LEAF_SIZE), order, boxes, unit.copy(), n)
