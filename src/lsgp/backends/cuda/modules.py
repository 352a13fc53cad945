# SPDX-License-Identifier: BSD-3-Clause
"""Kernels, compiled when they are first used; CuPy keeps them in its cache on disk."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from lsgp.backends.cuda.device import cupy
from lsgp.backends.cuda.sources import source_of

#: The compiler at run time knows no host: what is not marked is for the device. A constant of a
#: header that one module does not use is no mistake.
OPTIONS = ("--std=c++17", "-default-device", "-diag-suppress=177")

#: A kernel as CuPy has it, which is not typed: called with a grid, a block and arguments.
Kernel = Any

_ALLOWING = threading.Lock()


@cache
def kernel_of(module: str, name: str, *definitions: str) -> Kernel:
    """The kernel of this name, of a module compiled with these macros, such as ``M=64``."""
    compiled = cupy().RawModule(
        code=source_of(module),
        options=(*OPTIONS, *(f"-D{definition}" for definition in definitions)),
    )
    return compiled.get_function(name)


def compile_together(*kernels: tuple[str, ...]) -> None:
    """Compile kernels that are needed one after the other at the same time, a thread for each.

    Each is what `kernel_of` is called with. The compiler works without the interpreter's lock.
    """
    number = cupy().cuda.runtime.getDevice()

    def compile_one(wanted: tuple[str, ...]) -> None:
        with cupy().cuda.Device(number):  # threads have a device each
            kernel_of(*wanted)

    with ThreadPoolExecutor(len(kernels)) as pool:
        list(pool.map(compile_one, kernels))


def allow_shared_memory(kernel: Kernel, n_bytes: int) -> None:
    """More than 48 KB of it must be asked for, before the launch.

    Threads launch one kernel at the same time: what was allowed to one is never taken back.
    """
    with _ALLOWING:
        if n_bytes > kernel.max_dynamic_shared_size_bytes:
            kernel.max_dynamic_shared_size_bytes = n_bytes
