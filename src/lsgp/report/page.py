# SPDX-License-Identifier: BSD-3-Clause
"""The page around its sections: one file, which asks nothing of the network; and its tables."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsgp import __version__
from lsgp.compute.text import count, percent
from lsgp.plotting.style import number

if TYPE_CHECKING:
    from jinja2 import Environment


class Section(NamedTuple):
    """A part of the page, and the link to it."""

    key: str
    label: str
    body: str  # HTML


class Number(NamedTuple):
    """A number of a table that is shown in its own way."""

    value: float
    text: str


class Bar(NamedTuple):
    """A small bar to the left or right of a middle line."""

    share: float  # of the length, between -1 and 1


class Table(NamedTuple):
    """Columns and rows of texts, numbers, None, `Number` and `Bar`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    @classmethod
    def of(cls, *columns: tuple[str, Iterable[object]]) -> Table:
        """A table of columns with their names."""
        names, values = zip(*columns, strict=True)
        return cls(names, list(zip(*values, strict=True)))

    def is_text(self, column: int) -> bool:
        """Whether all cells of a column are texts."""
        return all(sort_key(row[column]) is None for row in self.rows)


def as_percent(shares: Iterable[float]) -> list[Number]:
    """Cells of shares."""
    return [Number(float(share), percent(float(share))) for share in shares]


def sort_key(value: object) -> str | None:
    """The number that sorts a cell, as JavaScript reads it; None for texts."""
    if value is None:
        return "NaN"
    if isinstance(value, Number):
        value = float(value.value)
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    return repr(float(value)) if isinstance(value, (float, np.floating)) else None


def cell_text(value: object) -> str:
    """The text of a cell."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, (int, np.integer)):
        return f"{int(value):,}"
    if isinstance(value, (float, np.floating)):
        return number(value)
    return "–" if value is None else str(value)


def require_extra() -> None:
    """Raise the one error that says how to get what draws and writes pages."""
    missing = [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]
    if missing:
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        raise ImportError(
            f"A report needs {' and '.join(missing)}, which {are} not installed. Install {them} "
            "with: pip install 'lsgp[plot]'"
        )


def section(
    key: str, label: str, facts: Mapping[str, object], template: str | None = None
) -> Section:
    """The section that a template, by default of the name of its key, makes of facts."""
    text = _environment().get_template(f"{template or key}.html").render(facts)
    return Section(key, label, text)


def write_page(
    title: str,
    sections: Sequence[Section],
    *,
    subtitle: str | None = None,
    tiles: Sequence[tuple[str, str]] = (),
    observations: Mapping[str, object] | None = None,
    foot: str | None = None,
) -> str:
    """The whole page.

    ``tiles`` are numbers to see first, with what they are; ``observations`` are the texts of the
    points in charts, by the source and target of their panel.
    """
    style, script = (
        files("lsgp.report").joinpath("templates", name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js")
    )
    now = datetime.now().astimezone()
    own_foot = f"Written by lsgp {__version__}. Everything on this page is in this file: it loads "
    facts = {
        "title": title,
        "subtitle": subtitle or f"lsgp {__version__} · {now:%Y-%m-%d %H:%M %Z}",
        "tiles": tiles,
        "sections": sections,
        "observations": observations or {},
        "foot": foot or f"{own_foot}nothing.",
        "style": style,
        "script": script,
        # Nothing else runs, whatever the names in the data are.
        "digest": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    return _environment().get_template("page.html").render(facts)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("lsgp.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters.update(number=number, percent=percent, count=count)
    made.filters.update(sort_key=sort_key, cell_text=cell_text)
    made.globals["m"] = made.get_template("macros.html").module
    return made
