# SPDX-License-Identifier: BSD-3-Clause
"""lsgp and its peers on the reference data sets: accuracy, calibration, time and memory.

    python benchmarks/compare.py [--data-folder FOLDER] [--only yacht,boston] [--methods lsgp,knn]

Every (data set, split, method) runs in a process of its own, on one thread, and appends one JSON
line; what is already there is not run again. The tables and pictures are then made by
benchmarks/comparison_report.py.

The splits are 5 to 9 (protein: 5 to 7), because 0 to 4 were looked at while the library was
designed. The satellite data have one split, which their authors fixed and which was looked at too.

Two rules keep the whole affordable. A method that exceeds the time limit on the first split of a
data set is not tried on the others. And a method gets no further split of a data set once it has
spent more CPU time there than the budget: its row then stands on fewer splits, and says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from data_sets import DATASETS, load_dataset, split
from isolated import OVER_LIMIT, Result
from job_runner import ResultsFile, listed, parse_isolated, run_jobs
from peer_task import Task
from peers import METHODS, run_method
from scores import scores

#: Smallest first.
NAMES = sorted(DATASETS, key=lambda name: DATASETS[name].rows)
FIRST_SPLIT = 5
N_SPLITS = {"protein": 3, "satellite": 1}
#: Where only some methods are run. The satellite data ask for a map with large gaps.
ONLY_METHODS = {"satellite": ("lsgp", "gpboost", "lightgbm", "knn")}
#: Methods of the comparison: all that take all rows.
COMPARED = tuple(method for method in METHODS if method != "gp-5000")


def splits_of(name: str) -> list[int]:
    return list(range(FIRST_SPLIT, FIRST_SPLIT + N_SPLITS.get(name, 5)))


def measure(job: Result) -> Result:
    """Fit and predict one split, in this process."""
    data = load_dataset(job["dataset"], job["data_folder"])
    if data.n_train is None:
        train, test = split(len(data.y), job["split"])
    else:
        train, test = np.arange(data.n_train), np.arange(data.n_train, len(data.y))
    queries = None if data.n_train is None else data.X[test]
    task = Task(data.X[train], data.y[train], job["split"], queries)
    predicted, spent = run_method(job["method"], task, data.X[test])
    return {**scores(predicted, data.y[test]), **spent}


def compare(
    output: Path,
    names: Sequence[str],
    methods: Sequence[str],
    splits: Sequence[int] | None = None,
    data_folder: str | None = None,
    time_limit: float = 600.0,
    budget: float = 400.0,
    quiet: bool = False,
) -> None:
    """Run what the results file does not have yet."""
    file = ResultsFile(output)
    jobs = [
        {"dataset": name, "split": seed, "method": method}
        for name in names
        for seed in splits or splits_of(name)
        for method in methods
        if method in ONLY_METHODS.get(name, methods)
    ]

    def earlier(job: Result) -> list[Result]:
        return file.select(dataset=job["dataset"], method=job["method"])

    def why_not(job: Result) -> str | None:
        exceeded = any(r.get("failure", "").startswith(OVER_LIMIT) for r in earlier(job))
        return "not tried: an earlier split exceeded the limit" if exceeded else None

    def is_over_budget(job: Result) -> bool:
        spent = (r.get("fit_cpu", 0.0) + r.get("predict_cpu", 0.0) for r in earlier(job))
        return bool(sum(spent) > budget)

    settings = {"data_folder": data_folder}
    run_jobs(__file__, jobs, file, time_limit, why_not, is_over_budget, settings, quiet)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-folder", help="folder of the data sets (default: LSGP_DATA)")
    parser.add_argument("--only", help="data sets, separated by commas")
    parser.add_argument("--splits", help="seeds, separated by commas (default: 5 to 9)")
    parser.add_argument(
        "--budget", type=float, default=400.0, help="CPU seconds after which no split is added"
    )
    arguments = parse_isolated(parser, measure, COMPARED, "comparison.jsonl", 600.0)
    compare(
        arguments.output,
        listed(arguments.only, NAMES),
        arguments.methods,
        [int(seed) for seed in arguments.splits.split(",")] if arguments.splits else None,
        arguments.data_folder,
        arguments.time_limit,
        arguments.budget,
    )


if __name__ == "__main__":
    main()
