# SPDX-License-Identifier: BSD-3-Clause
"""Training rows of a table as it came, read: all of them, or the parts that machines have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.cells import cells_of, column_number, is_frame
from lsgp.inputs.encoding.columns import Column, read_column

Array = NDArray[np.float64]


class ReadTable(NamedTuple):
    """The columns of training rows, read."""

    columns: tuple[Column, ...]
    has_names: bool  # whether users gave them

    @property
    def n_rows(self) -> int:
        return len(self.columns[0].values)

    def take(self, rows: NDArray[Any]) -> ReadTable:
        """Of some rows."""
        columns = (column._replace(values=column.values[rows]) for column in self.columns)
        return self._replace(columns=tuple(columns))

    def extend(self, other: ReadTable) -> ReadTable:
        """With the rows of another part behind these."""
        pairs = zip(self.columns, other.columns, strict=True)
        columns = (a._replace(values=np.concatenate([a.values, b.values])) for a, b in pairs)
        return self._replace(columns=tuple(columns))


def read_table(X: object, categorical: Sequence[int | str] | None = None) -> ReadTable:
    """Read a table that a model is to be fitted on.

    ``categorical`` are columns that are categories, whatever they look like, by name or number.
    """
    cells = cells_of(X)
    if not cells or not len(cells[0].values):
        n = 0 if not cells else len(cells[0].values)
        raise ValueError(
            f"Found array with {n} sample(s) and {len(cells)} feature(s) (shape=({n}, "
            f"{len(cells)})) while a minimum of 1 is required."
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
    before: tuple[NDArray[np.int64], ...] | None = None

    @property
    def n_rows(self) -> int:
        return len(self.y)

    def take(self, rows: NDArray[Any]) -> TrainingTable:
        return TrainingTable(
            self.table.take(rows),
            self.y[rows],
            None if self.weight is None else self.weight[rows],
            None if self.groups is None else self.groups[rows],
        )

    def join(self, other: TrainingTable) -> TrainingTable:
        """With others behind these."""
        return TrainingTable(
            self.table.extend(other.table),
            np.concatenate([self.y, other.y]),
            _joined(self.weight, other.weight),
            _joined(self.groups, other.groups),
        )


V = TypeVar("V", bound=np.generic)


def _joined(a: NDArray[V] | None, b: NDArray[V] | None) -> NDArray[V] | None:
    return None if a is None or b is None else np.concatenate([a, b])


# -- rows in parts -------------------------------------------------------------------------------


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
    """All rows in one part, which is here.

    Examples
    --------
    >>> from lsgp.inputs.encoding.table import OnePart
    >>> OnePart([1, 2]).map(len).value
    2
    """

    value: T

    def total(self, function: Callable[..., J], *arguments: object) -> J:
        return function(self.value, *arguments)

    def map(self, function: Callable[..., U], *arguments: object) -> OnePart[U]:
        return OnePart(function(self.value, *arguments))
