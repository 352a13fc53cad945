# SPDX-License-Identifier: BSD-3-Clause
"""The nearest rows of queries: in one partition, and among the findings of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from lsgp.search.contract import Exclusions, Neighborhoods, SearchRequest
from lsgp.search.index import NeighborIndex

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


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
    request: SearchRequest,
    limits: Array | None = None,
) -> Neighborhoods:
    """The rows of a partition that a request wants, by their places in the partition.

    The request excludes rows by their numbers in all of the data. ``limits`` (q,) are squared
    distances beyond which nothing is wanted.
    """
    rows, radius, _, query_groups = request.exclusions
    if rows is not None:
        place = np.minimum(np.searchsorted(numbers, rows), len(numbers) - 1)
        rows = np.where(numbers[place] == rows, place, -1).astype(np.int32)
    own_groups = None if query_groups is None else groups
    size = None if request.n_neighbors is None else min(request.n_neighbors, len(numbers))
    near = index.measure(
        request._replace(
            n_neighbors=size,
            exclusions=Exclusions(rows, radius, own_groups, query_groups),
            max_neighbors=len(numbers),
        )
    )
    return near if limits is None else near.drop(near.squares > limits[:, None])


def pick(request: SearchRequest, which: NDArray[np.integer]) -> SearchRequest:
    """The request for some of the queries; partitions know the groups of their rows."""
    queries = np.ascontiguousarray(request.queries[which])
    exclusions = request.exclusions.of_queries(which)._replace(groups=None)
    return request._replace(queries=queries, exclusions=exclusions)


def limits_after(request: SearchRequest, squares: Array) -> Array:
    """Squared distances (q,) within which there may be nearer rows than those found (q, m)."""
    if request.n_neighbors is None:
        return np.full(len(request.queries), request.radius**2)
    if squares.shape[1] < request.n_neighbors:
        return np.full(len(request.queries), np.inf)
    return squares[:, -1]


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
    return Hits(query, near.squares[is_there], numbers[place], place)


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
