# SPDX-License-Identifier: BSD-3-Clause
"""Kernels: their sources, and when they are compiled; CuPy keeps them in its cache on disk.

Sources are files of this package and of the native core, pasted rather than included, because the
cache of compiled kernels knows a source by its text: a header that was found elsewhere could change
without anyone noticing. The formulas, the losses and predictive distributions are the native
core's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import cpu_count

from lsgp import _core
from lsgp.backends.cuda.device import cupy
from lsgp.compute.threads import ForkableLock, ThreadPool, interrupts_later, result_of

#: The compiler at run time knows no host: what is not marked is for the device. A constant of a
#: header that one module does not use is no mistake.
OPTIONS = ("--std=c++17", "-default-device", "-diag-suppress=177")

_FOLDERS = (Path(__file__).parent / "source", Path(_core.__file__).parent)

_NUMBERS = ("threads.cuh", "numbers.cuh", "formulas.h", "losses.h", "problem.h", "problem.cuh")
_WARP = (*_NUMBERS, "warp_system.cuh")
_SYSTEM = ("cholesky.cuh", "system.cuh")

#: The files of each module, in the order in which they need each other.
PARTS = {
    "predict": (*_NUMBERS, *_SYSTEM, "predict_kernel.cuh"),
    "warp_predict": (*_WARP, "warp_predict_kernel.cuh"),
    "warp_score": (*_WARP, "warp_score.cuh"),
    "coefficients": (*_NUMBERS, *_SYSTEM, "coefficients_kernel.cuh"),
    "score": (*_NUMBERS, *_SYSTEM, "score.cuh"),
    "dense": ("numbers.cuh", "formulas.h", "dense_kernel.cuh"),
    "search": ("threads.cuh", "tree.h", "tree.cuh", "search.cuh"),
    "coarse": ("threads.cuh", "tree.h", "tree.cuh", "coarse.cuh"),
}


#: A kernel as CuPy has it, which is not typed: called with a grid, a block and arguments.
Kernel = Any
#: What a kernel takes for an array that there is not.
NOTHING = np.uint64(0)

_ALLOWING = threading.Lock()
#: What `kernel_of` was called with, and what comes or has come of it.
_kernels: dict[tuple[str, ...], Future[Kernel]] = {}
_ASKING = ForkableLock()


if hasattr(os, "register_at_fork"):
    # What another thread was compiling, no thread of a child does.
    os.register_at_fork(after_in_child=_kernels.clear)


@cache
def source_of(module: str) -> str:
    """The source of a module in one piece, which includes nothing."""
    lines: list[str] = []
    for name in PARTS[module]:
        path = next(folder / name for folder in _FOLDERS if (folder / name).exists())
        lines += path.read_text(encoding="utf-8").splitlines()
    # Headers that are included are pasted before, or belong to compilers with a standard library.
    return "\n".join(line for line in lines if not line.startswith(("#include", "#pragma once")))


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


class CompiledKernels(NamedTuple):
    """The modules of kernels, and CuPy's cache of what was compiled, also for others."""

    modules: list[str]
    cache: str
    n_compiled: int


def compiled_kernels() -> CompiledKernels:
    """As they are on disk; nothing is compiled or imported."""
    usual = Path.home() / ".cupy" / "kernel_cache"
    folder = Path(os.environ.get("CUPY_CACHE_DIR") or usual)
    n_compiled = sum(1 for _ in folder.glob("*.cubin")) if folder.is_dir() else 0
    return CompiledKernels(sorted(PARTS), str(folder), n_compiled)
