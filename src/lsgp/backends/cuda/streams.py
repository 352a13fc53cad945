# SPDX-License-Identifier: BSD-3-Clause
"""A queue of the device for each call: threads of the host do not wait for each other's work.

Queues are lent rather than made for every thread: the memory that CuPy keeps for later belongs to
the queue that it was used in, and threads come and go with every prediction.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.cuda.device import cupy
from lsgp.method.arrays import is_on_device

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

#: As many as a device has connections to its host, unless told otherwise.
MOST_SIDE_BY_SIDE = 8
#: Queues that nobody uses, of each device.
_idle: dict[int, list[Any]] = {}
_own = threading.local()


def _lend(idle: list[Any]) -> Any:
    try:
        return idle.pop()
    except IndexError:
        return cupy().cuda.Stream(non_blocking=True)


@contextmanager
def own_stream() -> Iterator[None]:
    """Work of this thread goes to a queue that no other thread uses; inside another, to that."""
    if getattr(_own, "is_inside", False):
        yield
        return
    library = cupy()
    idle = _idle.setdefault(library.cuda.Device().id, [])
    stream = _lend(idle)
    _own.is_inside = True
    try:
        with stream:
            yield
    finally:
        _own.is_inside = False
        idle.append(stream)


@contextmanager
def side_by_side(n: int) -> Iterator[list[Any]]:
    """Queues for n pieces of work, between what this thread's queue has had and what it gets next.

    One piece alone goes to that queue itself.
    """
    library = cupy()
    own = library.cuda.get_current_stream()
    if n <= 1:
        yield [own] * n
        return
    idle = _idle.setdefault(library.cuda.Device().id, [])
    lent = [_lend(idle) for _ in range(min(n, MOST_SIDE_BY_SIDE))]
    begin = own.record()
    for queue in lent:
        queue.wait_event(begin)
    try:
        yield [lent[k % len(lent)] for k in range(n)]
    finally:
        for queue in lent:
            own.wait_event(queue.record())
        idle += lent


def on_own_stream(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """A function whose work goes to a queue of its own."""

    @wraps(function)
    def wrapped(*arguments: Arguments.args, **settings: Arguments.kwargs) -> Result:
        with own_stream():
            return function(*arguments, **settings)

    return wrapped


def queue_of(queries: NDArray[np.floating]) -> AbstractContextManager[None]:
    """A queue of its own for arrays of the host; for others that of the caller, who made them."""
    return nullcontext() if is_on_device(queries) else own_stream()


def wait() -> None:
    """Until all work of this thread's queue is done."""
    cupy().cuda.get_current_stream().synchronize()
