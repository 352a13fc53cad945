# SPDX-License-Identifier: BSD-3-Clause
"""Exact neighbor search in the scaled metric of any lengthscale, also while rows come and go.

Neighbors are ordered by distance, equal distances by row, so that a neighborhood is unique: it
depends neither on the block of queries nor on the instruction set of the machine. An index holds
points divided by a `unit`; a search is given the lengthscale, and its distances are between inputs
divided by that. In few dimensions the native tree visits a few leaves per query. In many it scans
much of the data: many queries at once then ask the codes of points first, in the inputs that matter
to the metric, with a proof that none is missed (`_core/nearest.h`).

A tree with `Codes` is searched approximately (see `approximate`): `reach` says how far.

Rows that come later go to a small index beside the main one (`GrowingIndex`). Whatever the history,
a search finds what a fresh index of the same rows would find, ties included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp import _core
from lsgp.search.contract import (
    Array,
    Neighborhoods,
    Rows,
    SearchIndex,
    SearchRequest,
    require_array,
    require_scale,
)

#: Points per leaf of the tree.
LEAF_SIZE = 64
#: The tree is rebuilt when rows that left are more than this share of its places,
LARGEST_EMPTY_SHARE = 0.25
#: or when the rows beside it are more than this share of its own.
LARGEST_RECENT_SHARE = 0.1
#: Largest ratio of lengthscales, in units of the index, at which its tree is as good as any.
LARGEST_RATIO = 3.0
#: Up to this many inputs, the search is a small part of a prediction in any metric.
FEW_INPUTS = 4


class Codes(NamedTuple):
    """The points of a tree, and its boxes, in few bits: see `_core/approximate.h`."""

    halves: NDArray[np.uint8]  # (n_leaves, d, LEAF_SIZE / 2)
    points: NDArray[np.uint8]  # (n_leaves, LEAF_SIZE, d)
    leaf_boxes: NDArray[np.uint8]  # (n_groups, 2, d, GROUP)
    group_boxes: NDArray[np.uint8]  # (n_regions, 2, d, GROUP)

    @classmethod
    def empty(cls, n_leaves: int, d: int) -> Codes:
        """Room for the codes of a tree."""
        n_groups, n_regions = _core.core.n_groups(n_leaves), _core.core.n_regions(n_leaves)
        shapes = (n_leaves, d, LEAF_SIZE // 2), (n_leaves, LEAF_SIZE, d)
        boxes = ((n_boxes, 2, d, _core.core.GROUP) for n_boxes in (n_groups, n_regions))
        return cls(*(np.empty(shape, np.uint8) for shape in (*shapes, *boxes)))


@dataclass(frozen=True, eq=False)
class NeighborIndex:
    """One tree, a `SearchIndex`: plain arrays, which can be saved and memory-mapped."""

    leaves: Array  # (n_leaves, d, LEAF_SIZE) points divided by the unit
    order: Rows  # (n_leaves, LEAF_SIZE) row of each point, -1 for padding
    boxes: Array  # (2 * n_leaves - 1, 2, d) bounds of the points of each node
    unit: Array  # (d,)
    n: int
    codes: Codes | None = None  # None: searches are exact
    #: Leaves are opened within so many times the squared distance of the farthest neighbor so far.
    reach: float = 1.0
    recall: float = 1.0

    @property
    def d(self) -> int:
        return int(self.leaves.shape[1])

    def describe(self) -> str:
        exact, near = "exact search (recall 1.0)", f"approximate search (recall {self.recall:.3f})"
        return (
            f"{exact if self.codes is None else near} among {self.n} points of {self.d} inputs, "
            f"bounding-box tree with {len(self.leaves)} leaves"
        )

    @property
    def arrays(self) -> tuple[Array, Rows, Array]:
        """The arrays that every search reads."""
        return self.leaves, self.order, self.boxes

    def search(self, request: SearchRequest) -> Rows:
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
            return self.nearest_of(request, counts)
        squares = np.empty((len(request.queries), max(request.n_neighbors, 0)))
        return Neighborhoods(self._nearest(request, request.n_neighbors, squares), squares)

    def count(self, request: SearchRequest) -> NDArray[np.int64]:
        """How many rows each query has within the radius, (q,)."""
        return self._within(request, 0)[1]

    def nearest_of(self, request: SearchRequest, counts: NDArray[np.int64]) -> Neighborhoods:
        """All rows within the radius, of which each query has so many (q,)."""
        width = max(int(counts.max(initial=0)), 1)
        found = self.measure(request._replace(n_neighbors=width))
        return found.drop(np.arange(width) >= counts[:, None])

    def add_rows(self, X: Array) -> SearchIndex:
        return _grow(self, X / self.unit)

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
        return replace(self, leaves=leaves, order=order, n=n).searched_as(self)

    def compact(self) -> NeighborIndex:
        is_full = len(self.leaves) == -(-self.n // LEAF_SIZE)
        return self if is_full else self.of_points(self.points())

    def points(self) -> Array:
        """The points divided by the unit, in the order of the rows, (n, d)."""
        rows = self.order.reshape(-1)
        is_point = rows >= 0
        points = np.empty((self.n, self.d))
        points[rows[is_point]] = self.leaves.transpose(0, 2, 1).reshape(-1, self.d)[is_point]
        return points

    def of_points(self, points: Array) -> NeighborIndex:
        """The index of other points that have been divided by the unit, (k, d)."""
        made = build_index(np.ascontiguousarray(points), np.ones(self.d))
        return replace(made, unit=self.unit).searched_as(self)

    def searched_as(self, other: NeighborIndex) -> NeighborIndex:
        """Exact as another tree is, or with codes and the same reach."""
        return self if other.codes is None else self.encoded(other.reach, other.recall)

    def encoded(self, reach: float, recall: float) -> NeighborIndex:
        """The tree with its points in codes, for approximate searches."""
        codes = Codes.empty(len(self.leaves), self.d)
        _core.core.encode_tree(self.arrays, *codes)
        return replace(self, codes=codes, reach=reach, recall=recall)

    def _nearest(
        self,
        request: SearchRequest,
        n_neighbors: int,
        squares: Array | None,  # (q, n_neighbors), written
    ) -> Rows:
        entered, exclusions = self.enter(request), request.exclusions.arguments(self.unit)
        neighbors = np.empty((len(request.queries), n_neighbors), np.int32)
        if self.codes is None:
            _core.core.find_nearest(self.arrays, *entered, exclusions, neighbors, squares)
        else:
            coded = self.arrays, *self.codes, self.reach
            _core.core.find_near(*coded, *entered, exclusions, neighbors, squares)
        return neighbors

    def _within(self, request: SearchRequest, max_neighbors: int) -> tuple[Rows, NDArray[np.int64]]:
        """Neighbors of all queries one after another, and the number of each query's."""
        entered, exclusions = self.enter(request), request.exclusions.arguments(self.unit)
        counts = np.empty(len(request.queries), np.int64)
        limits = float(request.radius) ** 2, max_neighbors
        found = _core.core.find_within(self.arrays, *entered, *limits, exclusions, counts)
        return found, counts

    def enter(self, request: SearchRequest) -> tuple[Array, Array | None]:
        """The queries in units and the factor of the metric, once all of a request is checked."""
        queries, n_neighbors, radius = request.queries, request.n_neighbors, request.radius
        require_array("queries", queries, np.float64, (None, self.d))
        factor = factor_between(self.unit, request.lengthscale)
        in_units = _divided("queries", queries, self.unit, np.empty_like(queries))
        if n_neighbors is not None and n_neighbors < 1:
            raise ValueError(f"n_neighbors={n_neighbors} is not positive.")
        if n_neighbors is None and not (np.isfinite(radius) and radius >= 0):
            raise ValueError(f"radius={radius} is not a finite distance.")
        request.exclusions.require_fit(len(queries), self.n)
        return in_units, factor


def build_index(X: Array, unit: Array, n_threads: int = 1) -> NeighborIndex:
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
    _divided("X", X, unit, points[:n])
    order = np.empty((n_leaves, LEAF_SIZE), np.int32)
    boxes = np.empty((2 * n_leaves - 1, 2, d))
    _core.core.build_tree(points, n, order, boxes, n_threads)
    return NeighborIndex(points.reshape(n_leaves, d, LEAF_SIZE), order, boxes, unit.copy(), n)


def empty_aligned(shape: tuple[int, int]) -> NDArray[np.float64]:
    """np.empty, at a multiple of 64 bytes: a vector never lies in two cache lines."""
    n_bytes = 8 * shape[0] * shape[1]
    memory = np.empty(n_bytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + n_bytes].view(np.float64).reshape(shape)


def _divided(name: str, X: Array, unit: Array, out: Array) -> Array:
    """Points divided by the unit, into ``out``; refused if one is not finite."""
    with np.errstate(over="ignore"):
        np.divide(X, unit, out=out)
    # No array of flags that is as long as the data.
    if not np.isfinite([out.min(initial=0.0), out.max(initial=0.0)]).all():
        raise ValueError(f"{name} divided by the unit is not finite. Remove NaN and infinity.")
    return out


def factor_between(unit: Array, lengthscale: Array) -> Array | None:
    """What differences in units are multiplied by, (d,); None if that is 1 for every input."""
    require_scale("lengthscale", lengthscale, len(unit))
    with np.errstate(over="ignore", under="ignore"):
        factor = unit / lengthscale
    if not (np.all(np.isfinite(factor)) and np.all(factor > 0)):
        raise ValueError(
            f"lengthscale={lengthscale} is too far from unit={unit} of the index: their ratio is "
            "not a finite, positive number. Check the scale of the inputs."
        )
    return None if np.all(factor == 1.0) else factor


def suits(index: SearchIndex, lengthscale: Array) -> bool:
    """Whether the index is about as fast for many queries as one built with this unit (d,).

    Any index answers searches in any diagonal metric. But the tree halves its points along the
    widest input in its own units, and where an input hardly matters to a model, halves along it
    are wasted. With few inputs, another index saves less than a local solve takes. With more, it
    pays for itself after fewer queries than one per hundred rows: the sooner, the more
    lengthscales differ.
    """
    relative = lengthscale / index.unit
    return index.d <= FEW_INPUTS or bool(relative.max() <= LARGEST_RATIO * relative.min())


@dataclass(frozen=True, eq=False)
class GrowingIndex:
    """Two indexes of one kind searched as one, a `SearchIndex`."""

    main: NeighborIndex  # of the first rows
    recent: NeighborIndex  # of the rows after those, numbered from 0

    @property
    def n(self) -> int:
        return self.main.n + self.recent.n

    @property
    def d(self) -> int:
        return self.main.d

    @property
    def unit(self) -> Array:
        return self.main.unit

    @property
    def recall(self) -> float:
        return self.main.recall

    def describe(self) -> str:
        return f"{self.main.describe()}, and {self.recent.n} points since"

    def add_rows(self, X: Array) -> SearchIndex:
        return _grow(self.main, np.concatenate([self.recent.points(), X / self.unit]))

    def keep_rows(self, kept: NDArray[np.bool_]) -> SearchIndex:
        main, recent = kept[: self.main.n], kept[self.main.n :]
        if not recent.any():
            return self.main.keep_rows(main)
        if not main.any():
            return self.recent.keep_rows(recent)
        return GrowingIndex(self.main.keep_rows(main), self.recent.keep_rows(recent))

    def compact(self) -> NeighborIndex:
        return self.main.of_points(np.concatenate([self.main.points(), self.recent.points()]))

    def search(self, request: SearchRequest) -> Rows:
        return self.measure(request).neighbors

    def measure(self, request: SearchRequest) -> Neighborhoods:
        request.exclusions.require_fit(len(request.queries), self.n)
        n_main, width = self.main.n, request.n_neighbors
        of_main, of_recent = (
            request._replace(exclusions=request.exclusions.among(start, stop))
            for start, stop in ((0, n_main), (n_main, self.n))
        )
        if width is None:
            counts = self.main.count(of_main), self.recent.count(of_recent)
            total = counts[0] + counts[1]
            request.require_few(total)
            found = self.main.nearest_of(of_main, counts[0])
            recent = self.recent.nearest_of(of_recent, counts[1])
            return self._merge(found, recent, int(total.max(initial=0)))
        found = self.main.measure(of_main)
        recent = self.recent.measure(of_recent._replace(n_neighbors=min(width, self.recent.n)))
        # Most queries are far from all that is recent. Of equals, the first row is the nearer.
        mixed = np.flatnonzero(recent.squares[:, 0] < found.squares[:, -1])
        merged = self._merge(found.of_queries(mixed), recent.of_queries(mixed), width)
        found.neighbors[mixed], found.squares[mixed] = merged
        return found

    def _merge(self, main: Neighborhoods, recent: Neighborhoods, width: int) -> Neighborhoods:
        """The nearest of both; their rows are ordered by squared distance, then by row."""
        is_row = recent.neighbors >= 0
        later = np.where(is_row, recent.neighbors + np.int32(self.main.n), np.int32(-1))
        rows = np.concatenate([main.neighbors, later], axis=1)
        squares = np.concatenate([main.squares, recent.squares], axis=1)
        # Stable: of equal distances the main row, whose number is smaller, stays first.
        order = np.argsort(squares, axis=1, kind="stable")[:, :width]
        return Neighborhoods(*(np.take_along_axis(part, order, axis=1) for part in (rows, squares)))


def _grow(main: NeighborIndex, points: Array) -> SearchIndex:
    """The index of main's rows and, after them, of these points in units (k, d)."""
    if len(points) > LARGEST_RECENT_SHARE * main.n:
        return main.of_points(np.concatenate([main.points(), points]))
    return GrowingIndex(main, main.of_points(points))


def rebuild(index: SearchIndex, X: Array, unit: Array, n_threads: int = 1) -> SearchIndex:
    """An index of the rows X in another unit, searched as this one is."""
    tree = build_index(X, unit, n_threads)
    return tree.searched_as(index) if isinstance(index, NeighborIndex) else tree
