# SPDX-License-Identifier: BSD-3-Clause
"""Whether there is a device that kernels can run on, what it is, and what goes wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import NamedTuple

#: What to do where there is none.
REMEDY = "Use backend='cpu', or backend='auto', which takes what is there."
#: Packages whose exceptions are the device's.
_LIBRARIES = frozenset({"cupy", "cupy_backends", "cupyx"})


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
        told = _told(error, what)
        if told is None:
            raise
        raise told from error


def _told(error: Exception, what: str) -> DeviceError | None:
    """What an exception of CuPy means; None of one that is not the device's."""
    if type(error).__module__.partition(".")[0] not in _LIBRARIES:
        return None
    if isinstance(error, MemoryError) or "MemoryAllocation" in str(error):
        return DeviceMemoryError(
            f"{what} has too little memory on the device: {error}. Reduce memory_budget or "
            "n_neighbors, predict fewer queries at a time, or end what else uses the device. "
            + REMEDY
        )
    return DeviceError(
        f"{what} failed on the device: {type(error).__name__}: {error}. A device that "
        "was lost stays so for this process: start a new one, and look at nvidia-smi. " + REMEDY
    )


def release_memory() -> None:
    """Give back what CuPy keeps for its next arrays, on the device and pinned on the host."""
    library = cupy()
    library.get_default_memory_pool().free_all_blocks()
    library.get_default_pinned_memory_pool().free_all_blocks()
