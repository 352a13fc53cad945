# SPDX-License-Identifier: BSD-3-Clause
"""Kernels, compiled when they are first used; CuPy keeps them in its cache on disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from joblib import cpu_count

from lsgp.backends.cuda.device import cupy
from lsgp.backends.cuda.sources import source_of
from lsgp.compute.threads import ForkableLock, ThreadPool, interrupts_later, result_of

#: The compiler at run time knows no host: what is not marked is for the device. A constant of a
#: header that one module does not use is no mistake.
OPTIONS = ("--std=c++17", "-default-device", "-diag-suppress=177")

#: A kernel as CuPy has it, which is not typed: called with a grid, a block and arguments.
Kernel = Any

_ALLOWING = threading.Lock()


#: What `kernel_of` was called with, and what comes or has come of it.
_kernels: dict[tuple[str, ...], Future[Kernel]] = {}
_ASKING = ForkableLock()


if hasattr(os, "register_at_fork"):
    # What another thread was compiling, no thread of a child does.
    os.register_at_fork(after_in_child=_kernels.clear)


def kernel_of(module: str, name: str, *definitions: str) -> Kernel:
    """The kernel of this name, of a module compiled with these macros, such as ``M=64``.

    Who asks for one that another thread compiles waits for that.
    """
    wanted = (module, name, *definitions)
    own: Future[Kernel] = Future()
    try:
        with _ASKING:
            future = _kernels.setdefault(wanted, own)
        if future is own:
            kernel = _compile(*wanted)
            with interrupts_later():
                own.set_result(kernel)
            return kernel
    except BaseException as error:
        with interrupts_later(), _ASKING:
            if _kernels.get(wanted) is own and not own.done():
                del _kernels[wanted]  # the next one may succeed
                own.set_exception(error)
        raise
    return result_of(future)


def _compile(module: str, name: str, *definitions: str) -> Kernel:
    compiled = cupy().RawModule(
        code=source_of(module),
        options=(*OPTIONS, *(f"-D{definition}" for definition in definitions)),
    )
    return compiled.get_function(name)


def compile_ahead(kernels: Sequence[tuple[str, ...]]) -> None:
    """Begin to compile kernels that will be needed, on all cores, and do not wait.

    Each is what `kernel_of` is called with. The compiler works without the interpreter's lock. What
    fails is not told here: who needs the kernel compiles it again, and learns why.
    """
    with _ASKING:
        kernels = [wanted for wanted in kernels if wanted not in _kernels]
    if not kernels:
        return
    number = cupy().cuda.runtime.getDevice()

    def compile_one(wanted: tuple[str, ...]) -> None:
        with cupy().cuda.Device(number):  # threads have a device each
            kernel_of(*wanted)

    # No more than there are cores: what is needed first would only wait for the rest.
    n_threads = min(len(kernels), cpu_count())
    pool = ThreadPool(n_threads, thread_name_prefix="lsgp-compiler")
    with suppress(RuntimeError):  # no thread can be started: they are compiled when needed
        for wanted in kernels:
            pool.submit(compile_one, wanted)
    pool.shutdown(wait=False)


def allow_shared_memory(kernel: Kernel, n_bytes: int) -> None:
    """More than 48 KB of it must be asked for, before the launch.

    Threads launch one kernel at the same time: what was allowed to one is never taken back.
    """
    with _ALLOWING:
        if n_bytes > kernel.max_dynamic_shared_size_bytes:
            kernel.max_dynamic_shared_size_bytes = n_bytes
