# SPDX-License-Identifier: BSD-3-Clause
"""What a table in a file is, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import polars as pl

MAX_CHUNK_ROWS = 100_000


class Column(NamedTuple):
    """What a column holds."""

    kind: str  # "number", "flag" (true or false), "code" (as in 007), "text", "empty", or a type
    dtype: Any


class Chunk(NamedTuple):
    """Consecutive rows of a table."""

    first_row: int  # counted from 1, without the header
    frame: pl.DataFrame
    advance: int  # progress through the table, in the units of its `total`


class Table(Protocol):
    """A file with named columns, to be read once from front to back."""

    name: str
    columns: dict[str, Column]
    total: int | None  # size in the units of `Chunk.advance`; None: unknown

    def chunks(self, numbers: Sequence[str], others: Sequence[str] = ()) -> Iterator[Chunk]: ...

    def keep_as_text(self, names: Sequence[str]) -> None: ...

    def type_of(self, name: str, is_number: bool) -> Any: ...

    def close(self) -> None: ...
