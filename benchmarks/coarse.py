# SPDX-License-Identifier: BSD-3-Clause
"""Noise of twice the signal: what groups of far rows gain over as many nearest rows.

    python benchmarks/coarse.py [--rows 100000] [--states 2]

A smooth function on the unit square, with the error against the function itself. Default fits, with
and without coarse neighborhoods, and the medians of the time that a fit and a prediction take, in
CPU seconds on one thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from lsgp import Localizer, LSGPRegressor

Array = NDArray[np.float64]

NOISE = 2.0
N_QUERIES = 10_000


def surface(X: Array) -> Array:
    """A function of standard deviation .93."""
    return np.asarray(np.sin(7.0 * X[:, 0]) + np.cos(5.0 * X[:, 1] + 2.0 * X[:, 0]))


def measure(n: int, state: int, reach: float | str) -> dict[str, float]:
    """Error, claimed error and times of one fit."""
    rng = np.random.default_rng(state)
    X, queries = rng.uniform(size=(n, 2)), rng.uniform(size=(N_QUERIES, 2))
    y = surface(X) + NOISE * rng.normal(size=n)
    started = time.process_time()
    model = LSGPRegressor(localizer=Localizer(reach=reach), random_state=state).fit(X, y)
    fitted = time.process_time()
    mean, std = model.predict(queries, return_std=True, kind="latent")
    finished = time.process_time()
    return {
        "error": float(np.sqrt(np.mean((mean - surface(queries)) ** 2))),
        "claimed": float(np.sqrt(np.mean(np.square(std)))),
        "fit": fitted - started,
        "microseconds": 1e6 * (finished - fitted) / N_QUERIES,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--states", type=int, default=2)
    options = parser.parse_args()
    print("reach   error  claimed   fit (s)  predict (µs)")
    for reach in (1.0, "auto"):
        runs = [measure(options.rows, state, reach) for state in range(options.states)]
        error, claimed, fit, microseconds = (
            float(np.median([run[name] for run in runs])) for name in runs[0]
        )
        print(f"{reach!s:6} {error:6.4f} {claimed:8.4f} {fit:9.1f} {microseconds:13.0f}")


if __name__ == "__main__":
    main()
