# SPDX-License-Identifier: BSD-3-Clause
"""Neighbor search among all partitions, exact: the neighbors, and the bits, of one index.

A query is first answered by the partition whose box it is in or next to. Others are asked only if
their box is nearer than the last neighbor found there: in few dimensions, few are.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from lsgp.distributed.parts import (
    Ask,
    Found,
    Hits,
    Rows,
    in_order,
    make_index,
    nearest_of_all,
    rank_in_query,
    search_rows,
)
from lsgp.distributed.store import RowStore
from lsgp.inputs.transforms import InputTransform
from lsgp.search.contract import Neighborhoods, SearchIndex, SearchRequest
from lsgp.search.metric import factor_between

Array = NDArray[np.float64]


class ClusterIndex:
    """An index of each partition, in one transform of the inputs: a `SearchIndex`."""

    def __init__(self, store: RowStore, transform: InputTransform, unit: Array) -> None:
        self.store, self.transform, self.unit = store, transform, unit
        self.boxes = store.boxes.transformed(transform)
        cluster = store.cluster
        self.parts = [
            cluster.submit("index", make_index, part, transform, unit) for part in store.parts
        ]

    def in_unit(self, unit: Array) -> ClusterIndex:
        """The same rows, for searches in metrics near another unit."""
        return ClusterIndex(self.store, self.transform, unit)

    @property
    def n(self) -> int:
        return self.store.n

    @property
    def d(self) -> int:
        return len(self.unit)

    @property
    def recall(self) -> float:
        return 1.0

    def describe(self) -> str:
        return (
            f"exact search (recall 1.0) among {self.n} points of {self.d} inputs, in "
            f"{len(self.parts)} partitions"
        )

    def search(self, request: SearchRequest) -> NDArray[np.int32]:
        return self.measure(request).neighbors

    def measure(self, request: SearchRequest) -> Neighborhoods:
        queries, lengthscale, n_neighbors = request[:3]
        factor_between(self.unit, lengthscale)
        if not len(queries):
            return padded(Hits.none(), 0, n_neighbors or 0)
        ask = _ask(request)
        if n_neighbors is None:
            limits = np.full(len(queries), request.radius**2)
            reached = self.boxes.reached(queries, lengthscale, limits)
            hits = nearest_of_all(Hits.none(), self._answers(ask, reached), None)
            counts = np.bincount(hits.query, minlength=len(queries))
            request.require_few(counts)
            return padded(hits, len(queries), int(counts.max(initial=0)))
        squares = self.boxes.squares(queries, lengthscale)
        home = np.argmin(squares, axis=0)
        at_home = np.arange(len(self.parts))[:, None] == home
        first = in_order([Hits.none(), *self._answers(ask, at_home)])
        limits = limits_of(first, len(queries), n_neighbors)
        others = self.boxes.reached(queries, lengthscale, limits) & ~at_home
        rest = self._answers(ask._replace(limits=limits), others)
        hits = nearest_of_all(first, rest, n_neighbors)
        return padded(hits, len(queries), n_neighbors)

    def _answers(self, ask: Ask, asked: NDArray[np.bool_]) -> list[Hits]:
        """What the partitions answer that are asked, (P, q); their rows are kept for later."""
        cluster, store = self.store.cluster, self.store
        which = [(p, np.flatnonzero(asked[p])) for p in np.flatnonzero(asked.any(axis=1))]
        futures = [
            cluster.submit("search", search_rows, store.parts[p], self.parts[p], ask.pick(own))
            for p, own in which
        ]
        found: list[Found] = cluster.gather(futures)
        if found:
            joined = Rows.join([each.rows for each in found])
            store.keep(joined.pick(np.argsort(joined.numbers, kind="stable")))
        return [
            each.hits._replace(
                query=own[each.hits.query], number=each.rows.numbers[each.hits.place]
            )
            for each, (_, own) in zip(found, which, strict=True)
        ]

    # Rows of a cluster are as they were fitted.

    def add_rows(self, X: Array) -> SearchIndex:
        raise ValueError("Rows on a cluster cannot be added to. Fit again with all rows.")

    def keep_rows(self, kept: NDArray[np.bool_]) -> SearchIndex:
        raise ValueError("Rows on a cluster cannot be removed. Fit again without them.")

    def compact(self) -> SearchIndex:
        raise ValueError("Rows on a cluster have no single tree. Save the model instead.")


def _ask(request: SearchRequest) -> Ask:
    """What each partition is asked, which knows the groups of its own rows."""
    rows, radius, _, groups = request.exclusions
    rows_of_all = None if rows is None else rows.astype(np.int64)
    within = request.radius if request.n_neighbors is None else None
    queries = np.ascontiguousarray(request.queries)
    lengthscale = np.asarray(request.lengthscale, dtype=float)
    return Ask(queries, lengthscale, request.n_neighbors, within, None, rows_of_all, radius, groups)


def limits_of(hits: Hits, n_queries: int, n_neighbors: int) -> Array:
    """Squared distance of the last neighbor of each query; infinite if there are too few."""
    limits = np.full(n_queries, np.inf)
    is_last = rank_in_query(hits.query) == n_neighbors - 1
    limits[hits.query[is_last]] = hits.square[is_last]
    return limits


def padded(hits: Hits, n_queries: int, width: int) -> Neighborhoods:
    """Neighbors as arrays (q, width), by their numbers in all of the data: of 64 bits."""
    return _padded(hits, hits.number.astype(np.int64), n_queries, width)


def padded_places(hits: Hits, n_queries: int, width: int) -> Neighborhoods:
    """The same by their places among rows at hand."""
    return _padded(hits, hits.place.astype(np.int32), n_queries, width)


def _padded(
    hits: Hits, values: NDArray[np.signedinteger], n_queries: int, width: int
) -> Neighborhoods:
    neighbors = np.full((n_queries, width), -1, values.dtype)
    squares = np.full((n_queries, width), np.inf)
    rank = rank_in_query(hits.query)
    neighbors[hits.query, rank] = values
    squares[hits.query, rank] = hits.square
    # More than the core's 32 bits go no further than to those who fetch the rows.
    return Neighborhoods(cast("NDArray[np.int32]", neighbors), squares)
