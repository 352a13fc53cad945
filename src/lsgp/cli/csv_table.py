# SPDX-License-Identifier: BSD-3-Clause
"""CSV files, plain or gzipped: cut into blocks of whole rows in UTF-8, which polars parses.

`scan_csv` of polars keeps a pipe in memory, and drops rows in silence where two cells hold a lone
quote (5" pipe) and their column is not selected; so the blocks are cut here.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from lsgp.cli.errors import CommandError
from lsgp.cli.table import MAX_CHUNK_ROWS, Chunk, Column, DataType, FileTable, Unreadable
from lsgp.inputs.encoding.text import CODE, INTEGER, MAX_UNREADABLE, MISSING, TRUTHS

BLOCK_BYTES = 8 * 2**20
#: A line or a cell that takes more is none: rather a quote that is never closed.
MAX_CELL_BYTES = 64 * 2**20
MAX_HEADER_BYTES = 4 * 2**20

UNCLOSED = "Is every quote closed, and doubled where it is part of a text in quotes?"


class CsvTable(FileTable):
    """A CSV file whose rows can be read once, as `chunks`.

    Parameters
    ----------
    path : str
        "-" is stdin.
    separator : str
        One character between columns.
    """

    def __init__(self, path: str, separator: str = ",") -> None:
        super().__init__("stdin" if path == "-" else path)
        self.total = None if path == "-" else Path(path).stat().st_size
        self._separator = separator
        self._n_rows = 0  # of the blocks before, for errors
        self._is_latin = self._has_utf8 = False
        # Kept open until the table is closed.
        self._raw: IO[bytes] = sys.stdin.buffer if path == "-" else Path(path).open("rb")  # noqa: SIM115
        buffered: Any = self._raw if hasattr(self._raw, "peek") else io.BufferedReader(self._raw)
        # Unzipped if it is gzipped, whatever its name says.
        is_gzip = buffered.peek(2)[:2] == b"\x1f\x8b"
        self._stream: Any = gzip.GzipFile(fileobj=buffered) if is_gzip else buffered
        try:
            self._names, unnamed = self._read_names()
            self._blocks = self._read_blocks()
            self._first_block = next(self._blocks, b"")
            first = self._parse(self._first_block)
            self.columns = {cells.name: infer_column(cells) for cells in first}
            self.columns |= {name: Column("unnamed", pl.String()) for name in unnamed}
        except BaseException:
            self.close()
            raise
        self.is_empty = not self._first_block

    def close(self) -> None:
        if self._raw is not sys.stdin.buffer:
            self._raw.close()

    def keep_as_text(self, names: Sequence[str]) -> None:
        for name in names:
            self.columns[name] = self.columns[name]._replace(dtype=pl.String())

    def type_of(self, name: str, is_number: bool) -> DataType:
        return pl.Float64() if is_number else self.columns[name].dtype

    def chunks(self, numbers: Sequence[str], others: Sequence[str] = ()) -> Iterator[Chunk]:
        wanted = list(dict.fromkeys([*numbers, *others]))
        position = 0
        first, self._first_block = self._first_block, b""
        for block in chain([first] if first else [], self._blocks):
            columns = [
                self._read_numbers(cells) if cells.name in numbers else self._copy(cells)
                for cells in self._parse(block).select(wanted)
            ]
            seen = 0 if self.total is None else self._raw.tell()
            for part in pl.DataFrame(columns).iter_slices(MAX_CHUNK_ROWS):
                yield Chunk(self._n_rows + 1, part, seen - position)
                self._n_rows += part.height
                position = seen

    # -- bytes: the header, and blocks of whole rows -----------------------------------------------

    def _read_names(self) -> tuple[list[str], list[str]]:
        """The names of the columns, without spaces around them; and those of nameless ones."""
        cells = self._read_header()
        for separator in (";", "\t", "|"):
            if len(cells) == 1 and separator in cells[0]:
                raise CommandError(
                    f"{self.name} has one column, {cells[0].strip()!r}. If {separator!r} "
                    f"separates columns, say so with --separator {separator!r}."
                )
        # Row numbers of pandas have no name; nobody can ask for them.
        names = [cell.strip() or f"column_{k}" for k, cell in enumerate(cells, 1)]
        for position, name in enumerate(names, 1):
            first = names.index(name) + 1
            if first < position:
                raise CommandError(
                    f"{self.name} has two columns {name!r}: columns {first} and {position}. Rename "
                    "one of them."
                )
        return names, [name for name, cell in zip(names, cells, strict=True) if not cell.strip()]

    def _read_header(self) -> list[str]:
        """The cells of the first row."""
        start = self._call(self._stream.peek, 4096)[:4096]
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise CommandError(f"{self.name} is in UTF-16. Save it as UTF-8.")
        if start.startswith(b"PAR1"):
            raise CommandError(f"{self.name} is a Parquet file. Say so with --format parquet.")
        if b"\0" in start:
            raise CommandError(f"{self.name} is not a CSV file: it has binary data.")
        line = self._read_line(MAX_HEADER_BYTES).removeprefix(b"\xef\xbb\xbf")
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

    def _read_blocks(self) -> Iterator[bytes]:
        """Whole rows in blocks; blank lines at the end of the file are no rows.

        In a single column, a blank line is a missing value.
        """
        blank = b""
        while data := self._call(self._stream.read, BLOCK_BYTES):
            data = blank + self._whole_rows(data + self._read_line(MAX_CELL_BYTES))
            rows = data if len(self._names) == 1 else data.rstrip(b"\r\n")
            blank = data[len(rows) :]
            if rows:
                blank = blank.partition(b"\n")[2]
                yield rows + b"\n" if not rows.endswith(b"\n") else rows

    def _whole_rows(self, data: bytes) -> bytes:
        """Lines in UTF-8, with the rest of the last row, and with quotes as polars reads them."""
        n_lines = data.count(b"\n") + (not data.endswith(b"\n"))
        data = self._to_utf8(data)
        if has_plain_quotes(data, self._separator):
            return data
        written = io.StringIO(newline="")
        writer = csv.writer(written, delimiter=self._separator, lineterminator="\n")
        rows, n_done = self._split(data), 0
        try:
            for row in rows:
                writer.writerow(row)
                n_done += 1
                if rows.line_num >= n_lines:
                    break
        except csv.Error as error:
            raise self._unreadable_from(self._n_rows + n_done + 1, error) from None
        return written.getvalue().encode()

    def _split(self, data: bytes) -> Any:
        """A reader of rows in Python, which goes on in the file where a cell has line breaks."""
        csv.field_size_limit(MAX_CELL_BYTES)  # more than a long text or a polygon takes
        more = iter(lambda: self._to_utf8(self._read_line(MAX_CELL_BYTES)).decode(), "")
        lines = chain(io.StringIO(data.decode(), newline="\n"), more)
        return csv.reader(lines, delimiter=self._separator, strict=True)

    def _read_line(self, most: int) -> bytes:
        """The rest of a line."""
        line = self._call(self._stream.readline, most)
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

    # -- cells -------------------------------------------------------------------------------------

    def _parse(self, block: bytes) -> pl.DataFrame:
        """All cells of a block as texts."""
        # Names of its own: polars knows no quotes in names.
        header = self._separator.join(f"c{k}" for k in range(len(self._names)))
        try:
            return pl.read_csv(
                header.encode() + b"\n" + block,
                infer_schema=False,
                null_values="",  # in quotes too, as Python's reader cannot tell
                separator=self._separator,
                new_columns=self._names,
            )
        except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
            fact = error
        rows = csv.reader(io.StringIO(block.decode(), newline="\n"), delimiter=self._separator)
        for row, cells in enumerate(rows, self._n_rows + 1):
            if len(cells) > len(self._names):
                raise CommandError(
                    f"Row {row:,} of {self.name} has {len(cells)} cells, but there are "
                    f"{len(self._names)} columns. A cell with a {self._separator!r} in it must be "
                    "in quotes."
                )
        raise self._unreadable_from(self._n_rows + 1, fact)

    def _unreadable_from(self, row: int, error: Exception) -> CommandError:
        fact = str(error).strip().splitlines()[0]
        return CommandError(f"{self.name} cannot be read from row {row:,} on: {fact}. {UNCLOSED}")

    def _read_numbers(self, texts: pl.Series) -> pl.Series:
        """Numbers, null where one is missing or a cell is none; too many of those are refused."""
        found = self.unreadable.get(texts.name) or Unreadable()
        n_before = found.count
        numbers = parse_numbers(texts, self._n_rows + 1, found)
        if found.count > n_before:
            self.unreadable[texts.name] = found
            n_cells = self._n_rows + len(texts)
            if found.count > MAX_UNREADABLE * n_cells:
                found.refuse(texts.name, self.name, n_cells)
        return numbers

    def _copy(self, texts: pl.Series) -> pl.Series:
        """A column of the type that its first rows have; null where a value is missing."""
        dtype = self.columns[texts.name].dtype
        if dtype == pl.String:
            return texts
        cells = without_markers(texts).replace(TRUTHS)
        # polars casts numbers to booleans but not strings.
        parsed = cells.cast(pl.Float64 if dtype == pl.Boolean else dtype, strict=False)
        wrong = (parsed.is_null() & cells.is_not_null()).arg_true()
        if len(wrong):
            raise CommandError(
                f"Column {texts.name!r} of {self.name} holds {dtype} in its first rows, but "
                f"{texts[wrong[0]]!r} in row {self._n_rows + 1 + wrong[0]:,}. Correct it, or do "
                "not copy the column."
            )
        return parsed.cast(dtype)


def infer_column(texts: pl.Series) -> Column:
    """What a column holds, as far as its first cells tell."""
    present = without_markers(texts).drop_nulls()
    if present.is_empty():
        return Column("empty", pl.String())
    if present.is_in(list(TRUTHS)).all():
        return Column("flag", pl.Boolean())
    cells = present.replace(TRUTHS)
    if cells.str.contains(INTEGER).all():
        if cells.str.contains(CODE).any():
            return Column("code", pl.String())
        # Larger ones are kept digit by digit, where they are not asked for as numbers.
        is_large = cells.cast(pl.Int64, strict=False).has_nulls()
        return Column("number", pl.String() if is_large else pl.Int64())
    found = Unreadable()
    parse_numbers(texts, 1, found)
    if found.count == 0:
        return Column("number", pl.Float64())
    if found.count <= MAX_UNREADABLE * len(texts):
        return Column("number", pl.String())
    if found.count < len(present) - found.count:
        return Column("mixed", pl.String(), found, len(texts))
    return Column("text", pl.String())


def parse_numbers(texts: pl.Series, first_row: int, found: Unreadable) -> pl.Series:
    """Numbers, null where one is missing; cells that are none are null too, and are noted."""
    numbers = texts.cast(pl.Float64, strict=False).fill_nan(None)
    odd = (numbers.is_null() & texts.is_not_null()).arg_true()
    if len(odd) == 0:
        return numbers
    cells = without_markers(texts.gather(odd)).replace(TRUTHS)
    parsed = cells.cast(pl.Float64, strict=False)
    wrong = odd.filter(parsed.is_null() & cells.is_not_null())
    found.add((wrong + first_row).to_list(), texts.gather(wrong).to_list())
    return numbers.scatter(odd, parsed)


def without_markers(texts: pl.Series) -> pl.Series:
    """Texts without spaces around them, null where they mark a missing value."""
    return texts.str.strip_chars().replace(dict.fromkeys(MISSING))


def has_plain_quotes(data: bytes, separator: str) -> bool:
    """Whether quotes stand around cells or are doubled in them, and all that open are closed.

    Examples
    --------
    >>> from lsgp.cli.csv_table import has_plain_quotes
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
