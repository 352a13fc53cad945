# SPDX-License-Identifier: BSD-3-Clause
"""Running work in blocks: on threads, in order, under a memory budget, interruptible.

The native core works on one block of queries at a time and releases the GIL, so threads,
progress and Ctrl-C all live here.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from numbers import Integral
from typing import Any, TypeVar

import joblib  # type: ignore[import-untyped]
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

Result = TypeVar("Result")

_blas_lock = threading.Lock()
_blas_limit: Any = None
_n_limiting = 0

UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}

#: Seconds before a progress bar shows: short work should leave the terminal alone.
APPEARS_AFTER = 1.0
#: Seconds between looks at pending interrupts; a finished block ends the wait at once.
INTERRUPT_POLL = 0.2


def parse_memory_budget(budget: str | int) -> int:
    """Number of bytes of a memory budget.

    Parameters
    ----------
    budget : str or int
        Bytes, or a number with a unit: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB
        (powers of 1024), in any case.

    Examples
    --------
    >>> from lsgp.compute.blocks import parse_memory_budget
    >>> parse_memory_budget("1GB"), parse_memory_budget("1.5 KiB"), parse_memory_budget(4096)
    (1000000000, 1536, 4096)
    """
    remedy = "Pass a positive number of bytes, or a string such as '1GB' or '512MiB'."
    n_bytes = 0
    if isinstance(budget, Integral) and not isinstance(budget, bool):
        n_bytes = int(budget)
    elif isinstance(budget, str):
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+|[0-9]+\.)\s*([A-Za-z]*)\s*", budget)
        if match is None or match.group(2).upper() not in UNITS:
            raise ValueError(f"memory_budget is {budget!r}, which is not a size. {remedy}")
        n_bytes = int(float(match.group(1)) * UNITS[match.group(2).upper()])
    else:
        raise TypeError(f"memory_budget is {budget!r}, of type {type(budget).__name__}. {remedy}")
    if n_bytes < 1:
        raise ValueError(f"memory_budget is {budget!r}, less than one byte. {remedy}")
    return n_bytes


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` stands for, as everywhere in scikit-learn.

    None is 1 unless `joblib.parallel_config` says otherwise, -1 is all cores, -2 all but one.

    Examples
    --------
    >>> from lsgp.compute.blocks import resolve_n_jobs
    >>> resolve_n_jobs(None), resolve_n_jobs(3)
    (1, 3)
    """
    remedy = "Use None or 1 for one thread, -1 for all cores, or a number of threads."
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral)):
        raise TypeError(f"n_jobs is {n_jobs!r}, of type {type(n_jobs).__name__}. {remedy}")
    if n_jobs == 0:
        raise ValueError(f"n_jobs is 0, which leaves nobody to do the work. {remedy}")
    return int(joblib.effective_n_jobs(n_jobs))


def run_blocks(
    function: Callable[[int, int], Result],
    n_items: int,
    block_size: int,
    n_threads: int = 1,
    progress: Callable[[int], Any] | None = None,
) -> Iterator[Result]:
    """Run ``function(start, stop)`` over consecutive blocks, and yield the results in order.

    At most `n_threads` blocks run at a time, and at most as many more wait to be run or to be
    taken, so memory stays bounded however slow the consumer is. Nothing runs before the first
    result is asked for. When a block raises, blocks that have not started are canceled and its
    exception is raised as it is; of several that failed, the first block's. Ctrl-C does the
    same with KeyboardInterrupt: only the blocks already running are waited for.

    Parameters
    ----------
    function : callable
        Called as ``function(start, stop)``, from several threads if `n_threads` > 1.
    n_items, block_size : int
        The blocks are [0, block_size), [block_size, 2 block_size), ..., up to `n_items`.
    n_threads : int, default=1
        1 runs the blocks in the calling thread, without a pool.
    progress : callable, optional
        Called as ``progress(stop - start)``, in the calling thread, for each block in order.

    Examples
    --------
    >>> from lsgp.compute.blocks import run_blocks
    >>> list(run_blocks(lambda start, stop: (start, stop), 10, 4, n_threads=2))
    [(0, 4), (4, 8), (8, 10)]
    """
    for name, value, least in (
        ("n_items", n_items, 0),
        ("block_size", block_size, 1),
        ("n_threads", n_threads, 1),
    ):
        if value < least:
            raise ValueError(f"{name} is {value}, but must be at least {least}.")
    blocks = ((start, min(start + block_size, n_items)) for start in range(0, n_items, block_size))
    n_threads = min(n_threads, -(-n_items // block_size))
    if n_threads <= 1:
        return _run_inline(function, blocks, progress)
    return _run_threaded(function, blocks, n_threads, progress)


def _run_inline(
    function: Callable[[int, int], Result],
    blocks: Iterator[tuple[int, int]],
    progress: Callable[[int], Any] | None,
) -> Iterator[Result]:
    for start, stop in blocks:
        result = function(start, stop)
        if progress is not None:
            progress(stop - start)
        yield result


def _run_threaded(
    function: Callable[[int, int], Result],
    blocks: Iterator[tuple[int, int]],
    n_threads: int,
    progress: Callable[[int], Any] | None,
) -> Iterator[Result]:
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="lsgp-block")
    outstanding: deque[tuple[Future[Result], int]] = deque()
    try:
        while True:
            while len(outstanding) < 2 * n_threads:
                block = next(blocks, None)
                if block is None:
                    break
                outstanding.append((pool.submit(function, *block), block[1] - block[0]))
            if not outstanding:
                return
            while not outstanding[0][0].done():
                # With a timeout, because a wait without one ignores Ctrl-C on Windows.
                pending = [future for future, _ in outstanding if not future.done()]
                wait(pending, timeout=INTERRUPT_POLL, return_when=FIRST_COMPLETED)
                _raise_first(outstanding)
            _raise_first(outstanding)
            future, size = outstanding.popleft()
            if progress is not None:
                progress(size)
            yield future.result()
            # The frame must not hold the result while it waits for the next.
            del future
    finally:
        # Also reached by KeyboardInterrupt, and when the consumer stops early.
        pool.shutdown(wait=True, cancel_futures=True)


def _raise_first(outstanding: deque[tuple[Future[Result], int]]) -> None:
    """Raise the exception of the first block that has failed, if any has."""
    for future, _ in outstanding:
        if future.done() and future.exception() is not None:
            future.result()


@cache
def _controller() -> ThreadpoolController:
    """Finding the libraries takes longer than a small prediction: once is enough."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread, for the whole process, until the last of those who ask has left.

    The setting is the process's own: each thread that put back what it had found would leave it
    as another one had it.
    """
    global _blas_limit, _n_limiting
    with _blas_lock:
        if _n_limiting == 0:
            _blas_limit = _controller().limit(limits=1, user_api="blas")
        _n_limiting += 1
    try:
        yield
    finally:
        with _blas_lock:
            _n_limiting -= 1
            if _n_limiting == 0:
                _blas_limit.restore_original_limits()


@contextmanager
def progress_bar(
    description: str, total: int | None = None, enabled: bool = True
) -> Iterator[Callable[..., None]]:
    """Show the progress of long work on stderr; yields the function that advances it.

    It is called as ``advance(n)``, or ``advance(n, description)`` when what is being done has
    changed. The bar appears with the first advance after one second, and is gone at the end.
    Nothing is printed where stderr is not a terminal, nor when `enabled` is false.

    Parameters
    ----------
    description : str
        What is being done.
    total : int, optional
        Number of items; None when unknown.
    enabled : bool, default=True
        False shows nothing at all.

    Examples
    --------
    >>> from lsgp.compute.blocks import progress_bar, run_blocks
    >>> with progress_bar("Squaring", total=4) as advance:
    ...     list(run_blocks(lambda start, stop: start**2, 4, 1, progress=advance))
    [0, 1, 4, 9]
    """
    if not enabled:
        yield _ignore
        return
    bar = _DelayedBar(description, total)
    try:
        yield bar.advance
    finally:
        bar.stop()


def _ignore(n: int = 1, description: str | None = None) -> None:
    """Advance no bar."""


class _DelayedBar:
    """A rich progress bar that is only made once the work has proved to be long."""

    def __init__(self, description: str, total: int | None) -> None:
        self.description = description
        self.total = total
        self.n_done = 0
        self.started = time.monotonic()
        self.lock = threading.Lock()
        self.shown: Any = None

    def advance(self, n: int = 1, description: str | None = None) -> None:
        with self.lock:
            self.n_done += n
            self.description = description or self.description
            if self.shown is None and time.monotonic() - self.started >= APPEARS_AFTER:
                self.shown = _make_progress()
                self.shown.add_task(self.description, total=self.total)
                self.shown.start()
            if self.shown is not None:
                self.shown.update(
                    self.shown.task_ids[0], completed=self.n_done, description=self.description
                )

    def stop(self) -> None:
        with self.lock:
            if self.shown is not None:
                self.shown.stop()


def _make_progress() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    # Without ipywidgets, rich can only warn in a notebook: rather plain stderr there.
    force_jupyter = None if find_spec("ipywidgets") else False
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, force_jupyter=force_jupyter),
        transient=True,
    )
