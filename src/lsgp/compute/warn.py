# SPDX-License-Identifier: BSD-3-Clause
"""Warnings that point at the line of the user's program, however deep they are raised."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Packages whose lines mean nothing to users: what calls lsgp on their behalf.
INSIDE = frozenset({"lsgp", "sklearn", "contextlib", "joblib"})

#: Where this thread's warnings go instead, while somebody listens.
_listener: ContextVar[list[str] | None] = ContextVar("_listeners", default=None)


@contextmanager
def listening() -> Iterator[list[str]]:
    """Gather what would be warned of in this thread, and in no other.

    `warnings.catch_warnings` is of the whole process: with tasks on several threads, each would
    take the warnings of others.
    """
    heard: list[str] = []
    token = _listener.set(heard)
    try:
        yield heard
    finally:
        _listener.reset(token)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line that is outside of the library and of scikit-learn."""
    heard = _listener.get()
    if heard is not None:
        heard.append(message)
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None:
        level, frame = level + 1, frame.f_back
        if frame.f_globals.get("__name__", "").partition(".")[0] not in INSIDE:
            break
    warnings.warn(message, category, stacklevel=level)
