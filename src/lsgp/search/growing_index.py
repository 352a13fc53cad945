# SPDX-License-Identifier: BSD-3-Clause
"""A neighbor index that takes rows in and lets rows go, without being rebuilt each time.

Rows that come later go to a small index beside the main one; both are searched, and the results
are merged. Rows that leave become padding where they are. When either has cost too much of the
search, everything is rebuilt. Whatever the history, a search finds what a fresh index of the
same rows would find, ties included.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.compute import memory
from lsgp.search import index as neighbors
from lsgp.search.index import LEAF_SIZE, Neighborhoods, NeighborIndex, build_index

#: The index is rebuilt when the rows beside the main one are more than this share of it,
LARGEST_RECENT_SHARE = 0.1
#: or when this share of its places is empty.
LARGEST_EMPTY_SHARE = 0.25


class GrowingIndex(NamedTuple):
    """Two indexes searched as one."""

    main: NeighborIndex  # of the first rows
    recent: NeighborIndex  # of the rows after those, numbered from 0

    @property
    def n(self) -> int:
        return self.main.n + self.recent.n

    @property
    def d(self) -> int:
        return self.main.d

    @property
    def lengthscale(self) -> NDArray[np.float64]:
        return self.main.lengthscale

    @property
    def recall(self) -> float:
        """Fraction of the true neighbors that a search finds."""
        return 1.0

    def describe(self) -> str:
        return f"{self.main.describe()}, and {self.recent.n} points since"


SearchIndex = NeighborIndex | GrowingIndex


def add_rows(index: SearchIndex, X: NDArray[np.float64]) -> SearchIndex:
    """The index of its rows and, after them, those of X (k, d), in the units of X.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.search.growing_index import add_rows, find_nearest
    >>> from lsgp.search.index import build_index
    >>> index = build_index(np.arange(100.0)[:, None], np.ones(1))
    >>> grown = add_rows(index, np.array([[10.4]]))
    >>> find_nearest(grown, np.array([[10.3]]), 3)
    array([[100,  10,  11]], dtype=int32)
    """
    main, recent = index if isinstance(index, GrowingIndex) else (index, None)
    points = X / main.lengthscale
    if recent is not None:
        points = np.concatenate([_points_of(recent), points])
    if len(points) > LARGEST_RECENT_SHARE * main.n:
        return _arrange(np.concatenate([_points_of(main), points]), main.lengthscale)
    return GrowingIndex(main, _arrange(points, main.lengthscale))


def keep_rows(index: SearchIndex, kept: NDArray[np.bool_]) -> SearchIndex:
    """The index of the rows where ``kept`` (n,) is true, numbered anew in their order."""
    if isinstance(index, NeighborIndex):
        return _keep(index, kept)
    main, recent = kept[: index.main.n], kept[index.main.n :]
    if not recent.any():
        return _keep(index.main, main)
    if not main.any():
        return _keep(index.recent, recent)
    return GrowingIndex(_keep(index.main, main), _keep(index.recent, recent))


def compact(index: SearchIndex) -> NeighborIndex:
    """The same rows in one index without gaps, as if it had been built at once."""
    if isinstance(index, GrowingIndex):
        points = np.concatenate([_points_of(index.main), _points_of(index.recent)])
        return _arrange(points, index.lengthscale)
    if len(index.leaves) == -(-index.n // LEAF_SIZE):
        return index
    return _arrange(_points_of(index), index.lengthscale)


def find_nearest(
    index: SearchIndex, queries: NDArray[np.float64], n_neighbors: int, **exclusions: Any
) -> NDArray[np.int32]:
    """As `neighbors.find_nearest`."""
    if isinstance(index, NeighborIndex):
        return neighbors.find_nearest(index, queries, n_neighbors, **exclusions)
    return _find_nearest_with_squares(index, queries, n_neighbors, exclusions).neighbors


def find_nearest_with_distances(
    index: SearchIndex, queries: NDArray[np.float64], n_neighbors: int, **exclusions: Any
) -> Neighborhoods:
    """As `neighbors.find_nearest_with_distances`."""
    if isinstance(index, NeighborIndex):
        return neighbors.find_nearest_with_distances(index, queries, n_neighbors, **exclusions)
    found = _find_nearest_with_squares(index, queries, n_neighbors, exclusions)
    return found._replace(distances=np.sqrt(found.distances))


def find_within(
    index: SearchIndex,
    queries: NDArray[np.float64],
    radius: float,
    *,
    max_neighbors: int,
    first_query: int = 0,
    **exclusions: Any,
) -> NDArray[np.int32]:
    """As `neighbors.find_within`."""
    if isinstance(index, NeighborIndex):
        return neighbors.find_within(
            index,
            queries,
            radius,
            max_neighbors=max_neighbors,
            first_query=first_query,
            **exclusions,
        )
    parts = _split_exclusions(index, exclusions)
    counts = [
        neighbors.count_within(part, queries, radius, **excluded)
        for part, excluded in zip(index, parts, strict=True)
    ]
    total = counts[0] + counts[1]
    neighbors.require_few(total, max_neighbors, radius, index.lengthscale, first_query)
    found = []
    for part, excluded, count in zip(index, parts, counts, strict=True):
        # The radius search does not tell distances, which the merge needs.
        nearest = neighbors.find_nearest_with_squares(
            part, queries, max(int(count.max(initial=0)), 1), **excluded
        )
        outside = np.arange(nearest.neighbors.shape[1]) >= count[:, None]
        nearest.neighbors[outside], nearest.distances[outside] = -1, np.inf
        found.append(nearest)
    return _merge(index.main.n, found[0], found[1], int(total.max(initial=0))).neighbors


def _find_nearest_with_squares(
    index: GrowingIndex,
    queries: NDArray[np.float64],
    n_neighbors: int,
    exclusions: dict[str, Any],
) -> Neighborhoods:
    of_main, of_recent = _split_exclusions(index, exclusions)
    found = neighbors.find_nearest_with_squares(index.main, queries, n_neighbors, **of_main)
    n_recent = min(n_neighbors, index.recent.n)
    recent = neighbors.find_nearest_with_squares(index.recent, queries, n_recent, **of_recent)
    # Most queries are far from all that is recent. Of equals, the first row is the nearer.
    mixed = np.flatnonzero(recent.distances[:, 0] < found.distances[:, -1])
    some = [Neighborhoods(part.neighbors[mixed], part.distances[mixed]) for part in (found, recent)]
    merged = _merge(index.main.n, some[0], some[1], n_neighbors)
    found.neighbors[mixed], found.distances[mixed] = merged
    return found


def _merge(n_main: int, main: Neighborhoods, recent: Neighborhoods, width: int) -> Neighborhoods:
    """The nearest of both; their rows are ordered by squared distance, then by row."""
    rows = np.where(recent.neighbors >= 0, recent.neighbors + np.int32(n_main), np.int32(-1))
    rows = np.concatenate([main.neighbors, rows], axis=1)
    squared = np.concatenate([main.distances, recent.distances], axis=1)
    # Stable: of equal distances the main row, whose number is smaller, stays first.
    order = np.argsort(squared, axis=1, kind="stable")[:, :width]
    return Neighborhoods(
        np.take_along_axis(rows, order, axis=1), np.take_along_axis(squared, order, axis=1)
    )


def _split_exclusions(
    index: GrowingIndex, exclusions: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The exclusions of a search, for each of the two parts."""
    n, main, recent = index.main.n, dict(exclusions), dict(exclusions)
    row = exclusions.get("exclude")
    if row is not None:
        main["exclude"] = np.where(row < n, row, -1).astype(np.int32)
        recent["exclude"] = np.where(row >= n, row - n, -1).astype(np.int32)
    if exclusions.get("groups") is not None:
        raise ValueError("An index that has grown does not exclude groups. Build it at once.")
    return main, recent


def _arrange(points: NDArray[np.float64], lengthscale: NDArray[np.float64]) -> NeighborIndex:
    """`build_index` of points that have been divided by the lengthscale."""
    index = build_index(np.ascontiguousarray(points), np.ones(points.shape[1]))
    return index._replace(lengthscale=lengthscale)


def _points_of(index: NeighborIndex) -> NDArray[np.float64]:
    """The points of an index, divided by the lengthscale, in the order of the rows, (n, d)."""
    rows = index.order.reshape(-1)
    is_point = rows >= 0
    points = np.empty((index.n, index.d))
    points[rows[is_point]] = index.leaves.transpose(0, 2, 1).reshape(-1, index.d)[is_point]
    return points


def _keep(index: NeighborIndex, kept: NDArray[np.bool_]) -> NeighborIndex:
    if kept.all():
        return index
    n = int(np.count_nonzero(kept))
    if index.order.size - n > max(LARGEST_EMPTY_SHARE * index.order.size, LEAF_SIZE):
        return _arrange(_points_of(index)[kept], index.lengthscale)
    # Padding has row -1, for whoever reads the points, and NaN, which no search finds.
    numbers = np.where(kept, np.cumsum(kept, dtype=np.int32) - np.int32(1), np.int32(-1))
    order = np.where(index.order >= 0, numbers[index.order], np.int32(-1))
    leaves = memory.empty_aligned((index.order.size, index.d)).reshape(index.leaves.shape)
    np.copyto(leaves, index.leaves)
    leaf, place = np.nonzero(order < 0)
    leaves[leaf, :, place] = np.nan
    return NeighborIndex(leaves, order, index.boxes, index.lengthscale, n)
