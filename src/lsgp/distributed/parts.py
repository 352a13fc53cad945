# SPDX-License-Identifier: BSD-3-Clause
"""Rows of one partition, and what workers do with them: pure functions, one per kind of task."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.distributed.regions import Regions
from lsgp.inputs.labels import codes_of
from lsgp.inputs.transforms import InputTransform
from lsgp.inputs.transforms.column_statistics import ColumnStatistics, column_statistics
from lsgp.search.contract import Neighborhoods, SearchRequest
from lsgp.search.exclusions import Exclusions
from lsgp.search.index import NeighborIndex, build_index

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

#: Rows of a chunk of the data that regions are made from.
N_SAMPLED = 2000


class Rows(NamedTuple):
    """Some of the rows, numbered as in all of the data, in the order of their numbers."""

    numbers: Numbers  # (k,)
    X: Array  # (k, d) as given
    y: Array  # (k, t) as given
    noise: Array  # (k,)
    weight: Array | None = None  # (k,)
    groups: NDArray[np.int32] | None = None  # (k,)

    def pick(self, places: NDArray[Any]) -> Rows:
        return Rows._make(None if column is None else column[places] for column in self)

    @classmethod
    def join(cls, parts: Sequence[Rows]) -> Rows:
        columns = zip(*parts, strict=True)
        return cls._make(None if c[0] is None else np.concatenate(c) for c in columns)

    @property
    def n(self) -> int:
        return len(self.numbers)


# -- statistics ----------------------------------------------------------------------------------


class Summary(NamedTuple):
    """Statistics of the rows of a partition, or of several."""

    n: int
    X: ColumnStatistics
    plain_X: ColumnStatistics  # of which each row counts once, whatever its weight
    y: ColumnStatistics
    noise: ColumnStatistics
    weight: ColumnStatistics | None
    classes: Array  # (C,) weight of the rows of each class

    @classmethod
    def of(cls, rows: Rows, n_classes: int) -> Summary:
        """``n_classes`` is 0 if targets are no labels."""
        weight = rows.weight
        X = column_statistics(rows.X, weight)
        codes = codes_of(rows.y, n_classes) if n_classes else np.empty(0, np.int64)
        return cls(
            rows.n,
            X,
            X if weight is None else column_statistics(rows.X),
            column_statistics(rows.y, weight),
            column_statistics(rows.noise[:, None]),
            None if weight is None else column_statistics(weight[:, None]),
            np.bincount(codes, weight if n_classes else None, n_classes).astype(float),
        )

    @classmethod
    def joined(cls, parts: Sequence[Summary]) -> Summary:
        n, X, plain_X, y, noise, weight, classes = zip(*parts, strict=True)
        join = ColumnStatistics.joined
        weights = None if weight[0] is None else join(weight)
        return cls(sum(n), join(X), join(plain_X), join(y), join(noise), weights, sum(classes))


# -- copies --------------------------------------------------------------------------------------


def mark_copies(rows: Rows) -> Rows:
    """With equal rows as groups, numbered from 0 in each partition; other rows belong to none.

    Equal rows lie in one partition, since they are where their inputs are.
    """
    # Adding 0 makes one of both zeros.
    table = np.column_stack([rows.X, rows.y, rows.noise]) + 0.0
    suspects = _with_equal_keys(table)
    groups = np.full(rows.n, -1, np.int32)
    if len(suspects):
        _, own, counts = np.unique(table[suspects], axis=0, return_inverse=True, return_counts=True)
        number = np.where(counts > 1, np.cumsum(counts > 1) - 1, -1)
        groups[suspects] = number[own.reshape(-1)]
    return rows._replace(groups=groups)


def n_groups(rows: Rows) -> int:
    """How many groups the rows are of, numbered from 0."""
    return 0 if rows.groups is None or not rows.n else int(rows.groups.max()) + 1


def renumber_groups(rows: Rows, first: int) -> Rows:
    """With other numbers of their groups, from the first on."""
    assert rows.groups is not None, "only asked where there are groups"
    return rows._replace(groups=np.where(rows.groups < 0, -1, rows.groups + np.int32(first)))


def _with_equal_keys(table: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows that share a key, which equal rows do: few others, where sorting all takes seconds."""
    keys = np.zeros(len(table), np.uint64)
    for column in np.ascontiguousarray(table.T).view(np.uint64):
        keys = (keys ^ (keys >> np.uint64(29)) ^ column) * np.uint64(0x9E3779B97F4A7C15)
    order = np.argsort(keys, kind="stable")
    is_next_equal = np.diff(keys[order]) == 0
    is_suspect = np.append(is_next_equal, False) | np.append(False, is_next_equal)
    return np.sort(order[is_suspect])


def settle(rows: Rows, mean_noise: float | None) -> Rows:
    """The rows as models have them: noise relative to its mean and weight."""
    noise = rows.noise
    if mean_noise is not None:
        noise = noise / mean_noise
    if rows.weight is not None:
        noise = noise / rows.weight
    return rows._replace(noise=noise)


# -- the search ----------------------------------------------------------------------------------


class Ask(NamedTuple):
    """Queries of a search, in a transform of the inputs; what each is found without."""

    queries: Array  # (q, d)
    lengthscale: Array  # (d,)
    n_neighbors: int | None
    within: float | None  # radius, where there is no number of neighbors
    limits: Array | None = None  # (q,) squared distances beyond which nothing is wanted
    rows: Numbers | None = None  # (q,) as in `Exclusions`, numbers in all of the data
    radius: Array | None = None
    query_groups: NDArray[np.int32] | None = None

    def pick(self, which: NDArray[Any]) -> Ask:
        parts: dict[str, Any] = {
            name: None if (own := getattr(self, name)) is None else own[which]
            for name in ("queries", "limits", "rows", "radius", "query_groups")
        }
        return self._replace(**parts)


class Hits(NamedTuple):
    """Neighbors, one behind the other."""

    query: NDArray[np.int64]  # (h,) which query found it
    square: Array  # (h,) squared distance
    number: Numbers  # (h,) in all of the data
    place: NDArray[np.int64]  # (h,) in the partition

    @classmethod
    def none(cls) -> Hits:
        empty = np.empty(0, np.int64)
        return cls(empty, np.empty(0), empty, empty)


class Found(NamedTuple):
    hits: Hits  # whose places are among the rows
    rows: Rows  # that were found, each once


def make_index(rows: Rows, transform: InputTransform, unit: Array) -> NeighborIndex:
    """The index of a partition in one transform of the inputs."""
    return build_index(np.ascontiguousarray(transform.transform(rows.X), dtype=float), unit)


def nearby(
    numbers: Numbers, groups: NDArray[np.int32] | None, index: NeighborIndex, ask: Ask
) -> Neighborhoods:
    """The nearest rows of a partition, or all within the radius, as far as they are wanted.

    By their places in the partition, and with squared distances.
    """
    excluded = None
    if ask.rows is not None:
        place = np.minimum(np.searchsorted(numbers, ask.rows), len(numbers) - 1)
        excluded = np.where(numbers[place] == ask.rows, place, -1).astype(np.int32)
    own_groups = None if ask.query_groups is None else groups
    exclusions = Exclusions(excluded, ask.radius, own_groups, ask.query_groups)
    queries = np.ascontiguousarray(ask.queries)
    size = None if ask.n_neighbors is None else min(ask.n_neighbors, len(numbers))
    request = SearchRequest(queries, ask.lengthscale, size, exclusions, ask.within or 0.0)
    near = index.measure(request._replace(max_neighbors=len(numbers)))
    return near if ask.limits is None else near.drop(near.squares > ask.limits[:, None])


def flat(near: Neighborhoods, numbers: Numbers) -> Hits:
    """Neighborhoods of a partition, one neighbor behind the other."""
    is_there = near.neighbors >= 0
    place = near.neighbors[is_there].astype(np.int64)
    query = np.repeat(np.arange(len(is_there)), np.count_nonzero(is_there, axis=1))
    return Hits(query, near.squares[is_there], numbers[place], place)


def search(
    numbers: Numbers, groups: NDArray[np.int32] | None, index: NeighborIndex, ask: Ask
) -> Hits:
    """`nearby`, as hits."""
    return flat(nearby(numbers, groups, index, ask), numbers)


def search_rows(rows: Rows, index: NeighborIndex, ask: Ask) -> Found:
    """The neighbors, with their rows; without numbers, which the rows have."""
    hits = search(rows.numbers, rows.groups, index, ask)
    places, own = np.unique(hits.place, return_inverse=True)
    # As small as can be: millions of them travel.
    small = hits._replace(
        query=hits.query.astype(np.int32),
        number=hits.number[:0],
        place=own.reshape(-1).astype(np.int32),
    )
    return Found(small, rows.pick(places))


def in_order(hits: Sequence[Hits]) -> Hits:
    """Hits of several searches for different queries, by query; those of a query stay in order."""
    joined = Hits._make(np.concatenate(parts) for parts in zip(*hits, strict=True))
    order = np.argsort(joined.query, kind="stable")
    return Hits._make(part[order] for part in joined)


def nearest_of_all(first: Hits, others: Sequence[Hits], n_neighbors: int | None) -> Hits:
    """The nearest of several searches: by query, then by distance, then by row.

    ``first`` are in this order; of queries that others found nothing for they are all.
    """
    others = [hits for hits in others if len(hits.query)]
    if not others:
        return first
    is_mixed = np.zeros(1 + max(h.query.max(initial=0) for h in (first, *others)), bool)
    for hits in others:
        is_mixed[hits.query] = True
    is_again = is_mixed[first.query]
    mixed = [Hits._make(part[is_again] for part in first), *others]
    joined = Hits._make(np.concatenate(parts) for parts in zip(*mixed, strict=True))
    order = np.lexsort((joined.number, joined.square, joined.query))
    joined = Hits._make(part[order] for part in joined)
    if n_neighbors is not None:
        is_kept = rank_in_query(joined.query) < n_neighbors
        joined = Hits._make(part[is_kept] for part in joined)
    return in_order([Hits._make(part[~is_again] for part in first), joined])


def rank_in_query(query: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the same query stand before each, in sorted order."""
    starts = np.concatenate([[True], query[1:] != query[:-1]])[: len(query)]
    first = np.maximum.accumulate(np.where(starts, np.arange(len(query)), 0))
    return np.arange(len(query)) - first


def take(rows: Rows, wanted: Numbers) -> Rows:
    """Those of the wanted rows (sorted numbers) that are here."""
    place = np.minimum(np.searchsorted(rows.numbers, wanted), rows.n - 1)
    return rows.pick(place[rows.numbers[place] == wanted])


# -- from chunks to partitions -------------------------------------------------------------------


def split(chunk: Rows, first_number: int, regions: Regions) -> list[Rows]:
    """The rows of a chunk, by region."""
    chunk = chunk._replace(numbers=chunk.numbers + first_number)
    found = regions.find(chunk.X)
    order = np.argsort(found, kind="stable")
    ends = np.searchsorted(found[order], np.arange(regions.n_regions + 1))
    return [chunk.pick(order[start:stop]) for start, stop in pairwise(ends)]


def piece(pieces: Sequence[Rows], number: int) -> Rows:
    return pieces[number]


def join(pieces: Sequence[Rows]) -> Rows:
    """A partition, from pieces of all chunks in their order."""
    joined = Rows.join(pieces)
    # So that copies of views of chunks do not keep those alive.
    return Rows._make(None if c is None else np.ascontiguousarray(c) for c in joined)
