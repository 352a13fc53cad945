# SPDX-License-Identifier: BSD-3-Clause
"""Training rows of a table as it came, read: all of them, or the parts that machines have.

What encoders need to know of all rows are `Facts`: ranges, missing cells, and how often levels
occur.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.cells import cells_of, column_number, is_frame
from lsgp.inputs.encoding.columns import CATEGORIES, Column, read_column
from lsgp.inputs.transforms.column_statistics import subsample

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Rows that the middle and the steps of dates are learnt from.
MOST_DATES = 100_000


class ReadTable(NamedTuple):
    """The columns of training rows, read."""

    columns: tuple[Column, ...]
    has_names: bool  # whether users gave them

    @property
    def n_rows(self) -> int:
        return len(self.columns[0].values)

    def take(self, rows: NDArray[Any]) -> ReadTable:
        columns = (column._replace(values=column.values[rows]) for column in self.columns)
        return self._replace(columns=tuple(columns))


def read_table(X: object, categorical: Sequence[int | str] | None = None) -> ReadTable:
    """Read a table that a model is to be fitted on.

    ``categorical`` are columns that are categories, whatever they look like, by name or number.
    """
    cells = cells_of(X)
    n, d = 0 if not cells else len(cells[0].values), len(cells)
    if n == 0:
        raise ValueError(
            f"Found array with {n} sample(s) and {d} feature(s) (shape=({n}, {d})) while a minimum "
            "of 1 is required."
        )
    declared = declared_numbers(categorical, [each.name for each in cells])
    columns = tuple(read_column(each, j in declared) for j, each in enumerate(cells))
    return ReadTable(columns, is_frame(X))


def declared_numbers(given: Sequence[int | str] | None, names: list[str]) -> set[int]:
    """Numbers of the columns that were declared to be categories."""
    if given is None:
        return set()
    if isinstance(given, str):
        given = [given]
    flags = np.asarray(given)
    if flags.dtype != bool:
        return {column_number(each, names, "categorical_features") for each in given}
    if flags.shape != (len(names),):
        raise ValueError(
            f"categorical_features has {flags.size} flags for {len(names)} columns. Give one for "
            "each, or names."
        )
    return set(np.flatnonzero(flags).tolist())


class TrainingTable(NamedTuple):
    """Training rows that an encoder is fitted to, or some of them, in order."""

    table: ReadTable
    y: Array  # (n, t)
    weight: Array | None = None  # (n,) none of them 0
    groups: NDArray[np.int32] | None = None  # (n,)
    #: Where there are other parts: rows that come before these, and of each level of each column.
    first: int = 0
    before: tuple[Codes, ...] | None = None

    @property
    def n_rows(self) -> int:
        return len(self.y)

    def take(self, rows: NDArray[Any]) -> TrainingTable:
        weight, groups = (None if v is None else v[rows] for v in (self.weight, self.groups))
        return TrainingTable(self.table.take(rows), self.y[rows], weight, groups)

    def join(self, other: TrainingTable) -> TrainingTable:
        columns = tuple(
            a._replace(values=np.concatenate([a.values, b.values]))
            for a, b in zip(self.table.columns, other.table.columns, strict=True)
        )
        weight, groups = (
            None if a is None or b is None else np.concatenate([a, b])
            for a, b in ((self.weight, other.weight), (self.groups, other.groups))
        )
        y = np.concatenate([self.y, other.y])
        return TrainingTable(self.table._replace(columns=columns), y, weight, groups)


# -- rows in parts ---------------------------------------------------------------------------------


class Joinable(Protocol):
    """Something known of some rows, to which the same of other rows can be added."""

    def join(self, other: Self, /) -> Self: ...


class Sums(NamedTuple):
    """Sums over rows."""

    values: tuple[Array, ...]

    def join(self, other: Sums) -> Sums:
        return Sums(tuple(a + b for a, b in zip(self.values, other.values, strict=True)))


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
J = TypeVar("J", bound=Joinable)


class Parts(Protocol[T_co]):
    """The rows in one part or several, wherever these lie."""

    def total(self, function: Callable[..., J], *arguments: object) -> J:
        """What a function of rows tells of each part, joined."""
        ...

    def map(self, function: Callable[..., U], *arguments: object) -> Parts[U]:
        """What a function makes of each part, where the part lies."""
        ...


@dataclass(frozen=True, eq=False)
class OnePart(Parts[T]):
    """All rows in one part, which is here."""

    value: T

    def total(self, function: Callable[..., J], *arguments: object) -> J:
        return function(self.value, *arguments)

    def map(self, function: Callable[..., U], *arguments: object) -> OnePart[U]:
        return OnePart(function(self.value, *arguments))


# -- what is known of all rows ---------------------------------------------------------------------


class ColumnFacts(NamedTuple):
    """Facts on one column."""

    n_missing: int
    low: float  # of what is there
    high: float
    level_rows: Codes  # (k + 1,) rows of each level of a category, of which missing is the last

    @classmethod
    def of(cls, column: Column) -> ColumnFacts:
        present, counts = column.present, np.empty(0, np.int64)
        if column.kind in CATEGORIES:
            counts = np.bincount(present.astype(np.int64), minlength=len(column.levels))
        low, high = present.min(initial=np.inf), present.max(initial=-np.inf)
        n_missing = len(column.values) - len(present)
        return cls(n_missing, float(low), float(high), np.append(counts, n_missing))

    def join(self, other: ColumnFacts) -> ColumnFacts:
        return ColumnFacts(
            self.n_missing + other.n_missing,
            min(self.low, other.low),
            max(self.high, other.high),
            self.level_rows + other.level_rows,
        )

    @property
    def n_levels(self) -> int:
        return int(np.count_nonzero(self.level_rows[:-1]))


class Facts(NamedTuple):
    """Of all rows, or of some."""

    n: int
    n_targets: int
    columns: tuple[ColumnFacts, ...]
    last_group: int

    @classmethod
    def of(cls, rows: TrainingTable) -> Facts:
        columns = tuple(map(ColumnFacts.of, rows.table.columns))
        last_group = -1 if rows.groups is None else int(rows.groups.max(initial=-1))
        return cls(rows.n_rows, rows.y.shape[1], columns, last_group)

    def join(self, other: Facts) -> Facts:
        pairs = zip(self.columns, other.columns, strict=True)
        columns = tuple(own.join(others) for own, others in pairs)
        last_group = max(self.last_group, other.last_group)
        return Facts(self.n + other.n, self.n_targets, columns, last_group)


class TableInParts(NamedTuple):
    """All rows that an encoder is fitted to, in parts, and what is known of them."""

    parts: Parts[TrainingTable]
    header: ReadTable  # the columns, without rows
    facts: Facts

    @classmethod
    def of(cls, parts: Parts[TrainingTable]) -> TableInParts:
        none = np.empty(0, np.int64)
        return cls(parts, parts.total(_take, none).table, parts.total(Facts.of))

    def take(self, rows: Codes | None) -> TrainingTable:
        """Some rows, by their sorted numbers; None: all."""
        return self.parts.total(_take, np.arange(self.facts.n) if rows is None else rows)

    def dates(self) -> ReadTable:
        """A sample of the rows, for the middle and the steps of dates."""
        return self.take(subsample(self.facts.n, MOST_DATES)).table


def _take(rows: TrainingTable, wanted: Codes) -> TrainingTable:
    own = wanted - rows.first
    return rows.take(own[(own >= 0) & (own < rows.n_rows)])
