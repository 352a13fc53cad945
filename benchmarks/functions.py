# SPDX-License-Identifier: BSD-3-Clause
"""Functions without noise, as in computer experiments; and very few rows, with noise.

Inputs are uniform. Errors are those at 2,000 other points, as RMSE in the units of the function and
relative to its standard deviation; coverage is that of latent 90 % intervals. The first rows of a
draw are the same at all sizes: scikit-learn's GP, whose ten restarts take minutes at 600 rows, has
no more than these, and what it reaches there stands for larger sizes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from peers import Array
from scores import coverage_of, rmse_of
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from lsgp import LSGPRegressor
from lsgp.method.distribution import PredictiveDistribution

N_QUERIES, LEVEL = 2000, 0.9
N_RESTARTS, MOST_ROWS = 10, 600


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


def friedman3(u: Array) -> Array:
    resistance, reactance = _circuit(u)
    return np.arctan(reactance / resistance)


#: Functions of so many inputs.
FUNCTIONS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "borehole": (8, borehole),
    "hartmann6": (6, hartmann6),
    "friedman1": (10, friedman1),
    "friedman2": (4, lambda u: np.hypot(*_circuit(u))),
    "friedman3": (4, friedman3),
}
METHODS = ("lsgp", "sklearn-rbf", "sklearn-matern52")


def fit(method: str, X: Array, y: Array, seed: int) -> Callable[[Array], PredictiveDistribution]:
    """scikit-learn has no noise but for the 1e-10 that factors need."""
    if method == "lsgp":
        model = LSGPRegressor(random_state=seed, n_jobs=1).fit(X, y)
        return lambda queries: model.predict_distribution(queries, kind="latent")
    mean, std, start, bounds = X.mean(axis=0), X.std(axis=0), np.ones(X.shape[1]), (1e-2, 1e3)
    shape = RBF(start, bounds) if method == "sklearn-rbf" else Matern(start, bounds, nu=2.5)
    gp = GaussianProcessRegressor(
        ConstantKernel(1.0, (1e-3, 1e6)) * shape,
        normalize_y=True,
        n_restarts_optimizer=N_RESTARTS,
        random_state=seed,
    )
    gp.fit((X[:MOST_ROWS] - mean) / std, y[:MOST_ROWS])
    return lambda queries: PredictiveDistribution(
        *gp.predict((queries - mean) / std, return_std=True)
    )


def measure(method: str, function: str, n: int, seed: int, folder: Path | None) -> dict[str, Any]:
    """Functions without noise: lsgp beside scikit-learn's exact GP."""
    d, evaluate = FUNCTIONS[function]
    X = np.random.default_rng([seed, 0]).uniform(size=(n, d))
    queries = np.random.default_rng([seed, 1]).uniform(size=(N_QUERIES, d))
    truth = evaluate(queries)
    with warnings.catch_warnings():
        # Of lengthscales of inputs that do not matter, and variances that are negative by rounding.
        warnings.simplefilter("ignore")
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


#: Functions of so many inputs, to which noise is added.
TINY_FUNCTIONS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "sin": (1, lambda X: np.sin(6.0 * X[:, 0])),
    "friedman": (5, lambda X: friedman1(X) / 5.0),
    "linear": (4, lambda X: X @ np.array([1.0, -2.0, 0.5, 0.0])),
}
#: Tables of the development suite of which some rows are taken.
TINY_TABLES = ("mcycle", "airquality", "hitters", "energy")
TINY_TABLES += ("airfoil", "abalone", "computers", "lasrosas_corn")
N_TINY_QUERIES, TINY_NOISE = 500, 0.2


def measure_tiny(table: str, n: int, draw: int, folder: Path | None) -> dict[str, Any]:
    """5 to 40 rows: coverage of 90 % intervals, and CRPS relative to a normal distribution."""
    rng = np.random.default_rng([draw, n])
    X: Any
    if table in TINY_FUNCTIONS:
        d, function = TINY_FUNCTIONS[table]
        X = pd.DataFrame(rng.uniform(size=(n + N_TINY_QUERIES, d)))
        y = function(X.to_numpy()) + TINY_NOISE * rng.normal(size=len(X))
    elif folder is None:
        raise FileNotFoundError(f"{table} is in no folder: give --data-folder")
    else:
        rows = pd.read_csv(folder / "suite" / "regression" / f"{table}.csv.gz")
        rows = rows[rows.iloc[:, :-1].notna().all(axis=1)]
        rows = rows.iloc[rng.permutation(len(rows))[: n + N_TINY_QUERIES]]
        X, y = rows.iloc[:, :-1], rows.iloc[:, -1].to_numpy(dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LSGPRegressor(random_state=draw).fit(X.iloc[:n], y[:n])
    predicted, observed = model.predict_distribution(X.iloc[n:]), y[n:]
    mean, scale = np.full(len(observed), y[:n].mean()), np.full(len(observed), y[:n].std() or 1.0)
    plain = PredictiveDistribution(mean, scale)
    relative = float(predicted.crps(observed).mean() / plain.crps(observed).mean())
    return {"coverage": coverage_of(predicted, observed, LEVEL), "crps": relative}
