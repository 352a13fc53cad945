# SPDX-License-Identifier: BSD-3-Clause
"""What encoders need to know of all rows: ranges, missing cells, and how often levels occur."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.columns import CATEGORIES, Column
from lsgp.inputs.encoding.table import Parts, ReadTable, TrainingTable
from lsgp.inputs.transforms.column_statistics import subsample

#: Rows that the middle and the steps of dates are learnt from.
MOST_DATES = 100_000


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
    """Of all rows, or of some."""

    n: int
    n_targets: int
    columns: tuple[ColumnFacts, ...]
    last_group: int

    @classmethod
    def of(cls, rows: TrainingTable) -> Facts:
        return cls(
            rows.n_rows,
            rows.y.shape[1],
            tuple(ColumnFacts.of(column) for column in rows.table.columns),
            -1 if rows.groups is None else int(rows.groups.max(initial=-1)),
        )

    def join(self, other: Facts) -> Facts:
        pairs = zip(self.columns, other.columns, strict=True)
        return Facts(
            self.n + other.n,
            self.n_targets,
            tuple(own.join(others) for own, others in pairs),
            max(self.last_group, other.last_group),
        )

    def share_missing(self, j: int) -> float:
        return self.columns[j].n_missing / self.n

    def level_rows(self, j: int) -> NDArray[np.int64]:
        """Rows of each level of a category, of which missing is the last."""
        own = self.columns[j]
        return np.append(own.level_rows, own.n_missing)


class TableInParts(NamedTuple):
    """All rows that an encoder is fitted to, in parts, and what is known of them."""

    parts: Parts[TrainingTable]
    header: ReadTable  # the columns, without rows
    facts: Facts

    @classmethod
    def of(cls, parts: Parts[TrainingTable]) -> TableInParts:
        none = np.empty(0, np.int64)
        return cls(parts, parts.total(_take, none).table, parts.total(Facts.of))

    def take(self, rows: NDArray[np.int64]) -> TrainingTable:
        """Some rows, by their sorted numbers."""
        return self.parts.total(_take, rows)

    def dates(self) -> ReadTable:
        """A sample of the rows, for the middle and the steps of dates."""
        chosen = subsample(self.facts.n, MOST_DATES)
        return self.take(np.arange(self.facts.n) if chosen is None else chosen).table


def _take(rows: TrainingTable, wanted: NDArray[np.int64]) -> TrainingTable:
    own = wanted - rows.first
    return rows.take(own[(own >= 0) & (own < rows.n_rows)])
