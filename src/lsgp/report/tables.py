# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the page: cells with the text that is read and the number that sorts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lsgp.plotting.style import number


class Number(NamedTuple):
    """A number that is shown in its own way."""

    value: float
    text: str


class Bar(NamedTuple):
    """A small bar to the left or right of a middle line."""

    share: float  # of the length, between -1 and 1


class Cell(NamedTuple):
    """What a template shows."""

    text: str
    value: str | None = None  # what sorts it, as a number of JavaScript; None: its text
    share: float | None = None  # of a bar


class Table(NamedTuple):
    """Columns and rows; the chosen rows stand out."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    name: str = ""
    is_sortable: bool = True
    chosen: Sequence[bool] = ()

    def is_text(self, column: int) -> bool:
        """Whether all cells of a column are texts."""
        return all(row[column].value is None for row in self.rows)


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    name: str = "",
    is_sortable: bool = True,
    chosen: Sequence[bool] = (),
) -> Table:
    """A table of any values."""
    return Table(
        columns, [[cell(value) for value in row] for row in rows], name, is_sortable, chosen
    )


def cell(value: object) -> Cell:
    """A number with its exact value, or a text."""
    if isinstance(value, Bar):
        return Cell("", share=value.share)
    if isinstance(value, Number):
        return Cell(value.text, repr(float(value.value)))
    if isinstance(value, (int, np.integer)):
        return Cell(f"{int(value):,}", str(int(value)))
    if isinstance(value, (float, np.floating)):
        return Cell(number(float(value)), repr(float(value)))
    if value is None:
        return Cell("–", "NaN")
    return Cell(str(value))
