# SPDX-License-Identifier: BSD-3-Clause
"""Tables in files: their columns by name, and their rows in chunks of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lsgp.cli.console import Voice
from lsgp.cli.csv_table import CsvTable
from lsgp.cli.errors import CommandError, did_you_mean, require_columns
from lsgp.cli.parquet_table import ParquetTable
from lsgp.cli.table import Table
from lsgp.compute.text import count

FORMATS = ("csv", "parquet")
EXTENSIONS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}

#: Kinds of columns that can be targets, and inputs as they are.
NUMERIC_KINDS = ("number", "flag")
#: Kinds of columns that cannot be inputs, and how the names of types begin that cannot either.
USELESS_KINDS = ("empty", "unnamed")
USELESS_TYPES = ("List", "Array", "Struct", "Object", "Binary", "Unknown")


def format_of(path: str, given: str | None = None, option: str = "--format") -> str:
    """The format of a file: as given, or by its extension.

    Examples
    --------
    >>> from lsgp.cli.tables import format_of
    >>> format_of("a.csv.gz"), format_of("a.parquet"), format_of("a.data", "csv")
    ('csv', 'parquet', 'csv')
    """
    kind = given or _format_by_name(path)
    if kind is None:
        raise CommandError(
            f"The format of {path} is unknown: its name ends neither in .csv, .csv.gz nor in "
            f".parquet. Say what it is with {option}."
        )
    return kind


def _format_by_name(path: str) -> str | None:
    if path == "-":
        return "csv"
    return EXTENSIONS.get(Path(path.lower().removesuffix(".gz")).suffix)


def separator_of(path: str) -> str:
    """What stands between the columns of a CSV file of this name."""
    return "\t" if path.lower().removesuffix(".gz").endswith(".tsv") else ","


@contextmanager
def open_table(path: str, format: str | None = None, separator: str | None = None) -> Iterator[Any]:
    """Open a `Table` for reading."""
    kind = format_of(path, format)
    if path != "-" and not Path(path).exists():
        raise CommandError(f"There is no file {path}.{_similar_file(path)}")
    if Path(path).is_dir():
        raise CommandError(f"{path} is a folder, not a file.")
    if separator is None:
        separator = separator_of(path)
    if separator == "\\t":
        separator = "\t"
    if len(separator.encode()) != 1 or separator in '"\r\n':
        raise CommandError(f"--separator {separator!r} is not one character that can separate.")
    table = open_format(path, kind, separator)
    try:
        yield table
    finally:
        table.close()


def open_format(path: str, kind: str, separator: str) -> Table:
    return ParquetTable(path) if kind == "parquet" else CsvTable(path, separator)


def require_numbers(names: Sequence[str], table: Table, role: str) -> None:
    """Raise CommandError if a column is not there or does not hold numbers."""
    require_columns(names, table.columns, table.name)
    for name in names:
        kind, _, unreadable, n_cells = table.columns[name]
        if unreadable is not None:
            unreadable.refuse(name, table.name, n_cells)
        if kind == "text":
            raise CommandError(
                f"Column {name!r} of {table.name} holds text, but {role} must be numbers. "
                "Encode it as numbers first: say, a column of 0 and 1 for each of its values."
            )
        if kind not in (*NUMERIC_KINDS, "code", "empty"):
            raise CommandError(
                f"Column {name!r} of {table.name} is of type {kind}, but {role} must be numbers."
            )


def say_how_read(table: Table, voice: Voice) -> None:
    """Tell what was not as it should be in the rows that were read."""
    for note in table.notes:
        voice.note(note)
    for name, found in table.unreadable.items():
        are = "is no number and counts" if found.count == 1 else "are no numbers and count"
        voice.note(
            f"{count(found.count, 'cell')} of column {name!r} of {table.name} {are} as missing: "
            f"{found.describe()}"
        )


def n_unreadable(table: Table) -> int:
    """Cells that were read as missing because they are no numbers."""
    return sum(found.count for found in table.unreadable.values())


def can_be_input(kind: str) -> bool:
    """Whether a column of this kind can be an input, encoded or as it is."""
    return kind not in USELESS_KINDS and not kind.startswith(USELESS_TYPES)


def present_rows(frame: pl.DataFrame, names: Sequence[str]) -> NDArray[np.bool_]:
    """Which rows have something in every one of the columns: a finite number, or a text."""
    kept = np.ones(frame.height, dtype=bool)
    for name in names:
        cells = frame[name]
        if cells.dtype.is_numeric():
            kept &= np.isfinite(cells.cast(pl.Float64).to_numpy())
        elif cells.dtype == pl.String:
            kept &= (cells.str.strip_chars().fill_null("") != "").to_numpy()
        else:
            kept &= cells.is_not_null().to_numpy()
    return kept


def bounded_rows(frame: pl.DataFrame, names: Sequence[str]) -> NDArray[np.bool_]:
    """Which rows have no infinite number in any of the columns; missing ones may be."""
    kept = np.ones(frame.height, dtype=bool)
    for name in names:
        kept &= ~np.isinf(frame[name].to_numpy())
    return kept


def finite_rows(frame: pl.DataFrame, names: Sequence[str]) -> NDArray[np.bool_]:
    """Which rows have a finite number in every one of the columns."""
    kept = np.ones(frame.height, dtype=bool)
    for name in names:
        kept &= np.isfinite(frame[name].to_numpy())
    return kept


def _similar_file(path: str) -> str:
    folder = Path(path).parent
    if not folder.is_dir():
        return f" There is no folder {folder} either."
    return did_you_mean(Path(path).name, sorted(entry.name for entry in folder.iterdir()))
