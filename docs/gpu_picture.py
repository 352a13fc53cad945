# SPDX-License-Identifier: BSD-3-Clause
"""Draws `images/gpu_curve.png`: when a GPU pays, from what `benchmarks/gpu.py curve` measured.

To draw it again:

    python docs/gpu_picture.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "benchmarks" / "results" / "gpu_curve.jsonl"
PICTURE = FOLDER / "images" / "gpu_curve.png"
#: As everywhere in the documentation: seen by everyone.
COLORS = {"cuda": "#0072b2", "cpu 16": "#d55e00", "cpu 1": "#999999"}
LABELS = {"cuda": "H200", "cpu 16": "16 cores of its host", "cpu 1": "1 core"}


def read_rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def draw_curve(axes: Axes, rows: list[dict[str, Any]], part: str, along: str) -> None:
    """A line for each machine, labeled at its end."""
    for machine, color in COLORS.items():
        points = sorted(
            (row[along], row["seconds"])
            for row in rows
            if row["part"] == part and row["machine"] == machine
        )
        if points:
            axes.plot(*zip(*points, strict=True), "o-", color=color, label=LABELS[machine], ms=4)
    axes.set(xscale="log", yscale="log", ylabel="seconds")
    axes.grid(visible=True, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    rows = read_rows()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    draw_curve(left, rows, "predict", "q")
    left.set(title="predict, with standard deviation", xlabel="queries (100,000 rows, 4 inputs)")
    draw_curve(right, rows, "fit", "n")
    right.set(title="fit, all settings by default", xlabel="rows (4 inputs)", ylim=(1.0, 40.0))
    right.set_yticks([1, 3, 10, 30], labels=["1", "3", "10", "30"])
    right.minorticks_off()
    left.legend(frameon=False)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
