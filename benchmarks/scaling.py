# SPDX-License-Identifier: BSD-3-Clause
"""How the time to fit and to predict grows with the number of training rows, beside the peers.

    python benchmarks/scaling.py [--methods lsgp,knn] [--sizes 1000,10000]

A smooth function of 2 or 8 inputs with noise, 10,000 queries, and the error against the function
itself. Every measurement is a process of its own on one thread; a method that fails or exceeds
the time limit is not tried with more rows. One JSON line each; what is there is not run again.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from isolated import Result
from job_runner import ResultsFile, parse_isolated, run_jobs
from peer_task import Array, Task
from peers import run_method
from scores import rmse_of

SIZES = (1_000, 10_000, 100_000, 1_000_000)
DIMENSIONS = (2, 8)
N_QUERIES = 10_000
NOISE = 0.2
SCALING_METHODS = ("lsgp", "gpboost", "muygps", "svgp", "sklearn-gp", "lightgbm", "knn")


def make_data(n: int, d: int, seed: int) -> tuple[Array, Array]:
    """Inputs uniform on [-1, 1]^d and a smooth function of them; of 8 inputs, 2 are irrelevant."""
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, d))
    f = np.sin(4.0 * X[:, 0]) * np.cos(3.0 * X[:, 1])
    if d >= 8:
        f += X[:, 2] ** 2 + 0.5 * np.sin(3.0 * X[:, 3] * X[:, 4]) + 0.2 * X[:, 5]
    return X, f


def measure(job: Result) -> Result:
    """Fit and predict once, in this process."""
    X, f = make_data(job["n"], job["d"], seed=0)
    y = f + NOISE * np.random.default_rng(1).normal(size=len(f))
    queries, truth = make_data(N_QUERIES, job["d"], seed=2)
    predicted, spent = run_method(job["method"], Task(X, y, seed=0), queries)
    return {"rmse": rmse_of(predicted, truth), **spent}


def scale(
    output: Path,
    methods: Sequence[str],
    sizes: Sequence[int] = SIZES,
    time_limit: float = 180.0,
    quiet: bool = False,
) -> None:
    """Run what the results file does not have yet, small before large."""
    file = ResultsFile(output)
    jobs = [
        {"d": d, "n": n, "method": method}
        for n in sorted(sizes)
        for d in DIMENSIONS
        for method in methods
    ]

    def why_not(job: Result) -> str | None:
        earlier = file.select(d=job["d"], method=job["method"])
        failed = [r["n"] for r in earlier if "failure" in r and r["n"] < job["n"]]
        return f"not tried: failed with {min(failed):,} rows" if failed else None

    run_jobs(__file__, jobs, file, time_limit, why_not, quiet=quiet)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="separated by commas")
    arguments = parse_isolated(parser, measure, SCALING_METHODS, "scaling.jsonl", 180.0)
    sizes = [int(size) for size in arguments.sizes.split(",")]
    scale(arguments.output, arguments.methods, sizes, arguments.time_limit)


if __name__ == "__main__":
    main()
