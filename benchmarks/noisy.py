# SPDX-License-Identifier: BSD-3-Clause
"""Data of which most is noise: lsgp beside LightGBM and an exact GP of 5,000 of the rows.

    python benchmarks/noisy.py --data-folder FOLDER [--only square,noise] [--methods lsgp]

- square: a smooth function on the unit square with noise of twice its size, 100,000 rows;
- noise: 20,000 rows of 8 inputs that have nothing to do with the target;
- flights: delays of flights from New York, 20,000 test rows (flights.csv.gz of the folder);
- million: the function of benchmarks/scaling.py of 2 inputs, a million rows.

The error is against the function itself where that is known, in standard deviations of the target
where it is not. Every measurement is a process of its own on one thread. One JSON line each in
benchmarks/results/noisy.jsonl; what is there is not run again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import scaling
from isolated import Result
from job_runner import ResultsFile, listed, parse_isolated, run_jobs
from peer_task import Array, Task
from peers import run_method
from scores import rmse_of, scores

NOISY_METHODS = ("lsgp", "lightgbm", "gp-5000")
N_QUERIES = 10_000
N_FLIGHTS_TEST = 20_000


class Noisy(NamedTuple):
    """Rows to fit, and rows to predict with their noise; the function itself, where it is known."""

    X: Array
    y: Array
    queries: Array
    observed: Array
    truth: Array | None


def square(seed: int, folder: str | None) -> Noisy:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(100_000 + N_QUERIES, 2))
    f = np.sin(7.0 * X[:, 0]) + np.cos(5.0 * X[:, 1] + 2.0 * X[:, 0])
    y = f + 2.0 * rng.normal(size=len(f))
    return Noisy(X[N_QUERIES:], y[N_QUERIES:], X[:N_QUERIES], y[:N_QUERIES], f[:N_QUERIES])


def pure_noise(seed: int, folder: str | None) -> Noisy:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30_000, 8)), rng.normal(size=30_000)
    return Noisy(X[N_QUERIES:], y[N_QUERIES:], X[:N_QUERIES], y[:N_QUERIES], None)


def flights(seed: int, folder: str | None) -> Noisy:
    if folder is None:
        raise FileNotFoundError("flights.csv.gz is in no folder: give --data-folder")
    table = pl.read_csv(Path(folder) / "flights.csv.gz").to_numpy().astype(float)
    order = np.random.default_rng(seed).permutation(len(table))
    test, train = table[order[:N_FLIGHTS_TEST]], table[order[N_FLIGHTS_TEST:]]
    return Noisy(train[:, :-1], train[:, -1], test[:, :-1], test[:, -1], None)


def million(seed: int, folder: str | None) -> Noisy:
    X, f = scaling.make_data(1_000_000, 2, seed)
    queries, truth = scaling.make_data(N_QUERIES, 2, seed + 2)
    rng = np.random.default_rng(seed + 1)
    y, observed = (g + scaling.NOISE * rng.normal(size=len(g)) for g in (f, truth))
    return Noisy(X, y, queries, observed, truth)


TASKS: dict[str, Callable[[int, str | None], Noisy]] = {
    "square": square,
    "noise": pure_noise,
    "flights": flights,
    "million": million,
}


def measure(job: Result) -> Result:
    """Fit and predict once, in this process."""
    data = TASKS[job["task"]](job["split"], job["data_folder"])
    task = Task(np.ascontiguousarray(data.X), data.y, job["split"])
    predicted, spent = run_method(job["method"], task, np.ascontiguousarray(data.queries))
    found = scores(predicted, data.observed)
    if data.truth is None:
        error = found["rmse"] / float(np.std(data.observed))
    else:
        error = rmse_of(predicted, data.truth)
    return {**found, "error": error, **spent}


def run(
    output: Path,
    tasks: Sequence[str],
    methods: Sequence[str],
    data_folder: str | None = None,
    splits: Sequence[int] = (0,),
    time_limit: float = 600.0,
    quiet: bool = False,
) -> None:
    """Run what the results file does not have yet."""
    jobs = [
        {"task": task, "split": split, "method": method}
        for task in tasks
        for split in splits
        for method in methods
    ]
    settings = {"data_folder": data_folder}
    file = ResultsFile(output)
    run_jobs(__file__, jobs, file, time_limit, lambda job: None, settings=settings, quiet=quiet)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-folder", help="folder of flights.csv.gz")
    parser.add_argument("--only", help=f"separated by commas, of {', '.join(TASKS)}")
    parser.add_argument("--splits", default="0", help="seeds, separated by commas")
    arguments = parse_isolated(parser, measure, NOISY_METHODS, "noisy.jsonl", 600.0)
    run(
        arguments.output,
        listed(arguments.only, list(TASKS)),
        arguments.methods,
        arguments.data_folder,
        [int(seed) for seed in arguments.splits.split(",")],
        arguments.time_limit,
    )


if __name__ == "__main__":
    main()
