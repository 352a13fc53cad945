# SPDX-License-Identifier: BSD-3-Clause
"""Markdown tables of the noisy tasks and of those beyond the data, and what the README says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from comparison_tables import BY_NAME, OURS, Comparison, write_number
from isolated import Result
from markdown_tables import markdown_table
from noisy import TASKS
from peers import METHODS

NOISY_TITLES = {
    "square": "function of 2 inputs, noise of twice its size, 100,000 rows",
    "noise": "pure noise, 20,000 rows",
    "flights": "flights, 253,853 rows",
    "million": "function of 2 inputs, a million rows",
}
#: Methods of benchmarks/beyond.py.
BEYOND_TITLES = {"exact": "exact GP", "plain": "lsgp", "queries": "lsgp, `queries=`"}


def noisy_table(results: Iterable[Result]) -> str:
    """Tasks by methods: error, CRPS, coverage and time; the smallest error and CRPS in bold."""
    rows = [row for row in results if "task" in row]
    head = [
        "task",
        "method",
        "error",
        "CRPS",
        "coverage of 95 %",
        "CPU seconds to fit",
        "to predict",
    ]
    lines = []
    for task in TASKS:
        for method in METHODS:
            found = [r for r in rows if (r["task"], r["method"]) == (task, method)]
            there = [r for r in found if "failure" not in r]
            if not there:
                lines += [
                    [NOISY_TITLES[task], METHODS[method].label, r["failure"], *[""] * 4]
                    for r in found[:1]
                ]
                continue
            lines.append([NOISY_TITLES[task], METHODS[method].label])
            for name in ("error", "crps", "coverage", "fit_cpu", "predict_cpu"):
                value = float(np.mean([r[name] for r in there]))
                best = min(
                    (float(r[name]) for r in rows if r["task"] == task and name in r), default=value
                )
                text = write_number(value, 3)
                is_best = name in ("error", "crps") and value <= best
                lines[-1].append(f"**{text}**" if is_best else text)
    return markdown_table(head, lines, n_texts=2)


def beyond_table(results: Iterable[Result]) -> str:
    """CRPS and coverage of each task by method, and how often lsgp is no worse."""
    rows = {(r["task"], r["method"]): r for r in results if "task" in r and "failure" not in r}
    tasks = list(dict.fromkeys(task for task, _ in rows))
    methods = [method for method in BEYOND_TITLES if any((t, method) in rows for t in tasks)]
    titles = [f"{BEYOND_TITLES[m]}: {what}" for m in methods for what in ("CRPS", "coverage")]
    lines = []
    for task in tasks:
        there = {m: rows[task, m] for m in methods if (task, m) in rows}
        best = min(float(row["crps"]) for row in there.values())
        lines.append([task])
        for method in methods:
            row = there.get(method)
            if row is None:
                lines[-1] += ["", ""]
                continue
            text = write_number(row["crps"], 3)
            text = f"**{text}**" if row["crps"] <= best else text
            lines[-1] += [text, f"{row['coverage']:.2f}"]
    table = markdown_table(["task", *titles], lines)
    return "\n".join([table, "", *_beyond_sentences(rows, tasks)])


def _beyond_sentences(rows: dict[tuple[str, str], Result], tasks: Sequence[str]) -> list[str]:
    said = []
    for ours in ("plain", "queries"):
        both = [t for t in tasks if (t, ours) in rows and (t, "exact") in rows]
        if both:
            ratios = [rows[t, ours]["crps"] / rows[t, "exact"]["crps"] for t in both]
            n_better = sum(ratio <= 1 for ratio in ratios)
            said.append(
                f"CRPS of {BEYOND_TITLES[ours]} is no larger than the exact GP's on {n_better} of "
                f"{len(both)}, in the mean {np.mean(ratios):.2f} of it."
            )
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
    firsts = {
        metric: [name for name in names if OURS in comparison.first(name, BY_NAME[metric])]
        for metric in ("crps", "nll", "interval_score", "rmse")
    }
    said = {"crps": "CRPS", "nll": "log density", "interval_score": "interval score"}
    counts = ", ".join(f"in {title} on {len(firsts[m])}" for m, title in said.items())
    ahead = [
        f"{' and '.join(_labels(comparison.first(name, BY_NAME['rmse'])))} on {name}"
        for name in names
        if name not in firsts["rmse"]
    ]
    behind = f" ({'; '.join(ahead)} {'is' if len(ahead) == 1 else 'are'} ahead)" if ahead else ""
    return (
        f"With no setting, on test rows that nothing was chosen by, lsgp is first of {n_methods} "
        f"methods {counts} of {len(names)} data sets, and in root mean squared error on "
        f"{len(firsts['rmse'])}{behind}."
    )


def _labels(methods: Iterable[str]) -> list[str]:
    return [METHODS[method].label for method in methods]
