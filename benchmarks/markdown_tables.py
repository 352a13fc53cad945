# SPDX-License-Identifier: BSD-3-Clause
"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], n_texts: int | None = 1
) -> str:
    """The rows under their head; all but the first columns are numbers, None: none is."""
    n_texts = len(head) if n_texts is None else n_texts
    rule = "|" + "---|" * n_texts + "---:|" * (len(head) - n_texts)
    return "\n".join([_line(head), rule, *map(_line, rows)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
