# SPDX-License-Identifier: BSD-3-Clause
"""BLAS on one thread while our own threads run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_blas_lock = threading.Lock()
_blas_limit: Any = None
_n_limiting = 0


@cache
def _controller() -> ThreadpoolController:
    """Finding the libraries takes longer than a small prediction: once is enough."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread, for the whole process, until the last of those who ask has left.

    The setting is the process's own: each thread that put back what it had found would leave it
    as another one had it.
    """
    global _blas_limit, _n_limiting
    with _blas_lock:
        if _n_limiting == 0:
            _blas_limit = _controller().limit(limits=1, user_api="blas")
        _n_limiting += 1
    try:
        yield
    finally:
        with _blas_lock:
            _n_limiting -= 1
            if _n_limiting == 0:
                _blas_limit.restore_original_limits()
