# SPDX-License-Identifier: BSD-3-Clause
"""What a table in a file is, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn, Protocol, TypeAlias

import polars as pl

from lsgp.cli.errors import CommandError
from lsgp.inputs.encoding.text import N_SHOWN

MAX_CHUNK_ROWS = 100_000


#: Of a column: polars takes instances and classes alike.
DataType: TypeAlias = pl.DataType | type[pl.DataType]


class Unreadable:
    """Cells of a column of numbers that are none, counted, and the first few."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[tuple[int, str]] = []  # row and text

    def add(self, rows: Sequence[int], texts: Sequence[str]) -> None:
        self.count += len(rows)
        for row, text in zip(rows, texts, strict=True):
            if len(self.first) == N_SHOWN:
                return
            self.first.append((row, text))

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


class Chunk(NamedTuple):
    """Consecutive rows of a table."""

    first_row: int  # counted from 1, without the header, as rows are in all commands
    frame: pl.DataFrame
    advance: int  # progress through the table, in the units of its `total`


class Table(Protocol):
    """A file with named columns, to be read once from front to back."""

    name: str
    columns: dict[str, Column]
    unreadable: dict[str, Unreadable]  # by column, as far as rows were read
    notes: list[str]  # what users might want to know of how it was read
    total: int | None  # size in the units of `Chunk.advance`; None: unknown

    @property
    def is_empty(self) -> bool: ...

    def chunks(self, numbers: Sequence[str], others: Sequence[str] = ()) -> Iterator[Chunk]: ...

    def keep_as_text(self, names: Sequence[str]) -> None: ...

    def type_of(self, name: str, is_number: bool) -> DataType: ...

    def close(self) -> None: ...
