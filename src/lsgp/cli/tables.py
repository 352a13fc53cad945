# SPDX-License-Identifier: BSD-3-Clause
"""Tables in files: which format they have, and what users want to know of how they were read."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lsgp.cli.console import Voice
from lsgp.cli.csv_table import CsvTable
from lsgp.cli.errors import CommandError
from lsgp.cli.files import missing_file
from lsgp.cli.parquet_table import ParquetTable
from lsgp.cli.table import Table
from lsgp.compute.text import count

EXTENSIONS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}


def format_of(path: str, given: str | None = None, option: str = "--format") -> str:
    """The format of a file: as given, or by its extension.

    Examples
    --------
    >>> from lsgp.cli.tables import format_of
    >>> format_of("a.csv.gz"), format_of("a.parquet"), format_of("a.data", "csv")
    ('csv', 'parquet', 'csv')
    """
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
    if path != "-" and not Path(path).exists():
        raise missing_file(path)
    if Path(path).is_dir():
        raise CommandError(f"{path} is a folder, not a file.")
    separator = separator_of(path) if separator is None else separator.replace("\\t", "\t")
    if len(separator.encode()) != 1 or separator in '"\r\n':
        raise CommandError(f"--separator {separator!r} is not one character that can separate.")
    table: Table = ParquetTable(path) if kind == "parquet" else CsvTable(path, separator)
    try:
        yield table
    finally:
        table.close()


@contextmanager
def open_data(options: argparse.Namespace, voice: Voice) -> Iterator[Table]:
    """Open the table of a command; afterwards, tell what was not as it should be in it."""
    with open_table(options.data, options.format, options.separator) as table:
        yield table
    say_how_read(table, voice)


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
