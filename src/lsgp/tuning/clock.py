# SPDX-License-Identifier: BSD-3-Clause
"""When tuning must stop: its time is up, or somebody pressed Ctrl-C."""

from __future__ import annotations

import threading
import time


class OutOfTimeError(Exception):
    """Raised inside tuning when it must stop; never leaves it."""


class Clock:
    """Time since the start, which all threads of a tuning run look at."""

    def __init__(self, max_seconds: float | None = None) -> None:
        self.started = time.monotonic()
        self.max_seconds = max_seconds
        self._stopped = threading.Event()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def stop(self) -> None:
        """Make every thread stop at its next look."""
        self._stopped.set()

    def check(self, needed: float = 0.0) -> None:
        """Stop if the time is up, or will be before something that takes ``needed`` seconds."""
        is_late = self.max_seconds is not None and self.elapsed + needed > self.max_seconds
        if is_late or self._stopped.is_set():
            raise OutOfTimeError
