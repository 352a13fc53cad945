# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C while threads share locks: it waits until what must not be cut in two is done.

Python raises KeyboardInterrupt in the main thread between any two steps of Python code, also
between those by which `threading.Condition` takes its lock and hands it over. The lock then stays
closed for good, and a thread that asks for it waits forever. Pools, futures and queues all have
such locks; so the main thread touches them under `interrupts_later` alone.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ALL_COMPLETED, Future, ThreadPoolExecutor, wait
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")

#: Seconds between looks at pending interrupts; what is waited for ends the wait at once.
INTERRUPT_POLL = 0.2


class interrupts_later:
    """Within it, Ctrl-C is noted; at its end, the handler that was there is told.

    For what is short. Elsewhere than in the main thread, where no handler runs, nothing happens.

    Examples
    --------
    >>> import signal
    >>> from lsgp.compute.interrupts import interrupts_later
    >>> done = []
    >>> try:
    ...     with interrupts_later():
    ...         signal.raise_signal(signal.SIGINT)
    ...         done.append("all of it")
    ... except KeyboardInterrupt:
    ...     done.append("interrupted")
    >>> done
    ['all of it', 'interrupted']
    """

    def __init__(self) -> None:
        self._handler: Callable[[int, FrameType | None], object] | None = None
        self._noted: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> None:
        if threading.get_ident() != threading.main_thread().ident:
            return
        handler = signal.getsignal(signal.SIGINT)
        # What is no function is the system's own, or somebody's in C: Python does nothing there.
        if callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._note)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
    """What a future comes to, which is waited for."""
    while not wait_some([future])[0]:
        pass
    return future.result()
