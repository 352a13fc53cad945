# SPDX-License-Identifier: BSD-3-Clause
"""The charts of the report as SVG text.

What the page's script needs to know about a mark is an attribute of
it: ``data-i`` is the number of an observation, ``data-tip`` the text of its tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import percent
from lsgp.ensemble.effects import Effect
from lsgp.ensemble.picture_facts import largest_shown
from lsgp.report.axes import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axes,
    Scale,
    draw_axes,
    format_number,
    limits,
    shorten,
    tick_labels,
    ticks,
    wrap,
)

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


def _points(x: Array, y: Array, axes: Axes, numbers: Iterable[int], is_out: Flags) -> str:
    marks = []
    for number, across, up, out in zip(numbers, x, y, is_out, strict=True):
        if math.isfinite(across) and math.isfinite(up):
            kind = "pt out" if out else "pt"
            marks.append(
                f'<circle class="{kind}" cx="{axes.x(across):.1f}" cy="{axes.y(up):.1f}" '
                f'r="{3.1 if out else 2.6}" data-i="{number}"/>'
            )
    # Those outside their intervals are drawn last, on top.
    return "".join(sorted(marks, key=lambda mark: "pt out" in mark))


def observed_chart(
    observed: Array, predicted: Array, numbers: Sequence[int], is_out: Flags, name: str
) -> str:
    """Observations against predictions, with the diagonal."""
    ends = limits([*observed, *predicted])
    axes = draw_axes(ends, ends, f"predicted {name}", f"observed {name}")
    diagonal = (
        f'<line class="reference" x1="{axes.x(ends[0]):.1f}" y1="{axes.y(ends[0]):.1f}" '
        f'x2="{axes.x(ends[1]):.1f}" y2="{axes.y(ends[1]):.1f}"/>'
    )
    marks = _points(predicted, observed, axes, numbers, is_out)
    return wrap(axes.svg + diagonal + marks, f"Observed against predicted {name}")


def residual_chart(
    residuals: Array, predicted: Array, numbers: Sequence[int], is_out: Flags, name: str
) -> str:
    """Residuals against predictions; those outside the 90 % interval stand out."""
    low, high = limits([*residuals, 0.0])
    axes = draw_axes(limits(predicted), (low, high), f"predicted {name}", "observed − predicted")
    zero = f"{axes.y(0.0):.1f}"
    line = f'<line class="reference" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{zero}" y2="{zero}"/>'
    marks = _points(predicted, residuals, axes, numbers, is_out)
    return wrap(axes.svg + line + marks, f"Residuals against predicted {name}")


def _polygon(x: Sequence[float], low: Sequence[float], high: Sequence[float], axes: Axes) -> str:
    there = [f"{axes.x(a):.1f},{axes.y(b):.1f}" for a, b in zip(x, high, strict=True)]
    back = [f"{axes.x(a):.1f},{axes.y(b):.1f}" for a, b in zip(x, low, strict=True)]
    return " ".join(there + back[::-1])


def _polyline(x: Sequence[float], y: Sequence[float], axes: Axes) -> str:
    return " ".join(f"{axes.x(a):.1f},{axes.y(b):.1f}" for a, b in zip(x, y, strict=True))


def reliability_chart(
    levels: Array, coverage: Array, band: Callable[[Array], tuple[Array, Array]]
) -> str:
    """Coverage of central intervals by their level; ``band(levels)`` is what chance allows."""
    label = "share of observations inside"
    axes = draw_axes((0.0, 1.0), (0.0, 1.02), "level of the interval", label)
    grid = np.linspace(0.0, 1.0, 51)
    low, high = band(grid)
    parts = [
        axes.svg,
        f'<polygon class="band" points="{_polygon(list(grid), list(low), list(high), axes)}"/>',
        f'<polyline class="reference" points="{_polyline([0, 1], [0, 1], axes)}"/>',
        f'<polyline class="line" points="{_polyline(list(levels), list(coverage), axes)}"/>',
    ]
    for level, share in zip(levels, coverage, strict=True):
        tip = f"The {100 * level:g} % intervals hold {percent(share)} of the observations"
        parts.append(
            f'<circle class="dot" cx="{axes.x(level):.1f}" cy="{axes.y(share):.1f}" r="4.5" '
            f'tabindex="0" data-tip="{escape(tip, quote=True)}"/>'
        )
    return wrap("".join(parts), "Coverage of central intervals by their level")


def histogram_chart(
    counts: Sequence[float],
    edges: Sequence[float],
    x_label: str,
    y_label: str,
    tips: Sequence[str],
    *,
    band: tuple[float, float] | None = None,
    reference: float | None = None,
    threshold: float | None = None,
) -> str:
    """Bars between edges; a band and a line across at what is expected, or a line up."""
    top = max([*counts, *(band or ()), 1e-12])
    axes = draw_axes((edges[0], edges[-1]), (0.0, 1.1 * top), x_label, y_label)
    parts = [axes.svg]
    base = axes.y(0.0)
    for k, (count, tip) in enumerate(zip(counts, tips, strict=True)):
        left, right = axes.x(edges[k]), axes.x(edges[k + 1])
        is_beyond = threshold is not None and edges[k] >= threshold * (1 - 1e-9)
        parts.append(
            f'<rect class="bar{" out" if is_beyond else ""}" x="{left + 0.6:.1f}" '
            f'width="{max(right - left - 1.2, 0.5):.1f}" y="{axes.y(count):.1f}" '
            f'height="{base - axes.y(count):.1f}" data-tip="{escape(tip, quote=True)}"/>'
        )
    across = f'x1="{LEFT}" x2="{WIDTH - RIGHT}"'
    if band is not None:
        low, high = axes.y(band[0]), axes.y(band[1])
        parts.append(
            f'<rect class="band" x="{LEFT}" width="{WIDTH - RIGHT - LEFT}" y="{high:.1f}" '
            f'height="{low - high:.1f}"/>'
        )
    if reference is not None:
        at = f"{axes.y(reference):.1f}"
        parts.append(f'<line class="reference" {across} y1="{at}" y2="{at}"/>')
    if threshold is not None and edges[0] <= threshold <= edges[-1]:
        at = f"{axes.x(threshold):.1f}"
        parts.append(
            f'<line class="reference" x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        )
    return wrap("".join(parts), f"Histogram: {x_label}")


def bar_chart(
    names: Sequence[str],
    values: Sequence[float],
    x_label: str,
    unit: str = "",
    errors: Sequence[float] | None = None,
) -> str:
    """Horizontal bars, one per name, with a line of one standard error if there are any."""
    row, left = 26, 190
    height = TOP + BOTTOM + row * len(names)
    widths = [0.0] * len(values) if errors is None else errors
    top = max([*(v + w for v, w in zip(values, widths, strict=True)), 1e-12])
    low = min([*(v - w for v, w in zip(values, widths, strict=True)), 0.0])
    axes = draw_axes(
        # What does slight harm is to the left of 0.
        (1.12 * low if low < -0.02 * top else 0.0, 1.16 * top),
        (0.0, 1.0),
        x_label,
        "",
        height=height,
        left=left,
        has_y_ticks=False,
    )
    parts = [axes.svg]
    zero = axes.x(0.0)
    for k, (name, value, width) in enumerate(zip(names, values, widths, strict=True)):
        y = TOP + row * k
        ends = [max(axes.x(value + sign * width), left) for sign in (-1.0, 1.0)]
        text = f"{format_number(value, 3)}{unit}"
        tip = f"{name}: {text}" + ("" if errors is None else f" ± {format_number(width, 2)}")
        start, stop = sorted([zero, max(axes.x(value), left)])
        whisker = (
            ""
            if errors is None
            else f'<line class="error" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" '
            f'y1="{y + row / 2}" y2="{y + row / 2}"/>'
        )
        parts.append(
            f'<text class="name" x="{left - 8}" y="{y + row / 2}" dy="0.34em" text-anchor="end">'
            f"{escape(shorten(name, 26))}</text>"
            f'<rect class="bar" x="{start:.1f}" y="{y + 4}" height="{row - 8}" '
            f'width="{max(stop - start, 0.5):.1f}" data-tip="{escape(tip, quote=True)}"/>{whisker}'
            f'<text class="value" x="{max(ends[1], zero) + 5:.1f}" y="{y + row / 2}" dy="0.34em">'
            f"{escape(text)}</text>"
        )
    return wrap("".join(parts), x_label, height)


def effect_chart(effect: Effect, y_limits: tuple[float, float], target: str) -> str:
    """The change of the mean along one input, with its band."""
    if effect.levels:
        return _level_chart(effect, y_limits, target)
    grid = effect.grid
    x_limits = (float(grid[0]), float(grid[-1])) if len(grid) > 1 else limits(grid)
    label = effect.name if effect.direction != "flat" else f"{effect.name} (flat)"
    axes = draw_axes(x_limits, y_limits, label, f"change of {target}")
    low, high = (effect.effect + sign * 2.0 * effect.standard_error for sign in (-1.0, 1.0))
    corners = _polygon(list(grid), list(low), list(high), axes)
    base = HEIGHT - BOTTOM
    ticks_below = "".join(
        f'<line class="rug" x1="{axes.x(value):.1f}" x2="{axes.x(value):.1f}" y1="{base}" '
        f'y2="{base - 6}"/>'
        for value in grid
    )
    return wrap(
        f'{axes.svg}<polygon class="fit-band" points="{corners}"/>{ticks_below}'
        f'<polyline class="line" points="{_polyline(list(grid), list(effect.effect), axes)}"/>',
        f"Effect of {effect.name} on {target}: {effect.direction}",
    )


def _level_chart(effect: Effect, y_limits: tuple[float, float], target: str) -> str:
    """A point with its error for each level of a category, which a pointer names."""
    k = len(effect.levels)
    label = f"{effect.name}: {', '.join(effect.levels[:3])}{', ...' if k > 3 else ''}"
    axes = draw_axes((-0.5, k - 0.5), y_limits, label, f"change of {target}")
    marks = []
    for at, level, mean, error in zip(
        effect.grid, effect.levels, effect.effect, effect.standard_error, strict=True
    ):
        x, low, high = axes.x(at), axes.y(mean - 2 * error), axes.y(mean + 2 * error)
        marks.append(
            f'<g><title>{escape(level)}: {mean:.4g}</title><line class="rug" x1="{x:.1f}" '
            f'x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
            f'<circle class="dot" cx="{x:.1f}" cy="{axes.y(mean):.1f}" r="3.5"/></g>'
        )
    return wrap(
        axes.svg + "".join(marks), f"Effect of {effect.name} on {target}: {effect.direction}"
    )


class Estimate(NamedTuple):
    """A row of `estimate_chart`."""

    name: str
    value: float
    error: float
    is_chosen: bool
    tip: str


def estimate_chart(rows: Sequence[Estimate], x_label: str, reference: float) -> str:
    """A dot with its standard error per row, and a line at the reference."""
    row, left = 24, 236
    height = TOP + BOTTOM + row * len(rows)
    last = largest_shown([r.value for r in rows], [r.error for r in rows])
    ends = [reference, last if math.isfinite(last) else reference]
    for r in rows:
        ends += [r.value - r.error, min(r.value + r.error, last)] if r.value <= last else []
    axes = draw_axes(
        limits(ends), (0.0, 1.0), x_label, "", height=height, left=left, has_y_ticks=False
    )
    at = f"{axes.x(reference):.1f}"
    parts = [
        axes.svg,
        f'<line class="reference" x1="{at}" x2="{at}" y1="{TOP}" y2="{height - BOTTOM}"/>',
    ]
    for k, item in enumerate(rows):
        y = TOP + row * (k + 0.5)
        low, high = axes.x(item.value - item.error), axes.x(item.value + item.error)
        kind = "chosen" if item.is_chosen else "other"
        if item.value > last:
            end = WIDTH - RIGHT
            mark = (
                f'<path class="dot {kind}" d="M{end - 8} {y - 5}l8 5l-8 5z" '
                f'data-tip="{escape(item.tip, quote=True)}"/>'
            )
        else:
            mark = (
                f'<line class="whisker {kind}" x1="{low:.1f}" x2="{min(high, WIDTH - RIGHT):.1f}" '
                f'y1="{y}" y2="{y}"/><circle class="dot {kind}" cx="{axes.x(item.value):.1f}" '
                f'cy="{y}" r="4.5" data-tip="{escape(item.tip, quote=True)}"/>'
            )
        parts.append(
            f'<text class="name {kind}" x="{left - 8}" y="{y}" dy="0.34em" text-anchor="end">'
            f"{escape(shorten(item.name, 36))}</text>{mark}"
        )
    return wrap("".join(parts), x_label, height)


def fit_chart(
    grid: Array,
    mean: Array,
    bands: Sequence[tuple[Array, Array]],
    points: tuple[Array, Array],
    x_label: str,
    y_label: str,
) -> str:
    """Mean and bands (widest first) over one input, with the data."""
    values = [*points[1], *mean]
    axes = draw_axes((float(grid[0]), float(grid[-1])), limits(values, 0.08), x_label, y_label)
    parts = [axes.svg]
    for low, high in bands:
        low, high = (np.clip(end, axes.y.low, axes.y.high) for end in (low, high))
        corners = _polygon(list(grid), list(low), list(high), axes)
        parts.append(f'<polygon class="fit-band" points="{corners}"/>')
    for a, b in zip(*points, strict=True):
        parts.append(f'<circle class="datum" cx="{axes.x(a):.1f}" cy="{axes.y(b):.1f}" r="1.8"/>')
    parts.append(f'<polyline class="line" points="{_polyline(list(grid), list(mean), axes)}"/>')
    return wrap("".join(parts), f"{y_label} against {x_label}: mean, bands and data")


#: Right of a map, for its color bar and what that says.
BAR_ROOM = 96
#: A map is no higher than this, whatever its sides.
HIGHEST_MAP = 460.0


def map_chart(
    picture: str,
    color_bar: str,
    sides: Sequence[tuple[float, float]],
    ends: tuple[float, float],
    points: Array,
    names: Sequence[str],
    title: str,
    *,
    aspect: float | None = None,
    unit: str = "",
    is_of_cells: bool = False,
) -> str:
    """A picture of values over two inputs, its colors and the data; pictures as addresses.

    ``aspect`` is the height of the map by its width; ``unit`` says what the colors are. A picture
    of cells has edges, others are smooth.
    """
    width, height = WIDTH - RIGHT - BAR_ROOM - LEFT, float(HEIGHT - BOTTOM - TOP)
    if aspect is not None:
        height = min(width * aspect, HIGHEST_MAP)
        width = round(height / aspect)
    # The lines of labels keep their place below a map of few rows.
    total = round(height) + TOP + BOTTOM
    axes = draw_axes(
        sides[0], sides[1], names[0], names[1], height=total, right=WIDTH - LEFT - width
    )
    height = total - TOP - BOTTOM
    edges = ' image-rendering="pixelated"' if is_of_cells else ""
    parts = [
        axes.svg,
        f'<image href="{picture}" x="{LEFT}" y="{TOP}" width="{width}" height="{height}" '
        f'preserveAspectRatio="none"{edges}/>',
    ]
    parts += [
        f'<circle class="site" cx="{axes.x(a):.1f}" cy="{axes.y(b):.1f}" r="1.5"/>'
        for a, b in points
    ]
    left = LEFT + width + 14
    parts.append(
        f'<image href="{color_bar}" x="{left}" y="{TOP}" width="12" height="{height}" '
        'preserveAspectRatio="none"/>'
    )
    if ends[1] > ends[0]:
        scale = Scale(*ends, TOP + height, TOP)
        values = ticks(*ends, n=5 if height > 150 else 3)
        for value, label in zip(values, tick_labels(values), strict=True):
            parts.append(
                f'<text class="tick" x="{left + 17}" y="{scale(value):.1f}" dy="0.34em">'
                f"{label}</text>"
            )
    if unit:
        parts.append(
            f'<text class="label" transform="translate({left + 76} {TOP + height / 2:g}) '
            f'rotate(-90)" text-anchor="middle">{escape(shorten(unit, int(height / 6)))}</text>'
        )
    return wrap("".join(parts), title, total)


def contribution_bar(share: float) -> str:
    """A small bar to the left or right of a middle line; ``share`` is between -1 and 1."""
    width = 44.0 * abs(share)
    x = 46.0 if share >= 0 else 46.0 - width
    sign = "plus" if share >= 0 else "minus"
    return (
        '<svg class="spark" viewBox="0 0 92 12" aria-hidden="true">'
        f'<rect class="{sign}" x="{x:.1f}" y="2" width="{max(width, 0.5):.1f}" height="8"/>'
        '<line class="axis" x1="46" x2="46" y1="0" y2="12"/></svg>'
    )
