# SPDX-License-Identifier: BSD-3-Clause
"""The page around the parts of a report: one file, which asks nothing of the network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files

#: The sections of a model's page, and what links to them say.
MODEL_LINKS = (
    ("quality", "Accuracy"),
    ("predictions", "Predictions"),
    ("importance", "Inputs"),
    ("extrapolation", "Extrapolation"),
    ("worst", "Worst predictions"),
    ("fitted", "Model"),
    ("tuning", "Tuning"),
)


def assemble(
    title: str,
    subtitle: str,
    parts: Sequence[str],
    observations: str,
    foot: str,
    links: Sequence[tuple[str, str]] = MODEL_LINKS,
) -> str:
    """The whole page. ``parts`` are HTML: tiles, then sections with an id and a heading."""
    style = files("lsgp.report").joinpath("page.css").read_text(encoding="utf-8")
    script = files("lsgp.report").joinpath("page.js").read_text(encoding="utf-8")
    # Nothing is loaded, and no other script runs, whatever the names in the data are.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    anchors = "".join(
        f'<a href="#{name}">{escape(label)}</a>'
        for name, label in links
        if any(f'id="{name}"' in part for part in parts)
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n"
        f'<div class="topbar"><div class="topbar-inner"><nav aria-label="Sections">{anchors}</nav>'
        '<button type="button" id="theme">Dark</button></div></div>\n<main>\n'
        f'<header class="top"><h1>{escape(title)}</h1><p class="soft">{escape(subtitle)}</p>'
        f"</header>\n{chr(10).join(parts)}\n</main>\n<footer>{escape(foot)}</footer>\n"
        '<div id="tip" role="status" hidden></div>\n'
        f'<script type="application/json" id="observations">{observations}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )
