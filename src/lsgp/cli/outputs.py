# SPDX-License-Identifier: BSD-3-Clause
"""Tables that commands write in pieces, and that get their name when they are complete."""

from __future__ import annotations

import argparse
import gzip
import io
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import polars as pl
from polars.io.plugins import register_io_source

from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError, check_output
from lsgp.cli.table import DataType
from lsgp.cli.tables import format_of, separator_of
from lsgp.compute.files import replace_file

ROW_GROUP_SIZE = 250_000


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
