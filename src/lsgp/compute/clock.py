# SPDX-License-Identifier: BSD-3-Clause
"""When tuning must stop: its time is up, or somebody pressed Ctrl-C."""

from __future__ import annotations

import time

#: Seconds within which a second Ctrl-C means that all shall stop, and not this tuning alone.
SECOND_INTERRUPT = 2.0


class OutOfTimeError(Exception):
    """Raised inside tuning when it must stop; never leaves it."""


class TuningStoppedWarning(UserWarning):
    """Tuning ended before all was tried: its time was up, or it was interrupted."""


class Clock:
    """Time since the start, which all threads of a tuning run look at."""

    def __init__(self, max_seconds: float | None = None) -> None:
        self.started = time.monotonic()
        self.max_seconds = max_seconds
        # No Event: its lock could stay closed when Ctrl-C comes while it is set.
        self._is_stopped = False

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def stop(self) -> None:
        """Make every thread stop at its next look."""
        self._is_stopped = True

    def check(self, needed: float = 0.0) -> None:
        """Stop if the time is up, or will be before something that takes ``needed`` seconds."""
        is_late = self.max_seconds is not None and self.elapsed + needed > self.max_seconds
        if is_late or self._is_stopped:
            raise OutOfTimeError


class Interrupts:
    """When Ctrl-C was last taken for the end of one tuning run: fits may follow each other."""

    def __init__(self) -> None:
        self._last = -float("inf")

    def is_second(self) -> bool:
        """Note a Ctrl-C; True if another was noted a moment ago."""
        before, self._last = self._last, time.monotonic()
        return self._last - before < SECOND_INTERRUPT


#: Those of this process: a cross-validation is many fits, and one Ctrl-C ends but one of them.
INTERRUPTS = Interrupts()
