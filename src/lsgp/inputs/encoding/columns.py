# SPDX-License-Identifier: BSD-3-Clause
"""What a column holds: its kind, as its cells tell, and their values as numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.cells import Cells, key_of
from lsgp.inputs.encoding.contents import Contents
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
    parse_date,
    parse_number,
    time_of,
)

Array = NDArray[np.float64]

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


def read_column(cells: Cells, is_category: bool = False) -> Column:
    """Find out what a column holds.

    Parameters
    ----------
    cells : Cells
    is_category : bool
        Whether it was declared, whatever its cells look like.

    Examples
    --------
    >>> from lsgp.inputs.encoding.cells import cells_of
    >>> from lsgp.inputs.encoding.columns import read_column
    >>> columns = map(read_column, cells_of([["3.5", "a", "2001-02-03"], ["1", "b", None]]))
    >>> [column.kind for column in columns]
    ['number', 'category', 'date']
    """
    return Reading.of(Contents.of(cells, is_category), is_category).column(cells)


class Reading(NamedTuple):
    """How the cells of a column are read, be they of all rows or of some."""

    kind: str
    levels: tuple[str, ...] = ()  # of a category
    values: Mapping[object, float] | None = None  # of each distinct cell; None of typed numbers
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
        if self.kind == "empty":
            values = np.full(len(values), np.nan)
        elif self.values is not None and cells.type == "object":
            own = [*(self.values[key_of(cell)] for cell in cells.distinct), np.nan]
            values = np.array(own)[_places(values, len(cells.distinct))]
        elif self.values is not None:
            present = ~np.isnan(values)
            distinct, places = np.unique(values[present], return_inverse=True)
            own = [self.values[value] for value in distinct.tolist()]
            values = np.full(len(values), np.nan)
            values[present] = np.array(own)[places.reshape(-1)] if own else []
        return Column(
            cells.name, self.kind, values, self.levels, self.zone, self.note, self.warning
        )


def _places(codes: Array, n_distinct: int) -> NDArray[np.int64]:
    """Places among distinct cells, behind which is what is missing."""
    return np.where(np.isnan(codes), n_distinct, codes).astype(np.int64)


def read_as(cells: Cells, kind: str, zone: str | None = None) -> Column:
    """Read a column of queries as what it was when fitted; one clear error if it is not."""
    if kind in CATEGORIES:
        return read_column(cells, is_category=True)
    # Queries may be few, and most of them words that are missing values in training rows.
    max_words = 1.0 if kind in NUMERIC else MAX_WORDS
    column = Reading.of(Contents.of(cells), max_words=max_words).column(cells)
    if column.kind == "empty":
        return column._replace(kind=kind)
    if column.kind == kind or (kind in NUMERIC and column.kind in NUMERIC):
        return _in_zone(column, zone)
    shown = _examples(cells)
    raise ValueError(
        f"Column {cells.name!r} held {_plural(kind)} when the model was fitted, and now holds "
        f"{_plural(column.kind)} ({shown}). Give {_plural(kind)}."
    )


def _plural(kind: str) -> str:
    return {"category": "categories", "ordered": "ordered categories"}.get(kind, f"{kind}s")


def _examples(cells: Cells) -> str:
    if cells.type == "object":
        shown = [repr(cell) for cell in cells.distinct[:N_SHOWN]]
    else:
        present = cells.values[~np.isnan(cells.values)]
        shown = [f"{value:g}" for value in present[:N_SHOWN]]
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
    for value in np.unique(values[~np.isnan(values)]):
        moment = (start + timedelta(seconds=float(value))).replace(tzinfo=own).astimezone(UTC)
        wall = moment.astimezone(other).replace(tzinfo=None)
        values[column.values == value] = (wall - start).total_seconds()
    return column._replace(values=values, zone=zone)


def _as_category(contents: Contents) -> Reading:
    if contents.type == "object":
        names = [level_of(cell) for cell in contents.distinct]
    else:
        is_flag = contents.type == "flag"
        names = [str(bool(v)) if is_flag else level_of(float(v)) for v in contents.distinct]
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
    name, distinct, counts = contents.name, contents.distinct, contents.counts
    assert counts is not None, "objects are counted"
    for kind, typed, parsed in (
        ("number", number_of, parse_number),
        ("date", date_of, parse_date),
        ("time", time_of, None),
    ):
        if kind == "number" and _are_codes(distinct):
            continue
        values = _read_each(distinct, typed, parsed)
        is_read = ~np.isnan(values) | np.array([_is_marked(cell) for cell in distinct])
        n_wrong, n_read = counts[~is_read].sum(), counts[~np.isnan(values)].sum()
        if n_read == 0 or (n_wrong >= n_read and max_words < 1.0):
            continue
        shown = ", ".join(repr(distinct[k]) for k in np.flatnonzero(~is_read)[:N_SHOWN])
        note = f"{n_wrong} unreadable cells are missing: {shown}" if n_wrong else ""
        found = (
            f"Column {name!r} holds {kind}s, but {n_wrong} of {contents.n_rows} cells are none: "
            f"{shown}{', ...' if (~is_read).sum() > N_SHOWN else ''}."
        )
        are_names = len(distinct) <= MAX_LEVELS * counts.sum()
        if are_names and n_wrong > max_words * contents.n_rows:
            taken = f"It is taken as a category; make these cells missing to have {kind}s."
            return _as_category(contents)._replace(warning=f"{found} {taken}")
        warning = ""
        if n_wrong > MAX_UNREADABLE * contents.n_rows:
            taken = "They count as missing; declare the column if it is a category: "
            warning = f"{found} {taken}categorical_features=[{name!r}]."
        texts = [cell.strip() for cell in distinct if isinstance(cell, str)]
        if kind == "number" and len(texts) == len(distinct) and set(texts) <= set(TRUTHS):
            kind = "flag"
        if kind == "number" and all(hasattr(cell, "total_seconds") for cell in distinct):
            kind = "duration"
        zone = "UTC" if kind == "date" and any(map(_is_aware, distinct)) else None
        read = dict(zip(map(key_of, distinct), values.tolist(), strict=True))
        return Reading(kind, values=read, zone=zone, note=note, warning=warning)
    return _as_category(contents)


def _read_each(
    distinct: tuple[Any, ...],
    typed: Callable[[Any], float | None],
    parsed: Callable[[str], float | None] | None,
) -> Array:
    values = np.full(len(distinct), np.nan)
    for k, cell in enumerate(distinct):
        read = parsed if isinstance(cell, str) else typed
        found = None if read is None else read(cell)
        if found is not None:
            values[k] = found
    return values


def _is_marked(cell: object) -> bool:
    return isinstance(cell, str) and cell.strip() in MISSING


def _are_codes(distinct: tuple[object, ...]) -> bool:
    """Whether all cells are texts of digits, some of which start with a zero: 02134."""
    texts = [cell.strip() for cell in distinct if isinstance(cell, str)]
    if len(texts) < len(distinct):
        return False
    present = [text for text in texts if text not in MISSING]
    return all(re.match(INTEGER, text) for text in present) and any(
        re.match(CODE, text) for text in present
    )


def _is_aware(cell: object) -> bool:
    if isinstance(cell, str):
        time = cell.strip()[10:]
        return time.endswith("Z") or "+" in time or "-" in time
    return getattr(cell, "tzinfo", None) is not None
