# SPDX-License-Identifier: BSD-3-Clause
"""Where the command line speaks: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable


#: Names of columns, and the cells below them.
Lines: TypeAlias = tuple[list[str], list[list[str]]]


class Voice:
    """How much a command says, and in which form.

    Parameters
    ----------
    quiet : bool
        Neither notes nor progress, nor summaries that nobody asked for.
    as_json : bool
        The result is one JSON object on stdout.
    """

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json

    @property
    def shows_progress(self) -> bool:
        return not self.quiet and sys.stderr.isatty()

    def note(self, text: str) -> None:
        """Say what the user might want to know, on stderr."""
        if not self.quiet:
            sys.stderr.write(f"lsgp: {text}\n")

    def progress(self, description: str, total: int | None) -> AbstractContextManager[Callable]:
        from lsgp.compute.progress import progress_bar

        return progress_bar(description, total, self.shows_progress)

    def listen_to_warnings(self) -> None:
        """Show the library's warnings as notes; to be called inside ``catch_warnings``."""

        def show(message: Warning | str, *place: object) -> None:
            self.note(f"warning: {one_line(str(message))}")

        warnings.showwarning = show  # type: ignore[assignment]
        # Notes, whatever the interpreter was told to do with warnings.
        warnings.simplefilter("always", UserWarning)

    def summarize(self, summary: dict[str, object], rows: Sequence[tuple[str, str]]) -> None:
        """The outcome of a command that wrote a file: JSON, or a table unless quiet."""
        if self.as_json:
            write_json(summary)
        elif not self.quiet:
            write_rows(rows)


def write_json(value: object) -> None:
    sys.stdout.write(json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False))
    sys.stdout.write("\n")


def write_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Names and values, aligned."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        sys.stdout.write(f"{name:<{width}}  {value}\n".rstrip(" "))


def write_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table under its column names, numbers to the right."""
    columns = list(zip(names, *rows, strict=True))
    for row in (names, *rows):
        cells = []
        for cell, column in zip(row, columns, strict=True):
            width = max(map(len, column))
            is_number = len(column) > 1 and all(map(_is_number, column[1:]))
            cells.append(cell.rjust(width) if is_number else cell.ljust(width))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def one_line(text: str) -> str:
    """A message without its line breaks."""
    return " ".join(text.split())


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return text in ("", "-")
    return True


def _plain(value: object) -> Any:
    """A value as JSON has it: NaN and infinities become null, arrays lists."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)
