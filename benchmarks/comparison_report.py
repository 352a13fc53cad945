# SPDX-License-Identifier: BSD-3-Clause
"""The tables and pictures of the comparison, from its results files.

    python benchmarks/comparison_report.py

Prints the tables as Markdown and draws the pictures of the documentation, whose pages make the
same tables when they are built. What has no results is left out.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import approximate_search
import comparison_tables as tables
from job_runner import ResultsFile

ROOT = Path(__file__).resolve().parents[1]
COMPARISON = ROOT / "benchmarks" / "results" / "comparison.jsonl"
SCALING = ROOT / "benchmarks" / "results" / "scaling.jsonl"
PICTURES = ROOT / "docs" / "images"
#: The pictures, and what they show, for those who do not see them.
ALTERNATIVES = {
    "comparison_pareto": "CRPS against CPU time to fit, one panel per data set",
    "comparison_calibration": "Observed less nominal coverage, one panel per method",
    "scaling_times": "Time to fit, time to predict and error against the number of rows",
}
MISSING = "There are no results yet: `make compare` makes them."


def substitutions(
    comparison_path: Path = COMPARISON, scaling_path: Path = SCALING
) -> dict[str, str]:
    """Texts of the documentation by name; without results, a sentence that says so."""
    names = [
        "comparison_machine",
        "comparison_ranks",
        "comparison_failures",
        "comparison_satellite",
    ]
    names += [f"comparison_{metric.name}" for metric in tables.METRICS]
    found = dict.fromkeys([*names, "scaling"], MISSING)
    comparison = tables.Comparison.read(comparison_path)
    if comparison.datasets:
        found |= {
            "comparison_machine": tables.describe(comparison),
            "comparison_ranks": tables.rank_table(comparison),
            "comparison_failures": tables.failure_notes(comparison) or "None failed.",
            "comparison_satellite": tables.satellite_table(comparison),
        }
        for metric in tables.METRICS:
            found[f"comparison_{metric.name}"] = tables.metric_table(comparison, metric)
    scaling = ResultsFile(scaling_path).results
    if scaling:
        found["scaling"] = tables.scaling_table(scaling)
    found["approximate_search"] = _approximate_search()
    for name, text in ALTERNATIVES.items():
        there = (PICTURES / f"{name}.png").exists()
        found[f"picture_{name}"] = f"![{text}](images/{name}.png)" if there else MISSING
    return found


def _approximate_search() -> str:
    path = approximate_search.RESULTS
    return approximate_search.table(json.loads(path.read_text())) if path.exists() else MISSING


def draw(comparison_path: Path, scaling_path: Path, folder: Path) -> list[Path]:
    """Write the pictures that there are results for."""
    import matplotlib as mpl

    mpl.use("Agg")
    import comparison_pictures as pictures

    figures = {}
    comparison = tables.Comparison.read(comparison_path)
    if comparison.datasets:
        figures["comparison_pareto"] = pictures.draw_pareto(comparison)
        figures["comparison_calibration"] = pictures.draw_calibration(comparison)
    scaling = ResultsFile(scaling_path).results
    if scaling:
        figures["scaling_times"] = pictures.draw_scaling(scaling)
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=110)
    return [folder / f"{name}.png" for name in figures]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--comparison", type=Path, default=COMPARISON)
    parser.add_argument("--scaling", type=Path, default=SCALING)
    parser.add_argument("--pictures", type=Path, default=PICTURES, help="folder for them")
    arguments = parser.parse_args()
    for name, text in substitutions(arguments.comparison, arguments.scaling).items():
        if not name.startswith("picture_"):
            print(f"## {name}\n\n{text}\n")
    for path in draw(arguments.comparison, arguments.scaling, arguments.pictures):
        print(path)


if __name__ == "__main__":
    main()
