# SPDX-License-Identifier: BSD-3-Clause
"""What the command line tells users who asked for something that cannot be done."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: Names of columns that an error lists before it stops.
MAX_LISTED = 8


class CommandError(Exception):
    """An error that its one-line message explains: printed on stderr, exit code 2."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """A suggestion to append to an error, or nothing.

    Examples
    --------
    >>> from lsgp.cli.errors import did_you_mean
    >>> did_you_mean("temprature", ["time", "temperature"])
    " Did you mean 'temperature'?"
    """
    names = list(choices)
    by_lower_case = {candidate.lower().strip(): candidate for candidate in reversed(names)}
    if name.lower().strip() in by_lower_case:
        return f" Did you mean {by_lower_case[name.lower().strip()]!r}?"
    close = difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def list_names(names: Iterable[str]) -> str:
    """Names for a message, shortened where there are many."""
    listed = list(names)
    shown = ", ".join(listed[:MAX_LISTED])
    return shown if len(listed) <= MAX_LISTED else f"{shown} and {len(listed) - MAX_LISTED} more"


def require_columns(wanted: Iterable[str], columns: Iterable[str], where: str) -> None:
    """Raise CommandError if a column is not there, naming the likeliest that is."""
    available = list(columns)
    for name in wanted:
        if name not in available:
            raise CommandError(
                f"{where} has no column {name!r}.{did_you_mean(name, available)} "
                f"It has: {list_names(available)}."
            )
