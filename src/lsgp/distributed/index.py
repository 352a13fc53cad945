# SPDX-License-Identifier: BSD-3-Clause
"""Neighbor search among all partitions, exact: the neighbors that one index would find.

A query is first answered by the partition whose box it is in or next to. Others are asked only if
their box is nearer than the last neighbor found there: in few dimensions, few are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.distributed.neighbors import (
    Hits,
    hits_of,
    limits_after,
    nearby,
    nearest_of_all,
    padded,
    pick,
)
from lsgp.distributed.rows import Rows
from lsgp.distributed.store import RowStore
from lsgp.inputs.transforms import InputTransform
from lsgp.search.contract import Neighborhoods, SearchIndex, SearchRequest
from lsgp.search.index import NeighborIndex, build_index, factor_between

Array = NDArray[np.float64]


class ClusterIndex:
    """An index of each partition, in one transform of the inputs: a `SearchIndex`."""

    recall = 1.0

    def __init__(self, store: RowStore, transform: InputTransform, unit: Array) -> None:
        self.store, self.transform, self.unit = store, transform, unit
        self.boxes = store.boxes.transformed(transform)
        self.indexes = store.cluster.each("index", index_rows, store.parts, transform, unit)

    def in_unit(self, unit: Array) -> ClusterIndex:
        """The same rows, for searches in metrics near another unit."""
        return ClusterIndex(self.store, self.transform, unit)

    @property
    def n(self) -> int:
        return self.store.n

    @property
    def d(self) -> int:
        return len(self.unit)

    def describe(self) -> str:
        return (
            f"exact search (recall 1.0) among {self.n} points of {self.d} inputs, in "
            f"{len(self.indexes)} partitions"
        )

    def search(self, request: SearchRequest) -> NDArray[np.int32]:
        return self.measure(request).neighbors

    def measure(self, request: SearchRequest) -> Neighborhoods:
        """The neighbors, by their numbers in all of the data."""
        queries, lengthscale, n_neighbors = request[:3]
        factor_between(self.unit, lengthscale)
        if n_neighbors is None:
            limits = np.full(len(queries), request.radius**2)
            found = self._ask(request, None, self.boxes.reached(queries, lengthscale, limits))
            hits, rank = nearest_of_all(found, len(queries), None)
            counts = np.bincount(hits.query, minlength=len(queries))
            request.require_few(counts)
            return padded(hits, rank, hits.number, (len(queries), int(counts.max(initial=0))))
        nearest = np.argmin(self.boxes.squares(queries, lengthscale), axis=0)
        is_first = np.arange(len(self.indexes))[:, None] == nearest
        first, shape = self._ask(request, None, is_first), (len(queries), n_neighbors)
        hits, rank = nearest_of_all(first, *shape)
        limits = limits_after(request, padded(hits, rank, hits.number, shape).squares)
        others = self.boxes.reached(queries, lengthscale, limits) & ~is_first
        hits, rank = nearest_of_all([*first, *self._ask(request, limits, others)], *shape)
        return padded(hits, rank, hits.number, shape)

    def _ask(
        self, request: SearchRequest, limits: Array | None, is_asked: NDArray[np.bool_]
    ) -> list[Hits]:
        """What the partitions find that are asked (P, q); their rows are kept for later."""
        cluster, store = self.store.cluster, self.store
        which = [(p, np.flatnonzero(is_asked[p])) for p in np.flatnonzero(is_asked.any(axis=1))]
        found: list[Found] = cluster.gather(
            [
                cluster.submit(
                    "search",
                    search_rows,
                    store.parts[p],
                    self.indexes[p],
                    pick(request, own),
                    None if limits is None else limits[own],
                )
                for p, own in which
            ]
        )
        if found:
            store.keep(Rows.join([each.rows for each in found]).in_order())
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


# -- tasks ---------------------------------------------------------------------------------------


class Found(NamedTuple):
    """Neighbors, with their rows, each once: places are among these."""

    hits: Hits
    rows: Rows


def index_rows(rows: Rows, transform: InputTransform, unit: Array) -> NeighborIndex:
    """The index of a partition in one transform of the inputs."""
    return build_index(np.ascontiguousarray(transform.transform(rows.X), dtype=float), unit)


def search_rows(
    rows: Rows, index: NeighborIndex, request: SearchRequest, limits: Array | None
) -> Found:
    """The neighbors of queries in a partition; without numbers, which the rows have."""
    hits = hits_of(nearby(rows.numbers, rows.groups, index, request, limits), rows.numbers)
    places, own = np.unique(hits.place, return_inverse=True)
    # As small as can be: millions of them travel.
    small = hits._replace(
        query=hits.query.astype(np.int32),
        number=hits.number[:0],
        place=own.reshape(-1).astype(np.int32),
    )
    return Found(small, rows.pick(places))
