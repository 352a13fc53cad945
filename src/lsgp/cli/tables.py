# SPDX-License-Identifier: BSD-3-Clause
"""Tables in files: which format they have, and how they are opened, read and written."""

from __future__ import annotations

import argparse
import gzip
import io
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import polars as pl
from polars.io.plugins import register_io_source

from lsgp.cli.console import Voice
from lsgp.cli.csv_table import CsvTable
from lsgp.cli.errors import CommandError, check_output, require_file
from lsgp.cli.table import MAX_CHUNK_ROWS, Chunk, Column, DataType, FileTable
from lsgp.compute.files import replace_file

EXTENSIONS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}

#: Of a chunk of a Parquet file, if its columns were all numbers.
CHUNK_BYTES = 32 * 2**20
#: Of a Parquet file that is written.
ROW_GROUP_SIZE = 250_000


class ParquetTable(FileTable):
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
) -> Iterator[FileTable]:
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
def open_data(options: argparse.Namespace, voice: Voice) -> Iterator[FileTable]:
    """Open the table of a command; afterwards, tell what was not as it should be in it."""
    with open_table(options.data, options.format, options.separator) as table:
        yield table
    table.say_how_read(voice)


# -- writing, in pieces; files get their name when they are complete -------------------------------


def table_output(options: argparse.Namespace, voice: Voice) -> str:
    """The format of the table that a command writes, or CommandError if it cannot."""
    kind = format_of(options.output, options.output_format, "--output-format")
    if options.output != "-":
        check_output(options.output, (options.data, options.model))
    elif kind != "csv":
        raise CommandError("Only CSV can be written to stdout. Give the name of a file.")
    elif voice.as_json:
        raise CommandError("--json and -o - both want stdout. Give the output a name.")
    return kind


@contextmanager
def open_output(
    path: str, kind: str, schema: dict[str, DataType]
) -> Iterator[CsvWriter | ParquetWriter]:
    """A writer of frames with this schema; "-" is CSV on stdout."""
    separator = separator_of(path)
    if path == "-":
        yield CsvWriter(sys.stdout.buffer, schema, separator)
        sys.stdout.buffer.flush()
        return
    try:
        with replace_file(path) as temporary:
            if kind == "parquet":
                # Without a name: it is gone however the process ends.
                with tempfile.TemporaryFile(dir=temporary.parent) as waiting:
                    writer = ParquetWriter(waiting, schema)
                    yield writer
                    writer.finish(temporary)
                return
            with temporary.open("wb") as file:
                if path.lower().endswith(".gz"):
                    # Without a name inside: it would be that of the temporary file.
                    with gzip.GzipFile("", "wb", 6, file) as zipped:
                        yield CsvWriter(zipped, schema, separator)
                else:
                    yield CsvWriter(file, schema, separator)
    except OSError as error:
        # A full disk has no name.
        if error.filename is not None:
            raise
        raise CommandError(f"{path} cannot be written: {error.strerror or error}.") from error


class CsvWriter:
    """Appends frames to an open file, below one header."""

    def __init__(
        self, file: IO[bytes] | gzip.GzipFile, schema: dict[str, DataType], separator: str
    ) -> None:
        self._file, self._schema, self._separator = file, schema, separator
        self.write(pl.DataFrame(schema=schema), is_header=True)

    def write(self, frame: pl.DataFrame, is_header: bool = False) -> None:
        try:
            text = frame.select(list(self._schema)).write_csv(
                include_header=is_header, separator=self._separator
            )
        except pl.exceptions.PolarsError as error:
            message = str(error).strip().splitlines()[0]
            raise CommandError(f"Not all columns can be written to CSV: {message}.") from None
        self._file.write(text.encode())


class ParquetWriter:
    """Collects frames on the disk, and streams them into a Parquet file at the end.

    polars writes Parquet in one go, from a source that it pulls frames from; until all are there,
    they wait in a file.
    """

    def __init__(self, waiting: IO[bytes], schema: dict[str, DataType]) -> None:
        self._waiting, self._schema = waiting, schema
        self._sizes: list[int] = []  # in bytes, of the frames that wait

    def write(self, frame: pl.DataFrame) -> None:
        piece = io.BytesIO()
        frame.select(list(self._schema)).write_ipc(piece)
        self._sizes.append(self._waiting.write(piece.getbuffer()))

    def finish(self, path: Path) -> None:
        """Write all frames to this file."""

        def pull(*_: object) -> Iterator[pl.DataFrame]:
            yield pl.DataFrame(schema=self._schema)
            self._waiting.seek(0)
            for size in self._sizes:
                yield pl.read_ipc(io.BytesIO(self._waiting.read(size)))

        try:
            source = register_io_source(pull, schema=self._schema)
            source.sink_parquet(path, row_group_size=ROW_GROUP_SIZE)
        except (pl.exceptions.PolarsError, OSError) as error:
            message = str(error).strip().splitlines()[0].rpartition("IO error: ")[2]
            raise OSError(message) from error
