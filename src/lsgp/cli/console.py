# SPDX-License-Identifier: BSD-3-Clause
"""Where the command line speaks: results on stdout, everything else on stderr."""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any


class Voice:
    """What a command says: how much of it and in which form, as its options want it.

    ``--quiet`` leaves out notes, progress, and summaries that nobody asked for; with ``--json``,
    the result is one JSON object on stdout.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.quiet = getattr(options, "quiet", False)
        self.as_json = getattr(options, "json", False)
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the command began its work."""
        return time.perf_counter() - self.started

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

    def summarize(self, facts: dict[str, Any], rows: Sequence[tuple[str, str]]) -> None:
        """The outcome of a command that wrote a file: JSON, or a table unless quiet."""
        if self.as_json:
            self.write_facts(facts)
        elif not self.quiet:
            write_rows(rows)

    def write_facts(self, facts: dict[str, Any]) -> None:
        """The outcome as JSON: which command wrote which file, the facts, and the time it took."""
        given = vars(self.options)
        own = {name: given[name] for name in ("command", "output") if given.get(name) is not None}
        write_json({**own, **facts, "seconds": self.seconds})


@contextmanager
def handled(number: signal.Signals, handler: Callable[..., None]) -> Iterator[None]:
    """Handle a signal by this function inside, where Python handles signals: in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, previous)


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
    columns = []
    for column in zip(names, *rows, strict=True):
        width = max(map(len, column))
        is_numeric = len(column) > 1 and all(map(_is_number, column[1:]))
        columns.append([cell.rjust(width) if is_numeric else cell.ljust(width) for cell in column])
    for row in zip(*columns, strict=True):
        sys.stdout.write("  ".join(row).rstrip() + "\n")


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
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)
