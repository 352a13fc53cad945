# SPDX-License-Identifier: BSD-3-Clause
"""Markdown tables of the benchmarks, from their results files, and what the README says.

Where methods stand on different splits of a data set, two of them are compared by their means over
the splits that both have: a method is first if no other has a better mean there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from peers import BEYOND, METHODS
from run import splits_of
from runner import OVER_LIMIT, Result, ResultsFile
from scores import COVERED
from tasks import NAMES, NOISY

SATELLITE = "satellite"
OURS = "lsgp"
#: Root mean squared errors in Heaton et al. (2019), those that a second source confirms.
PUBLISHED = {"SPDE": 1.53, "LatticeKrig": 1.68, "laGP": 2.08}
NOISY_TITLES = {
    "square": "function of 2 inputs, noise of twice its size, 100,000 rows",
    "noise": "pure noise, 20,000 rows",
    "flights": "flights, 253,853 rows",
    "million": "function of 2 inputs, a million rows",
}


class Metric(NamedTuple):
    """A column of the results, and how its tables are written."""

    name: str
    title: str
    digits: int
    short: str = ""
    target: float | None = None  # best is the nearest to it; without: the smallest


_MEMORY = "Peak memory of the process in MB, interpreter and libraries included"
METRICS = {
    metric.name: metric
    for metric in (
        Metric("rmse", "Root mean squared error", 3, "RMSE"),
        Metric("crps", "CRPS (continuous ranked probability score)", 3, "CRPS"),
        Metric("nll", "Negative log density per test row", 3, "NLL"),
        Metric("interval_score", "Interval score of the 95 % intervals", 3, "interval score"),
        Metric("coverage", "Coverage of the 95 % intervals", 3, target=COVERED),
        Metric("fit_cpu", "CPU seconds to fit, all tuning included", 2),
        Metric("predict_cpu", "CPU seconds to predict the test rows", 2),
        Metric("peak_memory", _MEMORY, 3),
    )
}
RANKED = [metric for metric in METRICS.values() if metric.short]


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], n_texts: int | None = 1
) -> str:
    """The rows under their head; all but the first columns are numbers, None: none is."""
    n_texts = len(head) if n_texts is None else n_texts
    rule = "|" + "---|" * n_texts + "---:|" * (len(head) - n_texts)
    first, *lines = (f"| {' | '.join(cells)} |" for cells in (head, *rows))
    return "\n".join([first, rule, *lines])


def write_number(value: float, digits: int) -> str:
    """With so many significant digits, and never an exponent.

    Examples
    --------
    >>> write_number(0.036651, 3), write_number(1250.4, 3), write_number(-1.3, 3)
    ('0.0367', '1,250', '-1.30')
    """
    magnitude = np.floor(np.log10(abs(value))) if value else 0
    return f"{value:,.{int(np.clip(digits - 1 - magnitude, 0, 6))}f}"


def _bold(text: str, is_best: bool) -> str:
    return f"**{text}**" if is_best else text


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
            if "version" in result:
                self.versions[result["method"]] = result["version"]
            if "failure" in result:
                self.failures.setdefault(key, result["failure"])
            else:
                self._found.setdefault(key, {})[result["split"]] = result
        there = [*self._found, *self.failures]
        self.datasets = [n for n in NAMES if n != SATELLITE and any(n == name for name, _ in there)]
        self.methods = [m for m in METHODS if any(m == method for _, method in there)]

    @classmethod
    def read(cls, path: Path) -> Comparison:
        return cls(ResultsFile(path).results)

    def splits(self, name: str, method: str) -> dict[int, Result]:
        return self._found.get((name, method), {})

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

        def beats(method: str, other: str) -> bool:
            mine, theirs = self.splits(name, method), self.splits(name, other)
            common = mine.keys() & theirs.keys()
            if method == other or not common:
                return False
            means = [np.mean([one[s][metric.name] for s in common]) for one in (mine, theirs)]
            if metric.target is not None:
                means = [abs(mean - metric.target) for mean in means]
            return bool(means[0] < means[1])

        return {method: sum(beats(other, method) for other in methods) for method in methods}

    def first(self, name: str, metric: Metric) -> list[str]:
        """The methods that none beats; nobody is first alone."""
        losses = self.losses(name, metric)
        return [method for method, n in losses.items() if n == 0 and len(losses) > 1]

    def cell(self, name: str, method: str, metric: Metric) -> str:
        """A mean over splits, the first in bold.

        Where a method does not have all splits, their number follows, and our mean on the same.
        """
        mean = self.mean(name, method, metric.name)
        if mean is None:
            return "failed" if (name, method) in self.failures else ""
        text = _bold(write_number(mean, metric.digits), method in self.first(name, metric))
        splits = self.splits(name, method).keys()
        if len(splits) == len(splits_of(name)):
            return text
        ours = self.mean(name, OURS, metric.name, splits) if method != OURS else None
        beside = "" if ours is None else f"; {write_number(ours, metric.digits)}"
        return f"{text} ({len(splits)}{beside})"


def metric_table(comparison: Comparison, metric: Metric) -> str:
    """Methods by data sets."""
    names = comparison.datasets
    rows = [
        [METHODS[method].label, *(comparison.cell(name, method, metric) for name in names)]
        for method in comparison.methods
    ]
    return markdown_table(["method", *names], rows)


def rank_table(comparison: Comparison) -> str:
    """How often each method is first, and its mean rank, where there is more than one."""
    names = [name for name in comparison.datasets if comparison.first(name, METRICS["crps"])]
    head = [f"{metric.short}: {what}" for metric in RANKED for what in ("first", "mean rank")]
    losses = [[comparison.losses(name, metric) for name in names] for metric in RANKED]
    rows = []
    for method in comparison.methods:
        rows.append([METHODS[method].label])
        for of_metric in losses:
            ranks = [1 + found[method] for found in of_metric if method in found]
            rows[-1].append(f"{ranks.count(1)} of {len(names)}" if ranks else "")
            rows[-1].append(f"{np.mean(ranks):.1f}" if ranks else "")
    return markdown_table(["method", *head], rows)


def satellite_table(comparison: Comparison) -> str:
    """The satellite data, with what was published for them."""
    shown = [METRICS[name] for name in ("rmse", "crps", "interval_score", "coverage", "fit_cpu")]
    head = ["method", "RMSE", "CRPS", "interval score", "coverage", "CPU seconds to fit"]
    nothing, rows = [""] * (len(shown) - 1), []
    for method in comparison.methods:
        cells = [comparison.cell(SATELLITE, method, metric) for metric in shown]
        if any(cells):
            is_there = comparison.splits(SATELLITE, method)
            rows.append([METHODS[method].label, *(cells if is_there else ["failed", *nothing])])
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
    machine, methods = comparison.machines[0], comparison.methods
    versions = dict.fromkeys(comparison.versions[m] for m in methods if m in comparison.versions)
    python = f"Python {machine['versions']['python']}"
    said = f"One thread of {machine['cpu']} ({machine['instruction_set']}); "
    said += f"{', '.join([python, *versions])}."
    on_gpu = [
        METHODS[method].label
        for method in methods
        if any(
            row.get("device", "cpu") != "cpu"
            for name in NAMES
            for row in comparison.splits(name, method).values()
        )
    ]
    if on_gpu:
        said += f" {' and '.join(on_gpu)} used a GPU: their CPU seconds are not all that they took."
    return said


def provenance(rows: Iterable[Result]) -> str:
    """Where and at which commit the rows of lsgp were made, if that is known and one."""
    ours = [row for row in rows if row.get("method") == OURS and "failure" not in row]
    made = {(row.get("commit"), row.get("cpu")) for row in ours}
    if len(made) != 1 or None in next(iter(made)):
        return ""
    at, cpu = next(iter(made))
    return f"All rows of lsgp are of commit `{at}`, on one thread of {cpu}."


def readme_text(comparison: Comparison) -> str:
    """How lsgp compares, for the README: what the results show."""
    names, n_methods = comparison.datasets, len(comparison.methods)
    first = {m: {n: comparison.first(n, METRICS[m]) for n in names} for m in METRICS}
    n_first = {m: sum(OURS in methods for methods in found.values()) for m, found in first.items()}
    said = {"crps": "CRPS", "nll": "log density", "interval_score": "interval score"}
    counts = ", ".join(f"in {title} on {n_first[m]}" for m, title in said.items())
    ahead = [
        f"{' and '.join(METHODS[method].label for method in methods)} on {name}"
        for name, methods in first["rmse"].items()
        if OURS not in methods
    ]
    behind = f" ({'; '.join(ahead)} {'is' if len(ahead) == 1 else 'are'} ahead)" if ahead else ""
    return (
        f"With no setting, on test rows that nothing was chosen by, lsgp is first of {n_methods} "
        f"methods {counts} of {len(names)} data sets, and in root mean squared error on "
        f"{n_first['rmse']}{behind}."
    )


def scaling_table(results: Iterable[Result]) -> str:
    """CPU seconds to fit + to predict (error), by method and number of rows, for each dimension."""
    runs = {(r["d"], r["method"], r["n"]): r for r in results if "machine" not in r}
    sizes = sorted({n for _, _, n in runs})

    def cell(run: Result | None) -> str:
        if run is None:
            return ""
        if "failure" in run:
            short: str = run["failure"].replace(OVER_LIMIT, "over").replace(" of CPU time", "")
            return short.split(":")[0]
        times = (write_number(run[name], 2) for name in ("fit_cpu", "predict_cpu"))
        return f"{' + '.join(times)} ({write_number(run['rmse'], 2)})"

    parts = []
    for d in sorted({d for d, _, _ in runs}):
        rows = [
            [METHODS[method].label, *(cell(runs.get((d, method, n))) for n in sizes)]
            for method in METHODS
            if any((d, method, n) in runs for n in sizes)
        ]
        parts.append(markdown_table([f"{d} inputs", *(f"{n:,} rows" for n in sizes)], rows))
    return "\n\n".join(parts)


def noisy_table(results: Iterable[Result]) -> str:
    """Tasks by methods: error, CRPS, coverage and time; the smallest error and CRPS in bold."""
    rows = [row for row in results if "task" in row]
    head = ["task", "method", "error", "CRPS", "coverage of 95 %", "CPU seconds to fit"]
    lines = []
    for task in NOISY:
        done = [row for row in rows if row["task"] == task and "failure" not in row]
        for method in METHODS:
            names = [NOISY_TITLES[task], METHODS[method].label]
            found = [row for row in rows if (row["task"], row["method"]) == (task, method)]
            there = [row for row in found if row in done]
            if not there:
                lines += [[*names, row["failure"], *[""] * 4] for row in found[:1]]
                continue
            for name in ("error", "crps", "coverage", "fit_cpu", "predict_cpu"):
                value = float(np.mean([row[name] for row in there]))
                is_best = name in ("error", "crps") and value <= min(row[name] for row in done)
                names.append(_bold(write_number(value, 3), is_best))
            lines.append(names)
    return markdown_table([*head, "to predict"], lines, n_texts=2)


def beyond_table(results: Iterable[Result]) -> str:
    """CRPS and coverage of each task by method, and how often lsgp is no worse."""
    rows = {(r["task"], r["method"]): r for r in results if "task" in r and "failure" not in r}
    tasks = list(dict.fromkeys(task for task, _ in rows))
    methods = [method for method in BEYOND if any((task, method) in rows for task in tasks)]
    head = [f"{BEYOND[m].label}: {what}" for m in methods for what in ("CRPS", "coverage")]
    lines = []
    for task in tasks:
        there = {m: rows[task, m] for m in methods if (task, m) in rows}
        best = min(float(row["crps"]) for row in there.values())
        lines.append([task])
        for method in methods:
            if method not in there:
                lines[-1] += ["", ""]
                continue
            crps, coverage = there[method]["crps"], there[method]["coverage"]
            lines[-1] += [_bold(write_number(crps, 3), crps <= best), f"{coverage:.2f}"]
    said = []
    for ours in ("plain", "queries"):
        both = [t for t in tasks if (t, ours) in rows and (t, "exact") in rows]
        if both:
            ratios = [rows[t, ours]["crps"] / rows[t, "exact"]["crps"] for t in both]
            said.append(
                f"CRPS of {BEYOND[ours].label} is no larger than the exact GP's on "
                f"{sum(ratio <= 1 for ratio in ratios)} of {len(both)}, in the mean "
                f"{np.mean(ratios):.2f} of it."
            )
    return "\n".join([markdown_table(["task", *head], lines), "", *said])
