# SPDX-License-Identifier: BSD-3-Clause
"""HTML tables, whose texts are escaped here and whose numbers carry their value for sorting."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from lsgp.report.axes import format_number

#: Texts of more characters may be broken into lines.
LONG_TEXT = 32


class Html(NamedTuple):
    """A cell that is HTML already."""

    text: str


class Number(NamedTuple):
    """A number that is shown in its own way."""

    value: float
    text: str


def cell(value: object, tag: str = "td") -> str:
    """One cell; a number to the right with its exact value, anything else as escaped text."""
    if isinstance(value, Html):
        return f"<{tag}>{value.text}</{tag}>"
    if isinstance(value, Number):
        return f'<{tag} data-v="{float(value.value)!r}">{escape(value.text)}</{tag}>'
    if isinstance(value, (bool, np.bool_)):
        return f'<{tag} class="text">{"yes" if value else "no"}</{tag}>'
    if isinstance(value, (int, np.integer)):
        return f'<{tag} data-v="{int(value)}">{int(value):,}</{tag}>'
    if isinstance(value, (float, np.floating)):
        return f'<{tag} data-v="{float(value)!r}">{format_number(float(value))}</{tag}>'
    if value is None:
        return f'<{tag} data-v="NaN">–</{tag}>'
    # Short texts stay on one line, and the table scrolls: a word that is cut cannot be read.
    kind = "text long" if len(str(value)) > LONG_TEXT else "text"
    return f'<{tag} class="{kind}">{escape(str(value))}</{tag}>'


def head(columns: Sequence[str], texts: Sequence[int] = (), sortable: bool = True) -> str:
    """The head of a table; ``texts`` are the columns that hold text."""
    parts = []
    for k, name in enumerate(columns):
        kind = ' class="text"' if k in texts else ""
        label = escape(name)
        inside = f'<button type="button">{label}</button>' if sortable and name else label
        parts.append(f'<th scope="col"{kind}>{inside}</th>')
    return f"<thead><tr>{''.join(parts)}</tr></thead>"


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    texts: Sequence[int] = (),
    sortable: bool = True,
    chosen: Sequence[bool] | None = None,
    kind: str = "",
    name: str = "",
) -> str:
    """A table of rows of cells; ``chosen`` rows stand out."""
    lines = []
    for k, row in enumerate(rows):
        mark = ' class="chosen"' if chosen is not None and chosen[k] else ""
        lines.append(f"<tr{mark}>{''.join(map(cell, row))}</tr>")
    attributes = f' id="{name}"' if name else ""
    classes = " ".join(filter(None, ["sortable" if sortable else "", kind]))
    return (
        f'<div class="table"><table{attributes} class="{classes}">'
        f"{head(columns, texts, sortable)}<tbody>{''.join(lines)}</tbody></table></div>"
    )


def facts(pairs: Sequence[tuple[str, object]]) -> str:
    """A table of two columns without a head: what, and its value."""
    lines = "".join(f'<tr><td class="text soft">{escape(k)}</td>{cell(v)}</tr>' for k, v in pairs)
    return f'<div class="table"><table class="plain"><tbody>{lines}</tbody></table></div>'
