# SPDX-License-Identifier: BSD-3-Clause
"""The page around the parts of a report: one file, which asks nothing of the network."""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from importlib.resources import files
from pathlib import Path

#: The sections of a model's page, and what links to them say.
MODEL_LINKS = (
    ("quality", "Accuracy"),
    ("predictions", "Predictions"),
    ("relevance", "Inputs"),
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


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write to a temporary file beside ``path``, then rename: never half a page."""
    # A link keeps pointing to its file, which is what is replaced.
    final = Path(path).resolve()
    if not final.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {final.parent} to write the report to.")
    if final.is_dir():
        raise IsADirectoryError(f"{final} is a folder. Give the name of a file to write.")
    descriptor, name = tempfile.mkstemp(prefix=f".{final.name}.", suffix=".tmp", dir=final.parent)
    temporary = Path(name)
    try:
        # Lone surrogates, which some column names have, are no text that UTF-8 knows.
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_mode_of(final))
        temporary.replace(final)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _mode_of(final: Path) -> int:
    """The mode of the file that is replaced, or that of any new file; mkstemp is stricter."""
    if final.exists():
        return final.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
