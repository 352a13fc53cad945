# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a partition: how they are brought together, their statistics, and copies among them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.distributed.regions import Regions
from lsgp.inputs.labels import codes_of
from lsgp.inputs.transforms.column_statistics import ColumnStatistics, column_statistics

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

    def in_order(self) -> Rows:
        """The same rows, by their numbers."""
        return self.pick(np.argsort(self.numbers, kind="stable"))

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


# -- from chunks to partitions -------------------------------------------------------------------


def split(chunk: Rows, first_number: int, regions: Regions) -> list[Rows]:
    """The rows of a chunk, by region."""
    chunk = chunk._replace(numbers=chunk.numbers + first_number)
    found = regions.find(chunk.X)
    order = np.argsort(found, kind="stable")
    ends = np.searchsorted(found[order], np.arange(regions.n_regions + 1))
    return [chunk.pick(order[start:stop]) for start, stop in pairwise(ends)]


def join(pieces: Sequence[Rows]) -> Rows:
    """A partition, from pieces of all chunks in their order."""
    joined = Rows.join(pieces)
    # So that copies of views of chunks do not keep those alive.
    return Rows._make(None if c is None else np.ascontiguousarray(c) for c in joined)


def take(rows: Rows, wanted: Numbers) -> Rows:
    """Those of the wanted rows (sorted numbers) that are here."""
    place = np.minimum(np.searchsorted(rows.numbers, wanted), rows.n - 1)
    return rows.pick(place[rows.numbers[place] == wanted])
