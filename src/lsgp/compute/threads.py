# SPDX-License-Identifier: BSD-3-Clause
"""What a computation may use, and running it in blocks: on threads, in order, interruptible.

The native core works on one block of queries at a time and releases the GIL, so threads and
Ctrl-C live here. Python raises KeyboardInterrupt in the main thread between any two steps of Python
code, also between those by which `threading.Condition` takes its lock and hands it over. The lock
then stays closed for good, and a thread that asks for it waits forever. Pools, futures and queues
all have such locks; so the main thread touches them under `interrupts_later` alone.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from numbers import Integral
from types import FrameType
from typing import ParamSpec, TypeVar

import joblib

#: Bytes of the units of a memory budget.
UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", start=1):
    UNITS |= {f"{_letter}B": 1000**_power, f"{_letter}IB": 1024**_power}
#: More threads than any machine has cores only wait for each other, and each takes memory.
MOST_THREADS = 1024
#: Seconds between looks at pending interrupts; what is waited for ends the wait at once.
INTERRUPT_POLL = 0.2

P = ParamSpec("P")
Result = TypeVar("Result")


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` stands for, as everywhere in scikit-learn.

    None is 1 unless `joblib.parallel_config` says otherwise, -1 is all cores, -2 all but one; never
    more than `MOST_THREADS`.
    """
    remedy = "Use None or 1 for one thread, -1 for all cores, or a number of threads."
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral)):
        raise TypeError(f"n_jobs is {n_jobs!r}, of type {type(n_jobs).__name__}. {remedy}")
    if n_jobs == 0:
        raise ValueError(f"n_jobs is 0, which leaves nobody to do the work. {remedy}")
    return min(int(joblib.effective_n_jobs(n_jobs)), MOST_THREADS)


def parse_memory_budget(budget: str | int) -> int:
    """Number of bytes of a memory budget.

    Parameters
    ----------
    budget : str or int
        Bytes, or a number with a unit: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB
        (powers of 1024), in any case.
    """
    remedy = "Pass a positive number of bytes, or a string such as '1GB' or '512MiB'."
    if isinstance(budget, Integral) and not isinstance(budget, bool):
        n_bytes = int(budget)
    elif isinstance(budget, str):
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+|[0-9]+\.)\s*([A-Za-z]*)\s*", budget)
        if match is None or match[2].upper() not in UNITS:
            raise ValueError(f"memory_budget is {budget!r}, which is not a size. {remedy}")
        n_bytes = int(float(match[1]) * UNITS[match[2].upper()])
    else:
        raise TypeError(f"memory_budget is {budget!r}, of type {type(budget).__name__}. {remedy}")
    if n_bytes < 1:
        raise ValueError(f"memory_budget is {budget!r}, less than one byte. {remedy}")
    return n_bytes


class interrupts_later:
    """Within it, Ctrl-C is noted; at its end, the handler that was there is told.

    For short work. Elsewhere than in the main thread, where no handler runs, nothing happens.
    """

    def __init__(self) -> None:
        self._handler: Callable[[int, FrameType | None], object] | None = None
        self._noted: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> None:
        if threading.get_ident() != threading.main_thread().ident:
            return
        handler = signal.getsignal(signal.SIGINT)
        # Handlers that are not Python functions (SIG_DFL, SIG_IGN or C handlers) are left alone.
        if callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._note)

    def __exit__(self, *error: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            if self._noted is not None:
                self._handler(*self._noted)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = number, frame


class ThreadPool(ThreadPoolExecutor):
    """A pool of threads that Ctrl-C does not lock up; wait for its futures by `wait_some`."""

    def submit(
        self, function: Callable[P, Result], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[Result]:
        with interrupts_later():
            return super().submit(function, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with interrupts_later():
            super().shutdown(wait=False, cancel_futures=cancel_futures)
        # Joining threads has no such lock, may take long, and is left by a second Ctrl-C.
        super().shutdown(wait=wait)


def wait_some(
    futures: Collection[Future[Result]],
    return_when: str = ALL_COMPLETED,
    timeout: float = INTERRUPT_POLL,
) -> tuple[set[Future[Result]], set[Future[Result]]]:
    """Finished and pending futures, after a short wait at most, so that Ctrl-C is noticed.

    Only finished futures may be asked for results.
    """
    # With a timeout, because what is noted is told after the wait.
    with interrupts_later():
        done, pending = wait(futures, timeout=timeout, return_when=return_when)
    return done, pending


def result_of(future: Future[Result]) -> Result:
    """The result of a future, which is waited for."""
    while not wait_some([future])[0]:
        pass
    return future.result()


class ForkableLock:
    """A lock that is open in a forked process, whoever held it.

    Only the thread that forks lives on in the new process. A plain lock that another thread held
    at that moment would stay closed there for good, and the first to ask for it would wait for
    ever. What a lock guards must therefore be whole at every moment, or made again if it is not.
    """

    def __init__(self) -> None:
        self.open_anew()
        _locks.add(self)

    # The methods of the lock itself, not calls of them: after a call inside a method of ours,
    # Ctrl-C could come before `with` knows that the lock is held, and it would never be released.
    @property
    def __enter__(self) -> Callable[[], bool]:
        return self._lock.__enter__

    @property
    def __exit__(self) -> Callable[..., None]:
        return self._lock.__exit__

    def locked(self) -> bool:
        return self._lock.locked()

    def open_anew(self) -> None:
        """Forget who holds it; only for processes that were just forked."""
        self._lock = threading.Lock()


_locks: weakref.WeakSet[ForkableLock] = weakref.WeakSet()


def _open_all() -> None:
    for lock in list(_locks):
        lock.open_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)


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

    One thread is the calling one. ``progress`` is called there as ``progress(stop - start)``, for
    each block in order. A ``pool`` of threads that are there already is for work of milliseconds,
    since making threads takes longer: all blocks are handed to it at once, so they should be few,
    and their results small.
    """
    limits = {"n_items": (n_items, 0), "block_size": (block_size, 1), "n_threads": (n_threads, 1)}
    for name, (value, least) in limits.items():
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
                for future, _ in outstanding:
                    if future in done and future.exception() is not None:
                        future.result()  # raises what the first block that failed has raised
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
