# SPDX-License-Identifier: BSD-3-Clause
"""What a column holds: its kind, as its cells tell, and their values as numbers.

All that tells the kind are the `Contents` of a column: its cells, without which row has which.
Contents of parts of a column can be joined, in the order of the rows. They give a `Reading`, and
that makes a `Column` of the cells of all rows, or of some.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.cells import Cells, key_of
from lsgp.inputs.encoding.text import (
    CODE,
    INTEGER,
    MAX_LEVELS,
    MAX_UNREADABLE,
    MAX_WORDS,
    MISSING,
    N_SHOWN,
    TRUTHS,
    date_of,
    level_of,
    number_of,
    time_of,
)

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Kinds whose values are numbers; a category's are places among its levels.
KINDS = ("number", "flag", "duration", "date", "time", "category", "ordered", "empty")
CATEGORIES = ("category", "ordered")
#: Kinds that a query may have where a column is of the kind before: what numbers are is known.
NUMERIC = ("number", "flag", "duration")


class Column(NamedTuple):
    """A column that was read."""

    name: str
    kind: str
    values: Array  # (n,) NaN is missing; seconds of dates, times and durations
    levels: tuple[str, ...] = ()  # of a category
    zone: str | None = None  # of dates
    note: str = ""  # what users might want to know of how it was read
    warning: str = ""  # what they must know, and may want to change

    @property
    def present(self) -> Array:
        return self.values[~np.isnan(self.values)]

    def with_missing(self) -> Column:
        """With a last level for what is missing, which has no name that a cell could have."""
        values = np.where(np.isnan(self.values), len(self.levels), self.values)
        return self._replace(values=values, levels=(*self.levels, ""))

    def codes_among(self, levels: tuple[str, ...]) -> Codes:
        """Places of the cells among known levels, -1 for others and for missing ones."""
        places = {level: k for k, level in enumerate(levels)}
        own = np.array([*(places.get(level, -1) for level in self.levels), -1], dtype=np.int64)
        return own[np.where(np.isnan(self.values), len(self.levels), self.values).astype(int)]


class Contents(NamedTuple):
    """What the cells of a column, or of a part of it, are."""

    name: str
    type: str  # as of `Cells`
    n_rows: int
    n_missing: int
    n_infinite: int
    distinct: tuple[Any, ...] = ()  # cells of objects, in order of appearance; numbers if declared
    counts: Codes = np.zeros(0, np.int64)  # (k,) rows of each
    order: tuple[str, ...] | None = None
    zone: str | None = None

    @classmethod
    def of(cls, cells: Cells) -> Contents:
        missing, counts = np.isnan(cells.values), np.zeros(0, np.int64)
        if cells.distinct:
            places = cells.values[~missing].astype(np.int64)
            counts = np.bincount(places, minlength=len(cells.distinct))
        n_missing, n_infinite = int(missing.sum()), int(np.isinf(cells.values).sum())
        known = cells.name, cells.type, len(missing), n_missing, n_infinite
        return cls(*known, cells.distinct or (), counts, cells.order, cells.zone)

    def join(self, other: Contents) -> Contents:
        """With the rows of another part behind these."""
        known = self
        if self.n_missing == self.n_rows and self.order is None:
            known = other  # of which cells tell the type
        elif other.n_missing < other.n_rows or other.order is not None:
            for what, own, others in (
                ("is of type", self.type, other.type),
                ("has the order", self.order, other.order),
                ("has the time zone", self.zone, other.zone),
            ):
                if own != others:
                    raise ValueError(
                        f"Column {self.name!r} {what} {own!r} in some partitions of X, and "
                        f"{others!r} in others. Give one to all."
                    )
        cells = {key_of(cell): cell for cell in (*other.distinct, *self.distinct)}
        keys = dict.fromkeys(map(key_of, (*self.distinct, *other.distinct)))
        places = {key: k for k, key in enumerate(keys)}
        distinct, counts = [cells[key] for key in keys], np.zeros(len(keys), np.int64)
        for part in (self, other):
            counts[[places[key_of(cell)] for cell in part.distinct]] += part.counts
        if known.type != "object":
            # Numbers have their own order.
            by_value = np.argsort(np.array(distinct, dtype=float), kind="stable")
            distinct, counts = [distinct[k] for k in by_value], counts[by_value]
        return known._replace(
            n_rows=self.n_rows + other.n_rows,
            n_missing=self.n_missing + other.n_missing,
            n_infinite=self.n_infinite + other.n_infinite,
            distinct=tuple(distinct),
            counts=counts,
        )


class Reading(NamedTuple):
    """How the cells of a column are read, be they of all rows or of some."""

    kind: str
    levels: tuple[str, ...] = ()  # of a category
    values: Mapping[object, float] | None = None  # of each distinct cell; None: numbers as typed
    zone: str | None = None
    note: str = ""
    warning: str = ""

    @classmethod
    def of(
        cls, contents: Contents, is_category: bool = False, max_words: float = MAX_WORDS
    ) -> Reading:
        """By all of a column.

        Numbers, dates or times stay so with words among them up to a share of ``max_words``.
        """
        if contents.n_infinite:
            raise ValueError(
                f"Column {contents.name!r} of X contains infinity or a value too large "
                f"({contents.n_infinite} cells). Correct them, or make them missing."
            )
        if is_category or contents.order is not None:
            return _as_category(contents)
        if contents.n_missing == contents.n_rows:
            return cls("empty")
        if contents.type != "object":
            return cls(contents.type, zone=contents.zone)
        return _read_objects(contents, max_words)

    def column(self, cells: Cells) -> Column:
        """The column, or the part of it that these cells are."""
        values = cells.values
        if self.values is not None:
            cells = cells.numbered()
            read = np.array([*(self.values[key_of(cell)] for cell in cells.distinct or ()), np.nan])
            # What is missing is behind the distinct cells.
            values = read[np.where(np.isnan(cells.values), -1, cells.values).astype(np.int64)]
        elif self.kind == "empty":
            values = np.full(len(values), np.nan)
        return Column(
            cells.name, self.kind, values, self.levels, self.zone, self.note, self.warning
        )


def read_column(cells: Cells, is_category: bool = False, max_words: float = MAX_WORDS) -> Column:
    """Find out what a column holds, which may be declared a category whatever it looks like."""
    if is_category:
        cells = cells.numbered()
    return Reading.of(Contents.of(cells), is_category, max_words).column(cells)


def read_as(cells: Cells, kind: str, zone: str | None = None) -> Column:
    """Read a column of queries as what it was when fitted; one clear error if it is not."""
    # Queries may be few, and most of them words that are missing values in training rows.
    max_words = 1.0 if kind in NUMERIC else MAX_WORDS
    column = read_column(cells, kind in CATEGORIES, max_words)
    if kind in CATEGORIES:
        return column
    if column.kind == "empty":
        return column._replace(kind=kind)
    if column.kind == kind or (kind in NUMERIC and column.kind in NUMERIC):
        return _in_zone(column, zone)
    plural = {"category": "categories", "ordered": "ordered categories"}
    was, now = (plural.get(each, f"{each}s") for each in (kind, column.kind))
    raise ValueError(
        f"Column {cells.name!r} held {was} when the model was fitted, and now holds {now} "
        f"({_listed(cells.numbered().distinct or ())}). Give {was}."
    )


def _listed(cells: Sequence[object]) -> str:
    """The first of some cells, for errors and warnings."""
    shown = [f"{cell:g}" if isinstance(cell, float) else repr(cell) for cell in cells[:N_SHOWN]]
    return ", ".join(shown)


def _in_zone(column: Column, zone: str | None) -> Column:
    """Dates by the wall clock of the zone that was fitted."""
    if column.kind != "date" or zone == column.zone or None in (zone, column.zone):
        return column
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    start = datetime(1970, 1, 1)
    own, other = ZoneInfo(str(column.zone)), ZoneInfo(str(zone))
    values = column.values.copy()
    for value in np.unique(column.present):
        moment = (start + timedelta(seconds=float(value))).replace(tzinfo=own).astimezone(UTC)
        wall = moment.astimezone(other).replace(tzinfo=None)
        values[column.values == value] = (wall - start).total_seconds()
    return column._replace(values=values, zone=zone)


def _as_category(contents: Contents) -> Reading:
    if contents.type == "flag":
        names = [str(bool(cell)) for cell in contents.distinct]
    else:
        names = [level_of(cell) for cell in contents.distinct]
    known = dict.fromkeys(names if contents.order is None else contents.order)
    if not known:
        return Reading("empty")
    place = {level: float(k) for k, level in enumerate(known)}
    # Different cells may be one level: 3 and 3.0.
    pairs = zip(contents.distinct, names, strict=True)
    values = {key_of(cell): place[name] for cell, name in pairs}
    kind = "category" if contents.order is None else "ordered"
    return Reading(kind, tuple(place), values)


def _read_objects(contents: Contents, max_words: float) -> Reading:
    """Of cells of any types, all of one kind, or nearly all."""
    distinct, counts, n_rows = contents.distinct, contents.counts, contents.n_rows
    texts = [cell.strip() if isinstance(cell, str) else None for cell in distinct]
    # Texts of digits of which some start with a zero, as 02134, are no numbers.
    present = [text for text in texts if text not in MISSING]
    are_whole = all(text is not None and re.match(INTEGER, text) for text in present)
    are_codes = are_whole and any(re.match(CODE, text or "") for text in present)
    for kind, read in (("number", number_of), ("date", date_of), ("time", time_of)):
        if kind == "number" and are_codes:
            continue
        found = [read(cell) for cell in distinct]
        values = np.array([np.nan if value is None else value for value in found], dtype=float)
        unread = [k for k, text in enumerate(texts) if np.isnan(values[k]) and text not in MISSING]
        n_wrong, n_read = counts[unread].sum(), counts[~np.isnan(values)].sum()
        if n_read == 0 or (n_wrong >= n_read and max_words < 1.0):
            continue
        shown = _listed([distinct[k] for k in unread])
        said = (
            f"Column {contents.name!r} holds {kind}s, but {n_wrong} of {n_rows} cells are none: "
            f"{shown}{', ...' if len(unread) > N_SHOWN else ''}."
        )
        if n_wrong > max_words * n_rows and len(distinct) <= MAX_LEVELS * counts.sum():
            taken = f"It is taken as a category; make these cells missing to have {kind}s."
            return _as_category(contents)._replace(warning=f"{said} {taken}")
        warning = ""
        if n_wrong > MAX_UNREADABLE * n_rows:
            taken = "They count as missing; declare the column if it is a category: "
            warning = f"{said} {taken}categorical_features=[{contents.name!r}]."
        zone = "UTC" if kind == "date" and any(map(_is_aware, distinct)) else None
        if kind == "number" and all(text in TRUTHS for text in texts):
            kind = "flag"
        if kind == "number" and all(hasattr(cell, "total_seconds") for cell in distinct):
            kind = "duration"
        by_cell = dict(zip(map(key_of, distinct), values.tolist(), strict=True))
        note = f"{n_wrong} unreadable cells are missing: {shown}" if n_wrong else ""
        return Reading(kind, values=by_cell, zone=zone, note=note, warning=warning)
    return _as_category(contents)


def _is_aware(cell: object) -> bool:
    if isinstance(cell, str):
        time = cell.strip()[10:]
        return time.endswith("Z") or "+" in time or "-" in time
    return getattr(cell, "tzinfo", None) is not None
