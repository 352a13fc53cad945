# SPDX-License-Identifier: BSD-3-Clause
"""Tables in files: which format they have, and how they are opened."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from lsgp.cli.console import Voice
from lsgp.cli.csv_table import CsvTable
from lsgp.cli.errors import CommandError, require_file
from lsgp.cli.table import MAX_CHUNK_ROWS, Chunk, Column, Table

EXTENSIONS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}

#: Of a chunk of a Parquet file, if its columns were all numbers.
CHUNK_BYTES = 32 * 2**20


class ParquetTable(Table):
    """A Parquet file, which polars streams in batches of rows."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        if path == "-":
            raise CommandError("Parquet cannot be read from stdin. Give the name of a file.")
        if Path(path).stat().st_size == 0:
            raise CommandError(f"{path} is empty.")
        # Not a pattern: a name with a star in it is a name.
        self._scan = pl.scan_parquet(path, glob=False)
        with self._errors():
            schema = self._scan.collect_schema()
            self.total = int(self._scan.select(pl.len()).collect().item())
        self.columns = {name: Column(_kind(dtype), dtype) for name, dtype in schema.items()}
        self.is_empty = self.total == 0

    def chunks(self, numbers: Sequence[str], others: Sequence[str] = ()) -> Iterator[Chunk]:
        wanted = list(dict.fromkeys([*numbers, *others]))
        only_numbers = [name for name in numbers if name not in others]
        scan = self._scan.select(wanted).with_columns(pl.col(only_numbers).cast(pl.Float64))
        n_rows = max(1000, min(MAX_CHUNK_ROWS, CHUNK_BYTES // (8 * max(1, len(wanted)))))
        first_row = 1
        with self._errors():
            for frame in scan.collect_batches(chunk_size=n_rows):
                yield Chunk(first_row, frame, frame.height)
                first_row += frame.height

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (pl.exceptions.PolarsError, OSError) as error:
            message = str(error).strip().splitlines()[0]
            fact = f"{self.name} cannot be read as a Parquet file: {message}."
            raise CommandError(fact) from None


def _kind(dtype: pl.DataType) -> str:
    if dtype.is_numeric():
        return "number"
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return "text"
    return {pl.Boolean: "flag", pl.Null: "empty"}.get(dtype.base_type(), str(dtype))


def format_of(path: str, given: str | None = None, option: str = "--format") -> str:
    """The format of a file: as given, or by its extension."""
    by_name = EXTENSIONS.get(Path(path.lower().removesuffix(".gz")).suffix)
    kind = given or ("csv" if path == "-" else by_name)
    if kind is None:
        raise CommandError(
            f"The format of {path} is unknown: its name ends neither in .csv, .csv.gz nor in "
            f".parquet. Say what it is with {option}."
        )
    return kind


def separator_of(path: str) -> str:
    """What stands between the columns of a CSV file of this name."""
    return "\t" if path.lower().removesuffix(".gz").endswith(".tsv") else ","


@contextmanager
def open_table(
    path: str, format: str | None = None, separator: str | None = None
) -> Iterator[Table]:
    """Open a table for reading."""
    kind = format_of(path, format)
    if path != "-":
        require_file(path)
    if Path(path).is_dir():
        raise CommandError(f"{path} is a folder, not a file.")
    separator = separator_of(path) if separator is None else separator.replace("\\t", "\t")
    if len(separator.encode()) != 1 or separator in '"\r\n':
        raise CommandError(f"--separator {separator!r} is not one character that can separate.")
    table = ParquetTable(path) if kind == "parquet" else CsvTable(path, separator)
    try:
        yield table
    finally:
        table.close()


@contextmanager
def open_data(options: argparse.Namespace, voice: Voice) -> Iterator[Table]:
    """Open the table of a command; afterwards, tell what was not as it should be in it."""
    with open_table(options.data, options.format, options.separator) as table:
        yield table
    table.say_how_read(voice)
