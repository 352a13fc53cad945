# SPDX-License-Identifier: BSD-3-Clause
"""CSV files, plain or gzipped, read once from front to back in blocks of bounded size.

Blocks are cut here rather than by the reader of polars, so that memory stays bounded also for
gzipped files and pipes, and so that an error can name the row of the file.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import polars as pl

from lsgp.cli.csv_cells import (
    CellCounts,
    cells_of,
    infer_column,
    note_unreadable,
    parse_cells,
    without_markers,
)
from lsgp.cli.csv_rows import first_row_end, last_row_end
from lsgp.cli.errors import CommandError
from lsgp.cli.table import MAX_CHUNK_ROWS, Chunk, Column, DataType, Unreadable
from lsgp.inputs.encoding.text import CODE, INTEGER, MAX_UNREADABLE, TRUTHS

BLOCK_BYTES = 8 * 2**20
#: A row that takes more than this is no row: rather a quote that is never closed.
MAX_ROW_BYTES = 64 * 2**20
MAX_HEADER_BYTES = 4 * 2**20

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CsvTable:
    """A CSV file whose rows can be read once, as `chunks`.

    Parameters
    ----------
    path : str
        "-" is stdin.
    separator : str
        One character between columns.
    """

    def __init__(self, path: str, separator: str = ",") -> None:
        self.name = "stdin" if path == "-" else path
        self.separator = separator
        self._raw: IO[bytes] = sys.stdin.buffer if path == "-" else Path(path).open("rb")  # noqa: SIM115
        self._bytes_seen = 0
        self._is_seekable = self._raw.seekable()
        self.total = Path(path).stat().st_size if self._is_seekable and path != "-" else None
        self.unreadable: dict[str, Unreadable] = {}
        self.notes: list[str] = []
        self._numbers_are_plain = True
        self._encoding, self._has_utf8 = "utf-8", False
        # Names as they are, and those that polars is given: it does not know quotes in names.
        self._names: list[str] = []
        self._keys: dict[str, str] = {}
        self._unnamed: list[str] = []
        try:
            self._blocks = self._read_blocks(_decompress(self._raw))
            self._read_header(next(self._blocks, b""))
            self._first_block = next(self._blocks, b"")
            self.columns = self._infer_columns()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._raw is not sys.stdin.buffer:
            self._raw.close()

    def chunks(self, numbers: Sequence[str], others: Sequence[str] = ()) -> Iterator[Chunk]:
        """The rows in order: `numbers` as Float64, `others` as text or of the inferred type."""
        first_row, position = 1, 0
        block, self._first_block = self._first_block, b""
        while block:
            frame = self._parse(block, list(numbers), list(others), first_row)
            seen = self._position()
            for part in frame.iter_slices(MAX_CHUNK_ROWS):
                yield Chunk(first_row, part, seen - position)
                first_row, position = first_row + part.height, seen
            block = next(self._blocks, b"")

    def keep_as_text(self, names: Sequence[str]) -> None:
        """Leave these columns as they are written, digit by digit."""
        for name in names:
            self.columns[name] = self.columns[name]._replace(dtype=pl.String())

    def type_of(self, name: str, is_number: bool) -> DataType:
        """The type that a column has in chunks."""
        return pl.Float64() if is_number else self.columns[name].dtype

    def _position(self) -> int:
        return self._raw.tell() if self._is_seekable else self._bytes_seen

    def _read_blocks(self, stream: IO[bytes]) -> Iterator[bytes]:
        """The header, then whole rows in blocks."""
        rest, is_header, is_last = b"", True, False
        while not is_last:
            data, is_last = self._read_block(stream)
            self._bytes_seen += len(data)
            data = rest + data
            if is_header:
                data = self._check_start(data)
                end = first_row_end(data, self.separator)
                if end:
                    yield self._to_utf8(data[:end])
                    data, is_header = data[end:], False
                elif len(data) > MAX_HEADER_BYTES:
                    raise self._endless_header()
            # The last row may have no line break.
            end = len(data) if is_last else last_row_end(data)
            end = 0 if is_header else self._before_blank_lines(data, end)
            if end:
                yield self._to_utf8(data[:end])
            rest = data[end:]
            if len(rest) > MAX_ROW_BYTES:
                raise CommandError(
                    f"{self.name} has a row of more than {MAX_ROW_BYTES >> 20} MiB. Is it a CSV "
                    "file, and is every quote closed?"
                )
        if is_header and b"\n" in rest:
            raise self._endless_header()
        if is_header:
            yield self._to_utf8(rest)

    def _read_block(self, stream: IO[bytes]) -> tuple[bytes, bool]:
        """The next bytes, as many as a block has, and whether they are the last."""
        parts: list[bytes] = []
        n_missing = BLOCK_BYTES
        while n_missing > 0:
            try:
                # A pipe or a terminal may give less than it is asked for.
                part = stream.read(n_missing)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise CommandError(f"{self.name} is a damaged gzip file: {error}.") from None
            if not part:
                return b"".join(parts), True
            parts.append(part)
            n_missing -= len(part)
        return b"".join(parts), False

    def _endless_header(self) -> CommandError:
        return CommandError(
            f"The line with column names of {self.name} has no end. Is it a CSV file, and is every "
            "quote closed?"
        )

    def _before_blank_lines(self, data: bytes, end: int) -> int:
        """Where rows end before blank lines, which are no rows at the end of a file.

        With a single column, they are missing values.
        """
        if len(self._names) == 1:
            return end
        n_row_bytes = len(data[:end].rstrip(b"\r\n"))
        line_break = data.find(b"\n", n_row_bytes, end) + 1
        return (line_break or end) if n_row_bytes else 0

    def _check_start(self, start: bytes) -> bytes:
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise CommandError(f"{self.name} is in UTF-16. Save it as UTF-8.")
        if start.startswith(b"PAR1"):
            raise CommandError(f"{self.name} is a Parquet file. Say so with --format parquet.")
        if b"\0" in start[:4096]:
            raise CommandError(f"{self.name} is not a CSV file: it has binary data.")
        return start.removeprefix(BYTE_ORDER_MARK)

    def _to_utf8(self, data: bytes) -> bytes:
        """Whole rows in UTF-8: those of a file that is not are taken for Latin-1, and it is said.

        That is Windows-1252, which has more letters, wherever it has a letter.
        """
        if data.isascii():
            return data
        if self._encoding == "utf-8":
            try:
                data.decode()
            except UnicodeDecodeError as error:
                if self._has_utf8:
                    raise CommandError(
                        f"{self.name} is in UTF-8 up to some row, and then is not: "
                        f"{data[error.start : error.start + 1]!r}. Save all of it as UTF-8."
                    ) from None
                self._encoding = "latin-1"
                self.notes.append(f"{self.name} is not in UTF-8, and was read as Latin-1")
            else:
                self._has_utf8 = True
                return data
        try:
            return data.decode("cp1252").encode()
        except UnicodeDecodeError:
            return data.decode("latin-1").encode()

    def _read_header(self, line: bytes) -> None:
        """The names of the columns, without spaces around them."""
        if not line.strip():
            raise CommandError(f"{self.name} is empty: it has no line with column names.")
        if b"\r" in line.rstrip(b"\r\n") and b"\n" not in line.rstrip(b"\r\n"):
            raise CommandError(
                f"{self.name} ends its lines with carriage returns alone. Save it with the line "
                "ends of Unix or Windows."
            )
        text = line.decode().rstrip("\r\n")
        try:
            names = next(csv.reader([text], delimiter=self.separator))
        except csv.Error as error:
            raise CommandError(
                f"The first line of {self.name} cannot be read as column names: {error}."
            ) from None
        names = [name.strip() for name in names]
        if len(names) == 1:
            for separator in (";", "\t", "|"):
                if separator in names[0]:
                    raise CommandError(
                        f"{self.name} has one column, {names[0]!r}. If {separator!r} separates "
                        f"columns, say so with --separator {separator!r}."
                    )
        for position, name in enumerate(names, 1):
            if not name:
                # As pandas writes row numbers; nobody can ask for it.
                name = f"column_{position}"
                self._unnamed.append(name)
            if name in self._keys:
                raise CommandError(
                    f"{self.name} has two columns {name!r}: the {self._position_of(name)} and the "
                    f"{_ordinal(position)}. Rename one of them."
                )
            self._keys[name] = f"c{position}"
            self._names.append(name)

    def _position_of(self, name: str) -> str:
        return _ordinal(self._names.index(name) + 1)

    def _infer_columns(self) -> dict[str, Column]:
        """The columns and what they hold, as far as the first block tells."""
        texts = self._read(self._first_block, 1)
        stripped = texts.select(without_markers(pl.all()))
        cells = stripped.select(pl.all().replace(TRUTHS))
        # All columns at once: there may be thousands.
        counted = pl.concat(
            [
                stripped.select(pl.all().count()),
                stripped.select(pl.all().is_in(list(TRUTHS)).sum()),
                cells.select(pl.all().str.contains(INTEGER).sum()),
                cells.select(pl.all().str.contains(CODE).sum()),
                cells.select(pl.all().cast(pl.Int64, strict=False).count()),
                cells.select(pl.all().cast(pl.Float64, strict=False).count()),
            ]
        )
        columns = {}
        for counts in counted:
            column = infer_column(CellCounts(*counts), len(texts))
            if counts.name in self._unnamed:
                column = column._replace(kind="unnamed")
            elif column.kind == "mixed":
                found = Unreadable()
                note_unreadable(texts[counts.name], cells[counts.name], 1, found)
                column = column._replace(unreadable=found, n_cells=len(texts))
            columns[counts.name] = column
        return columns

    @property
    def is_empty(self) -> bool:
        """Whether there are no rows, to be asked before they are read."""
        return not self._first_block

    def _parse(
        self, block: bytes, numbers: list[str], others: list[str], first_row: int
    ) -> pl.DataFrame:
        wanted = list(dict.fromkeys([*numbers, *others]))
        types = {name: self.type_of(name, name in numbers) for name in wanted}
        if self._numbers_are_plain:
            # The quick way; a marker for a missing value, or a text, makes it fail.
            plain = {name: self._number_type(name) for name in numbers}
            try:
                frame = self._read(block, first_row, wanted, types | plain)
                return frame.with_columns(pl.col(numbers).cast(pl.Float64)).select(wanted)
            except CommandError:
                self._numbers_are_plain = False
        frame = self._read(block, first_row, wanted)
        parsed = []
        for name in wanted:
            if name in numbers:
                parsed.append(self._parse_numbers(frame[name], first_row))
            elif types[name] == pl.String:
                parsed.append(frame[name])
            else:
                parsed.append(parse_cells(frame[name], types[name], self.name, first_row))
        return pl.DataFrame(parsed)

    def _parse_numbers(self, texts: pl.Series, first_row: int) -> pl.Series:
        """Numbers, null where one is missing or a cell is none; too many of those are refused."""
        stripped = cells_of(texts)
        found = self.unreadable.get(texts.name) or Unreadable()
        n_before = found.count
        parsed = note_unreadable(texts, stripped, first_row, found)
        n_cells = first_row - 1 + len(texts)
        if found.count > n_before:
            self.unreadable[texts.name] = found
            if found.count > MAX_UNREADABLE * n_cells:
                found.refuse(texts.name, self.name, n_cells)
        return parsed

    def _number_type(self, name: str) -> DataType:
        return pl.Boolean() if self.columns[name].kind == "flag" else pl.Float64()

    def _read(
        self,
        block: bytes,
        first_row: int,
        columns: list[str] | None = None,
        types: dict[str, DataType] | None = None,
    ) -> pl.DataFrame:
        """Rows of some columns (None: all), as text where no type is given."""
        keys = list(self._keys.values())
        names = self._names if columns is None else columns
        header = self.separator.join(keys).encode() + b"\n"
        try:
            frame = pl.read_csv(
                io.BytesIO(header + block),
                columns=[self._keys[name] for name in names],
                schema_overrides={self._keys[name]: dtype for name, dtype in (types or {}).items()},
                infer_schema_length=0,
                separator=self.separator,
            )
        except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
            raise self._unreadable_block(block, first_row, error) from None
        return frame.rename({self._keys[name]: name for name in names})

    def _unreadable_block(self, block: bytes, first_row: int, error: Exception) -> CommandError:
        """Why a block cannot be read: the first row with too many cells, if there is one."""
        try:
            lines = io.StringIO(block.decode(), newline="")
            for row, cells in enumerate(csv.reader(lines, delimiter=self.separator), first_row):
                if len(cells) > len(self._names):
                    return CommandError(
                        f"Row {row:,} of {self.name} has {len(cells)} cells, but there are "
                        f"{len(self._names)} columns. A cell with a {self.separator!r} in it must "
                        "be in quotes."
                    )
        except (csv.Error, UnicodeDecodeError):
            pass
        where = f"{self.name}, from row {first_row:,} on"
        if b'"' in block:
            return CommandError(
                f"{where}, cannot be read as CSV. Is every quote closed, and doubled where it is "
                "part of a text?"
            )
        message = str(error).strip().splitlines()[0]
        return CommandError(f"{where}, cannot be read as CSV: {message}.")


def _ordinal(number: int) -> str:
    is_teen = 10 <= number % 100 <= 20
    return f"{number}{'th' if is_teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _decompress(raw: IO[bytes]) -> IO[bytes]:
    """The bytes of a file, unzipped if they are gzipped, whatever its name says."""
    buffered: Any = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
    is_gzip = buffered.peek(2)[:2] == b"\x1f\x8b"
    return gzip.GzipFile(fileobj=buffered) if is_gzip else buffered  # type: ignore[return-value]
