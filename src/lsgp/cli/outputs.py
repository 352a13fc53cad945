# SPDX-License-Identifier: BSD-3-Clause
"""Tables that commands write, piece by piece, under their name only when they are complete."""

from __future__ import annotations

import argparse
import gzip
import queue
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import polars as pl

from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError, check_output
from lsgp.cli.table import DataType
from lsgp.cli.tables import format_of, separator_of
from lsgp.compute.files import replace_file
from lsgp.compute.threads import interrupts_later

#: Frames that wait to be written.
QUEUE_LENGTH = 2
ROW_GROUP_SIZE = 250_000
#: Seconds between looks at whether there is room, or the writer is done.
POLL = 0.01


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
        with replace_file(path) as temporary, temporary.open("wb") as file:
            if kind == "parquet":
                writer = ParquetWriter(file, schema)
                try:
                    yield writer
                    writer.finish()
                except BaseException:
                    writer.abandon()
                    raise
            elif path.lower().endswith(".gz"):
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
    """Streams frames into a Parquet file, row group by row group.

    polars writes Parquet in one go, from a source that it pulls frames from. So it runs on a
    thread of its own, and the source takes from a short queue, which bounds memory.
    """

    def __init__(self, file: IO[bytes], schema: dict[str, DataType]) -> None:
        # A file that is open, not its name: a thread that is slow to start must not bring back
        # a file that has been removed since.
        self._file, self._schema = file, schema
        # This kind of queue has no lock that Ctrl-C could leave closed, but also no limit.
        self._frames: queue.SimpleQueue[pl.DataFrame | None] = queue.SimpleQueue()
        self._is_abandoned = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="lsgp-parquet", daemon=True)
        with interrupts_later():
            self._thread.start()

    def write(self, frame: pl.DataFrame) -> None:
        """Hand over a frame, as soon as there is room for it."""
        while self._frames.qsize() >= QUEUE_LENGTH and self._thread.is_alive():
            time.sleep(POLL)
        self._raise_if_failed()
        self._frames.put(frame.select(list(self._schema)))

    def finish(self) -> None:
        """Write what is left and the footer."""
        self._end()
        self._raise_if_failed()

    def abandon(self) -> None:
        """End the thread; the file is of no use."""
        self._is_abandoned = True
        self._end()

    def _end(self) -> None:
        self._frames.put(None)
        while self._thread.is_alive():
            # With a timeout, because a wait without one ignores Ctrl-C on Windows.
            self._thread.join(POLL)

    def _raise_if_failed(self) -> None:
        if self._error is not None:
            message = str(self._error).strip().splitlines()[0].rpartition("IO error: ")[2]
            raise OSError(message) from self._error

    def _run(self) -> None:
        from polars.io.plugins import register_io_source

        def pull(*_: object) -> Iterator[pl.DataFrame]:
            yield pl.DataFrame(schema=self._schema)
            while (frame := self._frames.get()) is not None and not self._is_abandoned:
                yield frame
            if self._is_abandoned:
                raise InterruptedError("abandoned")

        try:
            source = register_io_source(pull, schema=self._schema)
            source.sink_parquet(self._file, row_group_size=ROW_GROUP_SIZE)
        except BaseException as error:
            # It is raised in the thread that writes frames.
            self._error = error
