# SPDX-License-Identifier: BSD-3-Clause
"""Coverage of the intervals of default fits: 13 functions, 2 to 300 rows.

    python benchmarks/coverage.py --method NAME [--draws 8] [--first-draw 0] [--output FILE]
    python benchmarks/coverage.py --table FILE

A run appends one line for each function, size and draw: the share of 1,000 new observations within
50, 90 and 95 % intervals, the CRPS, and the RMS error of the mean against the function itself.
``--table`` prints the means over draws of each method.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp import LSGPRegressor

Array = NDArray[np.float64]
Noise = Callable[[np.random.Generator, Array, Array], Array]

SIZES = (3, 5, 10, 20, 50, 100, 300)
LEVELS = (0.5, 0.9, 0.95)
N_QUERIES = 1_000


class Task(NamedTuple):
    """A function of inputs in the unit cube, and the noise of its observations."""

    d: int
    mean: Callable[[Array], Array]
    noise: Noise


def normal(std: float) -> Noise:
    return lambda rng, X, f: std * rng.normal(size=len(f))


def outliers(rng: np.random.Generator, X: Array, f: Array) -> Array:
    """Normal noise, and in 5 % of the rows an error of ten standard deviations and more."""
    gross = rng.uniform(size=len(f)) < 0.05
    return 0.2 * rng.normal(size=len(f)) * np.where(gross, 15.0, 1.0)


def sine(X: Array) -> Array:
    return np.sin(6.0 * X[:, 0])


def friedman(X: Array) -> Array:
    bent = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    return (bent + 10.0 * X[:, 3] + 5.0 * X[:, 4]) / 5.0


TASKS = {
    "sine": Task(1, sine, normal(0.2)),
    "linear": Task(4, lambda X: X @ np.array([1.0, -2.0, 0.5, 0.0]), normal(0.2)),
    "quadratic": Task(2, lambda X: 4.0 * (X[:, 0] - 0.5) ** 2 + X[:, 1], normal(0.1)),
    "step": Task(1, lambda X: np.where(X[:, 0] > 0.5, 1.0, 0.0), normal(0.1)),
    "friedman": Task(5, friedman, normal(0.2)),
    "constant": Task(3, lambda X: np.zeros(len(X)), normal(1.0)),
    "rough": Task(1, lambda X: np.abs(np.sin(20.0 * X[:, 0])), normal(0.1)),
    "no noise": Task(2, lambda X: np.sin(5.0 * X[:, 0]) * np.cos(3.0 * X[:, 1]), normal(0.0)),
    "uneven noise": Task(1, sine, lambda rng, X, f: 0.8 * X[:, 0] * rng.normal(size=len(f))),
    "log-normal": Task(
        2,
        lambda X: np.exp(2.0 * X[:, 0] + X[:, 1]),
        lambda rng, X, f: f * (np.exp(0.8 * rng.normal(size=len(f))) - 1.0),
    ),
    "outliers": Task(2, lambda X: sine(X) + X[:, 1], outliers),
    "heavy tails": Task(
        2, lambda X: sine(X) + X[:, 1], lambda rng, X, f: 0.2 * rng.standard_t(2, len(f))
    ),
    "rounded": Task(2, lambda X: np.round(3.0 * X[:, 0] + X[:, 1]), normal(0.0)),
}


def measure(name: str, n: int, draw: int) -> dict[str, object]:
    task = TASKS[name]
    rng = np.random.default_rng([draw, n, list(TASKS).index(name)])
    X = rng.uniform(size=(n + N_QUERIES, task.d))
    f = task.mean(X)
    y = f + task.noise(rng, X, f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LSGPRegressor(random_state=0).fit(X[:n], y[:n])
        found = model.predict_distribution(X[n:])
    observed = y[n:]
    within = {}
    for level in LEVELS:
        low, high = found.interval(level)
        within[str(level)] = float(np.mean((low <= observed) & (observed <= high)))
    return {
        "function": name,
        "n": n,
        "draw": draw,
        "coverage": within,
        "crps": float(np.mean(found.crps(observed))),
        "nll": -float(np.mean(found.logpdf(observed))),
        "error": float(np.sqrt(np.mean((found.mean - f[n:]) ** 2))),
    }


def table(path: Path) -> str:
    """Mean coverages over draws as Markdown: a row for each function, a column for each size."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        for level in map(str, LEVELS):
            lines += [f"{method}, {float(level):.0%} intervals", ""]
            lines.append("| function | " + " | ".join(map(str, SIZES)) + " |")
            lines.append("|---" * (len(SIZES) + 1) + "|")
            for name in [*TASKS, "mean"]:
                cells = []
                for n in SIZES:
                    own = [
                        row["coverage"][level]
                        for row in rows
                        if row["method"] == method
                        and row["n"] == n
                        and name in (row["function"], "mean")
                    ]
                    cells.append(f"{100 * np.mean(own):.0f}" if own else "")
                lines.append(f"| {name} | " + " | ".join(cells) + " |")
            lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", help="a name for this version of the library")
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--first-draw", type=int, default=0)
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results/coverage.jsonl"
    )
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.table:
        print(table(options.table))
        return
    done = set()
    if options.output.exists():
        for line in options.output.read_text().splitlines():
            row = json.loads(line)
            done.add((row["method"], row["function"], row["n"], row["draw"]))
    with options.output.open("a") as file:
        for draw in range(options.first_draw, options.first_draw + options.draws):
            for n in SIZES:
                for name in TASKS:
                    if (options.method, name, n, draw) not in done:
                        row = {"method": options.method, **measure(name, n, draw)}
                        file.write(json.dumps(row) + "\n")
                        file.flush()


if __name__ == "__main__":
    main()
