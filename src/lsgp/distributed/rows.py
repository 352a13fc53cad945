# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the data, and what workers do with them: statistics and copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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

    @property
    def n(self) -> int:
        return len(self.numbers)

    def pick(self, places: NDArray[Any]) -> Rows:
        return Rows._make(None if column is None else column[places] for column in self)

    def take(self, wanted: NDArray[np.integer]) -> tuple[Rows, NDArray[np.bool_]]:
        """The rows with the wanted numbers, and which of the numbers are here."""
        place = np.minimum(np.searchsorted(self.numbers, wanted), self.n - 1)
        is_here = self.numbers[place] == wanted
        return self.pick(place[is_here]), is_here

    @classmethod
    def join(cls, parts: Sequence[Rows]) -> Rows:
        columns = zip(*parts, strict=True)
        return cls._make(None if c[0] is None else np.concatenate(c) for c in columns)

    def in_order(self) -> Rows:
        return self.pick(np.argsort(self.numbers, kind="stable"))


def take(rows: Rows, wanted: Numbers) -> Rows:
    """The rows with those of the wanted numbers that are here."""
    return rows.take(wanted)[0]


def settle(rows: Rows, mean_noise: float | None) -> Rows:
    """The rows as models have them: noise relative to its mean and weight."""
    noise = rows.noise
    if mean_noise is not None:
        noise = noise / mean_noise
    if rows.weight is not None:
        noise = noise / rows.weight
    return rows._replace(noise=noise)


class Summary(NamedTuple):
    """Statistics of the rows of a partition, or of several."""

    X: ColumnStatistics
    plain_X: ColumnStatistics  # in which each row counts once, whatever its weight
    y: ColumnStatistics
    noise: ColumnStatistics
    weight: ColumnStatistics

    @classmethod
    def of(cls, rows: Rows) -> Summary:
        weight = np.ones(rows.n) if rows.weight is None else rows.weight
        return cls(
            column_statistics(rows.X, rows.weight),
            column_statistics(rows.X),
            column_statistics(rows.y, rows.weight),
            column_statistics(rows.noise[:, None]),
            column_statistics(weight[:, None]),
        )

    @classmethod
    def joined(cls, parts: Sequence[Summary]) -> Summary:
        return cls._make(ColumnStatistics.joined(own) for own in zip(*parts, strict=True))

    @property
    def n(self) -> int:
        return int(self.weight.weight[0])

    def class_shares(self, n_classes: int) -> Array:
        """The share of each class, (C,), in the weight of all rows; targets are one-hot columns."""
        share = self.y.center
        return share if n_classes != 2 else np.append(1.0 - share, share)


# -- copies ----------------------------------------------------------------------------------------


def mark_copies(rows: Rows) -> Rows:
    """Make groups of equal rows, numbered from 0 in each partition; other rows have none, -1.

    Equal rows have equal inputs, so they lie in the same partition.
    """
    table = np.column_stack([rows.X, rows.y, rows.noise])
    order = np.lexsort(table.T)
    is_new = np.append(True, (np.diff(table[order], axis=0) != 0).any(axis=1))
    run = np.cumsum(is_new) - 1
    is_copied = np.bincount(run) > 1
    groups = np.empty(rows.n, np.int32)
    groups[order] = np.where(is_copied, np.cumsum(is_copied) - 1, -1)[run]
    return rows._replace(groups=groups)


def n_groups(rows: Rows) -> int:
    """The number of groups, which are numbered from 0."""
    return 0 if rows.groups is None else int(rows.groups.max(initial=-1)) + 1


def renumber_groups(rows: Rows, first: int) -> Rows:
    """Number the groups of copies from ``first`` on."""
    assert rows.groups is not None
    return rows._replace(groups=np.where(rows.groups < 0, -1, rows.groups + np.int32(first)))
