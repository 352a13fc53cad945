# SPDX-License-Identifier: BSD-3-Clause
"""Progress bars on stderr, for work that takes long."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

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
    (the extra ``cli``), the bar is a percentage.

    Parameters
    ----------
    description : str
        What is being done.
    total : int, optional
        Number of items; None when unknown.
    enabled : bool, default=True
        False shows nothing at all.
    watch : callable, optional
        Called with the share that is done, at each advance, whether or not a bar is shown.

    Examples
    --------
    >>> from lsgp.compute.progress import progress_bar
    >>> from lsgp.compute.threads import run_blocks
    >>> with progress_bar("Squaring", total=4) as advance:
    ...     list(run_blocks(lambda start, stop: start**2, 4, 1, progress=advance))
    [0, 1, 4, 9]
    """
    bar = _DelayedBar(description, total, enabled, watch)
    try:
        yield bar.advance
    finally:
        bar.stop()


class _Shown(Protocol):
    """What is seen on the terminal."""

    def update(self, description: str, n_done: int) -> None: ...

    def stop(self) -> None: ...


class _DelayedBar:
    """A progress bar that is only made once the work has proved to be long."""

    def __init__(
        self,
        description: str,
        total: int | None,
        enabled: bool,
        watch: Callable[[float], None] | None,
    ) -> None:
        self.description = description
        self.total = total
        self.enabled = enabled
        self.watch = watch
        self.n_done = 0
        self.started = time.monotonic()
        self.lock = threading.Lock()
        self.shown: _Shown | None = None

    def advance(self, n: int = 1, description: str | None = None) -> None:
        with self.lock:
            self.n_done += n
            self.description = description or self.description
            if self.watch is not None and self.total:
                self.watch(self.n_done / self.total)
            if not self.enabled:
                return
            if self.shown is None and time.monotonic() - self.started >= APPEARS_AFTER:
                make = _Text if find_spec("rich") is None else _Bar
                self.shown = make(self.description, self.total)
            if self.shown is not None:
                self.shown.update(self.description, self.n_done)

    def stop(self) -> None:
        with self.lock:
            if self.shown is not None:
                self.shown.stop()


class _Text:
    """A percentage, or the number of items, on a line that is written over."""

    def __init__(self, description: str, total: int | None) -> None:
        self.total = total
        self.written = ""

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
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    # Without ipywidgets, rich can only warn in a notebook: rather plain stderr there.
    force_jupyter = None if find_spec("ipywidgets") else False
    # What is being done is cut where the line is short: never how much of it is done, nor when it
    # will be. Markup is off: names of kernels have brackets.
    words = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return Progress(
        TextColumn("{task.description}", table_column=words, markup=False),
        BarColumn(bar_width=BAR_WIDTH),
        TaskProgressColumn(table_column=Column(no_wrap=True, min_width=4)),
        TimeRemainingColumn(table_column=Column(no_wrap=True, min_width=7)),
        expand=True,
        console=Console(stderr=True, force_jupyter=force_jupyter),
        transient=True,
    )
