# SPDX-License-Identifier: BSD-3-Clause
"""Parquet files, which polars streams in batches of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from lsgp.cli.errors import CommandError
from lsgp.cli.table import MAX_CHUNK_ROWS, Chunk, Column, DataType, Unreadable

#: Of a chunk, if its columns were all numbers.
CHUNK_BYTES = 32 * 2**20


class ParquetTable:
    """A Parquet file whose rows can be read as `chunks`."""

    def __init__(self, path: str) -> None:
        self.name = path
        self.unreadable: dict[str, Unreadable] = {}
        self.notes: list[str] = []
        if path == "-":
            raise CommandError("Parquet cannot be read from stdin. Give the name of a file.")
        if Path(path).stat().st_size == 0:
            raise CommandError(f"{path} is empty.")
        # Not a pattern: a name with a star in it is a name.
        self._scan = pl.scan_parquet(path, glob=False)
        try:
            schema = self._scan.collect_schema()
            self.total: int | None = int(self._scan.select(pl.len()).collect().item())
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._unreadable(error) from None
        self.columns = {name: Column(_kind(dtype), dtype) for name, dtype in schema.items()}

    @property
    def is_empty(self) -> bool:
        return self.total == 0

    def close(self) -> None:
        """Nothing stays open."""

    def keep_as_text(self, names: Sequence[str]) -> None:
        """Columns of Parquet files have their types."""

    def type_of(self, name: str, is_number: bool) -> DataType:
        """The type that a column has in chunks, where it is kept."""
        return self.columns[name].dtype

    def chunks(self, numbers: Sequence[str], others: Sequence[str] = ()) -> Iterator[Chunk]:
        """The rows in order: `numbers` as Float64, `others` as they are."""
        wanted = list(dict.fromkeys([*numbers, *others]))
        only_numbers = [name for name in numbers if name not in others]
        scan = self._scan.select(wanted).with_columns(pl.col(only_numbers).cast(pl.Float64))
        n_rows = max(1000, min(MAX_CHUNK_ROWS, CHUNK_BYTES // (8 * max(1, len(wanted)))))
        first_row = 1
        try:
            for frame in scan.collect_batches(chunk_size=n_rows):
                yield Chunk(first_row, frame, frame.height)
                first_row += frame.height
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> CommandError:
        message = str(error).strip().splitlines()[0]
        return CommandError(f"{self.name} cannot be read as a Parquet file: {message}.")


def _kind(dtype: pl.DataType) -> str:
    if dtype.is_numeric():
        return "number"
    if dtype == pl.Boolean:
        return "flag"
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return "text"
    return "empty" if dtype == pl.Null else str(dtype)
