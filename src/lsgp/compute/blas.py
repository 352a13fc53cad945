# SPDX-License-Identifier: BSD-3-Clause
"""BLAS on one thread while our own threads run.

Some libraries have one setting for the whole process (OpenBLAS with threads of its own), others one
for each thread (MKL, and what is built on OpenMP). The first is counted: it is put back when the
last of those who asked has left, since each that put back what it had found would leave it as
another one had it. The second is set and put back by every thread for itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_lock = threading.Lock()
_limit: Any = None
_n_limiting = 0


class _Libraries(NamedTuple):
    """The BLAS libraries of this process, by whom their setting belongs to."""

    of_process: Any
    of_thread: Any


@cache
def _libraries() -> _Libraries:
    """Finding the libraries takes longer than a small prediction: once is enough."""
    blas = ThreadpoolController().select(user_api="blas")
    shared = [
        library.filepath
        for library in blas.lib_controllers
        if library.internal_api == "openblas" and library.threading_layer != "openmp"
    ]
    others = [x.filepath for x in blas.lib_controllers if x.filepath not in shared]
    return _Libraries(blas.select(filepath=shared), blas.select(filepath=others))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread, for those who run inside and in this thread."""
    libraries = _libraries()
    own = libraries.of_thread.limit(limits=1)
    _enter(libraries.of_process)
    try:
        yield
    finally:
        _leave(libraries.of_process)
        own.restore_original_limits()


def _enter(libraries: Any) -> None:
    global _limit, _n_limiting
    with _lock:
        if _n_limiting == 0:
            _take_control(libraries)
            _limit = libraries.limit(limits=1)
        _n_limiting += 1


def _leave(libraries: Any) -> None:
    global _n_limiting
    with _lock:
        _n_limiting -= 1
        if _n_limiting == 0:
            _take_control(libraries)
            _limit.restore_original_limits()
            # Whoever limits BLAS next may do so.
            _take_control(libraries)


def _take_control(libraries: Any) -> None:
    """Let this thread change the setting: threadpoolctl keeps it for the thread that did last."""
    for library in libraries.lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)  # since threadpoolctl 3.7
        if clear is not None:
            clear(force=True)


def _start_anew() -> None:
    """In a forked process none of the threads that were limiting is there, nor is their lock."""
    global _lock, _n_limiting
    _lock = threading.Lock()
    if _n_limiting:
        _n_limiting = 1
        _leave(_libraries().of_process)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
