# SPDX-License-Identifier: BSD-3-Clause
"""What tuning costs as the data grow, and how much its result depends on chance.

    python benchmarks/tuning_cost.py [--sizes 10000,100000,1000000] [--profile]
    python benchmarks/tuning_cost.py --spread [--random-states 10] [--data-folder FOLDER]

The first measures the CPU time of ``LSGPRegressor(random_state=0).fit`` on synthetic data of
four inputs, in total and beyond building the neighbor index. The second fits one protein split
with several values of ``random_state`` and reports the spread of the CRPS of its test rows.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import platform
import pstats
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from data_sets import load_dataset, split
from rich.console import Console
from rich.table import Table

import lsgp
from lsgp import LSGPRegressor
from lsgp.search.index import build_index

N_INPUTS = 4
#: Figures to reach: growth of the CPU time from the smallest to the largest size, and the
#: spread of the CRPS relative to its mean.
LARGEST_GROWTH = 1.5
LARGEST_SPREAD = 0.03
#: Where tuning and fitting take the function from.
USERS_OF_THE_INDEX = (
    "lsgp.tuning.leave_one_out",
    "lsgp.ensemble.fitted_model",
    "lsgp.tuning.beyond.imitation",
)


def make_data(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of four inputs of unequal relevance, with noise; (n, 4) and (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, N_INPUTS))
    signal = np.sin(4.0 * X[:, 0]) * np.cos(2.0 * X[:, 1]) + X[:, 2] ** 2 + 0.1 * X[:, 3]
    return X, signal + 0.2 * rng.normal(size=n)


@contextmanager
def count_index_building() -> Iterator[dict[str, float]]:
    """CPU seconds spent on neighbor indexes inside the block, and how many were built."""
    spent = {"n_indexes": 0.0, "index_cpu": 0.0}

    def build(*arguments: Any) -> Any:
        started = time.process_time()
        index = build_index(*arguments)
        spent["index_cpu"] += time.process_time() - started
        spent["n_indexes"] += 1
        return index

    patches = [patch(f"{name}.build_index", build) for name in USERS_OF_THE_INDEX]
    for one in patches:
        one.start()
    try:
        yield spent
    finally:
        for one in patches:
            one.stop()


def measure_growth(sizes: list[int], profile: bool, console: Console) -> dict[str, Any]:
    rows = []
    for n in sizes:
        X, y = make_data(n)
        profiler = cProfile.Profile(time.process_time) if profile else None
        with count_index_building() as spent:
            started = time.process_time()
            if profiler is not None:
                profiler.enable()
            model = LSGPRegressor(random_state=0).fit(X, y)
            if profiler is not None:
                profiler.disable()
            total = time.process_time() - started
        rows.append(
            {
                "n": n,
                "fit_cpu": total,
                "index_cpu": spent["index_cpu"],
                "n_indexes": int(spent["n_indexes"]),
                "beyond_cpu": total - spent["index_cpu"],
                "n_candidates": len(model.tuning_.candidates),
                "chosen": [[c.describe(), weight] for c, weight in model.tuning_.chosen],
            }
        )
        console.print(f"n = {n:,}: {total:.1f} s")
        if profiler is not None:
            pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
    growth = {key: rows[-1][key] / rows[0][key] for key in ("fit_cpu", "beyond_cpu")}
    table = Table(title=f"CPU seconds of LSGPRegressor(random_state=0).fit, d = {N_INPUTS}")
    for name in ("n", "total", "indexes", "time for them", "beyond", "candidates"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            f"{row['n']:,}",
            f"{row['fit_cpu']:.1f}",
            str(row["n_indexes"]),
            f"{row['index_cpu']:.1f}",
            f"{row['beyond_cpu']:.1f}",
            str(row["n_candidates"]),
        )
    color = "green" if growth["beyond_cpu"] <= LARGEST_GROWTH else "red"
    table.add_row(
        "growth",
        f"{growth['fit_cpu']:.2f}",
        "",
        "",
        f"[{color}]{growth['beyond_cpu']:.2f}[/{color}] ({LARGEST_GROWTH})",
        "",
    )
    console.print(table)
    return {"rows": rows, "growth": growth}


def measure_spread(n_states: int, data_folder: str | None, console: Console) -> dict[str, Any]:
    data = load_dataset("protein", data_folder)
    train, test = split(len(data.y), 0)
    rows = []
    for state in range(n_states):
        started = time.process_time()
        model = LSGPRegressor(random_state=state).fit(data.X[train], data.y[train])
        fit_cpu = time.process_time() - started
        predicted = model.predict_distribution(data.X[test])
        crps = float(np.mean(predicted.crps(data.y[test])))
        mse = float(np.mean((predicted.mean - data.y[test]) ** 2))
        rows.append({"random_state": state, "crps": crps, "mse": mse, "fit_cpu": fit_cpu})
        console.print(f"random_state = {state}: CRPS {crps:.4f}, {fit_cpu:.0f} s")
    all_crps = np.array([row["crps"] for row in rows])
    spread = float((all_crps.max() - all_crps.min()) / all_crps.mean())
    table = Table(title="Test CRPS on one protein split (seed 0), by random_state")
    for name in ("random_state", "CRPS", "MSE", "CPU seconds of fit"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            str(row["random_state"]),
            f"{row['crps']:.4f}",
            f"{row['mse']:.3f}",
            f"{row['fit_cpu']:.1f}",
        )
    color = "green" if spread <= LARGEST_SPREAD else "red"
    table.add_row(
        "spread", f"[{color}]{100 * spread:.2f} %[/{color}] ({100 * LARGEST_SPREAD:g} %)", "", ""
    )
    console.print(table)
    return {"rows": rows, "spread": spread}


def save(path: Path, key: str, result: dict[str, Any]) -> None:
    """Replace one part of the results file; a reader never sees half a file."""
    results = json.loads(path.read_text()) if path.exists() else {}
    results[key] = result | {
        "lsgp": lsgp.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(results, indent=1) + "\n")
    temporary.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="10000,100000,1000000", help="separated by commas")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    parser.add_argument("--spread", action="store_true", help="over random_state, on protein")
    parser.add_argument("--random-states", type=int, default=10, help="how many (default: 10)")
    parser.add_argument("--data-folder", help="folder of the data sets (default: LSGP_DATA)")
    parser.add_argument("--output", default="benchmarks/results/tuning_cost.json")
    arguments = parser.parse_args()
    console = Console(width=100)
    if arguments.spread:
        result = measure_spread(arguments.random_states, arguments.data_folder, console)
        save(Path(arguments.output), "spread", result)
    else:
        sizes = [int(size) for size in arguments.sizes.split(",")]
        save(Path(arguments.output), "growth", measure_growth(sizes, arguments.profile, console))


if __name__ == "__main__":
    main()
