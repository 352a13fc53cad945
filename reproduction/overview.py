# SPDX-License-Identifier: BSD-3-Clause
"""A picture of Table 2: every method's error, ours and the published one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lsgp.plotting.style import BLUE, GRAY, GREEN, INK, ORANGE, PALE, PURPLE, VERMILLION
from reproduction import published
from reproduction.caveats import Errors
from reproduction.comparison import summarize
from reproduction.figures import new_figure, save
from reproduction.protocol import DATASET_LABELS, METHOD_LABELS

#: Color and marker, so that neither alone has to tell methods apart.
STYLES = {
    "lsgpr-hilbert": (VERMILLION, "^"),
    "lsgpr-epanechnikov": (ORANGE, "v"),
    "gp": (GREEN, "s"),
    "deep-gp": (PURPLE, "D"),
    "knn": (GRAY, "X"),
    "default": (BLUE, "o"),
}

NAME = "table2"


def draw_overview(folder: Path, errors: Errors) -> None:
    """Mean test MSE relative to the best that the paper prints, on a logarithmic axis."""
    from matplotlib.lines import Line2D

    figure = new_figure(10, 1.7 + 0.62 * len(errors))
    ax = figure.subplots()
    printed_methods = {method for _, method in published.TABLE_2}
    shown = [
        m for m in STYLES if m in printed_methods or any(m in found for found in errors.values())
    ]
    for row, (dataset, found) in enumerate(errors.items()):
        printed = {m: p for (name, m), p in published.TABLE_2.items() if name == dataset}
        best = min(p.mean for p in printed.values())
        ax.axhline(row, color=PALE, linewidth=0.8, zorder=0)
        for method, (color, marker) in STYLES.items():
            style: dict[str, Any] = {
                "marker": marker,
                "markersize": 8,
                "linestyle": "none",
                "color": color,
            }
            if method in printed:
                ratio = printed[method].mean / best
                ax.plot(ratio, row + 0.2, **style, fillstyle="none", markeredgewidth=1.3)
            if method in found:
                ratio = summarize(found[method]).mean / best
                ax.plot(ratio, row - 0.2, **style, markeredgewidth=0, alpha=0.8, zorder=3)
    ax.axvline(1.0, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_yticks(range(len(errors)), [DATASET_LABELS[name] for name in errors])
    ax.set_ylim(len(errors) - 0.5, -0.5)
    ax.set_xlabel("test MSE, relative to the best that the paper prints (logarithmic)")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0, labelsize=11)
    handles = [
        Line2D([], [], color=STYLES[m][0], marker=STYLES[m][1], linestyle="none", markersize=8)
        for m in shown
    ]
    labels = [METHOD_LABELS[m] for m in shown]
    for fill, label in (("full", "filled: run here"), ("none", "open: published")):
        plain: dict[str, Any] = {"fillstyle": fill, "linestyle": "none", "markersize": 8}
        handles.append(Line2D([], [], color=INK, marker="o", **plain))
        labels.append(label)
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save(figure, folder, NAME)
