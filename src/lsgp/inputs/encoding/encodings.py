# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of a column: its encoding, and the schemes that one can have.

Categories may also be encoded by statistics of targets: `categories` has that scheme.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.columns import Column
from lsgp.inputs.encoding.table import ColumnFacts

Array = NDArray[np.float64]

DAY = 86400.0
#: Periods in days. Each becomes a point on a circle, so that the last day is next to the first.
PERIODS = {"day of year": 365.2425, "weekday": 7.0, "hour": 1.0}
#: Periods that a cycle must be seen for: of less than one and a half, trend and cycle are one.
N_SEEN = 1.5
#: Steps between dates, as a share of the period, up to which there is a cycle to see.
LONGEST_STEP = 0.5
#: Levels of fewer rows have no input of their own: they are one, and so are levels never seen.
FEWEST_ROWS = 5


class Scheme(ABC):
    """How the cells of a column become none, one or several inputs."""

    fills_in = True  # whether a missing cell has numbers that stand in for it

    @property
    def said(self) -> str:
        """What becomes of the cells, in a few words."""
        return "as it is"

    def names(self, column: str) -> tuple[str, ...]:
        """Names of the inputs of a column of this name."""
        return (column,)

    @abstractmethod
    def encode(self, column: Column) -> Array:
        """The inputs (n, k) of queries."""

    def show(self, inputs: Array) -> float | str:
        """What a cell was that became these inputs (k,), for people."""
        return float(inputs[0])


@dataclass(frozen=True, eq=False)
class Encoding:
    """A column of a table and how it becomes inputs, with a flag for missing cells or without."""

    name: str
    kind: str
    scheme: Scheme
    n_levels: int = 0
    share_missing: float = 0.0
    is_flagged: bool = False  # whether the last input says that a cell is missing
    zone: str | None = None
    note: str = ""

    @property
    def said(self) -> str:
        parts = [self.scheme.said]
        if self.share_missing and self.scheme.fills_in:
            parts.append("filled in where missing")
        if self.is_flagged:
            parts.append("with a flag")
        said = ", ".join(parts)
        return f"{said} ({self.note})" if self.note else said

    @property
    def inputs(self) -> tuple[str, ...]:
        names = self.scheme.names(self.name)
        return (*names, f"{self.name} is missing") if self.is_flagged else names

    def encode(self, column: Column) -> Array:
        inputs = self.scheme.encode(column)
        return np.column_stack([inputs, np.isnan(column.values)]) if self.is_flagged else inputs

    def is_missing(self, inputs: Array) -> NDArray[np.bool_]:
        """Whether inputs (n, k) are of missing cells, as far as a flag tells."""
        return inputs[:, -1] > 0.5 if self.is_flagged else np.zeros(len(inputs), dtype=bool)

    def show(self, inputs: Array) -> float | str:
        return "missing" if self.is_missing(inputs[None])[0] else self.scheme.show(inputs)


@dataclass(frozen=True)
class LeftOut(Scheme):
    """A column that is no input: `why` it is not."""

    why: str
    fills_in = False

    @property
    def said(self) -> str:
        return f"left out: {self.why}"

    def names(self, column: str) -> tuple[str, ...]:
        return ()

    def encode(self, column: Column) -> Array:
        return np.empty((len(column.values), 0))

    def show(self, inputs: Array) -> float | str:
        return ""


@dataclass(frozen=True)
class Number(Scheme):
    """Numbers as they are; `missing.Imputation` fills in missing ones, from other columns."""

    def encode(self, column: Column) -> Array:
        return column.values[:, None]


# -- dates and times: how much time has passed, and where in its cycles a moment is ----------------


@dataclass(frozen=True)
class Date(Scheme):
    """Days from 1970, and points on circles."""

    cycles: tuple[str, ...]
    fill: float  # for what is missing: the median

    @property
    def said(self) -> str:
        return ", ".join(["elapsed time", *(f"{cycle} on a circle" for cycle in self.cycles)])

    def names(self, column: str) -> tuple[str, ...]:
        points = [f"{column}: {cycle}, {at}" for cycle in self.cycles for at in ("sine", "cosine")]
        return (column, *points)

    def encode(self, column: Column) -> Array:
        hole = np.isnan(column.values)
        days = np.where(hole, self.fill, column.values) / DAY
        circles = [_on_circle(days, PERIODS[cycle], hole) for cycle in self.cycles]
        return np.column_stack([days, *circles])

    def show(self, inputs: Array) -> float | str:
        """A moment as people write it, with its time if it is not midnight."""
        text = str(np.datetime64(round(float(inputs[0]) * 1440.0), "m"))
        return text.replace("T", " ").removesuffix(" 00:00")


@dataclass(frozen=True)
class TimeOfDay(Scheme):
    """A point on the circle of a day."""

    said = "on a circle"

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


def possible_cycles(column: Column) -> tuple[str, ...]:
    """The cycles that dates can show: seen for long enough, and in steps that are short enough."""
    days = np.unique(column.present) / DAY
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


# -- categories ------------------------------------------------------------------------------------


#: The last input of a category: how much less than usual is known of a level. It is 0 in all
#: training rows, so that models do not see it; predictions are widened by it.
EXCESS = "excess uncertainty"


@dataclass(frozen=True, eq=False)
class OneHot(Scheme):
    """One input for each level, 0 or 1; for two levels, one input for both."""

    levels: tuple[str, ...]  # with an input of their own
    has_rare: bool  # whether there is an input for all others
    has_missing: bool  # whether there is an input for what is missing
    variance: Array  # (t,) of the effects of levels on the targets
    fills_in = False

    @classmethod
    def fit(cls, column: Column, facts: ColumnFacts, n_targets: int) -> OneHot:
        """Levels of enough rows, the most frequent first."""
        counts = facts.level_rows[:-1]
        used = np.flatnonzero(counts > 0)
        enough = used[counts[used] >= FEWEST_ROWS]
        if len(used) == 2 or not len(enough):
            enough = used
        order = enough[np.argsort(-counts[enough], kind="stable")]
        levels = tuple(column.levels[k] for k in order)
        has_missing = facts.n_missing >= FEWEST_ROWS
        return cls(levels, len(enough) < len(used), has_missing, np.zeros(n_targets))

    @property
    def is_pair(self) -> bool:
        return len(self.levels) == 2 and not self.has_rare and not self.has_missing

    @property
    def said(self) -> str:
        if self.is_pair:
            return "0 or 1"
        return "0 or 1 for each level" + (", one for rare ones" if self.has_rare else "")

    def names(self, column: str) -> tuple[str, ...]:
        others = ["another"] * self.has_rare + ["missing"] * self.has_missing
        levels = [*self.levels[1 if self.is_pair else 0 :], *others]
        return (*(f"{column} is {level}" for level in levels), f"{column}: {EXCESS}")

    def encode(self, column: Column) -> Array:
        codes = column.codes_among(self.levels)
        if self.is_pair:
            # A level never seen is between both.
            return np.column_stack([np.where(codes < 0, 0.5, codes), codes < 0]).astype(float)
        hole = np.isnan(column.values) & self.has_missing
        known = codes >= 0
        out = np.zeros((len(codes), len(self.names(""))))
        out[np.flatnonzero(known), codes[known]] = 1.0
        if self.has_rare:
            out[~known & ~hole, len(self.levels)] = 1.0
        if self.has_missing:
            out[hole, -2] = 1.0
        out[:, -1] = ~out.any(axis=1)
        return out

    def show(self, inputs: Array) -> float | str:
        if inputs[-1] > 0.5:
            return "never seen"
        if self.is_pair:
            return self.levels[round(float(inputs[0]))]
        at = int(np.argmax(inputs))
        others = ["another"] * self.has_rare + ["missing"]
        return [*self.levels, *others][at]

    def is_unseen(self, inputs: Array) -> NDArray[np.bool_]:
        """Whether inputs (n, k) are of levels that training rows did not have."""
        return np.asarray(inputs[:, -1] > 0.5)


@dataclass(frozen=True)
class Order(Scheme):
    """The place of an ordered level among all."""

    levels: tuple[str, ...]
    said = "place in the order"

    def encode(self, column: Column) -> Array:
        codes, hole = column.codes_among(self.levels), np.isnan(column.values)
        unknown = (codes < 0) & ~hole
        if unknown.any():
            level = column.levels[int(column.values[unknown.argmax()])]
            raise ValueError(
                f"Column {column.name!r} has the level {level!r}, which has no place in the order "
                f"{', '.join(self.levels[:6])}{', ...' if len(self.levels) > 6 else ''} that was "
                "fitted. Fit again with it."
            )
        return np.where(hole, 0.5 * (len(self.levels) - 1), codes.astype(float))[:, None]

    def show(self, inputs: Array) -> float | str:
        return self.levels[int(np.clip(round(float(inputs[0])), 0, len(self.levels) - 1))]
