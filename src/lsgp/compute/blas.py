# SPDX-License-Identifier: BSD-3-Clause
"""BLAS on one thread while our own threads run.

Some libraries have one setting for the whole process (OpenBLAS with threads of its own), others one
for each thread (MKL, and what is built on OpenMP). The first is counted: it is put back when the
last of those who asked has left, since each that put back what it had found would leave it as
another one had it. The second is set and put back by every thread for itself.

Others change the setting of the process too. What somebody sets while we limit it stays, and is not
put back over. What nobody can mend is somebody who notes our limit as what was there, and puts it
back when we are gone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple, Protocol

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


class _Library(Protocol):
    """What is asked of threadpoolctl's controller of one library."""

    filepath: str
    internal_api: str
    threading_layer: str

    @property
    def num_threads(self) -> int: ...
    def set_num_threads(self, num_threads: int) -> None: ...


class _Limiter(Protocol):
    def restore_original_limits(self) -> None: ...


class _Controller(Protocol):
    """What is asked of its controller of several."""

    lib_controllers: list[_Library]

    def select(self, *, filepath: list[str]) -> _Controller: ...
    def limit(self, *, limits: int) -> _Limiter: ...


#: How often to set what another thread keeps taking control of.
N_ATTEMPTS = 10

_lock = threading.Lock()
#: Those who are inside.
_holders: set[object] = set()
#: Libraries of the process that are limited, and their threads before.
_limited: list[tuple[_Library, int]] = []


class _Libraries(NamedTuple):
    """The BLAS libraries of this process, by whom their setting belongs to."""

    of_process: _Controller
    of_thread: _Controller


@cache
def _libraries() -> _Libraries:
    """Finding the libraries takes longer than a small prediction: once is enough."""
    blas: _Controller = ThreadpoolController().select(user_api="blas")
    shared = [
        library.filepath
        for library in blas.lib_controllers
        if library.internal_api == "openblas" and library.threading_layer != "openmp"
    ]
    others = [x.filepath for x in blas.lib_controllers if x.filepath not in shared]
    return _Libraries(blas.select(filepath=shared), blas.select(filepath=others))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread, for those who run inside and in this thread.

    Examples
    --------
    >>> from lsgp.compute.blas import one_blas_thread
    >>> with one_blas_thread():
    ...     pass
    """
    libraries = _libraries()
    own = libraries.of_thread.limit(limits=1)
    try:
        holder = _enter(libraries.of_process)
        try:
            yield
        finally:
            _leave(holder)
    finally:
        own.restore_original_limits()


def _enter(libraries: _Controller) -> object:
    holder = object()
    with _lock:
        if not _holders:
            for library in libraries.lib_controllers:
                before = library.num_threads
                if before != 1:
                    _limited.append((library, before))
                    _set(library, 1)
        _holders.add(holder)
    return holder


def _leave(holder: object) -> None:
    with _lock:
        _holders.discard(holder)
        if not _holders:
            _put_back()


def _put_back() -> None:
    while _limited:
        library, before = _limited.pop()
        # If it is not as we left it, somebody has set it since.
        if library.num_threads == 1:
            _set(library, before)


def _set(library: _Library, n_threads: int) -> None:
    """Set the threads of a library, whichever thread has control of it.

    Since 3.7, threadpoolctl ignores all threads but the one that has set a limit first. It is
    cleared before, so that we are heard, and after, so that others are.
    """
    clear = getattr(library, "clear_controlling_thread", None)
    for _ in range(N_ATTEMPTS):
        if clear is not None:
            clear(force=True)
        library.set_num_threads(n_threads)
        if clear is not None:
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
