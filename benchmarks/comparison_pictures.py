# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the comparison: accuracy against time, calibration, growth with the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from comparison_tables import OURS, Comparison
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullLocator
from matplotlib.transforms import Bbox
from peers import METHODS
from run import DIMENSIONS
from runner import Result
from scores import LEVELS

from lsgp.plotting import style

#: By family, so that a color says what kind of method it is.
COLORS = {
    "lsgp": style.VERMILLION,
    "sklearn-gp": style.INK,
    "gpytorch": style.INK,
    "svgp": style.BLUE,
    "gpboost": style.SKY,
    "muygps": style.PURPLE,
    "lightgbm": style.GREEN,
    "xgboost": style.GREEN,
    "catboost": style.GREEN,
    "random-forest": style.ORANGE,
    "knn": style.GRAY,
}
#: White around letters, where they cross a line.
HALO = withStroke(linewidth=2.5, foreground="white")
#: Where a label may go, in points from its mark, the preferred place first.
PLACES = ((6, 0), (0, 6), (0, -6), (-6, 0), (5, 5), (5, -5), (-5, 5), (-5, -5))
PLACES += ((0, 16), (0, -16), (14, 12), (-14, -12))
SIDES = {
    "ha": {-1: "right", 0: "center", 1: "left"},
    "va": {-1: "top", 0: "center", 1: "bottom"},
}


def draw_pareto(comparison: Comparison) -> Figure:
    """CRPS against the CPU time of fit, one panel per data set."""
    names = comparison.datasets
    figure, panels = _grid(len(names), 3, (4.1, 3.3))
    drawn = []
    for ax, name in zip(panels, names, strict=False):
        # Of every method with a result, over the splits that all have.
        splits, points = comparison.common_splits(name), {}
        for method in comparison.methods:
            point = [comparison.mean(name, method, m, splits) for m in ("fit_cpu", "crps")]
            if None not in point:
                points[method] = point
        drawn.append((ax, points))
        ax.set(xscale="log", yscale="log", title=name)
        # The line of points that no other beats in both ways.
        every = sorted(points.values())
        front = [p for p in every if all(q[1] >= p[1] for q in every if q[0] <= p[0])]
        line = {"color": style.PALE, "linewidth": 6, "zorder": 0, "solid_capstyle": "round"}
        ax.plot(*zip(*front, strict=True), **line)
        for method, point in points.items():
            ours = method == OURS
            mark = {"marker": "*", "markersize": 15} if ours else {"marker": "o", "markersize": 6}
            order = 3 if ours else 2
            ax.plot(*point, color=COLORS[method], markeredgecolor="white", zorder=order, **mark)
        ax.margins(0.16)
        ax.tick_params(labelsize=8, which="both")
        _set_plain_ticks(ax)
    figure.supxlabel("CPU seconds to fit, tuning included")
    figure.supylabel("CRPS (smaller is better)")
    figure.canvas.draw()
    for ax, points in drawn:
        _label(ax, points)
    return figure


def _set_plain_ticks(ax: Axes) -> None:
    """About five round numbers on the y axis, also where it holds no power of ten."""
    low, high = ax.get_ylim()
    numbers = (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 7)
    inside = [m * 10.0**e for e in range(-5, 6) for m in numbers if low <= m * 10.0**e <= high]
    ax.set_yticks(inside[:: max(1, round(len(inside) / 5))])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _label(ax: Axes, points: dict[str, Any]) -> None:
    """A name beside every mark, at the place where it covers the least."""
    marks = {method: ax.transData.transform(point) for method, point in points.items()}
    frame, taken = ax.get_window_extent(), list[Bbox]()
    for method, point in sorted(points.items(), key=lambda item: item[0] != OURS):
        look: dict[str, Any] = {"fontsize": 7.5, "color": style.INK, "fontweight": "normal"}
        if method == OURS:
            look = {"fontsize": 9, "color": COLORS[method], "fontweight": "bold"}
        tried: list[tuple[int, int, Any, Bbox]] = []
        for place in PLACES:
            look |= {side: SIDES[side][np.sign(k)] for side, k in zip(SIDES, place, strict=True)}
            name = METHODS[method].label
            text = ax.annotate(name, point, place, textcoords="offset points", **look)
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
            if found := comparison.splits(name, method).values():
                observed = [[r["coverages"][str(level)] for level in LEVELS] for r in found]
                curves.append(100 * (np.mean(observed, axis=0) - levels))
                ax.plot(100 * levels, curves[-1], color=style.PALE, linewidth=1.2)
        ax.axhline(0.0, color=style.INK, linewidth=0.8)
        if curves:
            mean = np.mean(curves, axis=0)
            ax.plot(100 * levels, mean, color=COLORS[method], linewidth=2.5)
        weight = "bold" if method == OURS else "normal"
        ax.set_title(METHODS[method].label, fontsize=10, fontweight=weight)
        ax.tick_params(labelsize=8)
    panels[0].set(xlim=(0, 100), xticks=(10, 50, 90))
    figure.supxlabel("nominal coverage of the intervals [%]")
    figure.supylabel("observed less nominal [%]")
    return figure


def draw_scaling(results: list[Result]) -> Figure:
    """Times to fit and to predict, and the error, against the number of rows."""
    rows = {
        "fit_cpu": "CPU seconds to fit",
        "predict_cpu": "CPU seconds\nfor 10,000 queries",
        "rmse": "error against\nthe function",
    }
    figure, axes = plt.subplots(
        3, 2, figsize=(9.2, 9.6), layout="constrained", sharex=True, sharey="row"
    )
    done = [result for result in results if "fit_cpu" in result]
    for metric, line in zip(rows, axes, strict=True):
        for d, ax in zip(DIMENSIONS, line, strict=True):
            ends = {}
            for method in METHODS:
                own = [r for r in done if (r["d"], r["method"]) == (d, method)]
                if own:
                    points = sorted((r["n"], r[metric]) for r in own)
                    ours = method == OURS
                    look = {"markersize": 4, "linewidth": 1.5, "zorder": 2}
                    look = {"markersize": 6, "linewidth": 3, "zorder": 3} if ours else look
                    ax.plot(*zip(*points, strict=True), marker="o", color=COLORS[method], **look)
                    ends[method] = points[-1]
            ax.set(xscale="log", yscale="log", xlim=(700, 1.2e7))
            ax.set_xticks([1e3, 1e4, 1e5, 1e6])
            ax.spines[["top", "right"]].set_visible(False)
            ax.set_ylabel(rows[metric] if d == DIMENSIONS[0] else "")
            if metric == "fit_cpu":
                ax.set_title(f"{d} inputs")
            if metric == "rmse":
                ax.set_xlabel("training rows")
                _set_plain_ticks(ax)
            _label_ends(ax, ends)
    return figure


def _label_ends(ax: Axes, ends: dict[str, Any]) -> None:
    """Names at the right ends of lines, moved apart where they would meet."""
    least = 13.0
    ax.figure.canvas.draw()
    groups: dict[float, list[tuple[float, str]]] = {}
    for method, end in ends.items():
        height = ax.transData.transform(end)[1] * 72 / ax.figure.dpi
        groups.setdefault(end[0], []).append((height, method))
    for group in groups.values():
        below = -np.inf
        for height, method in sorted(group):
            below = max(height, below + least)
            look = {"fontweight": "bold" if method == OURS else "normal", "path_effects": [HALO]}
            look |= {"textcoords": "offset points", "va": "center", "fontsize": 9, "zorder": 4}
            place, name = (6, below - height), METHODS[method].label
            ax.annotate(name, ends[method], place, color=COLORS[method], **look)


def _grid(n: int, n_columns: int, size: tuple[float, float], **shared: Any) -> tuple[Figure, Any]:
    """A figure with ``n`` panels in rows of `n_columns`."""
    n_rows = -(-n // n_columns)
    whole = (size[0] * n_columns, size[1] * n_rows)
    shared |= {"layout": "constrained", "squeeze": False}
    figure, axes = plt.subplots(n_rows, n_columns, figsize=whole, **shared)
    for k, ax in enumerate(axes.flat):
        ax.spines[["top", "right"]].set_visible(False)
        if k >= n:
            ax.set_axis_off()
    return figure, axes.ravel()
