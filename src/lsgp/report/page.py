# SPDX-License-Identifier: BSD-3-Clause
"""The page around its sections: one file, which asks nothing of the network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from lsgp import __version__
from lsgp.compute.text import count, percent
from lsgp.plotting.style import number

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


class Section(NamedTuple):
    """A part of the page, and the link to it."""

    key: str
    label: str
    body: Markup


def require_extra() -> None:
    """Raise the one error that says how to get what draws and writes pages."""
    missing = [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]
    if missing:
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        raise ImportError(
            f"A report needs {' and '.join(missing)}, which {are} not installed. Install {them} "
            "with: pip install 'lsgp[plot]'"
        )


def section(key: str, label: str, template: str | None = None, **facts: object) -> Section:
    """The section that a template, by default of the name of its key, makes of facts."""
    from markupsafe import Markup

    text = _environment().get_template(f"{template or key}.html").render(facts)
    return Section(key, label, Markup(text))


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
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            subtitle=subtitle or f"lsgp {__version__} · {now:%Y-%m-%d %H:%M %Z}",
            tiles=tiles,
            sections=sections,
            observations=observations or {},
            foot=foot
            or f"Written by lsgp {__version__}. Everything on this page is in this file: it loads "
            "nothing.",
            style=style,
            script=script,
            # Nothing else runs, whatever the names in the data are.
            digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


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
    made.globals["m"] = made.get_template("macros.html").module
    return made
