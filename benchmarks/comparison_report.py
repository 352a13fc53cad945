# SPDX-License-Identifier: BSD-3-Clause
"""The tables and pictures of the benchmarks, from their results files.

    python benchmarks/comparison_report.py

Prints the tables as Markdown and draws the pictures of the documentation, whose pages make the
same tables when they are built. What has no results is left out.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from pathlib import Path

import approximate_search
import comparison_tables as tables
from runner import FOLDER, ResultsFile

ROOT = Path(__file__).resolve().parents[1]
COMPARISON, SCALING = FOLDER / "comparison.jsonl", FOLDER / "scaling.jsonl"
NOISY, BEYOND = FOLDER / "noisy.jsonl", FOLDER / "beyond.jsonl"
README = ROOT / "README.md"
#: What the README says of the comparison is between these.
README_MARKS = ("<!-- made by benchmarks/comparison_report.py -->", "<!-- end -->")
PICTURES = ROOT / "docs" / "images"
#: The pictures, and what they show, for those who do not see them.
ALTERNATIVES = {
    "comparison_pareto": "CRPS against CPU time to fit, one panel per data set",
    "comparison_calibration": "Observed less nominal coverage, one panel per method",
    "scaling_times": "Time to fit, time to predict and error against the number of rows",
}
MISSING = "There are no results yet: `make compare` makes them."


def substitutions(
    comparison_path: Path = COMPARISON,
    scaling_path: Path = SCALING,
    noisy_path: Path = NOISY,
    beyond_path: Path = BEYOND,
) -> dict[str, str]:
    """Texts of the documentation by name; without results, a sentence that says so."""
    names = [*tables.METRICS, "machine", "ranks", "failures", "satellite"]
    found = dict.fromkeys([f"comparison_{name}" for name in names], MISSING)
    found["comparison_provenance"] = ""
    comparison = tables.Comparison.read(comparison_path)
    if comparison.datasets:
        found |= {
            "comparison_machine": tables.describe(comparison),
            "comparison_ranks": tables.rank_table(comparison),
            "comparison_failures": tables.failure_notes(comparison) or "None failed.",
            "comparison_satellite": tables.satellite_table(comparison),
            "comparison_provenance": tables.provenance(ResultsFile(comparison_path).results),
        }
        for name, metric in tables.METRICS.items():
            found[f"comparison_{name}"] = tables.metric_table(comparison, metric)
    for name, path, table in (
        ("scaling", scaling_path, tables.scaling_table),
        ("noisy", noisy_path, tables.noisy_table),
        ("beyond", beyond_path, tables.beyond_table),
    ):
        results = ResultsFile(path).results
        found[name] = table(results) if results else MISSING
    path = approximate_search.RESULTS
    is_there = path.exists()
    found["approximate_search"] = (
        approximate_search.table(json.loads(path.read_text())) if is_there else MISSING
    )
    for name, text in ALTERNATIVES.items():
        there = (PICTURES / f"{name}.png").exists()
        found[f"picture_{name}"] = f"![{text}](images/{name}.png)" if there else MISSING
    return found


def with_readme_text(readme: str, text: str) -> str:
    """The README with this text between its marks."""
    before, rest = readme.split(README_MARKS[0], 1)
    after = rest.split(README_MARKS[1], 1)[1]
    lines = textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)
    return f"{before}{README_MARKS[0]}\n{lines}\n{README_MARKS[1]}{after}"


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
    parser.add_argument("--readme", action="store_true", help="write what the README says of it")
    arguments = parser.parse_args()
    if arguments.readme:
        text = tables.readme_text(tables.Comparison.read(arguments.comparison))
        README.write_text(with_readme_text(README.read_text("utf-8"), text), encoding="utf-8")
    for name, text in substitutions(arguments.comparison, arguments.scaling).items():
        if not name.startswith("picture_"):
            print(f"## {name}\n\n{text}\n")
    for path in draw(arguments.comparison, arguments.scaling, arguments.pictures):
        print(path)


if __name__ == "__main__":
    main()
