# SPDX-License-Identifier: BSD-3-Clause
"""Sentences for users: numbers in them, and warnings that point at the user's own line."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

#: Packages whose lines mean nothing to users: what calls lsgp on their behalf.
INSIDE = frozenset({"lsgp", "sklearn", "contextlib", "joblib"})

#: Where this thread's warnings go instead, while somebody listens.
_listener: ContextVar[list[str] | None] = ContextVar("_listeners", default=None)


def placed(what: str, device: str | None) -> str:
    """The work, and the device that does it, if it is one: "Tuning on NVIDIA H200"."""
    return what if device is None else f"{what} on {device}"


def count(n: int, noun: str) -> str:
    """A number and its noun: "1 row", "1,200 rows"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def percent(share: float, digits: int = 1) -> str:
    """A share in percent, "12.3 %"; more than nothing is not shown as 0, and NaN as a dash."""
    if math.isnan(share):
        return "–"
    smallest = 10.0**-digits
    if 0.0 < 100.0 * share < 0.5 * smallest:
        return f"< {smallest:.{digits}f} %"
    return f"{100.0 * share:.{digits}f} %"


def percents(shares: Sequence[float], digits: int = 0) -> list[str]:
    """Shares of a whole in percent, rounded so that what is shown adds to the whole.

    By largest remainders: each is rounded down, and the shares that lost most gain what is missing.
    A share that is shown as less than one unit keeps its place, and none of its value.
    """
    unit = 10**digits
    exact = [100.0 * unit * share for share in shares]
    whole = round(math.fsum(exact))
    floors = [math.floor(value + 1e-9) for value in exact]
    by_loss = sorted(range(len(exact)), key=lambda k: (floors[k] - exact[k], k))
    for k in by_loss[: max(whole - sum(floors), 0)]:
        floors[k] += 1
    return [
        f"< {1 / unit:.{digits}f} %" if parts == 0 and value > 0 else f"{parts / unit:.{digits}f} %"
        for parts, value in zip(floors, exact, strict=True)
    ]


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
