# SPDX-License-Identifier: BSD-3-Clause
"""What a table in a file is, whatever its format: named columns of a kind, and rows in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn, Protocol, TypeAlias

import polars as pl

from lsgp.cli.errors import CommandError, require_columns
from lsgp.inputs.encoding.text import N_SHOWN

MAX_CHUNK_ROWS = 100_000

#: Kinds of columns that can be targets, and inputs as they are.
NUMERIC_KINDS = ("number", "flag")
#: Kinds of columns that are labels if nobody says otherwise; "code" is as in 007.
LABEL_KINDS = ("text", "flag", "code")
#: Kinds of columns that cannot be inputs, and how the names of types begin that cannot either.
USELESS_KINDS = ("empty", "unnamed")
USELESS_TYPES = ("List", "Array", "Struct", "Object", "Binary", "Unknown")

#: Of a column: polars takes instances and classes alike.
DataType: TypeAlias = pl.DataType | type[pl.DataType]


class Unreadable:
    """Cells of a column of numbers that are no numbers: their count, and the first few."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[tuple[int, str]] = []  # row and text

    def add(self, rows: Sequence[int], texts: Sequence[str]) -> None:
        """Count cells, each with its row and its text."""
        self.count += len(rows)
        self.first += list(zip(rows, texts, strict=True))[: N_SHOWN - len(self.first)]

    def describe(self) -> str:
        """The first few, for a message."""
        shown = ", ".join(f"{text!r} in row {row:,}" for row, text in self.first)
        return shown if self.count <= N_SHOWN else f"{shown}, ..."

    def refuse(self, name: str, where: str, n_cells: int) -> NoReturn:
        """Raise CommandError about a column with too many of them."""
        raise CommandError(
            f"Column {name!r} of {where} holds numbers, but {self.count:,} of {n_cells:,} cells "
            f"are none: {self.describe()}. Correct them, write NA where a value is missing, or "
            "leave the column out (lsgp fit --features)."
        )


class Column(NamedTuple):
    """What a column holds."""

    #: "number", "flag" (true or false), "code" (as in 007), "text", "mixed" (numbers, and too many
    #: cells that are none), "empty", "unnamed", or a type
    kind: str
    dtype: DataType
    unreadable: Unreadable | None = None  # of the first rows of a mixed one
    n_cells: int = 0  # in those rows

    @property
    def can_be_input(self) -> bool:
        """Whether a column of this kind can be an input, encoded or as it is."""
        return self.kind not in USELESS_KINDS and not self.kind.startswith(USELESS_TYPES)


class Chunk(NamedTuple):
    """Consecutive rows of a table."""

    first_row: int  # counted from 1, without the header, as rows are in all commands
    frame: pl.DataFrame
    advance: int  # progress through the table, in the units of its `total`


class Columns(Protocol):
    """A table as far as its columns go."""

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> Mapping[str, Column]: ...

    def keep_as_text(self, names: Sequence[str]) -> None:
        """Leave these columns as they are written, where the file has texts only."""


class Table(Protocol):
    """A file with named columns, to be read once from front to back."""

    name: str
    columns: dict[str, Column]
    unreadable: dict[str, Unreadable]  # by column, as far as rows were read
    notes: list[str]  # what users might want to know of how it was read
    total: int | None  # size in the units of `Chunk.advance`; None: unknown

    @property
    def is_empty(self) -> bool:
        """Whether there are no rows, to be asked before they are read."""

    def chunks(self, numbers: Sequence[str], others: Sequence[str] = ()) -> Iterator[Chunk]:
        """The rows in order: `numbers` as Float64, `others` of the types of their columns."""

    def keep_as_text(self, names: Sequence[str]) -> None:
        """Leave these columns as they are written, where the file has texts only."""

    def type_of(self, name: str, is_number: bool) -> DataType:
        """The type that a column has in chunks."""

    def close(self) -> None:
        """Close the file."""


def require_numbers(names: Sequence[str], table: Columns, role: str) -> None:
    """Raise CommandError if a column is not there or does not hold numbers."""
    require_columns(names, table.columns, table.name)
    for name in names:
        kind, _, unreadable, n_cells = table.columns[name]
        if unreadable is not None:
            unreadable.refuse(name, table.name, n_cells)
        if kind == "text":
            raise CommandError(
                f"Column {name!r} of {table.name} holds text, but {role} must be numbers. "
                "Encode it as numbers first: say, a column of 0 and 1 for each of its values."
            )
        if kind not in (*NUMERIC_KINDS, "code", "empty"):
            raise CommandError(
                f"Column {name!r} of {table.name} is of type {kind}, but {role} must be numbers."
            )
