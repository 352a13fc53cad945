# SPDX-License-Identifier: BSD-3-Clause
"""CSV files, plain or gzipped, cut into blocks of whole rows in UTF-8.

polars parses each block; the blocks are cut here. `scan_csv` of polars keeps a pipe in memory, and
drops rows in silence where two cells hold a lone quote (5" pipe) and their column is not selected.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from lsgp.cli.errors import CommandError

BLOCK_BYTES = 8 * 2**20
#: A line or a cell that takes more is none: rather a quote that is never closed.
MAX_CELL_BYTES = 64 * 2**20
MAX_HEADER_BYTES = 4 * 2**20

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

UNCLOSED = "Is every quote closed, and doubled where it is part of a text in quotes?"


class CsvFile:
    """A CSV file that is read once: its first row, then blocks of the others.

    Parameters
    ----------
    path : str
        "-" is stdin.
    separator : str
        One character between columns.
    """

    def __init__(self, path: str, separator: str) -> None:
        self.name = "stdin" if path == "-" else path
        self.separator = separator
        self.size = None if path == "-" else Path(path).stat().st_size
        self.notes: list[str] = []  # on how the file was read
        self.n_rows = 0  # of the blocks before, for errors
        self._raw: IO[bytes] = sys.stdin.buffer if path == "-" else Path(path).open("rb")  # noqa: SIM115
        self._stream = _decompress(self._raw)
        self._is_latin = self._has_utf8 = False

    def close(self) -> None:
        """Close the file."""
        if self._raw is not sys.stdin.buffer:
            self._raw.close()

    def position(self) -> int:
        """Bytes of the file that have been read; 0 for a pipe."""
        return 0 if self.size is None else self._raw.tell()

    def read_header(self) -> list[str]:
        """The cells of the first row."""
        self._check_start(self._call(self._stream.peek, 4096)[:4096])  # type: ignore[attr-defined]
        line = self._read_line(MAX_HEADER_BYTES).removeprefix(BYTE_ORDER_MARK)
        if not line.strip():
            raise CommandError(f"{self.name} is empty: it has no line with column names.")
        if b"\r" in line.rstrip(b"\r\n"):
            raise CommandError(
                f"{self.name} ends its lines with carriage returns alone. Save it with the line "
                "ends of Unix or Windows."
            )
        try:
            cells: list[str] = next(self._split(self._to_utf8(line)))
        except csv.Error:
            raise CommandError(
                f"The line with column names of {self.name} has no end. Is it a CSV file, and is "
                "every quote closed?"
            ) from None
        return cells

    def read_blocks(self, is_single: bool) -> Iterator[bytes]:
        """Whole rows in blocks; blank lines at the end of the file are no rows.

        In a single column, a blank line is a missing value.
        """
        blank = b""
        while data := self._call(self._stream.read, BLOCK_BYTES):
            data = blank + self._whole_rows(data + self._read_line(MAX_CELL_BYTES))
            rows = data if is_single else data.rstrip(b"\r\n")
            blank = data[len(rows) :]
            if rows:
                blank = blank.partition(b"\n")[2]
                yield rows + b"\n" if not rows.endswith(b"\n") else rows

    def _check_start(self, start: bytes) -> None:
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise CommandError(f"{self.name} is in UTF-16. Save it as UTF-8.")
        if start.startswith(b"PAR1"):
            raise CommandError(f"{self.name} is a Parquet file. Say so with --format parquet.")
        if b"\0" in start:
            raise CommandError(f"{self.name} is not a CSV file: it has binary data.")

    def _whole_rows(self, data: bytes) -> bytes:
        """Lines in UTF-8, with the rest of the last row, and with quotes as polars reads them."""
        n_lines = data.count(b"\n") + (not data.endswith(b"\n"))
        data = self._to_utf8(data)
        if has_plain_quotes(data, self.separator):
            return data
        written = io.StringIO(newline="")
        writer = csv.writer(written, delimiter=self.separator, lineterminator="\n")
        rows, n_done = self._split(data), 0
        try:
            for row in rows:
                writer.writerow(row)
                n_done += 1
                if rows.line_num >= n_lines:
                    break
        except csv.Error as error:
            raise CommandError(
                f"{self.name} cannot be read from row {self.n_rows + n_done + 1:,} on: {error}. "
                f"{UNCLOSED}"
            ) from None
        return written.getvalue().encode()

    def _split(self, data: bytes) -> Any:
        """A reader of rows in Python, which goes on in the file where a cell has line breaks."""
        csv.field_size_limit(MAX_CELL_BYTES)  # more than a long text or a polygon takes
        more = iter(lambda: self._to_utf8(self._read_line(MAX_CELL_BYTES)).decode(), "")
        lines = chain(io.StringIO(data.decode(), newline="\n"), more)
        return csv.reader(lines, delimiter=self.separator, strict=True)

    def _read_line(self, most: int) -> bytes:
        """The rest of a line."""
        line: bytes = self._call(self._stream.readline, most)
        if len(line) == most and not line.endswith(b"\n"):
            raise CommandError(
                f"{self.name} has a line of more than {most >> 20} MiB. Is it a CSV file?"
            )
        return line

    def _call(self, read: Any, n_bytes: int) -> bytes:
        try:
            data: bytes = read(n_bytes)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise CommandError(f"{self.name} is a damaged gzip file: {error}.") from None
        return data

    def _to_utf8(self, data: bytes) -> bytes:
        """Rows in UTF-8: those of a file that is not are taken for Latin-1, and it is said.

        That is Windows-1252, which has more letters, wherever it has a letter.
        """
        if data.isascii():
            return data
        if not self._is_latin:
            try:
                data.decode()
            except UnicodeDecodeError as error:
                if self._has_utf8:
                    raise CommandError(
                        f"{self.name} is in UTF-8 up to some row, and then is not: "
                        f"{data[error.start : error.start + 1]!r}. Save all of it as UTF-8."
                    ) from None
                self._is_latin = True
                self.notes.append(f"{self.name} is not in UTF-8, and was read as Latin-1")
            else:
                self._has_utf8 = True
                return data
        try:
            return data.decode("cp1252").encode()
        except UnicodeDecodeError:
            return data.decode("latin-1").encode()


def has_plain_quotes(data: bytes, separator: str) -> bool:
    """Whether quotes stand around cells or are doubled in them, and all that open are closed.

    Examples
    --------
    >>> from lsgp.cli.csv_file import has_plain_quotes
    >>> has_plain_quotes(b'1,"a ""b"", c"', ","), has_plain_quotes(b'1,5" pipe', ",")
    (True, False)
    """
    if b'"' not in data:
        return True
    cells = np.frombuffer(b"\n" + data + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(cells == ord('"'))
    before, after = cells[quotes[::2] - 1], cells[quotes[1::2] + 1]
    ends = [ord(mark) for mark in (separator, "\n", "\r", '"')]
    return bool(len(quotes) % 2 == 0 and np.isin(before, ends).all() and np.isin(after, ends).all())


def _decompress(raw: IO[bytes]) -> IO[bytes]:
    """The bytes of a file, unzipped if they are gzipped, whatever its name says."""
    buffered: Any = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
    is_gzip = buffered.peek(2)[:2] == b"\x1f\x8b"
    return gzip.GzipFile(fileobj=buffered) if is_gzip else buffered  # type: ignore[return-value]
