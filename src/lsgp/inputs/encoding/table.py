# SPDX-License-Identifier: BSD-3-Clause
"""Training rows of a table as it came, read: all of them, or the parts that machines have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.cells import cells_of, is_frame
from lsgp.inputs.encoding.columns import Column, read_column

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Table(NamedTuple):
    """The columns of training rows, read."""

    columns: tuple[Column, ...]
    has_names: bool  # whether users gave them

    @property
    def n_rows(self) -> int:
        return len(self.columns[0].values)

    def take(self, rows: NDArray[Any]) -> Table:
        """Of some rows."""
        columns = (column._replace(values=column.values[rows]) for column in self.columns)
        return self._replace(columns=tuple(columns))

    def extend(self, other: Table) -> Table:
        """With the rows of another part behind these."""
        pairs = zip(self.columns, other.columns, strict=True)
        columns = (a._replace(values=np.concatenate([a.values, b.values])) for a, b in pairs)
        return self._replace(columns=tuple(columns))


def read_table(X: object, categorical: Sequence[int | str] | None = None) -> Table:
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
    return Table(columns, is_frame(X))


def declared_numbers(given: Sequence[int | str] | None, names: list[str]) -> set[int]:
    """Numbers of the columns that were declared to be categories."""
    if given is None:
        return set()
    if isinstance(given, str):
        given = [given]
    found = set()
    flags = np.asarray(given)
    if flags.dtype == bool:
        if flags.shape != (len(names),):
            raise ValueError(
                f"categorical_features has {flags.size} flags for {len(names)} columns. Give one "
                "for each, or names."
            )
        return set(np.flatnonzero(flags).tolist())
    for each in given:
        if isinstance(each, str) and each in names:
            found.add(names.index(each))
        elif isinstance(each, int | np.integer) and 0 <= each < len(names):
            found.add(int(each))
        else:
            listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise ValueError(
                f"categorical_features has {each!r}, which is not a column of X. Its columns are "
                f"{listed}: give names, or numbers from 0 to {len(names) - 1}."
            )
    return found


class Given(NamedTuple):
    """Training rows that an encoder is fitted to, or some of them, in order."""

    table: Table
    y: Array  # (n, t)
    weight: Array | None = None  # (n,) none of them 0
    groups: NDArray[np.int32] | None = None  # (n,)

    @property
    def n_rows(self) -> int:
        return len(self.y)

    def take(self, rows: NDArray[Any]) -> Given:
        return Given(
            self.table.take(rows),
            self.y[rows],
            None if self.weight is None else self.weight[rows],
            None if self.groups is None else self.groups[rows],
        )

    def join(self, other: Given) -> Given:
        """With others behind these."""
        return Given(
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
    """What is known of some rows, to which what is known of others can be added."""

    def join(self, other: Self, /) -> Self: ...


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
J = TypeVar("J", bound=Joinable)


class Parts(Protocol[T_co]):
    """One thing for each part of the rows, wherever the part lies.

    Arguments that are parts themselves stand for what they have beside each.
    """

    def each(self, function: Callable[..., U], *arguments: object) -> list[U]:
        """What a function of each part says, here."""
        ...

    def map(self, function: Callable[..., U], *arguments: object) -> Parts[U]:
        """What a function makes of each part, where the part lies."""
        ...

    def beside(self, values: Sequence[U]) -> Parts[U]:
        """A value for each part."""
        ...


def total(parts: Parts[T], function: Callable[..., J], *arguments: object) -> J:
    """What is known of all rows, from what a function says of each part."""
    return reduce(lambda a, b: a.join(b), parts.each(function, *arguments))


class AtHand(Parts[T]):
    """All rows in one part, which is here.

    Examples
    --------
    >>> from lsgp.inputs.encoding.table import AtHand
    >>> AtHand([1, 2]).map(len).each(float)
    [2.0]
    """

    def __init__(self, value: T) -> None:
        self.value = value

    def each(self, function: Callable[..., U], *arguments: object) -> list[U]:
        return [self.map(function, *arguments).value]

    def map(self, function: Callable[..., U], *arguments: object) -> AtHand[U]:
        own = [each.value if isinstance(each, AtHand) else each for each in arguments]
        return AtHand(function(self.value, *own))

    def beside(self, values: Sequence[U]) -> AtHand[U]:
        (value,) = values
        return AtHand(value)
