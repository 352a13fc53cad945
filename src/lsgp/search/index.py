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
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lsgp import _core
from lsgp.compute.memory import empty_aligned
from lsgp.search.arrays import is_finite, require_array, require_scale
from lsgp.search.exclusions import NO_EXCLUSIONS, Exclusions
from lsgp.search.growing import grow
from lsgp.search.metric import factor_between
from lsgp.search.nearest import NearestSearch
from lsgp.search.neighborhoods import Neighborhoods, require_few

#: Points per leaf of the tree.
LEAF_SIZE = 64
#: The tree is rebuilt when rows that left are more than this share of its places.
LARGEST_EMPTY_SHARE = 0.25


class SearchIndex(Protocol):
    """Rows among which neighbors are searched, whatever their arrangement."""

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def d(self) -> int:
        """Number of inputs."""

    @property
    def unit(self) -> NDArray[np.float64]:
        """What the points are divided by inside, (d,): the index is fastest near this metric."""

    @property
    def recall(self) -> float:
        """Fraction of the true neighbors that a search finds."""

    def nearest(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        n_neighbors: int,
        exclusions: Exclusions = NO_EXCLUSIONS,
    ) -> NDArray[np.int32]:
        """Rows of the nearest admissible points of each query, (q, n_neighbors), nearest first.

        Queries (q, d) are in the units of X. Rows are -1 where fewer exist.
        """

    def nearest_with_distances(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        n_neighbors: int,
        exclusions: Exclusions = NO_EXCLUSIONS,
    ) -> Neighborhoods:
        """`nearest`, and the distances in the scaled metric."""

    def within(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        radius: float,
        *,
        max_neighbors: int,
        first_query: int = 0,
        exclusions: Exclusions = NO_EXCLUSIONS,
    ) -> NDArray[np.int32]:
        """Rows of all admissible points within a radius of each query in the scaled metric.

        The result has shape (q, w), w the largest number found, padded with -1; nearest first.
        ``first_query`` is the number of the block's first query, for the error that is raised
        when a query reaches more than ``max_neighbors`` points.
        """

    def add_rows(self, X: NDArray[np.float64]) -> SearchIndex:
        """The index of its rows and, after them, those of X (k, d)."""

    def keep_rows(self, kept: NDArray[np.bool_]) -> SearchIndex:
        """The index of the rows where ``kept`` (n,) is true, numbered anew in their order."""

    def compact(self) -> SearchIndex:
        """The same rows in one tree without gaps, as if it had been built at once."""

    def describe(self) -> str:
        """One line for people."""


@dataclass(frozen=True, eq=False)
class NeighborIndex(NearestSearch):
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

    def within(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        radius: float,
        *,
        max_neighbors: int,
        first_query: int = 0,
        exclusions: Exclusions = NO_EXCLUSIONS,
    ) -> NDArray[np.int32]:
        found, counts = self._within(queries, lengthscale, radius, max_neighbors, exclusions)
        require_few(counts, max_neighbors, radius, lengthscale, first_query)
        neighbors = np.full((len(queries), counts.max(initial=0)), -1, np.int32)
        neighbors[np.arange(neighbors.shape[1]) < counts[:, None]] = found
        return neighbors

    def count_within(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        radius: float,
        exclusions: Exclusions = NO_EXCLUSIONS,
    ) -> NDArray[np.int64]:
        return self._within(queries, lengthscale, radius, 0, exclusions)[1]

    def add_rows(self, X: NDArray[np.float64]) -> SearchIndex:
        """As in `SearchIndex`.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp.search.index import build_index
        >>> index = build_index(np.arange(100.0)[:, None], np.ones(1))
        >>> grown = index.add_rows(np.array([[10.4]]))
        >>> grown.nearest(np.array([[10.3]]), np.ones(1), 3)
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

    def find_nearest(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        n_neighbors: int,
        exclusions: Exclusions,
        squared_distances: NDArray[np.float64] | None,  # (q, n_neighbors), written
    ) -> NDArray[np.int32]:
        in_units, factor = self.enter(queries, lengthscale, exclusions)
        if n_neighbors < 1:
            raise ValueError(f"n_neighbors={n_neighbors} is not positive.")
        neighbors = np.empty((len(queries), n_neighbors), np.int32)
        rows, radius, groups, query_groups = exclusions
        _core.core.find_nearest(
            self.leaves,
            self.order,
            self.boxes,
            in_units,
            factor,
            rows,
            radius,
            self.unit,
            groups,
            query_groups,
            neighbors,
            squared_distances,
        )
        return neighbors

    def _within(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        radius: float,
        max_neighbors: int,
        exclusions: Exclusions,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Neighbors of all queries one after another, and the number of each query's."""
        in_units, factor = self.enter(queries, lengthscale, exclusions)
        if not (np.isfinite(radius) and radius >= 0):
            raise ValueError(f"radius={radius} is not a finite distance.")
        counts = np.empty(len(queries), np.int64)
        rows, excluded_radius, groups, query_groups = exclusions
        found = _core.core.find_within(
            self.leaves,
            self.order,
            self.boxes,
            in_units,
            factor,
            float(radius) ** 2,
            max_neighbors,
            rows,
            excluded_radius,
            self.unit,
            groups,
            query_groups,
            counts,
        )
        return found, counts

    def enter(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        exclusions: Exclusions,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """The queries in units and the factor of the metric, once all arguments are checked."""
        require_array("queries", queries, np.float64, (None, self.d))
        factor = factor_between(self.unit, lengthscale)
        with np.errstate(over="ignore"):
            in_units = queries / self.unit
        if not is_finite(in_units):
            raise ValueError("queries divided by the unit are not finite. Remove NaN and inf.")
        exclusions.require_fit(len(queries), self.n)
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
