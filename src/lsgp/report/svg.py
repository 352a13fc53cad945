# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of matplotlib as SVG inside of the page: in its fonts and colors, light and dark."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from lsgp.plotting import style
from lsgp.plotting.style import Axes

#: Inches of axes that fill a column, of one of several small ones, and the height of a row.
WIDE, SMALL, ROW = (4.7, 3.0), (2.9, 2.1), 0.25

#: Pixels of the screen, at most, for each of the SVG.
LARGEST = 1.5

#: Colors of pictures, and the variables of the style sheet that stand for them.
COLORS = {
    color.lower(): f"var({name})"
    for color, name in (
        ("#000000", "--ink"),
        ("#ffffff", "--paper"),
        ("#1f77b4", "--mark"),  # matplotlib's own first color, inside of marks without an inside
        (style.INK, "--ink"),
        (style.GRAY, "--soft"),
        (style.PALE, "--pale"),
        (style.BLUE, "--mark"),
        (style.SKY, "--bar"),
        (style.VERMILLION, "--warn"),
    )
}

#: What differs from matplotlib's own defaults; the user's settings do not matter.
SETTINGS = {
    "axes.edgecolor": style.GRAY,
    "axes.labelcolor": style.GRAY,
    "axes.linewidth": 0.6,
    "axes.titlecolor": style.GRAY,
    "font.sans-serif": ["DejaVu Sans"],
    "svg.fonttype": "none",
    "svg.hashsalt": "lsgp",
    # A dollar in the name of a column is a dollar.
    "text.parse_math": False,
    "xtick.color": style.GRAY,
    "ytick.color": style.GRAY,
}
#: The font of the measurements as it is called in the SVG, and what the page has instead.
FONT, PAGE_FONT = "'DejaVu Sans', sans-serif", "system-ui, sans-serif"


def picture(
    draw: Callable[[Axes], object], description: str, size: tuple[float, float] = WIDE
) -> str:
    """What ``draw`` draws on the axes of a new figure, as SVG for a page.

    Ids are its own, colors are those of the page. ``description`` is for those who do not see it;
    the size is in inches.
    """
    from matplotlib import style as styles
    from matplotlib.figure import Figure

    file, tips = io.StringIO(), list[Sequence[str | int]]()
    with warnings.catch_warnings(), styles.context(["default", SETTINGS]):
        # Browsers have other fonts for the glyphs that this one lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure = Figure(figsize=size)
        # The axes fill it; names around them make the picture larger when it is saved.
        draw(style.one_axes(figure.add_axes((0.0, 0.0, 1.0, 1.0))))
        for artist in figure.findobj(style.TIPS.__contains__):
            artist.set_gid(f"tips-{len(tips)}")
            tips.append(style.TIPS[artist])
        figure.patch.set_visible(False)
        around: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.03}
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None}, **around)
    # Names may hold any character, and XML only some.
    text = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", file.getvalue())
    key = "p" + hashlib.sha256((description + text).encode()).hexdigest()[:8]
    text = text.replace(' xmlns="http://www.w3.org/2000/svg"', "").replace("xlink:href", "href")
    used = dict.fromkeys(re.findall(r'(?:href="|url\()#([^")]+)', text))
    root = ET.fromstring(text)
    for k, each in enumerate(tips):
        _tell(root, f"tips-{k}", each)
    _clean(root, {name: f"{key}-{k}" for k, name in enumerate(used)})
    box = root.attrib["viewBox"]
    # As wide as its place, but no wider than that letters are as large as those around it.
    width = f"max-width: {LARGEST * float(box.split()[2]):.0f}px"
    root.attrib = {"class": "chart", "viewBox": box, "style": width, "role": "img"}
    root.attrib["aria-label"] = description
    return ET.tostring(root, encoding="unicode")


def _tell(root: ET.Element, gid: str, tips: Sequence[str | int]) -> None:
    """Give each mark of an artist its text, or the number of its observation."""
    group = root.find(f".//g[@id='{gid}']")
    if group is None:
        return
    # Markers are used where they are; bars, and a few marks of other kinds, are paths.
    marks = group.findall(".//use") or [*group.findall("path"), *group.findall("g/path")]
    if len(marks) != len(tips):
        # Marks that are not finite are not drawn: better no text than that of another mark.
        return
    for mark, tip in zip(marks, tips, strict=True):
        mark.set("data-tip" if isinstance(tip, str) else "data-i", str(tip))
    looks = {mark.get("style", "") for mark in marks}
    if len(looks) == 1:
        group.set("style", looks.pop())
        for mark in marks:
            mark.attrib.pop("style", None)


def _clean(root: ET.Element, names: dict[str, str]) -> None:
    """Leave out what only matplotlib reads; ``names`` are the new ones of ids that are used."""
    for element in root.iter():
        element[:] = [child for child in element if child.tag not in ("metadata", "style")]
        element.tail = None
        if element.tag != "text":
            element.text = None
        own = element.attrib.pop("id", None)
        if own in names:
            element.set("id", names[own])
        if element.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]
        for name, value in element.attrib.items():
            if name in ("href", "clip-path"):
                value = re.sub("#([^)]+)", lambda found: f"#{names[found[1]]}", value)
            elif name in ("d", "x", "y"):
                value = re.sub(r"(\.\d\d)\d+", r"\1", " ".join(value.split()))
            elif name == "style":
                value = re.sub(r"image-rendering:[\w-]+;?", "", value).replace(FONT, PAGE_FONT)
                value = re.sub("#[0-9a-f]{6}", lambda found: COLORS.get(found[0], found[0]), value)
            element.set(name, value)
