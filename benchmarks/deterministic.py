# SPDX-License-Identifier: BSD-3-Clause
"""Functions without noise, as in computer experiments: against scikit-learn's exact GP.

    python benchmarks/deterministic.py --out benchmarks/results/deterministic.jsonl
    python benchmarks/deterministic.py --methods sklearn-rbf --sizes 100 600 --out ...

Inputs are uniform, errors are those at 2,000 other points, as RMSE in the units of the function and
relative to its standard deviation; coverage is that of latent 90 % intervals. The first rows of a
draw are the same at all sizes: scikit-learn's GP, whose ten restarts take minutes at 600 rows, has
no more than these, and what it reaches there stands for larger sizes. Results are appended.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from isolated import Result
from job_runner import ResultsFile, run_here
from numpy.typing import NDArray
from scores import coverage_of, rmse_of
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern

from lsgp import LSGPRegressor
from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]

N_QUERIES, LEVEL = 2000, 0.9
N_RESTARTS, MOST_ROWS = 10, 600


class Function(NamedTuple):
    """A function of inputs between 0 and 1."""

    n_inputs: int
    evaluate: Callable[[Array], Array]


def borehole(u: Array) -> Array:
    """Flow of water through a borehole."""
    low = np.array([0.05, 100.0, 63070.0, 990.0, 63.1, 700.0, 1120.0, 9855.0])
    high = np.array([0.15, 50000.0, 115600.0, 1110.0, 116.0, 820.0, 1680.0, 12045.0])
    rw, r, Tu, Hu, Tl, Hl, L, Kw = (low + (high - low) * u).T
    logarithm = np.log(r / rw)
    resistance = 1.0 + 2.0 * L * Tu / (logarithm * rw**2 * Kw) + Tu / Tl
    return np.asarray(2.0 * np.pi * Tu * (Hu - Hl) / (logarithm * resistance))


def hartmann6(u: Array) -> Array:
    height = np.array([1.0, 1.2, 3.0, 3.2])
    A = np.array(
        [
            [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
            [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
            [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
            [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
        ]
    )
    center = 1e-4 * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    return np.asarray(-np.exp(-((u[:, None, :] - center) ** 2 * A).sum(axis=2)) @ height)


def friedman1(u: Array) -> Array:
    """Of ten inputs, of which five matter."""
    curved = 10.0 * np.sin(np.pi * u[:, 0] * u[:, 1]) + 20.0 * (u[:, 2] - 0.5) ** 2
    return np.asarray(curved + 10.0 * u[:, 3] + 5.0 * u[:, 4])


def _circuit(u: Array) -> tuple[Array, Array]:
    """Resistance and reactance."""
    a, b, c, d = (np.array([0.0, 40.0 * np.pi, 0.0, 1.0]) + u * [100.0, 520.0 * np.pi, 1.0, 10.0]).T
    return a, b * c - 1.0 / (b * d)


def friedman2(u: Array) -> Array:
    return np.hypot(*_circuit(u))


def friedman3(u: Array) -> Array:
    resistance, reactance = _circuit(u)
    return np.arctan(reactance / resistance)


FUNCTIONS = {
    "borehole": Function(8, borehole),
    "hartmann6": Function(6, hartmann6),
    "friedman1": Function(10, friedman1),
    "friedman2": Function(4, friedman2),
    "friedman3": Function(4, friedman3),
}


def fit_lsgp(X: Array, y: Array, seed: int) -> Callable[[Array], PredictiveDistribution]:
    model = LSGPRegressor(random_state=seed, n_jobs=1).fit(X, y)
    return lambda queries: model.predict_distribution(queries, kind="latent")


def fit_sklearn(shape: Kernel, X: Array, y: Array, seed: int) -> Any:
    """Without noise but for the 1e-10 that factors need."""
    mean, std = X.mean(axis=0), X.std(axis=0)
    kernel = ConstantKernel(1.0, (1e-3, 1e6)) * shape
    model = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=N_RESTARTS, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lengthscales of inputs that do not matter
        model.fit((X[:MOST_ROWS] - mean) / std, y[:MOST_ROWS])

    def predict(queries: Array) -> PredictiveDistribution:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # variances that are negative by rounding
            return PredictiveDistribution(*model.predict((queries - mean) / std, return_std=True))

    return predict


def fit(method: str, X: Array, y: Array, seed: int) -> Callable[[Array], PredictiveDistribution]:
    start, bounds = np.ones(X.shape[1]), (1e-2, 1e3)
    if method == "sklearn-rbf":
        return fit_sklearn(RBF(start, bounds), X, y, seed)
    if method == "sklearn-matern52":
        return fit_sklearn(Matern(start, bounds, nu=2.5), X, y, seed)
    return fit_lsgp(X, y, seed)


def measure(method: str, function: str, n: int, seed: int) -> Result:
    d, evaluate = FUNCTIONS[function]
    X = np.random.default_rng([seed, 0]).uniform(size=(n, d))
    queries = np.random.default_rng([seed, 1]).uniform(size=(N_QUERIES, d))
    truth = evaluate(queries)
    began = time.process_time()
    predict = fit(method, X, evaluate(X), seed)
    seconds = time.process_time() - began
    predicted = predict(queries)
    rmse = rmse_of(predicted, truth)
    return {
        "rmse": rmse,
        "relative_rmse": rmse / float(truth.std()),
        "coverage": coverage_of(predicted, truth, LEVEL),
        "crps": float(predicted.crps(truth).mean()),
        "fit_cpu_s": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    methods = ["lsgp", "sklearn-rbf", "sklearn-matern52"]
    parser.add_argument("--methods", nargs="+", choices=methods, default=["lsgp"])
    parser.add_argument("--functions", nargs="+", choices=list(FUNCTIONS), default=list(FUNCTIONS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 600, 10_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    given = parser.parse_args()
    jobs = [
        {"method": method, "function": name, "n": n, "seed": seed}
        for n in given.sizes
        for name in given.functions
        for method in given.methods
        for seed in given.seeds
    ]
    run_here(jobs, ResultsFile(given.out), measure, again=True)


if __name__ == "__main__":
    main()
