# SPDX-License-Identifier: BSD-3-Clause
"""Markdown tables of the comparison, from its results file.

Where methods stand on different splits of a data set, two of them are compared by their means over
the splits that both have: a method is first if no other has a better mean there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from compare import NAMES, splits_of
from isolated import OVER_LIMIT, Result
from job_runner import ResultsFile
from markdown_tables import markdown_table
from peers import METHODS
from scores import COVERED

SATELLITE = "satellite"
OURS = "lsgp"
#: Root mean squared errors in Heaton et al. (2019), those that a second source confirms.
PUBLISHED = {"SPDE": 1.53, "LatticeKrig": 1.68, "laGP": 2.08}


class Metric(NamedTuple):
    """A column of the results, and how its tables are written."""

    name: str
    title: str
    digits: int
    target: float | None = None  # best is the nearest to it; without: the smallest


METRICS = (
    Metric("rmse", "Root mean squared error", 3),
    Metric("crps", "CRPS (continuous ranked probability score)", 3),
    Metric("nll", "Negative log density per test row", 3),
    Metric("interval_score", "Interval score of the 95 % intervals", 3),
    Metric("coverage", "Coverage of the 95 % intervals", 3, COVERED),
    Metric("fit_cpu", "CPU seconds to fit, all tuning included", 2),
    Metric("predict_cpu", "CPU seconds to predict the test rows", 2),
    Metric(
        "peak_memory", "Peak memory of the process in MB, interpreter and libraries included", 3
    ),
)
BY_NAME = {metric.name: metric for metric in METRICS}
SHORT = {"rmse": "RMSE", "crps": "CRPS", "nll": "NLL", "interval_score": "interval score"}
RANKED = tuple(SHORT)


class Comparison:
    """The results by data set, method and split; a later line replaces an earlier one."""

    def __init__(self, results: Iterable[Result]) -> None:
        self.machines: list[dict[str, Any]] = []
        self.failures: dict[tuple[str, str], str] = {}
        self.versions: dict[str, str] = {}
        self._found: dict[tuple[str, str], dict[int, Result]] = {}
        for result in results:
            if "machine" in result:
                self.machines.append(result["machine"])
                continue
            key = result["dataset"], result["method"]
            self.versions[result["method"]] = result["version"]
            if "failure" in result:
                self.failures.setdefault(key, result["failure"])
            else:
                self._found.setdefault(key, {})[result["split"]] = result

    @classmethod
    def read(cls, path: Path) -> Comparison:
        return cls(ResultsFile(path).results)

    @property
    def datasets(self) -> list[str]:
        there = {name for name, _ in [*self._found, *self.failures]}
        return [name for name in NAMES if name in there and name != SATELLITE]

    @property
    def methods(self) -> list[str]:
        there = {method for _, method in [*self._found, *self.failures]}
        return [method for method in METHODS if method in there]

    def splits(self, name: str, method: str) -> dict[int, Result]:
        return self._found.get((name, method), {})

    def used_gpu(self, method: str) -> bool:
        found = [self.splits(name, method) for name in NAMES]
        return any(r.get("device", "cpu") != "cpu" for splits in found for r in splits.values())

    def mean(
        self, name: str, method: str, metric: str, splits: Collection[int] | None = None
    ) -> float | None:
        """Over the given splits that the method has; over all of them without."""
        found = self.splits(name, method)
        values = [r[metric] for split, r in found.items() if splits is None or split in splits]
        return float(np.mean(values)) if values else None

    def common_splits(self, name: str) -> set[int]:
        """The splits of a data set that every method with results there has."""
        found = (set(self.splits(name, method)) for method in self.methods)
        return set.intersection(*(splits for splits in found if splits))

    def losses(self, name: str, metric: Metric) -> dict[str, int]:
        """How many methods beat each one on the splits that both have."""
        methods = [method for method in self.methods if self.splits(name, method)]
        return {
            method: sum(self._beats(name, other, method, metric) for other in methods)
            for method in methods
        }

    def first(self, name: str, metric: Metric) -> list[str]:
        """The methods that none beats; nobody is first alone."""
        losses = self.losses(name, metric)
        return [method for method, n in losses.items() if n == 0 and len(losses) > 1]

    def _beats(self, name: str, method: str, other: str, metric: Metric) -> bool:
        mine, theirs = self.splits(name, method), self.splits(name, other)
        common = mine.keys() & theirs.keys()
        if method == other or not common:
            return False
        means = [np.mean([one[split][metric.name] for split in common]) for one in (mine, theirs)]
        if metric.target is not None:
            means = [abs(mean - metric.target) for mean in means]
        return bool(means[0] < means[1])


def metric_table(comparison: Comparison, metric: Metric) -> str:
    """Methods by data sets; the first in bold.

    Where a method does not have all splits, their number follows, and our mean on the same ones.
    """
    names = comparison.datasets
    first = {name: comparison.first(name, metric) for name in names}
    rows = [
        [
            METHODS[method].label,
            *(_cell(comparison, name, method, metric, method in first[name]) for name in names),
        ]
        for method in comparison.methods
    ]
    return markdown_table(["method", *names], rows)


def _cell(comparison: Comparison, name: str, method: str, metric: Metric, is_first: bool) -> str:
    mean = comparison.mean(name, method, metric.name)
    if mean is None:
        return "failed" if (name, method) in comparison.failures else ""
    text = write_number(mean, metric.digits)
    splits = comparison.splits(name, method).keys()
    note = ""
    if len(splits) < len(splits_of(name)):
        ours = comparison.mean(name, OURS, metric.name, splits) if method != OURS else None
        beside = "" if ours is None else f"; {write_number(ours, metric.digits)}"
        note = f" ({len(splits)}{beside})"
    return (f"**{text}**" if is_first else text) + note


def write_number(value: float, digits: int) -> str:
    """With so many significant digits, and never an exponent.

    Examples
    --------
    >>> write_number(0.036651, 3), write_number(1250.4, 3), write_number(-1.3, 3)
    ('0.0367', '1,250', '-1.30')
    """
    magnitude = np.floor(np.log10(abs(value))) if value else 0
    return f"{value:,.{int(np.clip(digits - 1 - magnitude, 0, 6))}f}"


def rank_table(comparison: Comparison) -> str:
    """How often each method is first, and its mean rank, where there is more than one."""
    names = [name for name in comparison.datasets if comparison.first(name, BY_NAME["crps"])]
    titles = [
        f"{SHORT[metric]}: {column}" for metric in RANKED for column in ("first", "mean rank")
    ]
    losses = {m: [comparison.losses(name, BY_NAME[m]) for name in names] for m in RANKED}
    rows = []
    for method in comparison.methods:
        rows.append([METHODS[method].label])
        for metric in RANKED:
            ranks = [1 + found[method] for found in losses[metric] if method in found]
            rows[-1].append(f"{ranks.count(1)} of {len(names)}" if ranks else "")
            rows[-1].append(f"{np.mean(ranks):.1f}" if ranks else "")
    return markdown_table(["method", *titles], rows)


def satellite_table(comparison: Comparison) -> str:
    """The satellite data, with what was published for them."""
    shown = [BY_NAME[name] for name in ("rmse", "crps", "interval_score", "coverage", "fit_cpu")]
    head = ["method", "RMSE", "CRPS", "interval score", "coverage", "CPU seconds to fit"]
    nothing, rows = [""] * (len(shown) - 1), []
    for method in comparison.methods:
        label = METHODS[method].label
        if comparison.splits(SATELLITE, method):
            first = {m.name: method in comparison.first(SATELLITE, m) for m in shown}
            cells = [_cell(comparison, SATELLITE, method, m, first[m.name]) for m in shown]
            rows.append([label, *cells])
        elif (SATELLITE, method) in comparison.failures:
            rows.append([label, "failed", *nothing])
    rows += [[f"{label} (published)", str(rmse), *nothing] for label, rmse in PUBLISHED.items()]
    return markdown_table(head, rows)


def failure_notes(comparison: Comparison) -> str:
    """One line per method and data set without a result, or an empty text."""
    return "\n".join(
        f"- {METHODS[method].label} on {name}: {reason}."
        for (name, method), reason in sorted(comparison.failures.items())
        if not comparison.splits(name, method)
    )


def describe(comparison: Comparison) -> str:
    """Machine and versions, in a sentence; what ran elsewhere since is said of its rows."""
    machine = comparison.machines[0]
    versions = ", ".join(dict.fromkeys(comparison.versions[m] for m in comparison.methods))
    sentence = (
        f"One thread of {machine['cpu']} ({machine['instruction_set']}); Python "
        f"{machine['versions']['python']}, {versions}."
    )
    on_gpu = [METHODS[method].label for method in comparison.methods if comparison.used_gpu(method)]
    if on_gpu:
        names = " and ".join(on_gpu)
        sentence += f" {names} used a GPU: their CPU seconds are not all that they took."
    return sentence


def scaling_table(results: list[Result]) -> str:
    """CPU seconds to fit + to predict (error), by method and number of rows, for each dimension."""
    runs = {(r["d"], r["method"], r["n"]): r for r in results if "machine" not in r}
    sizes = sorted({n for _, _, n in runs})
    parts = []
    for d in sorted({d for d, _, _ in runs}):
        rows = []
        for method in METHODS:
            found = [runs.get((d, method, n)) for n in sizes]
            if any(found):
                rows.append([METHODS[method].label, *map(_scaling_cell, found)])
        parts.append(markdown_table([f"{d} inputs", *(f"{n:,} rows" for n in sizes)], rows))
    return "\n\n".join(parts)


def _scaling_cell(run: Result | None) -> str:
    if run is None:
        return ""
    if "failure" in run:
        short: str = run["failure"].replace(OVER_LIMIT, "over").replace(" of CPU time", "")
        return short.split(":")[0]
    times = (write_number(run[name], 2) for name in ("fit_cpu", "predict_cpu"))
    return f"{' + '.join(times)} ({write_number(run['rmse'], 2)})"
