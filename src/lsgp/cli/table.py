# SPDX-License-Identifier: BSD-3-Clause
"""A table, whatever its format: columns of a kind, and rows in chunks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError, require_columns
from lsgp.compute.text import count
from lsgp.inputs.encoding.text import MISSING, N_SHOWN

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
#: Which rows are meant.
Mask: TypeAlias = NDArray[np.bool_]


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

    def numbers(self, rows: Mask) -> NDArray[np.int64]:
        """The numbers of some rows, as users count."""
        return self.first_row + np.flatnonzero(rows)


class Table:
    """Named columns of a file or folder, and what was noticed when it was read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.columns: dict[str, Column] = {}
        self.unreadable: dict[str, Unreadable] = {}  # by column, as far as rows were read
        self.notes: list[str] = []  # what users might want to know of how it was read

    @property
    def n_unreadable(self) -> int:
        """Cells that were read as missing because they are no numbers."""
        return sum(found.count for found in self.unreadable.values())

    def say_how_read(self, voice: Voice) -> None:
        """Tell what was not as it should be in the rows that were read."""
        for note in self.notes:
            voice.note(note)
        for name, found in self.unreadable.items():
            are = "is no number and counts" if found.count == 1 else "are no numbers and count"
            voice.note(
                f"{count(found.count, 'cell')} of column {name!r} of {self.name} {are} as "
                f"missing: {found.describe()}"
            )


class FileTable(Table, ABC):
    """A table whose rows are read once, from front to back."""

    total: int | None = None  # size in the units of `Chunk.advance`; None: unknown
    is_empty = False  # whether there are no rows, to be asked before they are read

    @abstractmethod
    def chunks(self, numbers: Sequence[str], others: Sequence[str] = ()) -> Iterator[Chunk]:
        """The rows in order: `numbers` as Float64, `others` of the types of their columns."""

    def close(self) -> None:
        """Close the file, where one stays open."""

    def keep_as_text(self, names: Sequence[str]) -> None:
        """Leave these columns as they are written, where the file has texts only."""

    def type_of(self, name: str, is_number: bool) -> DataType:
        """The type that a column has in chunks."""
        return self.columns[name].dtype


def present_rows(frame: pl.DataFrame, names: Sequence[str], labels: Sequence[str] = ()) -> Mask:
    """Which rows have something in every one of the columns: a finite number, or a text.

    Labels are none where they mark a missing value; in an input, NA may be Namibia.
    """
    kept = np.ones(frame.height, dtype=bool)
    for name in names:
        cells = frame[name]
        if cells.dtype.is_numeric():
            kept &= np.isfinite(cells.cast(pl.Float64).to_numpy())
        elif cells.dtype == pl.String:
            missing = list(MISSING) if name in labels else [""]
            kept &= ~cells.str.strip_chars().is_in(missing).fill_null(True).to_numpy()
        else:
            kept &= cells.is_not_null().to_numpy()
    return kept


def require_numbers(names: Sequence[str], table: Table, role: str) -> None:
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
