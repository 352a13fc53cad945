# SPDX-License-Identifier: BSD-3-Clause
"""Dates and times: how much time has passed, and where in its cycles a moment is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.columns import Column

Array = NDArray[np.float64]

DAY = 86400.0
#: Periods in days. Each becomes a point on a circle, so that the last day is next to the first.
PERIODS = {"day of year": 365.2425, "weekday": 7.0, "hour": 1.0}
#: Periods that a cycle must be seen for: of less than one and a half, trend and cycle are one.
N_SEEN = 1.5
#: Steps between dates, as a share of the period, up to which there is a cycle to see.
LONGEST_STEP = 0.5


@dataclass(frozen=True)
class Date:
    """Days from 1970, and points on circles."""

    cycles: tuple[str, ...]
    fill: float  # for what is missing: the median
    fills_in: ClassVar[bool] = True

    @property
    def said(self) -> str:
        return ", ".join(["elapsed time", *(f"{cycle} on a circle" for cycle in self.cycles)])

    def names(self, column: str) -> tuple[str, ...]:
        points = (
            f"{column}: {cycle}, {axis}" for cycle in self.cycles for axis in ("sine", "cosine")
        )
        return (column, *points)

    def encode(self, column: Column) -> Array:
        hole = np.isnan(column.values)
        days = np.where(hole, self.fill, column.values) / DAY
        circles = [_on_circle(days, PERIODS[cycle], hole) for cycle in self.cycles]
        return np.column_stack([days, *circles])

    def show(self, inputs: Array) -> float | str:
        return date_text(float(inputs[0]))


@dataclass(frozen=True)
class TimeOfDay:
    """A point on the circle of a day."""

    fills_in: ClassVar[bool] = True
    said: ClassVar[str] = "on a circle"

    def names(self, column: str) -> tuple[str, ...]:
        return (f"{column}, sine", f"{column}, cosine")

    def encode(self, column: Column) -> Array:
        hole = np.isnan(column.values)
        return _on_circle(np.where(hole, 0.0, column.values), DAY, hole)

    def show(self, inputs: Array) -> float | str:
        hours = (float(np.arctan2(inputs[0], inputs[1])) / (2.0 * np.pi) % 1.0) * 24.0
        minutes = round(60.0 * hours) % 1440
        return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _on_circle(values: Array, period: float, hole: NDArray[np.bool_]) -> Array:
    """Points (n, 2) on a circle of this period; its center where a cell is missing."""
    angle = 2.0 * np.pi * values / period
    points = np.column_stack([np.sin(angle), np.cos(angle)])
    return np.where(hole[:, None], 0.0, points)


def date_text(days: float) -> str:
    """A moment as people write it, with its time if it is not midnight.

    Examples
    --------
    >>> from lsgp.inputs.encoding.dates import date_text
    >>> date_text(0.0), date_text(0.75)
    ('1970-01-01', '1970-01-01 18:00')
    """
    moment = np.datetime64(round(days * 1440.0), "m")
    text = str(moment).replace("T", " ")
    return text.removesuffix(" 00:00")


def possible_cycles(column: Column) -> tuple[str, ...]:
    """The cycles that dates can show: seen for long enough, and in steps that are short enough.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.encoding.columns import Column
    >>> from lsgp.inputs.encoding.dates import possible_cycles
    >>> months = np.arange(0.0, 1000.0, 30.4) * 86400.0
    >>> possible_cycles(Column("month", "date", months))
    ('day of year',)
    """
    days = np.unique(column.values[~np.isnan(column.values)]) / DAY
    if len(days) < 3:
        return ()
    span = float(days[-1] - days[0])
    # Of most steps: nights and holidays are longer.
    step = float(np.quantile(np.diff(days), 0.5))
    return tuple(
        cycle
        for cycle, period in PERIODS.items()
        if span >= (N_SEEN * period if cycle != "day of year" else 0.75 * period)
        and step <= LONGEST_STEP * period
    )
