# SPDX-License-Identifier: BSD-3-Clause
"""Accuracy and calibration of the default estimator on the reference data sets.

    python benchmarks/accuracy.py [--data-folder FOLDER] [--only yacht,boston] [--seeds 0,1]

Every fit is ``LSGPRegressor(random_state=seed)`` with no other setting (satellite:
``fit(X, y, queries=X_test)``). Prints a table against the figures to reach and appends one
JSON line per fit to the results file.

These splits, and the satellite data, were looked at while tuning was designed (docs/benchmarks.md
says for what): for an untouched estimate take other seeds.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np
from data_sets import load_dataset, split
from isolated import Result
from job_runner import ResultsFile, run_here
from rich.console import Console
from rich.table import Table
from scores import scores

from lsgp import LSGPRegressor

#: Figures to reach: (metric, sign, value); coverage has a range.
REACH: dict[str, dict[str, tuple[float, float]]] = {
    "yacht": {"mse": (0, 0.23), "crps": (0, 0.137), "nll": (-99, -0.7)},
    "boston": {"mse": (0, 5.6), "crps": (0, 1.25), "nll": (-99, 2.26)},
    "concrete": {"mse": (0, 17.0), "crps": (0, 1.90), "nll": (-99, 2.65), "fit_cpu": (0, 20)},
    "kin8nm": {
        "mse": (0, 0.0048),
        "crps": (0, 0.038),
        "nll": (-99, -1.29),
        "coverage": (0.94, 0.96),
    },
    "powerplant": {
        "mse": (0, 7.6),
        "crps": (0, 1.30),
        "nll": (-99, 2.28),
        "coverage": (0.94, 0.96),
        "fit_cpu": (0, 40),
    },
    "protein": {
        "mse": (0, 9.6),
        "crps": (0, 1.39),
        "nll": (-99, 1.8),
        "coverage": (0.94, 0.96),
        "fit_cpu": (0, 60),
    },
    "satellite": {
        "rmse": (0, 1.43),
        "crps": (0, 0.755),
        "interval_score": (0, 7.4),
        "coverage": (0.94, 0.96),
    },
}
SEEDS = {"protein": (0, 1, 2), "satellite": (0,)}
METRICS = ("mse", "rmse", "crps", "nll", "coverage", "interval_score", "fit_cpu", "predict_cpu")


def measure(name: str, seed: int, data_folder: str | None) -> Result:
    data = load_dataset(name, data_folder)
    if data.n_train is not None:
        train, test = np.arange(data.n_train), np.arange(data.n_train, len(data.y))
    else:
        train, test = split(len(data.y), seed)
    queries = data.X[test] if name == "satellite" else None
    started = time.process_time()
    model = LSGPRegressor(random_state=seed).fit(data.X[train], data.y[train], queries=queries)
    fitted = time.process_time()
    predicted = model.predict_distribution(data.X[test])
    finished = time.process_time()
    found = scores(predicted, data.y[test])
    return {
        **found,
        "mse": found["rmse"] ** 2,
        "fit_cpu": fitted - started,
        "predict_cpu": finished - fitted,
        "loo_loss": model.tuning_.loss,
        "chosen": [
            [str(c.model.kernel), c.input_transform, c.scale, c.n_neighbors, w]
            for c, w in model.tuning_.chosen
        ],
    }


def summarize(results: list[Result], console: Console) -> None:
    table = Table(title="LSGPRegressor(random_state=seed), mean over seeds (figure to reach)")
    table.add_column("data set")
    for metric in METRICS:
        table.add_column(metric, justify="right")
    for name in dict.fromkeys(result["name"] for result in results):
        own = [result for result in results if result["name"] == name]
        cells = [f"{name} ({len(own)})"]
        for metric in METRICS:
            value = float(np.mean([result[metric] for result in own]))
            low, high = REACH[name].get(metric, (-np.inf, np.inf))
            cell = f"{value:.4g}"
            if metric in REACH[name]:
                reached = low <= value <= high
                target = f"{high:g}" if low in (0, -99) else f"{low:g}-{high:g}"
                color = "green" if reached else "red"
                cell = f"[{color}]{cell}[/{color}] ({target})"
            cells.append(cell)
        table.add_row(*cells)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-folder", help="folder of the data sets (default: LSGP_DATA)")
    parser.add_argument("--only", help="data sets, separated by commas")
    parser.add_argument("--seeds", help="seeds, separated by commas")
    parser.add_argument("--output", default="benchmarks/results/accuracy.jsonl")
    arguments = parser.parse_args()
    console = Console(width=160)
    names = arguments.only.split(",") if arguments.only else list(REACH)
    given = [int(seed) for seed in arguments.seeds.split(",")] if arguments.seeds else None
    jobs = [
        {"name": name, "seed": seed}
        for name in names
        for seed in given or SEEDS.get(name, range(5))
    ]
    measure_one = partial(measure, data_folder=arguments.data_folder)
    results = run_here(jobs, ResultsFile(Path(arguments.output)), measure_one, again=True)
    summarize(results, console)


if __name__ == "__main__":
    main()
