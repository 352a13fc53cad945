# SPDX-License-Identifier: BSD-3-Clause
"""Whether there is a device that kernels can run on, what it is, and what goes wrong with it.

A call has a queue of the device of its own: threads of the host do not wait for each other's work.
Queues are lent rather than made for every thread: the memory that CuPy keeps for later belongs to
the queue that it was used in, and threads come and go with every prediction.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

#: What to do where there is none.
REMEDY = "Use backend='cpu', or backend='auto', which takes what is there."
#: Packages whose exceptions are the device's.
_LIBRARIES = frozenset({"cupy", "cupy_backends", "cupyx"})
#: As many as a device has connections to its host, unless told otherwise.
MOST_SIDE_BY_SIDE = 8
#: Queues that nobody uses, of each device.
_idle: dict[int, list[Any]] = {}
_own = threading.local()


class DeviceError(RuntimeError):
    """There is no device, or not one that can be used."""


class DeviceMemoryError(DeviceError, MemoryError):
    """The device has too little memory left."""


class Device(NamedTuple):
    """A device that is there."""

    name: str
    n_multiprocessors: int
    shared_memory: int  # bytes that one block of threads may have
    memory: int  # bytes in all
    compute_capability: str
    cupy_version: str


@cache
def cupy() -> ModuleType:
    """The library CuPy, imported when it is first needed: it takes a second."""
    try:
        import cupy as library
    except ImportError as error:
        raise DeviceError(
            f"backend='cuda' needs CuPy, which cannot be imported ({error}). Install it with lsgp: "
            "pip install 'lsgp[cuda12]' or 'lsgp[cuda13]', whichever CUDA version the driver "
            f"knows (nvidia-smi says). {REMEDY}"
        ) from error
    return library


@cache
def count_devices() -> int:
    """How many devices there are; a DeviceError says why there is none."""
    runtime = cupy().cuda.runtime
    try:
        n_devices = int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError as error:
        if "InsufficientDriver" in str(error):
            raise DeviceError(
                f"backend='cuda' finds a driver that is older than CuPy's CUDA: {error}. Update "
                f"the driver, or install the CuPy of an older CUDA: 'lsgp[cuda12]'. {REMEDY}"
            ) from error
        raise DeviceError(
            f"backend='cuda' finds no device that it can use: {error}. Check that nvidia-smi lists "
            f"one, and that its driver is not older than CuPy's CUDA. {REMEDY}"
        ) from error
    if n_devices == 0:
        raise DeviceError(f"backend='cuda' finds no device. {REMEDY}")
    return n_devices


def current_number(number: int | None = None) -> int:
    """The number, or that of the device in use."""
    return int(cupy().cuda.Device().id) if number is None else number


def find_device(number: int | None = None) -> Device:
    """The device of this number, or the one in use; a DeviceError says why there is none."""
    n_devices = count_devices()
    number = current_number(number)
    if number >= n_devices:
        known = "is 1, number 0" if n_devices == 1 else f"are {n_devices}, numbered from 0"
        raise DeviceError(
            f"backend='cuda:{number}' asks for device {number}, but there {known}. "
            "CUDA_VISIBLE_DEVICES says which are to be seen."
        )
    return _facts(number)


@cache
def _facts(number: int) -> Device:
    library = cupy()
    facts = library.cuda.runtime.getDeviceProperties(number)
    return Device(
        name=facts["name"].decode(),
        n_multiprocessors=int(facts["multiProcessorCount"]),
        shared_memory=int(facts["sharedMemPerBlockOptin"]),
        memory=int(facts["totalGlobalMem"]),
        compute_capability=f"{facts['major']}.{facts['minor']}",
        cupy_version=library.__version__,
    )


def forget_devices() -> None:
    """Look again when next asked."""
    for remembered in (cupy, count_devices, _facts):
        remembered.cache_clear()


def why_not(number: int | None = None) -> str | None:
    """Why there is no device; None if there is one."""
    try:
        find_device(number)
    except DeviceError as error:
        return str(error)
    return None


@contextmanager
def working_on(number: int | None, backend: str) -> Iterator[None]:
    """While the device of this number, or the one in use, works; what fails there is told."""
    find_device(number)
    library = cupy()
    with telling(f"backend={backend!r}"):
        if number is None:
            yield
        else:
            with library.cuda.Device(number):
                yield


@contextmanager
def telling(what: str) -> Iterator[None]:
    """Exceptions of CuPy become a DeviceError, that this has failed on the device."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _LIBRARIES:
            raise
        if isinstance(error, MemoryError) or "MemoryAllocation" in str(error):
            raise DeviceMemoryError(
                f"{what} has too little memory on the device: {error}. Reduce memory_budget or "
                "n_neighbors, predict fewer queries at a time, or end what else uses the device. "
                + REMEDY
            ) from error
        raise DeviceError(
            f"{what} failed on the device: {type(error).__name__}: {error}. A device that was "
            f"lost stays so for this process: start a new one, and look at nvidia-smi. {REMEDY}"
        ) from error


def free_memory() -> int:
    """Bytes of the device that nobody holds, and that CuPy keeps for its next arrays."""
    library = cupy()
    free, _ = library.cuda.runtime.memGetInfo()
    return int(free + library.get_default_memory_pool().free_bytes())


def release_memory() -> None:
    """Give back what CuPy keeps for its next arrays, on the device and pinned on the host."""
    library = cupy()
    library.get_default_memory_pool().free_all_blocks()
    library.get_default_pinned_memory_pool().free_all_blocks()


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


def wait() -> None:
    """Until all work of this thread's queue is done."""
    cupy().cuda.get_current_stream().synchronize()
