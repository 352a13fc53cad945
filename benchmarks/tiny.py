# SPDX-License-Identifier: BSD-3-Clause
"""Default fits of 5 to 40 rows: how many of other rows 90 % intervals hold.

    python benchmarks/tiny.py --data-folder ../shared/data [--draws 10] [--first-draw 0]

Three functions with noise, and eight tables of the development suite of which some rows are taken.
Prints the coverage of each at each size, as a mean over draws, and the CRPS relative to that of a
normal distribution with the mean and standard deviation of the rows.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scores import coverage_of
from suite import read_table

from lsgp import LSGPRegressor
from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]
Draw = tuple[Any, Array, Any, Array]  # rows and targets, queries and theirs

SIZES = {"function": (5, 10, 20, 40), "table": (10, 20, 40)}
N_QUERIES, NOISE, LEVEL = 500, 0.2, 0.9
TABLES = (
    "mcycle",
    "airquality",
    "hitters",
    "energy",
    "airfoil",
    "abalone",
    "computers",
    "lasrosas_corn",
)


def sine(X: Array) -> Array:
    return np.sin(6.0 * X[:, 0])


def friedman(X: Array) -> Array:
    bent = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    return (bent + 10.0 * X[:, 3] + 5.0 * X[:, 4]) / 5.0


def linear(X: Array) -> Array:
    return X @ np.array([1.0, -2.0, 0.5, 0.0])


FUNCTIONS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "sin": (1, sine),
    "friedman": (5, friedman),
    "linear": (4, linear),
}


def draw_function(name: str, n: int, draw: int) -> Draw:
    d, function = FUNCTIONS[name]
    rng = np.random.default_rng([draw, n])
    X = rng.uniform(size=(n + N_QUERIES, d))
    y = function(X) + NOISE * rng.normal(size=len(X))
    return X[:n], y[:n], X[n:], y[n:]


def draw_table(table: tuple[pd.DataFrame, pd.Series], n: int, draw: int) -> Draw:
    X, y = table
    order = np.random.default_rng([draw, n]).permutation(len(y))[: n + N_QUERIES]
    rows, rest = order[:n], order[n:]
    values = y.to_numpy(dtype=float)
    return X.iloc[rows], values[rows], X.iloc[rest], values[rest]


def measure(drawn: Draw, seed: int) -> tuple[float, float]:
    X, y, queries, observed = drawn
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = LSGPRegressor(random_state=seed).fit(X, y).predict_distribution(queries)
    scale = np.full(len(observed), y.std() or 1.0)
    plain = PredictiveDistribution(np.full(len(observed), y.mean()), scale, np.inf + 0.0 * scale)
    relative = float(predicted.crps(observed).mean() / plain.crps(observed).mean())
    return coverage_of(predicted, observed, LEVEL), relative


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-folder")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first-draw", type=int, default=0)
    arguments = parser.parse_args()
    folder = arguments.data_folder or os.environ.get("LSGP_DATA")
    draws: dict[str, tuple[tuple[int, ...], Callable[[int, int], Draw]]] = {
        name: (SIZES["function"], lambda n, k, name=name: draw_function(name, n, k))
        for name in FUNCTIONS
    }
    if folder is not None:
        for name in TABLES:
            X, y = read_table(Path(folder) / "suite" / "regression" / f"{name}.csv.gz")
            own = X[X.notna().all(axis=1)], y[X.notna().all(axis=1)]
            draws[name] = (SIZES["table"], lambda n, k, own=own: draw_table(own, n, k))
    covered = []
    for name, (sizes, draw) in draws.items():
        for n in sizes:
            first = arguments.first_draw
            found = [measure(draw(n, k), k) for k in range(first, first + arguments.draws)]
            coverage, relative = np.mean(found, axis=0)
            covered.append(coverage)
            print(
                f"{name:15s} n = {n:2d}: coverage {coverage:.3f}, CRPS {relative:.3f}", flush=True
            )
    print(f"mean {np.mean(covered):.3f}, lowest {np.min(covered):.3f} of {len(covered)}")


if __name__ == "__main__":
    main()
