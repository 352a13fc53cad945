# SPDX-License-Identifier: BSD-3-Clause
"""Draws `images/architecture.svg` from what the modules of lsgp import.

To draw it again:

    python docs/architecture_picture.py

Rooms are boxes, each above all that it imports. An arrow is an import; those that follow from
others are left out. The text of a box is the first clause of the room's docstring.
"""

from __future__ import annotations

import ast
import re
from html import escape
from pathlib import Path
from textwrap import shorten

from import_graph import ROOT, imported_rooms

PICTURE = Path(__file__).with_name("images") / "architecture.svg"

#: `lsgp` itself is the estimators' door, and `__main__` that of the command line.
DOORS = {"lsgp": "estimators", "__main__": "cli"}

#: In units of the picture, which has the width of a phone.
WIDTH, BOX_HEIGHT, GAP, MARGIN = 420, 44, 13, 4
LANE, GUTTER = 9, 12
#: What fits into a box.
MOST_LETTERS = 52
BOX, EDGE, INK, SOFT = "#f3f7fb", "#0072b2", "#1b1b1b", "#444444"
#: Seen on white and on black.
ARROW = "#7a8794"


def draw() -> str:
    """The picture, of the code as it is now."""
    imports = _merge_doors(imported_rooms())
    order = _order(imports)
    arrows = _reduce(imports)
    place = {room: k for k, room in enumerate(order)}
    # The shortest first, so that those that jump over many run outside.
    jumps = sorted(
        ((a, b) for a in order for b in arrows[a] if place[b] - place[a] > 1),
        key=lambda jump: (place[jump[1]] - place[jump[0]], place[jump[0]], place[jump[1]]),
    )
    lanes = _assign_lanes(jumps, place)
    left = MARGIN + GUTTER + LANE * (1 + max(lanes.values(), default=0))
    height = 2 * MARGIN + len(order) * BOX_HEIGHT + (len(order) - 1) * GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="system-ui, sans-serif" role="img">',
        "<title>The rooms of lsgp, each above those that it imports</title>",
    ]
    for (start, end), lane in lanes.items():
        x = left - GUTTER - LANE * lane
        # Arrows leave a box in its lower half, and arrive in the upper.
        y0, y1 = (_top(place[start]) + 0.7 * BOX_HEIGHT, _top(place[end]) + 0.3 * BOX_HEIGHT)
        parts.append(_path(f"M {left} {y0:g} H {x} V {y1:g} H {left - 5}"))
        parts.append(_head(left, y1, "right"))
    for start in order:
        for end in sorted(arrows[start]):
            if place[end] - place[start] == 1:
                x, y = left + 24, _top(place[end])
                parts.append(_path(f"M {x} {y - GAP} V {y - 5}"))
                parts.append(_head(x, y, "down"))
    for room in order:
        y = _top(place[room])
        parts += [
            f'<rect x="{left}" y="{y}" width="{WIDTH - MARGIN - left}" height="{BOX_HEIGHT}" '
            f'rx="5" fill="{BOX}" stroke="{EDGE}"/>',
            f'<text x="{left + 9}" y="{y + 18}" font-size="14" font-weight="600" '
            f'fill="{INK}">{escape(room)}</text>',
            f'<text x="{left + 9}" y="{y + 35}" font-size="11.5" '
            f'fill="{SOFT}">{escape(_first_clause(room))}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def _merge_doors(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    merged: dict[str, set[str]] = {}
    for room, used in imports.items():
        own = DOORS.get(room, room)
        merged.setdefault(own, set()).update({DOORS.get(name, name) for name in used} - {own})
    return merged


def _order(imports: dict[str, set[str]]) -> list[str]:
    """Each room before those that it imports, which follow as soon as they can."""

    def depth(room: str) -> int:
        return 1 + max(map(depth, imports[room]), default=0)

    return sorted(imports, key=lambda room: (-depth(room), room))


def _reduce(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """The imports that do not follow from others: the transitive reduction."""

    def reachable(room: str) -> set[str]:
        return set().union(imports[room], *map(reachable, imports[room]))

    return {
        room: used - set().union(*(reachable(other) for other in used))
        for room, used in imports.items()
    }


def _assign_lanes(
    jumps: list[tuple[str, str]], place: dict[str, int]
) -> dict[tuple[str, str], int]:
    """The lane of each arrow beside the boxes: the innermost that is free all along."""
    taken: list[list[tuple[int, int]]] = []
    lanes = {}
    for start, end in jumps:
        span = (place[start], place[end])
        lane = 0
        while lane < len(taken) and any(a < span[1] and span[0] < b for a, b in taken[lane]):
            lane += 1
        if lane == len(taken):
            taken.append([])
        taken[lane].append(span)
        lanes[start, end] = lane
    return lanes


def _top(place: int) -> int:
    return MARGIN + place * (BOX_HEIGHT + GAP)


def _path(steps: str) -> str:
    return f'<path d="{steps}" fill="none" stroke="{ARROW}" stroke-width="1.4"/>'


def _head(x: float, y: float, direction: str) -> str:
    steps = "l -7 -4 v 8 z" if direction == "right" else "l -4 -7 h 8 z"
    return f'<path d="M {x:g} {y:g} {steps}" fill="{ARROW}"/>'


def _first_clause(room: str) -> str:
    """What comes before a mark in the docstring, with three words or more."""
    path = ROOT / room / "__init__.py" if (ROOT / room).is_dir() else ROOT / f"{room}.py"
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    text = " ".join(docstring.split("\n\n")[0].replace("`", "").split())
    text = re.sub(r" \([^)]*\)", "", text)
    text = re.sub(rf"^{room}: (.)", lambda found: found[1].upper(), text, flags=re.IGNORECASE)
    for mark in re.finditer(r"[,;:.](?=\s|$)", text):
        if len(text[: mark.start()].split()) >= 3:
            text = text[: mark.start()]
            break
    return shorten(text, MOST_LETTERS, placeholder=" …")


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8", newline="\n")
