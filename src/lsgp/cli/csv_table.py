# SPDX-License-Identifier: BSD-3-Clause
"""CSV files, plain or gzipped, read once from front to back in blocks of bounded size.

Blocks are cut here rather than by the reader of polars, so that memory stays bounded also for
gzipped files and pipes, and so that an error can name the row of the file.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from lsgp.cli.errors import CommandError
from lsgp.cli.table import MAX_CHUNK_ROWS, Chunk, Column

BLOCK_BYTES = 8 * 2**20
#: A row that takes more than this is no row: rather a quote that is never closed.
MAX_ROW_BYTES = 64 * 2**20

#: What stands for a missing number, beside nothing at all.
MISSING = ("", "NA", "N/A", "NaN", "nan", "NAN", "na", "n/a", "null", "NULL", "None", "none", "?")
TRUTHS = {"true": "1", "True": "1", "TRUE": "1", "false": "0", "False": "0", "FALSE": "0"}

#: Digits that are no number: 007, or the zip code 02134.
CODE = r"^\s*0\d"

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
        self._numbers_are_plain = True
        try:
            self._blocks = self._read_blocks(_decompress(self._raw))
            self._header = self._check_header(next(self._blocks, b""))
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

    def type_of(self, name: str, is_number: bool) -> Any:
        """The type that a column has in chunks."""
        return pl.Float64() if is_number else self.columns[name].dtype

    def _position(self) -> int:
        return self._raw.tell() if self._is_seekable else self._bytes_seen

    def _read_blocks(self, stream: IO[bytes]) -> Iterator[bytes]:
        """The header, then whole rows in blocks."""
        rest, is_header = b"", True
        while True:
            try:
                data = stream.read(BLOCK_BYTES)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise CommandError(f"{self.name} is a damaged gzip file: {error}.") from None
            if not data:
                break
            self._bytes_seen += len(data)
            data = rest + data
            if is_header:
                data = self._check_encoding(data)
                end = first_row_end(data)
                if end:
                    yield data[:end]
                    data, is_header = data[end:], False
            end = 0 if is_header else self._before_blank_lines(data, last_row_end(data))
            if end:
                yield data[:end]
            rest = data[end:]
            if len(rest) > MAX_ROW_BYTES:
                raise CommandError(
                    f"{self.name} has a row of more than {MAX_ROW_BYTES >> 20} MiB. Is it a CSV "
                    "file, and is every quote closed?"
                )
        if is_header or self._before_blank_lines(rest, len(rest)):
            yield rest

    def _before_blank_lines(self, data: bytes, end: int) -> int:
        """Where rows end before blank lines, which are no rows at the end of a file.

        With a single column, they are missing values.
        """
        if self._n_columns == 1:
            return end
        n_row_bytes = len(data[:end].rstrip(b"\r\n"))
        line_break = data.find(b"\n", n_row_bytes, end) + 1
        return (line_break or end) if n_row_bytes else 0

    def _check_encoding(self, start: bytes) -> bytes:
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise CommandError(f"{self.name} is in UTF-16. Save it as UTF-8.")
        if start.startswith(b"PAR1"):
            raise CommandError(f"{self.name} is a Parquet file. Say so with --format parquet.")
        if b"\0" in start[:4096]:
            raise CommandError(f"{self.name} is not a CSV file: it has binary data.")
        return start.removeprefix(BYTE_ORDER_MARK)

    def _check_header(self, line: bytes) -> bytes:
        """The line with the column names, without spaces around them."""
        self._header = line
        if not line.strip():
            raise CommandError(f"{self.name} is empty: it has no line with column names.")
        names = self._read(b"", 1).columns
        self._n_columns = len(names)
        if len(names) == 1:
            for separator in (";", "\t", "|"):
                if separator in names[0]:
                    raise CommandError(
                        f"{self.name} has one column, {names[0]!r}. If {separator!r} separates "
                        f"columns, say so with --separator {separator!r}."
                    )
        stripped = [name.strip() for name in names]
        if len(set(stripped)) < len(names):
            return line
        header = pl.DataFrame(schema=stripped).write_csv(separator=self.separator)
        return header.encode()

    def _infer_columns(self) -> dict[str, Column]:
        """The columns and what they hold, as far as the first block tells."""
        frame = self._read(
            self._first_block, 1, infer_schema_length=None, null_values=list(MISSING)
        )
        integers = [series.name for series in frame if series.dtype.is_integer()]
        written = self._read(self._first_block, 1, integers) if integers else pl.DataFrame()
        columns = {}
        for series in frame:
            kind, dtype = "text", series.dtype
            if series.name in integers and written[series.name].str.contains(CODE).any():
                kind, dtype = "code", pl.String()
            elif dtype.is_numeric():
                kind = "number"
            elif dtype == pl.Boolean:
                kind = "flag"
            elif series.null_count() == len(series):
                kind = "empty"
            elif dtype == pl.String and _are_numbers(series):
                # With spaces around them.
                kind, dtype = "number", pl.Float64()
            columns[series.name] = Column(kind, dtype)
        return columns

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
        return frame.select(
            pl.col(name)
            if types[name] == pl.String
            else parse_numbers(frame[name], types[name], self.name, first_row)
            for name in wanted
        )

    def _number_type(self, name: str) -> Any:
        return pl.Boolean() if self.columns[name].kind == "flag" else pl.Float64()

    def _read(
        self,
        block: bytes,
        first_row: int,
        columns: list[str] | None = None,
        types: dict[str, Any] | None = None,
        infer_schema_length: int | None = 0,
        null_values: list[str] | None = None,
    ) -> pl.DataFrame:
        try:
            return pl.read_csv(
                io.BytesIO(self._header.rstrip(b"\r\n") + b"\n" + block),
                columns=columns,
                schema_overrides=types,
                infer_schema_length=infer_schema_length,
                null_values=null_values,
                separator=self.separator,
            )
        except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
            message = str(error).strip().splitlines()[0]
            where = f"{self.name}, from row {first_row:,} on"
            raise CommandError(f"{where}, cannot be read as CSV: {message}.") from None


def parse_numbers(texts: pl.Series, dtype: Any, where: str, first_row: int) -> pl.Series:
    """A column of text as numbers of a type, null where one is missing."""
    stripped = _without_markers(texts)
    # Text is no truth to polars, but a number is.
    parsed = stripped.cast(pl.Float64 if dtype == pl.Boolean else dtype, strict=False)
    wrong = (parsed.is_null() & stripped.is_not_null()).arg_true()
    if len(wrong):
        raise CommandError(
            f"Column {texts.name!r} of {where} holds numbers ({dtype}), but {texts[wrong[0]]!r} in "
            f"row {first_row + wrong[0]:,}. Correct it, or leave the column out."
        )
    return parsed.cast(dtype)


def _without_markers(texts: pl.Series) -> pl.Series:
    return texts.str.strip_chars().replace(dict.fromkeys(MISSING)).replace(TRUTHS)


def _are_numbers(texts: pl.Series) -> bool:
    stripped = _without_markers(texts)
    return bool((stripped.cast(pl.Float64, strict=False).is_not_null() | stripped.is_null()).all())


def first_row_end(data: bytes) -> int:
    """Where the first row ends, or 0 if it does not: a line break in quotes ends no row."""
    position = -1
    while (position := data.find(b"\n", position + 1)) >= 0:
        if data.count(b'"', 0, position) % 2 == 0:
            return position + 1
    return 0


def last_row_end(data: bytes) -> int:
    """Where the last whole row ends, or 0 if there is none. `data` starts with a row.

    Examples
    --------
    >>> from lsgp.cli.csv_table import last_row_end
    >>> last_row_end(b'1,2' + bytes([10]) + b'3,"a' + bytes([10]) + b'b"')
    4
    """
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    array = np.frombuffer(data, dtype=np.uint8)
    breaks = np.flatnonzero(array == ord("\n"))
    quotes = np.flatnonzero(array == ord('"'))
    # A quote inside a quoted field is doubled, so an even number of quotes are all closed.
    is_row_end = np.searchsorted(quotes, breaks) % 2 == 0
    ends = breaks[is_row_end]
    return int(ends[-1]) + 1 if len(ends) else 0


def _decompress(raw: IO[bytes]) -> IO[bytes]:
    """The bytes of a file, unzipped if they are gzipped, whatever its name says."""
    buffered: Any = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
    is_gzip = buffered.peek(2)[:2] == b"\x1f\x8b"
    return gzip.GzipFile(fileobj=buffered) if is_gzip else buffered  # type: ignore[return-value]
