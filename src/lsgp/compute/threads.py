# SPDX-License-Identifier: BSD-3-Clause
"""Running work in blocks: on threads, in order, interruptible.

The native core works on one block of queries at a time and releases the GIL, so threads and
Ctrl-C live here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future
from numbers import Integral
from typing import TypeVar

import joblib

from lsgp.compute.interrupts import INTERRUPT_POLL, ThreadPool, result_of, wait_some

#: More threads than any machine has cores only wait for each other, and each takes memory.
MOST_THREADS = 1024

Result = TypeVar("Result")


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` stands for, as everywhere in scikit-learn.

    None is 1 unless `joblib.parallel_config` says otherwise, -1 is all cores, -2 all but one; never
    more than `MOST_THREADS`.

    Examples
    --------
    >>> from lsgp.compute.threads import resolve_n_jobs
    >>> resolve_n_jobs(None), resolve_n_jobs(3)
    (1, 3)
    """
    remedy = "Use None or 1 for one thread, -1 for all cores, or a number of threads."
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral)):
        raise TypeError(f"n_jobs is {n_jobs!r}, of type {type(n_jobs).__name__}. {remedy}")
    if n_jobs == 0:
        raise ValueError(f"n_jobs is 0, which leaves nobody to do the work. {remedy}")
    return min(int(joblib.effective_n_jobs(n_jobs)), MOST_THREADS)


def run_blocks(
    function: Callable[[int, int], Result],
    n_items: int,
    block_size: int,
    n_threads: int = 1,
    progress: Callable[[int], object] | None = None,
    pool: Executor | None = None,
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
    pool : Executor, optional
        Threads that are there already: making some takes longer than work of a millisecond. All
        blocks are handed to it at once, so they should be few, and their results small.

    Examples
    --------
    >>> from lsgp.compute.threads import run_blocks
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
    if pool is not None:
        return _run_in_pool(function, blocks, pool)
    return _run_threaded(function, blocks, n_threads, progress)


def _run_inline(
    function: Callable[[int, int], Result],
    blocks: Iterator[tuple[int, int]],
    progress: Callable[[int], object] | None,
) -> Iterator[Result]:
    for start, stop in blocks:
        result = function(start, stop)
        if progress is not None:
            progress(stop - start)
        yield result


def _run_in_pool(
    function: Callable[[int, int], Result], blocks: Iterator[tuple[int, int]], pool: Executor
) -> Iterator[Result]:
    first = next(blocks)
    futures = [pool.submit(function, *block) for block in blocks]
    # The calling thread works too, rather than wait.
    yield function(*first)
    for future in futures:
        yield result_of(future)


def _run_threaded(
    function: Callable[[int, int], Result],
    blocks: Iterator[tuple[int, int]],
    n_threads: int,
    progress: Callable[[int], object] | None,
) -> Iterator[Result]:
    pool = ThreadPool(n_threads, thread_name_prefix="lsgp-block")
    outstanding: deque[tuple[Future[Result], int]] = deque()
    done: set[Future[Result]] = set()
    try:
        while True:
            while len(outstanding) < 2 * n_threads:
                block = next(blocks, None)
                if block is None:
                    break
                outstanding.append((pool.submit(function, *block), block[1] - block[0]))
            if not outstanding:
                return
            while True:
                pending = [future for future, _ in outstanding if future not in done]
                timeout = 0.0 if outstanding[0][0] in done else INTERRUPT_POLL
                done |= wait_some(pending, FIRST_COMPLETED, timeout)[0]
                _raise_first(outstanding, done)
                if outstanding[0][0] in done:
                    break
            future, size = outstanding.popleft()
            done.discard(future)
            if progress is not None:
                progress(size)
            yield future.result()
            # The frame must not hold the result while it waits for the next.
            del future
    finally:
        # Also reached by KeyboardInterrupt, and when the consumer stops early.
        pool.shutdown(wait=True, cancel_futures=True)


def _raise_first(outstanding: deque[tuple[Future[Result], int]], done: set[Future[Result]]) -> None:
    """Raise the exception of the first block that has failed, if any has."""
    for future, _ in outstanding:
        if future in done and future.exception() is not None:
            future.result()
