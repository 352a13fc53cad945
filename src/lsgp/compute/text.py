# SPDX-License-Identifier: BSD-3-Clause
"""Numbers in sentences."""

from __future__ import annotations

import math


def count(n: int, noun: str) -> str:
    """A number and its noun.

    Examples
    --------
    >>> from lsgp.compute.text import count
    >>> count(1, "row"), count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def percent(share: float, digits: int = 1) -> str:
    """A share in percent; what is more than nothing is not shown as 0.

    Examples
    --------
    >>> from lsgp.compute.text import percent
    >>> percent(0.123), percent(0.5, digits=0), percent(0.001, digits=0), percent(float("nan"))
    ('12.3 %', '50 %', '< 1 %', '–')
    """
    if math.isnan(share):
        return "–"
    smallest = 10.0**-digits
    if 0.0 < 100.0 * share < 0.5 * smallest:
        return f"< {smallest:.{digits}f} %"
    return f"{100.0 * share:.{digits}f} %"
