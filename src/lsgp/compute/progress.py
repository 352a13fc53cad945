# SPDX-License-Identifier: BSD-3-Clause
"""Progress bars on stderr, for work that takes long."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

#: Characters of the bar itself.
BAR_WIDTH = 16
#: Seconds before a progress bar shows: short work should leave the terminal alone.
APPEARS_AFTER = 1.0


@contextmanager
def progress_bar(
    description: str,
    total: int | None = None,
    enabled: bool = True,
    watch: Callable[[float], None] | None = None,
) -> Iterator[Callable[..., None]]:
    """Show the progress of long work on stderr; yields the function that advances it.

    It is called as ``advance(n)``, or ``advance(n, description)`` when what is being done has
    changed. The bar appears with the first advance after one second, and is gone at the end.
    Nothing is printed where stderr is not a terminal, nor when `enabled` is false. Without rich
    (the extra ``cli``), the bar is a percentage, or the number of items where the ``total`` is not
    known. ``watch`` is called with the share that is done, at each advance, bar or not.
    """
    bar = _DelayedBar(description, total, enabled, watch)
    try:
        yield bar.advance
    finally:
        with bar.lock:
            if bar.shown is not None:
                bar.shown.stop()


@dataclass
class _DelayedBar:
    """A progress bar that is only made once the work has proved to be long."""

    description: str
    total: int | None
    enabled: bool
    watch: Callable[[float], None] | None
    n_done: int = 0
    started: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)
    shown: _Text | _Bar | None = None

    def advance(self, n: int = 1, description: str | None = None) -> None:
        with self.lock:
            self.n_done += n
            self.description = description or self.description
            if self.watch is not None and self.total:
                self.watch(self.n_done / self.total)
            is_long = time.monotonic() - self.started >= APPEARS_AFTER
            if self.enabled and self.shown is None and is_long:
                make = _Text if find_spec("rich") is None else _Bar
                self.shown = make(self.description, self.total)
            if self.shown is not None:
                self.shown.update(self.description, self.n_done)


class _Text:
    """A percentage, or the number of items, on a line that is written over."""

    def __init__(self, description: str, total: int | None) -> None:
        self.total, self.written = total, ""

    def update(self, description: str, n_done: int) -> None:
        done = f"{n_done / self.total:4.0%}" if self.total else f"{n_done:,}"
        self._write(f"{done} {description}"[: shutil.get_terminal_size().columns - 1])

    def stop(self) -> None:
        self._write("")

    def _write(self, text: str) -> None:
        if text != self.written and sys.stderr.isatty():
            sys.stderr.write(f"\r{' ' * len(self.written)}\r{text}")
            sys.stderr.flush()
            self.written = text


class _Bar:
    """A bar of rich with the time left."""

    def __init__(self, description: str, total: int | None) -> None:
        self.progress = _make_progress()
        self.task = self.progress.add_task(description, total=total)
        self.progress.start()

    def update(self, description: str, n_done: int) -> None:
        self.progress.update(self.task, completed=n_done, description=description)

    def stop(self) -> None:
        self.progress.stop()


def _make_progress() -> Progress:
    from rich import progress
    from rich.console import Console
    from rich.table import Column

    # Without ipywidgets, rich can only warn in a notebook: rather plain stderr there.
    force_jupyter = None if find_spec("ipywidgets") else False
    # The description is cut where the line is short: never the percentage, nor the time left.
    # Markup is off: names of kernels have brackets.
    words = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return progress.Progress(
        progress.TextColumn("{task.description}", table_column=words, markup=False),
        progress.BarColumn(bar_width=BAR_WIDTH),
        progress.TaskProgressColumn(table_column=Column(no_wrap=True, min_width=4)),
        progress.TimeRemainingColumn(table_column=Column(no_wrap=True, min_width=7)),
        expand=True,
        console=Console(stderr=True, force_jupyter=force_jupyter),
        transient=True,
    )
