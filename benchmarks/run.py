# SPDX-License-Identifier: BSD-3-Clause
"""Accuracy, calibration, time and memory of lsgp and its peers: every benchmark of predictions.

    python benchmarks/run.py comparison --data-folder FOLDER --dataset yacht --method lsgp knn
    python benchmarks/run.py --help

A benchmark is every combination of the values of its axes (``--dataset``, ``--method``, ...), which
options restrict. Each is measured in a process of its own, on one thread and within a limit of CPU
time, and appends one JSON line to its file of benchmarks/results; a line that is there is not made
again. Methods whose library is not installed are left out, and named. The tables and pictures are
then made by benchmarks/comparison_report.py.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import functions
import numpy as np
import peer_labels
import tables
from peers import BEYOND, METHODS, run_method
from runner import FOLDER, SHOWN, Result, ResultsFile, answer, run_isolated, run_jobs
from scores import rmse_of, scores
from tasks import NAMES, NOISY, REGIONS, Problem, beyond, data_set, growing

#: Axes that differ by chance alone: what is printed at the end are means over them.
CHANCE = ("split", "seed", "draw")
#: Splits 0 to 4 were looked at while the library was designed. The satellite data have one split,
#: which their authors fixed and which was looked at too.
FIRST_SPLIT, N_SPLITS = 5, {"protein": 3, "satellite": 1}
#: The satellite data ask for a map with large gaps: only these methods are run.
SATELLITE_METHODS = ("lsgp", "gpboost", "lightgbm", "knn")
SIZES, DIMENSIONS = (1_000, 10_000, 100_000, 1_000_000), (2, 8)


def splits_of(name: str) -> list[int]:
    return list(range(FIRST_SPLIT, FIRST_SPLIT + N_SPLITS.get(name, 5)))


def judged(problem: Problem, method: str) -> Result:
    """Scores of one method, its error against the function itself where that is known, and time."""
    predicted, spent = run_method(method, problem.task, problem.queries)
    found = scores(predicted, problem.observed)
    if problem.truth is None:
        error = found["rmse"] / float(np.std(problem.observed))
    else:
        error = rmse_of(predicted, problem.truth)
    return {**found, "error": error, **spent}


def measure_data_set(dataset: str, split: int, method: str, folder: Path | None) -> Result:
    """lsgp beside its peers on the reference data sets."""
    return judged(data_set(dataset, split, folder), method)


def measure_noisy(task: str, split: int, method: str, folder: Path | None) -> Result:
    """Data of which most is noise: lsgp beside LightGBM and an exact GP of 5,000 of the rows."""
    return judged(NOISY[task](split, folder), method)


def measure_growth(n: int, d: int, method: str, folder: Path | None) -> Result:
    """How time and error grow with the number of training rows, beside the peers."""
    found = judged(growing(n, d), method)
    kept = ("rmse", "fit_cpu", "predict_cpu", "device", "version")
    return {name: found[name] for name in kept}


def measure_beyond(task: str, method: str, seed: int, folder: Path) -> Result:
    """Regions held out: lsgp told the queries and not, beside an exact GP of the same rows."""
    name, _, number = task.partition(", ")
    return judged(beyond(name, int(number or 0), seed, folder), method)


class Benchmark(NamedTuple):
    """Every combination of the values of its axes, the cheap ones first."""

    measure: Callable[..., Result]
    axes: dict[str, Sequence[Any]]
    is_wanted: Callable[[Result], bool] = lambda job: True
    time_limit: float = 600.0
    #: A method that failed at a value of this axis is not tried at larger ones.
    harder: str | None = None
    #: CPU seconds of a method after which no larger value of that axis is tried.
    budget: float = np.inf


def _is_in_comparison(job: Result) -> bool:
    is_map, n_splits = job["dataset"] == "satellite", N_SPLITS.get(job["dataset"], 5)
    is_for_it = not is_map or job["method"] in SATELLITE_METHODS
    return is_for_it and job["split"] < FIRST_SPLIT + n_splits


#: All methods that take all rows.
COMPARED = [name for name in METHODS if name != "gp-5000"]
GROWING = ("lsgp", "gpboost", "muygps", "svgp", "sklearn-gp", "lightgbm", "knn")
DEVELOPMENT = [f"{name}, {k}" for name, all_ in REGIONS.items() for k in range(1, len(all_))]
BENCHMARKS: dict[str, Benchmark] = {
    "comparison": Benchmark(
        measure_data_set,
        {"dataset": NAMES, "split": range(5, 10), "method": COMPARED},
        _is_in_comparison,
        harder="split",
        budget=400.0,
    ),
    # These splits were looked at while tuning was designed.
    "accuracy": Benchmark(
        measure_data_set,
        {"dataset": NAMES, "split": range(5), "method": ["lsgp"]},
        lambda job: job["split"] < N_SPLITS.get(job["dataset"], 5),
    ),
    "noisy": Benchmark(
        measure_noisy,
        {"task": list(NOISY), "split": [0], "method": ["lsgp", "lightgbm", "gp-5000"]},
    ),
    "scaling": Benchmark(
        measure_growth,
        {"n": SIZES, "d": DIMENSIONS, "method": GROWING},
        time_limit=180.0,
        harder="n",
    ),
    "beyond": Benchmark(
        measure_beyond, {"task": list(REGIONS), "method": list(BEYOND), "seed": [0]}
    ),
    # Regions on which choices may be made.
    "beyond-development": Benchmark(
        measure_beyond, {"task": DEVELOPMENT, "method": list(BEYOND), "seed": [0]}
    ),
    "deterministic": Benchmark(
        functions.measure,
        {
            "n": [100, 600, 10_000],
            "function": list(functions.FUNCTIONS),
            "method": list(functions.METHODS),
            "seed": [0, 1, 2],
        },
        lambda job: job["method"] == "lsgp" or job["n"] <= functions.MOST_ROWS,
        time_limit=3600.0,
    ),
    "tiny": Benchmark(
        functions.measure_tiny,
        {
            "table": [*functions.TINY_FUNCTIONS, *functions.TINY_TABLES],
            "n": [5, 10, 20, 40],
            "draw": range(10),
        },
        lambda job: job["table"] in functions.TINY_FUNCTIONS or job["n"] >= 10,
    ),
    "mixed": Benchmark(
        tables.measure_mixed,
        {
            "method": ["lsgp", "by-hand-means", "by-hand-one-hot", "lightgbm", "catboost"],
            "seed": [10],
            "table": [*tables.MIXED, *tables.HOLED, "levels"],
        },
        lambda job: job["table"] in tables.MIXED or "by-hand" not in job["method"],
        time_limit=3600.0,
    ),
    "sphere": Benchmark(
        tables.measure_sphere,
        {"seed": [10], "dataset": list(tables.PLACES), "inputs": list(tables.COORDINATES)},
    ),
    "classification": Benchmark(
        tables.measure_labels,
        {"table": tables.LABELED, "seed": range(5), "method": list(peer_labels.METHODS)},
        lambda job: job["method"] != "gaussian_process" or job["table"] in tables.SMALL_TABLES,
        time_limit=3600.0,
    ),
}


def is_installed(method: str) -> bool:
    package = METHODS[method].package if method in METHODS else method
    known = ("lightgbm", "catboost", "xgboost", "gpytorch", "gpboost", "MuyGPyS")
    if package in known and find_spec(package) is None:
        print(f"{method} is left out: {package} is not installed")
        return False
    return True


def run(
    name: str,
    output: Path,
    folder: str | None = None,
    chosen: Mapping[str, Sequence[Any]] | None = None,
    time_limit: float | None = None,
    quiet: bool = False,
) -> None:
    """Measure what the file does not have yet of a benchmark, or of the chosen values of axes."""
    benchmark, file = BENCHMARKS[name], ResultsFile(output)
    axes = benchmark.axes | dict(chosen or {})
    if "method" in axes:
        axes["method"] = [method for method in axes["method"] if is_installed(method)]
    jobs = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    harder = benchmark.harder

    def easier(job: Result) -> list[Result]:
        """Results of the same method on less, if that tells about the job."""
        if harder is None:
            return []
        same = {axis: value for axis, value in job.items() if axis != harder}
        return [r for r in file.select(**same) if r[harder] < job[harder]]

    def why_not(job: Result) -> str | None:
        failed = [r[harder] for r in easier(job) if "failure" in r]
        return f"not tried: failed with {harder} {min(failed):,}" if failed else None

    def is_over_budget(job: Result) -> bool:
        spent = (r.get("fit_cpu", 0.0) + r.get("predict_cpu", 0.0) for r in easier(job))
        return bool(sum(spent) > benchmark.budget)

    def measure(job: Result) -> Result:
        order = {"benchmark": name, "folder": folder, "job": job}
        return run_isolated(__file__, order, time_limit or benchmark.time_limit)

    jobs = [job for job in jobs if benchmark.is_wanted(job)]
    run_jobs(jobs, file, measure, why_not, is_over_budget, quiet)
    if not quiet:
        summarize(name, file.results)


def measure_here(order: Result) -> Result:
    """One measurement, in the process that `run` has started for it."""
    folder = None if order["folder"] is None else Path(order["folder"])
    return BENCHMARKS[order["benchmark"]].measure(folder=folder, **order["job"])


def summarize(name: str, results: Sequence[Result]) -> None:
    """Print means of the scores over splits, seeds and draws."""
    axes = [axis for axis in BENCHMARKS[name].axes if axis not in CHANCE]
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for row in results:
        if all(axis in row for axis in axes) and "failure" not in row:
            groups.setdefault(tuple(row[axis] for axis in axes), []).append(row)
    for key, rows in groups.items():
        shown = [metric for metric in SHOWN if all(metric in row for row in rows)]
        means = [f"{metric} {np.mean([row[metric] for row in rows]):.4g}" for metric in shown]
        print(f"{', '.join(map(str, key))} ({len(rows)}): {', '.join(means)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parts = parser.add_subparsers(dest="benchmark")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--data-folder", default=os.environ.get("LSGP_DATA"))
    shared.add_argument("--output", type=Path, help="default: its file of benchmarks/results")
    shared.add_argument("--time-limit", type=float, help="CPU seconds of a measurement")
    for name, benchmark in BENCHMARKS.items():
        text = (benchmark.measure.__doc__ or "").partition("\n")[0]
        part = parts.add_parser(name, parents=[shared], help=text, description=text)
        for axis, values in benchmark.axes.items():
            known = list(values) if isinstance(values[0], str) else None
            part.add_argument(f"--{axis}", nargs="+", type=type(values[0]), choices=known)
    options = parser.parse_args()
    if options.job:
        answer(options.job, measure_here)
        return
    if options.benchmark is None:
        parser.error("name a benchmark")
    name = options.benchmark
    chosen = {axis: getattr(options, axis) for axis in BENCHMARKS[name].axes}
    chosen = {axis: values for axis, values in chosen.items() if values is not None}
    output = options.output or FOLDER / f"{name}.jsonl"
    run(name, output, options.data_folder, chosen, options.time_limit)


if __name__ == "__main__":
    main()
