# SPDX-License-Identifier: BSD-3-Clause
"""What encoders need to know of all rows: ranges, counts of levels, means of numbers with holes.

Sums are exact, so that rows in parts tell the same as all of them, to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.columns import CATEGORIES, Column
from lsgp.inputs.encoding.table import Given, Parts, Table, total
from lsgp.inputs.transforms.column_statistics import Range, statistics_of, subsample
from lsgp.inputs.transforms.exact_sums import Whole, add_exactly, exact_sums, rounded

Array = NDArray[np.float64]

#: Rows that the middle and the steps of dates are learnt from.
MOST_DATES = 100_000
#: Rows at a time whose sums are exact.
BLOCK_ROWS = 1 << 16


class ColumnFacts(NamedTuple):
    """Of one column."""

    n_missing: int
    low: float  # of what is there
    high: float
    level_rows: NDArray[np.int64]  # (k,) rows of each level of a category

    @classmethod
    def of(cls, column: Column) -> ColumnFacts:
        present = column.values[~np.isnan(column.values)]
        rows = np.empty(0, np.int64)
        if column.kind in CATEGORIES:
            rows = np.bincount(present.astype(np.int64), minlength=len(column.levels))
        low, high = present.min(initial=np.inf), present.max(initial=-np.inf)
        return cls(len(column.values) - len(present), float(low), float(high), rows)

    def join(self, other: ColumnFacts) -> ColumnFacts:
        return ColumnFacts(
            self.n_missing + other.n_missing,
            min(self.low, other.low),
            max(self.high, other.high),
            self.level_rows + other.level_rows,
        )

    @property
    def n_levels(self) -> int:
        """Levels that rows have."""
        return int(np.count_nonzero(self.level_rows))


class Facts(NamedTuple):
    """Of all rows."""

    n: int
    columns: tuple[ColumnFacts, ...]
    largest_weight: float
    largest_target: Array  # (t,) of absolute values
    last_group: int

    @classmethod
    def of(cls, rows: Given) -> Facts:
        return cls(
            rows.n_rows,
            tuple(ColumnFacts.of(column) for column in rows.table.columns),
            1.0 if rows.weight is None else float(rows.weight.max(initial=0.0)),
            np.abs(rows.y).max(axis=0, initial=0.0),
            -1 if rows.groups is None else int(rows.groups.max(initial=-1)),
        )

    def join(self, other: Facts) -> Facts:
        pairs = zip(self.columns, other.columns, strict=True)
        return Facts(
            self.n + other.n,
            tuple(own.join(others) for own, others in pairs),
            max(self.largest_weight, other.largest_weight),
            np.maximum(self.largest_target, other.largest_target),
            max(self.last_group, other.last_group),
        )

    @property
    def n_targets(self) -> int:
        return len(self.largest_target)

    def share_missing(self, j: int) -> float:
        return self.columns[j].n_missing / self.n


def header_of(rows: Given) -> Table:
    """The columns of a table without rows."""
    return rows.table.take(np.empty(0, np.int64))


class Rows(NamedTuple):
    """All rows that an encoder is fitted to, in parts, and what is known of them."""

    parts: Parts[Given]
    header: Table
    facts: Facts
    first: list[int]  # row of each part that comes first

    @classmethod
    def of(cls, parts: Parts[Given]) -> Rows:
        header = parts.each(header_of)[0]
        own = parts.each(Facts.of)
        first = np.cumsum([0, *(facts.n for facts in own)])[:-1].tolist()
        facts = own[0]
        for other in own[1:]:
            facts = facts.join(other)
        return cls(parts, header, facts, first)

    def take(self, rows: NDArray[np.int64]) -> Given:
        """Some rows, by their sorted numbers."""
        return total(self.parts, _take, self.parts.beside(self.first), rows)

    def dates(self) -> Table:
        """A sample of the rows, for the middle and the steps of dates."""
        chosen = subsample(self.facts.n, MOST_DATES)
        return self.take(np.arange(self.facts.n) if chosen is None else chosen).table


def _take(rows: Given, first: int, wanted: NDArray[np.int64]) -> Given:
    own = wanted[(wanted >= first) & (wanted < first + rows.n_rows)]
    return rows.take(own - first)


# -- means and standard deviations -----------------------------------------------------------------


class Sums(NamedTuple):
    """Exact sums over rows, of each column."""

    values: Whole  # (2, d)

    def join(self, other: Sums) -> Sums:
        return Sums(add_exactly(self.values, other.values))


class CenterScale(NamedTuple):
    center: Array  # (d,)
    scale: Array  # (d,) 1 where nothing varies


def center_and_scale(
    parts: Parts[Array], extent: Range, n_present: NDArray[np.int64]
) -> CenterScale:
    """Mean and standard deviation of columns (n, d) in parts, of what is not NaN in them."""
    mean = rounded(total(parts, _first, extent).values) / n_present
    second = rounded(total(parts, _second, extent, mean).values) / n_present
    found = statistics_of(extent, mean, second)
    return CenterScale(found.center, np.where(np.isinf(found.scale), 1.0, found.scale))


def _first(X: Array, extent: Range) -> Sums:
    return _sums(extent, X, np.zeros(X.shape[1]), 1)


def _second(X: Array, extent: Range, mean: Array) -> Sums:
    return _sums(extent, X, mean, 2)


def _sums(extent: Range, X: Array, mean: Array, power: int) -> Sums:
    sums = np.zeros((2, X.shape[1]), np.int64)
    for start in range(0, len(X), BLOCK_ROWS):
        u = extent.in_units(X[start : start + BLOCK_ROWS]) - mean
        sums += exact_sums(np.where(np.isnan(u), 0.0, u**power))
    return Sums(sums)


class Ends(NamedTuple):
    """Smallest and largest values of columns, of what is not NaN."""

    low: Array
    high: Array

    @classmethod
    def of(cls, X: Array) -> Ends:
        hole = np.isnan(X)
        return cls(
            np.where(hole, np.inf, X).min(axis=0, initial=np.inf),
            np.where(hole, -np.inf, X).max(axis=0, initial=-np.inf),
        )

    def join(self, other: Ends) -> Ends:
        return Ends(np.minimum(self.low, other.low), np.maximum(self.high, other.high))
