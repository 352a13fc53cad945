# SPDX-License-Identifier: BSD-3-Clause
"""Neighbor search among all partitions, exact: the neighbors that one index would find.

A query is first answered by the partition whose box it is in or next to. Others are asked only if
their box is nearer than the last neighbor found there: in few dimensions, few are. The rows of
neighborhoods that are in use are kept on this machine.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from lsgp.distributed.cluster import Cluster
from lsgp.distributed.partitioning import Boxes
from lsgp.distributed.rows import Numbers, Rows, take
from lsgp.inputs.transforms import InputTransform
from lsgp.search.contract import Exclusions, Neighborhoods, SearchIndex, SearchRequest
from lsgp.search.index import NeighborIndex, build_index, factor_between

Array = NDArray[np.float64]

#: Rows that are kept on this machine, at the most: of neighborhoods that are used now.
MOST_KEPT = 4_000_000


class Hits(NamedTuple):
    """Neighbors of several queries, one behind the other."""

    query: NDArray[np.integer]  # (h,)
    number: Numbers  # (h,) of the row, in all of the data
    square: Array  # (h,) squared distance

    @classmethod
    def of(cls, near: Neighborhoods, numbers: Numbers) -> Hits:
        """From neighborhoods among rows with these numbers."""
        is_there = near.neighbors >= 0
        query = np.nonzero(is_there)[0].astype(np.int32)
        return cls(query, numbers[near.neighbors[is_there]], near.squares[is_there])


def nearby(
    numbers: Numbers,
    groups: NDArray[np.int32] | None,
    index: NeighborIndex,
    request: SearchRequest,
    limits: Array | None = None,
) -> Neighborhoods:
    """Search a partition; neighbors are places among its rows.

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
    if limits is None or request.n_neighbors is None:
        return near
    return near.drop(near.squares > limits[:, None])


def limits_after(request: SearchRequest, squares: Array) -> Array:
    """Squared distances (q,) within which there may be nearer rows than those found (q, m)."""
    if request.n_neighbors is None:
        return np.full(len(request.queries), request.radius**2)
    if squares.shape[1] < request.n_neighbors:
        return np.full(len(request.queries), np.inf)
    return squares[:, -1]


def nearest_of_all(found: Sequence[Hits], request: SearchRequest, n_queries: int) -> Neighborhoods:
    """The neighborhoods (q, m) of a request, by numbers of rows, from several searches."""
    none = Hits(*(np.empty(0, kind) for kind in (int, np.int64, float)))
    query, number, square = (np.concatenate(own) for own in zip(none, *found, strict=True))
    # Equal distances are ordered by row, as in one index.
    order = np.lexsort((number, square, query))
    query = query[order]
    rank = np.arange(len(query)) - np.searchsorted(query, query)
    width = request.n_neighbors
    if width is None:
        width = int(rank.max(initial=-1)) + 1
    shape, kept = (n_queries, width), rank < width
    neighbors, squares = np.full(shape, -1), np.full(shape, np.inf)
    neighbors[query[kept], rank[kept]] = number[order[kept]]
    squares[query[kept], rank[kept]] = square[order[kept]]
    # Numbers of all of the data have 64 bits; only code that fetches their rows sees them.
    near = Neighborhoods(cast("NDArray[np.int32]", neighbors), squares)
    require_few(request, near)
    return near


def require_few(request: SearchRequest, near: Neighborhoods) -> None:
    """Refuse a radius with more rows than a system may have."""
    if request.n_neighbors is None:
        request.require_few(np.count_nonzero(near.neighbors >= 0, axis=1))


def at_hand(neighbors: NDArray[np.integer]) -> tuple[Numbers, NDArray[np.int32]]:
    """The rows of neighborhoods (q, m) that -1 pads, each once, and places among these."""
    rows, places = np.unique(neighbors, return_inverse=True)
    n_pads = int(np.searchsorted(rows, 0))
    found = np.maximum(places.reshape(neighbors.shape) - n_pads, -1)
    return rows[n_pads:], np.ascontiguousarray(found, dtype=np.int32)


class RowStore:
    """The partitions of all rows, and those of their rows that were fetched."""

    def __init__(
        self, cluster: Cluster, parts: Sequence[Future], sizes: Sequence[int], boxes: Boxes
    ) -> None:
        self.cluster = cluster
        self.parts = parts  # of Rows, none of them empty
        self.n = sum(sizes)
        self.boxes = boxes  # of inputs as they were given
        self._kept: deque[Rows] = deque()
        self._lock = threading.Lock()

    def keep(self, rows: Rows) -> None:
        """Keep rows that will be wanted again soon; sorted by their numbers, each once."""
        if not rows.n:
            return
        with self._lock:
            self._kept.appendleft(rows)
            while len(self._kept) > 1 and sum(part.n for part in self._kept) > MOST_KEPT:
                self._kept.pop()

    def rows(self, numbers: NDArray[np.integer]) -> Rows:
        """These rows, in this order, as often as they are named."""
        left, own = np.unique(np.asarray(numbers, dtype=np.int64), return_inverse=True)
        found = []
        with self._lock:
            kept = list(self._kept)
        for rows in kept:
            part, is_here = rows.take(left)
            found.append(part)
            left = left[~is_here]
        if len(left) or not found:
            found.append(self.fetch(left))
        return Rows.join(found).in_order().pick(own.reshape(-1))

    def fetch(self, wanted: Numbers) -> Rows:
        """Rows by sorted numbers, each once, from the partitions that have them."""
        cluster = self.cluster
        # All partitions are asked: a list of who has which row would be as long as the data.
        asked = cluster.send(wanted) if len(self.parts) * len(wanted) > 1_000_000 else wanted
        found = cluster.gather(cluster.each("take", take, self.parts, asked))
        rows = Rows.join(found).in_order()
        assert rows.n == len(wanted), "every row is in one partition"
        self.keep(rows)
        return rows


class ClusterIndex:
    """An index of each partition, in one transform of the inputs: a `SearchIndex`."""

    recall = 1.0

    def __init__(self, store: RowStore, transform: InputTransform, unit: Array) -> None:
        self.store, self.transform, self.unit = store, transform, unit
        self.boxes = store.boxes.transformed(transform)

    @cached_property
    def indexes(self) -> list[Future]:
        store = self.store
        return store.cluster.each("index", index_rows, store.parts, self.transform, self.unit)

    @property
    def n(self) -> int:
        return self.store.n

    @property
    def d(self) -> int:
        return len(self.unit)

    def describe(self) -> str:
        return (
            f"exact search (recall 1.0) among {self.n} points of {self.d} inputs, in "
            f"{len(self.store.parts)} partitions"
        )

    def search(self, request: SearchRequest) -> NDArray[np.int32]:
        return self.measure(request).neighbors

    def measure(self, request: SearchRequest) -> Neighborhoods:
        """The neighbors, by their numbers in all of the data."""
        queries, lengthscale, n_neighbors = request[:3]
        factor_between(self.unit, lengthscale)
        squares, first = self.boxes.squares(queries, lengthscale), []
        is_asked = np.zeros(squares.shape, dtype=bool)
        if n_neighbors is not None:
            is_asked[np.argmin(squares, axis=0), np.arange(len(queries))] = True
            first = self._ask(request, None, is_asked)
        near = nearest_of_all(first, request, len(queries))
        limits = limits_after(request, near.squares)
        others = self.boxes.reached(queries, lengthscale, limits) & ~is_asked
        found = [*first, *self._ask(request, limits, others)]
        return nearest_of_all(found, request, len(queries))

    def _ask(
        self, request: SearchRequest, limits: Array | None, is_asked: NDArray[np.bool_]
    ) -> list[Hits]:
        """Search the partitions that are asked (P, q); their rows are kept for later."""
        cluster, store = self.store.cluster, self.store
        asked = np.flatnonzero(is_asked.any(axis=1)).tolist()
        which = [(p, np.flatnonzero(is_asked[p])) for p in asked]
        tasks = []
        for p, own in which:
            # Partitions know the groups of their rows.
            exclusions = request.exclusions.of_queries(own)._replace(groups=None)
            part = request._replace(
                queries=np.ascontiguousarray(request.queries[own]), exclusions=exclusions
            )
            arguments = store.parts[p], self.indexes[p], part
            within = None if limits is None else limits[own]
            tasks.append(cluster.submit("search", search_rows, *arguments, within))
        found = cluster.gather(tasks)
        if found:
            store.keep(Rows.join([rows for _, rows in found]).in_order())
        return [
            hits._replace(query=own[hits.query])
            for (hits, _), (_, own) in zip(found, which, strict=True)
        ]

    # Rows of a cluster are as they were fitted.

    def add_rows(self, X: Array) -> SearchIndex:
        raise ValueError("Rows on a cluster cannot be added to. Fit again with all rows.")

    def keep_rows(self, kept: NDArray[np.bool_]) -> SearchIndex:
        raise ValueError("Rows on a cluster cannot be removed. Fit again without them.")

    def compact(self) -> SearchIndex:
        raise ValueError("Rows on a cluster have no single tree. Save the model instead.")


def index_rows(rows: Rows, transform: InputTransform, unit: Array) -> NeighborIndex:
    """The index of a partition in one transform of the inputs."""
    return build_index(np.ascontiguousarray(transform.transform(rows.X), dtype=float), unit)


def search_rows(
    rows: Rows, index: NeighborIndex, request: SearchRequest, limits: Array | None
) -> tuple[Hits, Rows]:
    """The neighbors of queries in a partition, and their rows, each once."""
    near = nearby(rows.numbers, rows.groups, index, request, limits)
    places = np.unique(near.neighbors[near.neighbors >= 0])
    return Hits.of(near, rows.numbers), rows.pick(places)
