# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the comparison: accuracy against time, calibration, growth with the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from comparison_tables import OURS, Comparison
from isolated import Result
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullLocator
from matplotlib.transforms import Bbox
from peers import METHODS
from scaling import DIMENSIONS
from scores import LEVELS

from lsgp.plotting.style import (
    BLUE,
    GRAY,
    GREEN,
    INK,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    VERMILLION,
)

#: By family, so that a color says what kind of method it is.
COLORS = {
    "lsgp": VERMILLION,
    "sklearn-gp": INK,
    "gpytorch": INK,
    "svgp": BLUE,
    "gpboost": SKY,
    "muygps": PURPLE,
    "lightgbm": GREEN,
    "xgboost": GREEN,
    "catboost": GREEN,
    "random-forest": ORANGE,
    "knn": GRAY,
}
#: White around letters, where they cross a line.
HALO = withStroke(linewidth=2.5, foreground="white")
#: Where a label may go, in points from its mark, the preferred place first.
PLACES = (
    ((6, 0), "left", "center"),
    ((0, 6), "center", "bottom"),
    ((0, -6), "center", "top"),
    ((-6, 0), "right", "center"),
    ((5, 5), "left", "bottom"),
    ((5, -5), "left", "top"),
    ((-5, 5), "right", "bottom"),
    ((-5, -5), "right", "top"),
    ((0, 16), "center", "bottom"),
    ((0, -16), "center", "top"),
    ((14, 12), "left", "bottom"),
    ((-14, -12), "right", "top"),
)


def draw_pareto(comparison: Comparison) -> Figure:
    """CRPS against the CPU time of fit, one panel per data set."""
    names = comparison.datasets
    figure, panels = _grid(len(names), 3, (4.1, 3.3))
    for ax, name in zip(panels, names, strict=False):
        points = _points(comparison, name)
        ax.set(xscale="log", yscale="log", title=name)
        _draw_front(ax, list(points.values()))
        for method, (seconds, crps) in points.items():
            ours = method == OURS
            ax.plot(
                seconds,
                crps,
                marker="*" if ours else "o",
                markersize=15 if ours else 6,
                color=COLORS[method],
                markeredgecolor="white",
                zorder=3 if ours else 2,
            )
        ax.margins(0.16)
        ax.tick_params(labelsize=8, which="both")
        _set_plain_ticks(ax)
    figure.supxlabel("CPU seconds to fit, tuning included")
    figure.supylabel("CRPS (smaller is better)")
    figure.canvas.draw()
    for ax, name in zip(panels, names, strict=False):
        _label(ax, _points(comparison, name))
    return figure


def _points(comparison: Comparison, name: str) -> dict[str, tuple[float, float]]:
    """Time to fit and CRPS of every method with a result, over the splits that all have."""
    found = {}
    splits = comparison.common_splits(name)
    for method in comparison.methods:
        seconds = comparison.mean(name, method, "fit_cpu", splits)
        crps = comparison.mean(name, method, "crps", splits)
        if seconds is not None and crps is not None:
            found[method] = seconds, crps
    return found


def _set_plain_ticks(ax: Axes) -> None:
    """About five round numbers on the y axis, also where it holds no power of ten."""
    low, high = ax.get_ylim()
    round_ones = [
        m * 10.0**e for e in range(-5, 6) for m in (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 7)
    ]
    inside = [value for value in round_ones if low <= value <= high]
    ax.set_yticks(inside[:: max(1, round(len(inside) / 5))])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _draw_front(ax: Axes, points: list[tuple[float, float]]) -> None:
    """The line of points that no other beats in both ways."""
    front = [p for p in sorted(points) if all(q[1] >= p[1] for q in points if q[0] <= p[0])]
    ax.plot(*zip(*front, strict=True), color=PALE, linewidth=6, zorder=0, solid_capstyle="round")


def _label(ax: Axes, points: dict[str, tuple[float, float]]) -> None:
    """A name beside every mark, at the place where it covers the least."""
    marks = {method: ax.transData.transform(point) for method, point in points.items()}
    frame, taken = ax.get_window_extent(), list[Bbox]()
    for method, point in sorted(points.items(), key=lambda item: item[0] != OURS):
        ours = method == OURS
        tried: list[tuple[int, int, Any, Bbox]] = []
        for shift, horizontal, vertical in PLACES:
            text = ax.annotate(
                METHODS[method].label,
                point,
                shift,
                textcoords="offset points",
                ha=horizontal,
                va=vertical,
                fontsize=9 if ours else 7.5,
                fontweight="bold" if ours else "normal",
                color=COLORS[method] if ours else INK,
            )
            box = text.get_window_extent()
            others = (mark for other, mark in marks.items() if other != method)
            covered = sum(box.overlaps(other) for other in taken)
            covered += sum(box.padded(2).contains(*mark) for mark in others)
            covered += 3 * (not (frame.contains(*box.min) and frame.contains(*box.max)))
            tried.append((covered, len(tried), text, box))
            if covered == 0:
                break
        best = min(tried, key=lambda one: one[:2])
        for one in tried:
            if one is not best:
                one[2].remove()
        taken.append(best[3])


def draw_calibration(comparison: Comparison) -> Figure:
    """Observed less nominal coverage of central intervals, one panel per method."""
    methods = comparison.methods
    figure, panels = _grid(len(methods), 4, (2.7, 2.1), sharex=True, sharey=True)
    levels = np.array(LEVELS)
    for ax, method in zip(panels, methods, strict=False):
        curves = []
        for name in comparison.datasets:
            found = comparison.splits(name, method).values()
            if found:
                observed = [[r["coverages"][str(level)] for level in LEVELS] for r in found]
                curves.append(np.mean(observed, axis=0) - levels)
                ax.plot(100 * levels, 100 * curves[-1], color=PALE, linewidth=1.2)
        ax.axhline(0.0, color=INK, linewidth=0.8)
        if curves:
            ax.plot(
                100 * levels, 100 * np.mean(curves, axis=0), color=COLORS[method], linewidth=2.5
            )
        weight = "bold" if method == OURS else "normal"
        ax.set_title(METHODS[method].label, fontsize=10, fontweight=weight)
        ax.tick_params(labelsize=8)
    panels[0].set(xlim=(0, 100), xticks=(10, 50, 90))
    figure.supxlabel("nominal coverage of the intervals [%]")
    figure.supylabel("observed less nominal [%]")
    return figure


def draw_scaling(results: list[Result]) -> Figure:
    """Times to fit and to predict, and the error, against the number of rows."""
    rows = (
        ("fit_cpu", "CPU seconds to fit"),
        ("predict_cpu", "CPU seconds\nfor 10,000 queries"),
        ("rmse", "error against\nthe function"),
    )
    size = (9.2, 9.6)
    figure, axes = plt.subplots(
        len(rows), len(DIMENSIONS), figsize=size, layout="constrained", sharex=True, sharey="row"
    )
    done = [result for result in results if "fit_cpu" in result]
    for (metric, title), line in zip(rows, axes, strict=True):
        for d, ax in zip(DIMENSIONS, line, strict=True):
            ends = {}
            for method in METHODS:
                mine = sorted(
                    (r["n"], r[metric]) for r in done if (r["d"], r["method"]) == (d, method)
                )
                if mine:
                    ours = method == OURS
                    ax.plot(
                        *zip(*mine, strict=True),
                        marker="o",
                        markersize=6 if ours else 4,
                        linewidth=3 if ours else 1.5,
                        color=COLORS[method],
                        zorder=3 if ours else 2,
                    )
                    ends[method] = mine[-1]
            ax.set(xscale="log", yscale="log", xlim=(700, 1.2e7))
            ax.set_xticks([1e3, 1e4, 1e5, 1e6])
            ax.spines[["top", "right"]].set_visible(False)
            if metric == "fit_cpu":
                ax.set_title(f"{d} inputs")
            ax.set_ylabel(title if d == DIMENSIONS[0] else "")
            if metric == rows[-1][0]:
                ax.set_xlabel("training rows")
            if metric == "rmse":
                _set_plain_ticks(ax)
            _label_ends(ax, ends)
    return figure


def _label_ends(ax: Axes, ends: dict[str, Any]) -> None:
    """Names at the right ends of lines, moved apart where they would meet."""
    least = 13.0
    ax.figure.canvas.draw()
    groups: dict[float, list[tuple[float, str]]] = {}
    for method, (n, value) in ends.items():
        height = ax.transData.transform((n, value))[1] * 72 / ax.figure.dpi
        groups.setdefault(n, []).append((height, method))
    for group in groups.values():
        below = -np.inf
        for height, method in sorted(group):
            place = max(height, below + least)
            below = place
            ax.annotate(
                METHODS[method].label,
                ends[method],
                (6, place - height),
                textcoords="offset points",
                va="center",
                fontsize=9,
                fontweight="bold" if method == OURS else "normal",
                color=COLORS[method],
                path_effects=[HALO],
                zorder=4,
            )


def _grid(n: int, n_columns: int, size: tuple[float, float], **shared: Any) -> tuple[Figure, Any]:
    """A figure with ``n`` panels in rows of `n_columns`."""
    n_rows = -(-n // n_columns)
    figure, axes = plt.subplots(
        n_rows,
        n_columns,
        figsize=(size[0] * n_columns, size[1] * n_rows),
        layout="constrained",
        squeeze=False,
        **shared,
    )
    panels = axes.ravel()
    for ax in panels:
        ax.spines[["top", "right"]].set_visible(False)
    for ax in panels[n:]:
        ax.set_axis_off()
    return figure, panels
