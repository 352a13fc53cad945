# SPDX-License-Identifier: BSD-3-Clause
"""CSV files as tables: names and kinds of their columns, and rows in chunks of bounded size."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import chain

import polars as pl

from lsgp.cli.csv_cells import infer_column, parse_cells, parse_numbers
from lsgp.cli.csv_file import UNCLOSED, CsvFile
from lsgp.cli.errors import CommandError
from lsgp.cli.table import MAX_CHUNK_ROWS, Chunk, Column, DataType, Unreadable
from lsgp.inputs.encoding.text import MAX_UNREADABLE


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
        self._file = CsvFile(path, separator)
        self.name, self.total, self.notes = self._file.name, self._file.size, self._file.notes
        self.unreadable: dict[str, Unreadable] = {}
        try:
            self._names, unnamed = self._read_names()
            self._blocks = self._file.read_blocks(is_single=len(self._names) == 1)
            self._first_block = next(self._blocks, b"")
            first = self._parse(self._first_block)
            self.columns = {cells.name: infer_column(cells) for cells in first}
            self.columns |= {name: Column("unnamed", pl.String()) for name in unnamed}
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def is_empty(self) -> bool:
        """Whether there are no rows, to be asked before they are read."""
        return not self._first_block

    def keep_as_text(self, names: Sequence[str]) -> None:
        """Leave these columns as they are written, digit by digit."""
        for name in names:
            self.columns[name] = self.columns[name]._replace(dtype=pl.String())

    def type_of(self, name: str, is_number: bool) -> DataType:
        """The type that a column has in chunks."""
        return pl.Float64() if is_number else self.columns[name].dtype

    def chunks(self, numbers: Sequence[str], others: Sequence[str] = ()) -> Iterator[Chunk]:
        """The rows in order: `numbers` as Float64, `others` as text or of the inferred type."""
        wanted = list(dict.fromkeys([*numbers, *others]))
        position = 0
        first, self._first_block = self._first_block, b""
        for block in chain([first] if first else [], self._blocks):
            frame = self._convert(self._parse(block).select(wanted), numbers)
            seen = self._file.position()
            for part in frame.iter_slices(MAX_CHUNK_ROWS):
                yield Chunk(self._file.n_rows + 1, part, seen - position)
                self._file.n_rows += part.height
                position = seen

    def _read_names(self) -> tuple[list[str], list[str]]:
        """The names of the columns, without spaces around them; and those of nameless ones."""
        cells = self._file.read_header()
        if len(cells) == 1:
            for separator in (";", "\t", "|"):
                if separator in cells[0]:
                    raise CommandError(
                        f"{self.name} has one column, {cells[0].strip()!r}. If {separator!r} "
                        f"separates columns, say so with --separator {separator!r}."
                    )
        names: list[str] = []
        unnamed: list[str] = []
        for position, cell in enumerate(cells, 1):
            # Row numbers of pandas have no name; nobody can ask for them.
            name = cell.strip() or f"column_{position}"
            if name in names:
                raise CommandError(
                    f"{self.name} has two columns {name!r}: the {_ordinal(names.index(name) + 1)} "
                    f"and the {_ordinal(position)}. Rename one of them."
                )
            names.append(name)
            unnamed += [] if cell.strip() else [name]
        return names, unnamed

    def _parse(self, block: bytes) -> pl.DataFrame:
        """All cells of a block as texts."""
        # Names of its own: polars knows no quotes in names.
        header = self._file.separator.join(f"c{k}" for k in range(len(self._names)))
        try:
            return pl.read_csv(
                header.encode() + b"\n" + block,
                infer_schema=False,
                null_values="",  # in quotes too, as Python's reader cannot tell
                separator=self._file.separator,
                new_columns=self._names,
            )
        except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
            raise self._unreadable_block(block, error) from None

    def _unreadable_block(self, block: bytes, error: Exception) -> CommandError:
        """Why a block cannot be read: the first row with too many cells, if there is one."""
        separator, first_row = self._file.separator, self._file.n_rows + 1
        rows = csv.reader(io.StringIO(block.decode(), newline="\n"), delimiter=separator)
        for row, cells in enumerate(rows, first_row):
            if len(cells) > len(self._names):
                return CommandError(
                    f"Row {row:,} of {self.name} has {len(cells)} cells, but there are "
                    f"{len(self._names)} columns. A cell with a {separator!r} in it must be in "
                    "quotes."
                )
        message = str(error).strip().splitlines()[0]
        return CommandError(
            f"{self.name} cannot be read from row {first_row:,} on: {message}. {UNCLOSED}"
        )

    def _convert(self, texts: pl.DataFrame, numbers: Sequence[str]) -> pl.DataFrame:
        """The columns of a block, of their types."""

        def convert(cells: pl.Series) -> pl.Series:
            if cells.name in numbers:
                return self._read_numbers(cells)
            dtype = self.columns[cells.name].dtype
            return parse_cells(cells, dtype, self.name, self._file.n_rows + 1)

        return pl.DataFrame([convert(cells) for cells in texts])

    def _read_numbers(self, texts: pl.Series) -> pl.Series:
        """Numbers, null where one is missing or a cell is none; too many of those are refused."""
        found = self.unreadable.get(texts.name) or Unreadable()
        n_before = found.count
        numbers = parse_numbers(texts, self._file.n_rows + 1, found)
        if found.count > n_before:
            self.unreadable[texts.name] = found
            n_cells = self._file.n_rows + len(texts)
            if found.count > MAX_UNREADABLE * n_cells:
                found.refuse(texts.name, self.name, n_cells)
        return numbers


def _ordinal(number: int) -> str:
    is_teen = 10 <= number % 100 <= 20
    return f"{number}{'th' if is_teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
