# SPDX-License-Identifier: BSD-3-Clause
"""Whether there is a device that kernels can run on, and what it is."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import NamedTuple

#: What to do where there is none.
REMEDY = "Use backend='cpu', or backend='auto', which takes what is there."


class DeviceError(RuntimeError):
    """There is no device, or not one that can be used."""


class Device(NamedTuple):
    """The device in use."""

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
def find_device() -> Device:
    """The device in use; a DeviceError says why there is none."""
    library = cupy()
    runtime = library.cuda.runtime
    try:
        n_devices = runtime.getDeviceCount()
        number = library.cuda.Device().id
        facts = runtime.getDeviceProperties(number)
    except runtime.CUDARuntimeError as error:
        raise DeviceError(
            f"backend='cuda' finds no device that it can use: {error}. Check that nvidia-smi lists "
            f"one, and that its driver is not older than CuPy's CUDA. {REMEDY}"
        ) from error
    if n_devices == 0:
        raise DeviceError(f"backend='cuda' finds no device. {REMEDY}")
    return Device(
        name=facts["name"].decode(),
        n_multiprocessors=int(facts["multiProcessorCount"]),
        shared_memory=int(facts["sharedMemPerBlockOptin"]),
        memory=int(facts["totalGlobalMem"]),
        compute_capability=f"{facts['major']}.{facts['minor']}",
        cupy_version=library.__version__,
    )


def why_not() -> str | None:
    """Why there is no device; None if there is one."""
    try:
        find_device()
    except DeviceError as error:
        return str(error)
    return None
