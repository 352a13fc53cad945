# SPDX-License-Identifier: BSD-3-Clause
"""Locks that a forked process finds open."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable


class ForkableLock:
    """A lock that is open in a forked process, whoever held it.

    Only the thread that forks lives on in the new process. A plain lock that another thread held
    at that moment would stay closed there for good, and the first to ask for it would wait for
    ever. What a lock guards must therefore be whole at every moment, or made again if it is not.

    Examples
    --------
    >>> from lsgp.compute.locks import ForkableLock
    >>> lock = ForkableLock()
    >>> with lock:
    ...     lock.locked()
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _locks.add(self)

    # The methods of the lock itself, not calls of them: after a call inside a method of ours,
    # Ctrl-C could come before `with` knows that the lock is held, and it would never be released.
    @property
    def __enter__(self) -> Callable[[], bool]:
        return self._lock.__enter__

    @property
    def __exit__(self) -> Callable[..., None]:
        return self._lock.__exit__

    def locked(self) -> bool:
        return self._lock.locked()

    def open_anew(self) -> None:
        """Forget who holds it; only for processes that were just forked."""
        self._lock = threading.Lock()


_locks: weakref.WeakSet[ForkableLock] = weakref.WeakSet()


def _open_all() -> None:
    for lock in list(_locks):
        lock.open_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)
