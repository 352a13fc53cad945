# SPDX-License-Identifier: BSD-3-Clause
"""What all charts of the report are made of: numbers to read, scales, axes, the SVG around them.

Colors are classes, which the page's style sheet gives for light and dark. Every text is escaped
where it enters the SVG.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

WIDTH, HEIGHT = 520, 340
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 14, 48


class Scale(NamedTuple):
    """From a value of the data to a position in the picture."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)


def format_number(value: float, digits: int = 4) -> str:
    """A number to read: four significant digits, a true minus sign, no exponent if it is short.

    >>> format_number(1234567.0), format_number(-0.000123456), format_number(float("nan"))
    ('1,234,567', '−0.0001235', '–')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size != 0 and (size >= 1e9 or size < 1e-4):
        text = f"{value:.{digits - 1}e}"
    elif size >= 10 ** (digits - 1):
        text = f"{value:,.0f}"
    else:
        text = f"{value:.{digits}g}"
    return text.replace("-", "−")


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """Round numbers between low and high, about n of them.

    >>> ticks(0.03, 0.97)
    [0.2, 0.4, 0.6, 0.8]
    """
    raw = (high - low) / max(n, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    # Rounded to the step's own digits: 3 * 0.1 is not a label.
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(k * step, digits) + 0.0 for k in range(first, last + 1)]


def limits(values: Iterable[float], margin: float = 0.04) -> tuple[float, float]:
    """Ends of an axis that shows all of the finite values."""
    array = np.asarray(list(values), dtype=np.float64)
    array = array[np.isfinite(array)]
    if len(array) == 0:
        return 0.0, 1.0
    low, high = float(array.min()), float(array.max())
    spread = high - low
    if not spread > 1e-9 * max(abs(low), abs(high), 1e-300):
        spread = max(abs(low), 1.0)
    return low - margin * spread, high + margin * spread


def tick_labels(values: Sequence[float]) -> list[str]:
    if not values:
        return []
    largest = max(abs(v) for v in values)
    if largest >= 1e6 or 0 < largest < 1e-3:
        return [f"{v:.3g}".replace("-", "−") for v in values]
    return [f"{v:,.10g}".replace("-", "−") for v in values]


class Axes(NamedTuple):
    """Scales of a chart, and the SVG of its axes, grid and labels."""

    x: Scale
    y: Scale
    svg: str


def draw_axes(
    x_limits: tuple[float, float],
    y_limits: tuple[float, float],
    x_label: str,
    y_label: str,
    *,
    height: int = HEIGHT,
    left: int = LEFT,
    right: int = RIGHT,
    has_y_ticks: bool = True,
) -> Axes:
    x = Scale(*x_limits, left, WIDTH - right)
    y = Scale(*y_limits, height - BOTTOM, TOP)
    parts = []
    values = ticks(*x_limits)
    for value, label in zip(values, tick_labels(values), strict=True):
        at = f"{x(value):.1f}"
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{TOP}" y2="{height - BOTTOM}"/>')
        parts.append(
            f'<text class="tick" x="{at}" y="{height - BOTTOM + 17}" text-anchor="middle">'
            f"{label}</text>"
        )
    values = ticks(*y_limits) if has_y_ticks else []
    for value, label in zip(values, tick_labels(values), strict=True):
        at = f"{y(value):.1f}"
        parts.append(f'<line class="grid" x1="{left}" x2="{WIDTH - right}" y1="{at}" y2="{at}"/>')
        parts.append(
            f'<text class="tick" x="{left - 7}" y="{at}" dy="0.34em" text-anchor="end">'
            f"{label}</text>"
        )
    middle = (left + WIDTH - right) / 2
    parts.append(
        f'<text class="label" x="{middle}" y="{height - 8}" text-anchor="middle">'
        f"{escape(shorten(x_label, 62))}</text>"
    )
    if y_label:
        middle = (TOP + height - BOTTOM) / 2
        parts.append(
            f'<text class="label" transform="translate(14 {middle}) rotate(-90)" '
            f'text-anchor="middle">{escape(shorten(y_label, 40))}</text>'
        )
    return Axes(x, y, "".join(parts))


def shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def wrap(inner: str, description: str, height: float = HEIGHT) -> str:
    """The picture, with a description for those who do not see it."""
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height:g}" role="img" '
        f'aria-label="{escape(description, quote=True)}">{inner}</svg>'
    )
