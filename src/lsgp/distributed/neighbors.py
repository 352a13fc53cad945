# SPDX-License-Identifier: BSD-3-Clause
"""The nearest rows of queries: in one partition, and among the findings of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from lsgp.search.exclusions import Exclusions
from lsgp.search.index import NeighborIndex
from lsgp.search.neighborhoods import Neighborhoods

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


class NeighborRequest(NamedTuple):
    """Queries of a search, in a transform of the inputs; what each is found without."""

    queries: Array  # (q, d)
    lengthscale: Array  # (d,)
    n_neighbors: int | None
    within: float | None  # radius, where there is no number of neighbors
    limits: Array | None = None  # (q,) squared distances beyond which nothing is wanted
    rows: Numbers | None = None  # (q,) as in `Exclusions`, numbers in all of the data
    radius: Array | None = None
    query_groups: NDArray[np.int32] | None = None

    def pick(self, which: NDArray[Any]) -> NeighborRequest:
        """The request for some of the queries."""
        of_queries = ("queries", "limits", "rows", "radius", "query_groups")
        picked: dict[str, Any] = {
            name: None if (own := getattr(self, name)) is None else own[which]
            for name in of_queries
        }
        return self._replace(**picked)

    def limits_after(self, distances: Array) -> Array:
        """Squared distances (q,) within which there may be nearer rows than those found (q, m)."""
        if self.within is not None:
            return np.full(len(self.queries), self.within**2)
        if distances.shape[1] < (self.n_neighbors or 0):
            return np.full(len(self.queries), np.inf)
        return distances[:, -1]


class Hits(NamedTuple):
    """Neighbors, one behind the other."""

    query: NDArray[np.integer]  # (h,) which query found it
    square: Array  # (h,) squared distance
    number: Numbers  # (h,) in all of the data
    place: NDArray[np.integer]  # (h,) among the rows that were searched


def nearby(
    numbers: Numbers,
    groups: NDArray[np.int32] | None,
    index: NeighborIndex,
    request: NeighborRequest,
) -> Neighborhoods:
    """The nearest rows of a partition, or all within the radius, as far as they are wanted.

    By their places in the partition, and with squared distances.
    """
    excluded = None
    if request.rows is not None:
        place = np.minimum(np.searchsorted(numbers, request.rows), len(numbers) - 1)
        excluded = np.where(numbers[place] == request.rows, place, -1).astype(np.int32)
    own_groups = None if request.query_groups is None else groups
    exclusions = Exclusions(excluded, request.radius, own_groups, request.query_groups)
    queries, lengthscale = np.ascontiguousarray(request.queries), request.lengthscale
    if request.within is None:
        width = min(request.n_neighbors or 0, len(numbers))
        near = index.nearest_with_squares(queries, lengthscale, width, exclusions)
    else:
        counts = index.count_within(queries, lengthscale, request.within, exclusions)
        width = max(int(counts.max(initial=0)), 1)
        near = index.nearest_with_squares(queries, lengthscale, width, exclusions)
        _remove(near, np.arange(width) >= counts[:, None])
    if request.limits is not None:
        _remove(near, near.distances > request.limits[:, None])
    return near


def _remove(near: Neighborhoods, unwanted: NDArray[np.bool_]) -> None:
    near.neighbors[unwanted], near.distances[unwanted] = -1, np.inf


def at_hand(neighbors: NDArray[np.integer]) -> tuple[Numbers, NDArray[np.int32]]:
    """The rows of neighborhoods (q, m) that -1 pads, each once, and places among these."""
    rows, places = np.unique(neighbors, return_inverse=True)
    n_pads = int(np.searchsorted(rows, 0))
    found = np.maximum(places.reshape(neighbors.shape) - n_pads, -1)
    return rows[n_pads:], np.ascontiguousarray(found, dtype=np.int32)


def hits_of(near: Neighborhoods, numbers: Numbers) -> Hits:
    """Neighborhoods among rows with these numbers, one neighbor behind the other."""
    is_there = near.neighbors >= 0
    place = near.neighbors[is_there]
    query = np.repeat(np.arange(len(is_there)), np.count_nonzero(is_there, axis=1))
    return Hits(query, near.distances[is_there], numbers[place], place)


def nearest_of_all(
    found: Sequence[Hits], n_queries: int, n_neighbors: int | None
) -> tuple[Hits, NDArray[np.int64]]:
    """The nearest of several searches: by query, by distance, then by row; and their ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.distributed.neighbors import Hits, nearest_of_all
    >>> one = Hits(np.array([0, 0]), np.array([1.0, 3.0]), np.array([7, 8]), np.array([0, 1]))
    >>> other = Hits(np.array([0]), np.array([2.0]), np.array([4]), np.array([0]))
    >>> hits, ranks = nearest_of_all([one, other], 1, 2)
    >>> hits.number, ranks
    (array([7, 4]), array([0, 1]))
    """
    none = Hits(*(np.empty(0, kind) for kind in (int, float, int, int)))
    joined = Hits._make(np.concatenate(parts) for parts in zip(none, *found, strict=True))
    order = np.lexsort((joined.number, joined.square, joined.query))
    joined = Hits._make(part[order] for part in joined)
    first = np.searchsorted(joined.query, np.arange(n_queries))
    rank = np.arange(len(order)) - first[joined.query]
    if n_neighbors is None:
        return joined, rank
    is_kept = rank < n_neighbors
    return Hits._make(part[is_kept] for part in joined), rank[is_kept]


def padded(
    hits: Hits, rank: Numbers, values: NDArray[np.integer], shape: tuple[int, int]
) -> Neighborhoods:
    """Neighborhoods (q, m) with one of the values for each hit."""
    neighbors, squares = np.full(shape, -1, values.dtype), np.full(shape, np.inf)
    neighbors[hits.query, rank] = values
    squares[hits.query, rank] = hits.square
    # Numbers of all of the data have 64 bits: they go no further than to those who fetch the rows.
    return Neighborhoods(cast("NDArray[np.int32]", neighbors), squares)
