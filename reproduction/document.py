# SPDX-License-Identifier: BSD-3-Clause
"""A report as plain parts, written as Markdown and as a single HTML page."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from lsgp.report import page


class Text(NamedTuple):
    """A paragraph; ``**bold**`` and backquotes are as in Markdown."""

    text: str


class Verdict(NamedTuple):
    """A sentence that stands out; kind is good, warn or plain."""

    text: str
    kind: str = "plain"


class Items(NamedTuple):
    """A list of sentences."""

    items: Sequence[str]


class Grid(NamedTuple):
    """A table, with cells as in Text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    left: Sequence[int] = (0,)
    """Columns that hold text."""


class Picture(NamedTuple):
    """A figure of the output folder, by its name without the ending."""

    name: str
    caption: str


class Folded(NamedTuple):
    """Parts that are shown on demand on the page."""

    title: str
    parts: Sequence[Part]


Part = Text | Verdict | Items | Grid | Picture | Folded


class Section(NamedTuple):
    """A heading and what is under it; ``key`` is its anchor, ``label`` its link."""

    key: str
    label: str
    title: str
    parts: Sequence[Part]


class Document(NamedTuple):
    """The whole report; tiles are numbers with what they are."""

    title: str
    subtitle: str
    tiles: Sequence[tuple[str, str]]
    sections: Sequence[Section]
    foot: str


def to_markdown(document: Document) -> str:
    lines = [f"# {document.title}", "", document.subtitle, ""]
    for section in document.sections:
        lines += [f"## {section.title}", ""]
        for part in section.parts:
            lines += [_markdown(part), ""]
    return "\n".join([*lines, document.foot, ""])


def to_html(document: Document, folder: Path) -> str:
    """One file: the pictures are inside, and nothing is loaded."""
    from markupsafe import Markup

    sections = [
        page.Section(
            section.key,
            section.label,
            Markup("\n").join(
                [
                    Markup("<h2>{}</h2>").format(section.title),
                    *(Markup(_html(part, folder)) for part in section.parts),
                ]
            ),
        )
        for section in document.sections
    ]
    return page.write_page(
        document.title,
        sections,
        subtitle=document.subtitle,
        tiles=[(Markup(_inline(value)), Markup(_inline(what))) for value, what in document.tiles],
        foot=document.foot,
    )


def _markdown(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Verdict):
        return f"> {part.text}"
    if isinstance(part, Items):
        return "\n".join(f"- {item}" for item in part.items)
    if isinstance(part, Picture):
        return f"![{part.caption}]({part.name}.png)\n\n*{part.caption}*"
    if isinstance(part, Folded):
        return "\n\n".join([f"### {part.title}", *map(_markdown, part.parts)])
    rule = ["---" if k in part.left else "---:" for k in range(len(part.columns))]
    rows = [part.columns, rule, *part.rows]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{table}\n\n*{part.caption}*" if part.caption else table


def _html(part: Part, folder: Path) -> str:
    if isinstance(part, Text):
        return f"<p>{_inline(part.text)}</p>"
    if isinstance(part, Verdict):
        return f'<p class="verdict {part.kind}">{_inline(part.text)}</p>'
    if isinstance(part, Items):
        return f"<ul>{''.join(f'<li>{_inline(item)}</li>' for item in part.items)}</ul>"
    if isinstance(part, Picture):
        data = base64.b64encode((folder / f"{part.name}.svg").read_bytes()).decode()
        return (
            f'<figure style="margin: 0 0 20px"><img alt="{escape(part.caption)}" '
            f'src="data:image/svg+xml;base64,{data}">'
            f"<figcaption>{_inline(part.caption)}</figcaption></figure>"
        )
    if isinstance(part, Folded):
        inside = "\n".join(_html(one, folder) for one in part.parts)
        return f"<details><summary>{escape(part.title)}</summary>\n{inside}\n</details>"
    kinds = ['class="text"' if k in part.left else "" for k in range(len(part.columns))]
    head = "".join(
        f'<th scope="col" {kind}>{_inline(name)}</th>'
        for name, kind in zip(part.columns, kinds, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td {kind}>{_inline(value)}</td>" for value, kind in zip(row, kinds, strict=True)
        )
        + "</tr>"
        for row in part.rows
    )
    caption = f'<p class="soft small">{_inline(part.caption)}</p>' if part.caption else ""
    return (
        f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f"</div>{caption}"
    )


def _inline(text: str) -> str:
    """Escaped text with bold and code."""
    safe = escape(text)
    safe = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", safe)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", safe)
