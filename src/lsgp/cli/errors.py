# SPDX-License-Identifier: BSD-3-Clause
"""What the command line tells users who asked for something that cannot be done."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

#: Names of columns that an error lists before it stops.
MAX_LISTED = 8


class CommandError(Exception):
    """An error that its one-line message explains: printed on stderr, exit code 2."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """A suggestion to append to an error, or nothing."""
    names = list(choices)
    wanted = name.lower().strip()
    alike = [each for each in names if each.lower().strip() == wanted]
    close = alike or difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def list_names(names: Iterable[str]) -> str:
    """Names for a message, shortened where there are many."""
    listed = list(names)
    shown = ", ".join(listed[:MAX_LISTED])
    return shown if len(listed) <= MAX_LISTED else f"{shown} and {len(listed) - MAX_LISTED} more"


def require_columns(wanted: Iterable[str], columns: Iterable[str], where: str) -> None:
    """Raise CommandError if a column is not there, naming the likeliest that is."""
    available = list(columns)
    for name in wanted:
        if name not in available:
            raise CommandError(
                f"{where} has no column {name!r}.{did_you_mean(name, available)} "
                f"It has: {list_names(available)}."
            )


def require_file(path: str) -> None:
    """Raise CommandError if a file is not there, naming the likeliest beside it."""
    folder = Path(path).parent
    if Path(path).exists():
        return
    if not folder.is_dir():
        raise CommandError(f"There is no file {path}. There is no folder {folder} either.")
    beside = sorted(entry.name for entry in folder.iterdir())
    raise CommandError(f"There is no file {path}.{did_you_mean(Path(path).name, beside)}")


def check_output(path: str, inputs: Iterable[str | None] = (), is_folder: bool = False) -> None:
    """Raise CommandError before the work, rather than after it, if ``path`` cannot be written."""
    final = Path(path).resolve()
    if not final.parent.is_dir():
        raise CommandError(f"There is no folder {final.parent} to write {path} to.")
    if final.exists() and not final.is_file() and not is_folder:
        raise CommandError(f"{path} is not a regular file. Give the name of a file to write.")
    if not os.access(final.parent, os.W_OK):
        raise CommandError(f"The folder {final.parent} is not writable.")
    for other in filter(None, inputs):
        if final.exists() and Path(other).exists() and final.samefile(other):
            raise CommandError(f"{path} is read from, and cannot be written at the same time.")
