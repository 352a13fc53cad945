# SPDX-License-Identifier: BSD-3-Clause
"""Numbers in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence


def placed(what: str, device: str | None) -> str:
    """What is done, and on which device, if it is one.

    Examples
    --------
    >>> from lsgp.compute.text import placed
    >>> placed("Tuning", None), placed("Tuning", "NVIDIA H200")
    ('Tuning', 'Tuning on NVIDIA H200')
    """
    return what if device is None else f"{what} on {device}"


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


def percents(shares: Sequence[float], digits: int = 0) -> list[str]:
    """Shares of a whole in percent, rounded so that what is shown adds to the whole.

    By largest remainders: each is rounded down, and the shares that lost most gain what is missing.
    A share that is shown as less than one unit keeps its place, and none of its value.

    Examples
    --------
    >>> from lsgp.compute.text import percents
    >>> percents([1 / 3, 1 / 3, 1 / 3]), percents([0.625, 0.125, 0.125, 0.125], digits=0)
    (['34 %', '33 %', '33 %'], ['63 %', '13 %', '12 %', '12 %'])
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
