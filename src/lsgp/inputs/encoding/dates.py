# SPDX-License-Identifier: BSD-3-Clause
"""Dates and times: how much time has passed, and where in its cycles a moment is."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, eq=False)
class Date:
    """Days from 1970, and points on circles."""

    name: str
    cycles: tuple[str, ...]
    fill: float  # for what is missing: the median
    share_missing: float
    is_flagged: bool
    zone: str | None = None
    n_levels: int = 0
    kind: str = "date"
    note: str = ""

    @property
    def said(self) -> str:
        parts = ["elapsed time", *(f"{cycle} on a circle" for cycle in self.cycles)]
        if self.is_flagged:
            parts.append("a flag where missing")
        said = ", ".join(parts)
        return f"{said} ({self.note})" if self.note else said

    @property
    def inputs(self) -> tuple[str, ...]:
        names = [self.name]
        for cycle in self.cycles:
            names += [f"{self.name}: {cycle}, sine", f"{self.name}: {cycle}, cosine"]
        return (*names, f"{self.name} is missing") if self.is_flagged else tuple(names)

    def encode(self, column: Column) -> Array:
        hole = np.isnan(column.values)
        days = np.where(hole, self.fill, column.values) / DAY
        parts = [days]
        for cycle in self.cycles:
            angle = 2.0 * np.pi * days / PERIODS[cycle]
            parts += [np.where(hole, 0.0, np.sin(angle)), np.where(hole, 0.0, np.cos(angle))]
        return np.column_stack([*parts, hole] if self.is_flagged else parts)

    def show(self, inputs: Array) -> float | str:
        if self.is_flagged and inputs[-1] > 0.5:
            return "missing"
        return date_text(float(inputs[0]))

    def is_unseen(self, inputs: Array) -> NDArray[np.bool_]:
        return np.zeros(len(inputs), dtype=bool)


@dataclass(frozen=True, eq=False)
class TimeOfDay:
    """A point on the circle of a day."""

    name: str
    share_missing: float
    is_flagged: bool
    n_levels: int = 0
    kind: str = "time"
    zone: str | None = None

    @property
    def said(self) -> str:
        return "on a circle" + (", a flag where missing" if self.is_flagged else "")

    @property
    def inputs(self) -> tuple[str, ...]:
        names = (f"{self.name}, sine", f"{self.name}, cosine")
        return (*names, f"{self.name} is missing") if self.is_flagged else names

    def encode(self, column: Column) -> Array:
        hole = np.isnan(column.values)
        angle = 2.0 * np.pi * np.where(hole, 0.0, column.values) / DAY
        parts = [np.where(hole, 0.0, np.sin(angle)), np.where(hole, 0.0, np.cos(angle))]
        return np.column_stack([*parts, hole] if self.is_flagged else parts)

    def show(self, inputs: Array) -> float | str:
        if self.is_flagged and inputs[-1] > 0.5:
            return "missing"
        hours = (float(np.arctan2(inputs[0], inputs[1])) / (2.0 * np.pi) % 1.0) * 24.0
        minutes = round(60.0 * hours) % 1440
        return f"{minutes // 60:02d}:{minutes % 60:02d}"

    def is_unseen(self, inputs: Array) -> NDArray[np.bool_]:
        return np.zeros(len(inputs), dtype=bool)


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
