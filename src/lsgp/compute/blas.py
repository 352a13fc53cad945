# SPDX-License-Identifier: BSD-3-Clause
"""BLAS and LAPACK beside threads of our own: on one thread each, and without the GIL.

Some libraries have one number of threads for the whole process (OpenBLAS with threads of its own),
others one for each thread (MKL, and libraries on OpenMP). The first is counted: it is put back when
the last of those who asked has left, since each that put back what it had found would leave it as
another one had it. The second is set and put back by every thread for itself. Others change the
setting of the process too: a setting made while we limit it stays, and is not put back over.

SciPy's own wrappers of LAPACK keep the GIL, so that two threads with a matrix each take as long as
one with both. `factor` and the inverses call the same functions by the addresses that SciPy offers
to Cython, through ctypes, which releases it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

Array = NDArray[np.float64]
Singles = NDArray[np.float32]

#: How often to set what another thread keeps taking control of.
N_ATTEMPTS = 10

_lock = threading.Lock()
#: Those who are inside `one_blas_thread`.
_holders: set[object] = set()
#: Limited libraries (threadpoolctl's controllers), and how many threads they had before.
_limited: list[tuple[Any, int]] = []


@cache
def _libraries() -> tuple[Any, Any]:
    """Controllers of the libraries with a setting of the process, and of those of each thread.

    Finding the libraries takes longer than a small prediction: once is enough.
    """
    blas = ThreadpoolController().select(user_api="blas")
    of_process: list[str] = []
    of_thread: list[str] = []
    for library in blas.lib_controllers:
        is_shared = library.internal_api == "openblas" and library.threading_layer != "openmp"
        (of_process if is_shared else of_thread).append(library.filepath)
    return blas.select(filepath=of_process), blas.select(filepath=of_thread)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread, for those who run inside and in this thread."""
    of_process, of_thread = _libraries()
    own = of_thread.limit(limits=1)
    try:
        holder = object()
        with _lock:
            if not _holders:
                for library in of_process.lib_controllers:
                    before = library.num_threads
                    if before != 1:
                        _limited.append((library, before))
                        _set(library, 1)
            _holders.add(holder)
        try:
            yield
        finally:
            with _lock:
                _holders.discard(holder)
                if not _holders:
                    _put_back()
    finally:
        own.restore_original_limits()


def _put_back() -> None:
    while _limited:
        library, before = _limited.pop()
        # If it is not as we left it, somebody has set it since.
        if library.num_threads == 1:
            _set(library, before)


def _set(library: Any, n_threads: int) -> None:
    """Set the threads of a library, whichever thread has control of it.

    Since 3.7, threadpoolctl ignores all threads but the one that has set a limit first. It is
    cleared before, so that we are heard, and after, so that others are.
    """
    clear = getattr(library, "clear_controlling_thread", lambda force: None)
    for _ in range(N_ATTEMPTS):
        clear(force=True)
        library.set_num_threads(n_threads)
        clear(force=True)
        if library.num_threads == n_threads:
            return


def _after_fork() -> None:
    """In a forked process none of the threads that were inside is there."""
    global _lock
    _lock = threading.Lock()
    _holders.clear()
    _put_back()


if hasattr(os, "register_at_fork"):
    # Held meanwhile, so that none of our threads is in the middle of a change, nor inside
    # threadpoolctl, whose own lock would stay closed in the new process.
    os.register_at_fork(
        before=lambda: _lock.acquire(),
        after_in_parent=lambda: _lock.release(),
        after_in_child=_after_fork,
    )


def _routine(name: str, n_characters: int) -> Callable[..., None]:
    """A routine of LAPACK with the arguments (characters, n, matrix, leading dimension, info)."""
    capsule = cython_lapack.__pyx_capi__[name]
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    number: Any = ctypes.POINTER(ctypes.c_int)
    characters: list[Any] = [ctypes.c_char_p] * n_characters
    prototype = ctypes.CFUNCTYPE(None, *characters, number, ctypes.c_void_p, number, number)
    return prototype(pointer_of(capsule, name_of(capsule)))


_dpotrf, _spotrf = _routine("dpotrf", 1), _routine("spotrf", 1)
_dpotri, _dtrtri = _routine("dpotri", 1), _routine("dtrtri", 2)


def factor(matrix: Array | Singles) -> bool:
    """The Cholesky factor in place of the lower triangle; False if there is none.

    Also in single precision, which takes half the time.
    """
    routine = _spotrf if matrix.dtype == np.float32 else _dpotrf
    return _call(routine, [b"U"], matrix, (np.float32, np.float64)) == 0


def invert_factor(matrix: Array) -> None:
    """The inverse of a lower triangular matrix, in place."""
    _call(_dtrtri, [b"U", b"N"], matrix)


def invert_from_factor(matrix: Array) -> None:
    """The lower triangle of the inverse of LLᵀ, in place of the Cholesky factor L."""
    _call(_dpotri, [b"U"], matrix)


def _call(
    routine: Callable[..., None],
    characters: list[bytes],
    matrix: Array | Singles,
    dtypes: tuple[type[np.floating], ...] = (np.float64,),
) -> int:
    """Change the lower triangle of a matrix: the upper one to LAPACK, which counts by columns."""
    n = len(matrix)
    is_fit = matrix.shape == (n, n) and matrix.dtype in dtypes and matrix.flags.c_contiguous
    if not (is_fit and matrix.flags.writeable):
        raise TypeError("LAPACK needs a square C-contiguous matrix of float64 that it may change.")
    size, leading, info = ctypes.c_int(n), ctypes.c_int(max(n, 1)), ctypes.c_int(0)
    by_address = ctypes.byref(size), matrix.ctypes.data, ctypes.byref(leading), ctypes.byref(info)
    routine(*characters, *by_address)
    return info.value
