# SPDX-License-Identifier: BSD-3-Clause
"""What a draw of a map costs: a million cells, from 50,000 rows, with the default estimator.

    python benchmarks/draws.py --cells 1e6 --n-jobs 2

Each line goes to benchmarks/results/draws.jsonl.
"""

import argparse
import json
import math
import platform
import resource
import time
from pathlib import Path

import numpy as np

from lsgp import LSGPRegressor

RESULTS = Path(__file__).parent / "results" / "draws.jsonl"


def make_rows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(size=(n, 2))
    waves = np.sin(12 * X[:, 0]) * np.cos(9 * X[:, 1]) + 0.3 * np.sin(60 * X[:, 0] * X[:, 1])
    return X, waves + 0.1 * rng.standard_normal(n)


def timed(function, *arguments, **options):
    start = time.perf_counter()
    result = function(*arguments, **options)
    return result, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=5e4)
    parser.add_argument("--cells", type=float, default=1e6)
    parser.add_argument("--n-jobs", type=int, default=2)
    arguments = parser.parse_args()
    X, y = make_rows(int(arguments.rows), np.random.default_rng(0))
    model, fit_seconds = timed(LSGPRegressor(random_state=0, n_jobs=arguments.n_jobs).fit, X, y)
    side = np.linspace(0, 1, math.isqrt(int(arguments.cells)))
    cells = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    predicted, predict_seconds = timed(model.predict_distribution, cells, kind="latent")
    draw, draw_seconds = timed(model.sample_y, cells, 1, random_state=0, kind="latent")
    standardized = (draw[:, 0] - predicted.mean) / predicted.std
    line = {
        "rows": len(X),
        "cells": len(cells),
        "n_jobs": arguments.n_jobs,
        "n_models": len(model.fitted_),
        "n_neighbors": [fitted.n_neighbors for fitted in model.fitted_],
        "fit_s": round(fit_seconds, 1),
        "predict_s": round(predict_seconds, 1),
        "draw_s": round(draw_seconds, 1),
        "std_of_standardized": round(float(standardized.std()), 3),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "machine": platform.machine(),
    }
    print(json.dumps(line))
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
