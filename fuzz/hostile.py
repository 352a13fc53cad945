# SPDX-License-Identifier: BSD-3-Clause
"""Fits and predictions of hostile tables with random settings, a seed each."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from fuzz.outcome import Finding, Tally
from lsgp import Effort, Hyperparameters, Localizer, LSGPClassifier, LSGPRegressor

SIZES = (1, 2, 3, 5, 12, 40, 120, 400)
#: Seconds that a fit may take; the settings ask for far less.
LONGEST = 60.0
RAW = ("overflow", "invalid value", "divide by zero", "underflow", "Mean of empty", "encountered")


def run(seed: int, tally: Tally) -> None:
    """One case; what comes of it is counted."""
    rng = np.random.default_rng([seed, 31])
    with np.errstate(all="ignore"):
        case, estimator, X, y, extras = make_case(rng)

    def ask() -> str:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            started = time.perf_counter()
            model = estimator.fit(X, y, **extras)
            if time.perf_counter() - started > LONGEST:
                raise Finding(f"took {time.perf_counter() - started:.0f} s")
            check_predictions(model, X, rng)
        raw = [str(w.message) for w in caught if any(part in str(w.message) for part in RAW)]
        if raw:
            raise Finding(f"raw warning: {raw[0][:150]}")
        return "answered"

    tally.judge(seed, case, ask)


def make_case(rng: np.random.Generator) -> tuple[str, Any, Any, Any, dict[str, Any]]:
    """A description, an estimator, its rows, their targets and further arguments of `fit`."""
    n, d = int(rng.choice(SIZES)), int(rng.choice((1, 1, 2, 3, 6, 20)))
    X, inputs = make_inputs(rng, n, d)
    is_classifier = rng.uniform() < 0.25
    latent = np.sin(3.0 * np.nan_to_num(X[:, 0] / (np.abs(X[:, 0]).max() or 1.0)))
    y, targets = make_labels(rng, latent) if is_classifier else make_targets(rng, latent)
    settings = make_settings(rng, d, is_classifier)
    kind = LSGPClassifier if is_classifier else LSGPRegressor
    extras: dict[str, Any] = {}
    if rng.uniform() < 0.2:
        extras["sample_weight"] = 10.0 ** rng.uniform(-rng.choice((1, 9)), 1, n)
    if rng.uniform() < 0.1 and n > 4:
        extras["groups"] = rng.integers(0, 4, n)
    frame = make_frame(rng, X)
    text = (
        f"{kind.__name__}({settings}), n={n}, d={d}, {inputs}, {targets}, {type(frame).__module__}"
    )
    return f"{text}, {sorted(extras)}", kind(**settings), frame, y, extras


def make_inputs(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, str]:
    X = rng.normal(size=(n, d))
    kind = str(
        rng.choice(
            [
                *["plain"] * 3,
                "copies",
                "near copies",
                "constant",
                "grid",
                "huge",
                "tiny",
                "mixed scales",
                "offset",
                "missing",
                "infinite",
                "float32",
                "integers",
                "outlier",
                "twin columns",
            ]
        )
    )
    if kind == "copies":
        X = X[rng.integers(0, max(n // 4, 1), n)]
    elif kind == "near copies":
        X = X[rng.integers(0, max(n // 4, 1), n)] + 10.0 ** rng.uniform(-15, -3) * rng.normal(
            size=(n, d)
        )
    elif kind == "constant":
        X[:, rng.integers(d)] = rng.choice((0.0, 1.0, 1e300, -3.5))
    elif kind == "grid":
        X = np.round(X)
    elif kind in ("huge", "tiny"):
        X *= 10.0 ** (rng.uniform(5, 306) * (1 if kind == "huge" else -1))
    elif kind == "mixed scales":
        X *= 10.0 ** rng.uniform(-200, 200, d)
    elif kind == "offset":
        X += 10.0 ** rng.uniform(3, 15)
    elif kind in ("missing", "infinite"):
        X[rng.uniform(size=(n, d)) < rng.choice((0.02, 0.3))] = (
            np.nan if kind == "missing" else np.inf
        )
    elif kind == "float32":
        X = X.astype(np.float32)
    elif kind == "integers":
        X = rng.integers(-3, 4, (n, d))
    elif kind == "outlier":
        X[rng.integers(n)] *= 10.0 ** rng.uniform(3, 200)
    elif kind == "twin columns":
        X[:, -1] = X[:, 0]
    return X, kind


def make_targets(rng: np.random.Generator, latent: np.ndarray) -> tuple[np.ndarray, str]:
    n = len(latent)
    y = latent + rng.choice((0.0, 0.1, 1.0)) * rng.normal(size=n)
    kind = str(
        rng.choice(
            [
                *["plain"] * 4,
                "constant",
                "two values",
                "huge",
                "tiny",
                "offset",
                "heavy tails",
                "one apart",
                "several",
                "missing",
                "integers",
            ]
        )
    )
    if kind == "constant":
        y = np.full(n, rng.choice((0.0, 7.0, 1e200)))
    elif kind == "two values":
        y = np.where(y > 0, 1.0, 0.0)
    elif kind in ("huge", "tiny"):
        y = y * 10.0 ** (rng.uniform(5, 300) * (1 if kind == "huge" else -1))
    elif kind == "offset":
        y = y + 10.0 ** rng.uniform(3, 14)
    elif kind == "heavy tails":
        y = y + rng.standard_cauchy(n)
    elif kind == "one apart":
        y = np.zeros(n)
        y[rng.integers(n)] = 10.0 ** rng.uniform(-5, 30)
    elif kind == "several":
        y = np.column_stack([y, rng.normal(size=n)])
    elif kind == "missing":
        y[rng.integers(n)] = np.nan
    elif kind == "integers":
        return np.round(3 * y).astype(int), kind
    return y, kind


def make_labels(rng: np.random.Generator, latent: np.ndarray) -> tuple[Any, str]:
    n = len(latent)
    kind = str(rng.choice(["two", "three", "text", "one class", "each its own", "rare", "boolean"]))
    codes = (latent + 0.3 * rng.normal(size=n) > 0).astype(int)
    if kind == "three":
        codes = codes + (latent > 0.5)
    elif kind == "one class":
        codes = np.zeros(n, dtype=int)
    elif kind == "each its own":
        codes = np.arange(n)
    elif kind == "rare":
        codes = np.zeros(n, dtype=int)
        codes[0] = 1
    if kind == "text":
        return np.array(["no", "yes"])[codes], kind
    return (codes.astype(bool) if kind == "boolean" else codes), kind


def make_settings(rng: np.random.Generator, d: int, is_classifier: bool) -> dict[str, Any]:
    """Mostly a quick tuned fit, with a few settings of any value."""
    settings: dict[str, Any] = {"random_state": 0, "n_jobs": 1, "max_time": 2.0}
    settings["effort"] = Effort("fast", n_points=50)
    some: dict[str, list[Any]] = {
        "kernel": ["rbf", "matern12", "matern32", "matern52", "spherical"],
        "trend": ["linear", "constant", "none", (np.inf, 0), (np.inf, np.inf), (3.0, 0.1), (0, 0)],
        "n_neighbors": [1, 2, 7, 64, 10**6],
        "localizer": ["smooth", "rectangular", Localizer(bandwidth=1.0), Localizer(reach=2.0)],
        "hyperparameters": [
            Hyperparameters(lengthscale=10.0 ** rng.uniform(-20, 20)),
            Hyperparameters(noise_variance=10.0 ** rng.uniform(-20, 20)),
            Hyperparameters(signal_variance=10.0 ** rng.uniform(-20, 20)),
            Hyperparameters(scale_dof=10.0 ** rng.uniform(0.5, 5)),
        ],
        "input_transform": ["standardize", "yeo-johnson", "half-rank", None],
        "objective": [None, None, None, "crps", "log_density", "squared_error"],
        "scale": ["local", "global"],
        "dtype": ["float32"],
        "search": ["approximate"],
        "memory_budget": ["20MB"],
    }
    for name in rng.choice(list(some), rng.integers(0, 4), replace=False):
        values = some[str(name)]
        settings[str(name)] = values[rng.integers(len(values))]
    known = (LSGPClassifier if is_classifier else LSGPRegressor)().get_params(deep=False)
    return {name: value for name, value in settings.items() if name in known}


def make_frame(rng: np.random.Generator, X: np.ndarray) -> Any:
    """The rows as an array, or as a data frame, with other columns beside them now and then."""
    kind = rng.choice(["array", "array", "list", "pandas", "polars"])
    if kind == "array":
        return X
    if kind == "list":
        return X.tolist()
    columns: dict[str, Any] = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    n = len(X)
    if rng.uniform() < 0.6:
        columns["kind"] = rng.choice(["a", "b", "c", "NA", ""], n)
    if rng.uniform() < 0.2:
        columns["flag"] = rng.uniform(size=n) < 0.5
    if rng.uniform() < 0.2:
        columns["when"] = np.datetime64("2020-01-01") + rng.integers(0, 900, n).astype("m8[D]")
    if rng.uniform() < 0.2:
        columns["text"] = rng.choice(["=1+1", "a word", "two words here", "1,234", "12%"], n)
    if rng.uniform() < 0.1:
        columns["mixed"] = [int(v) if v > 1 else "few" for v in rng.integers(0, 4, n)]
    if rng.uniform() < 0.1:
        columns["empty"] = [None] * n
    if kind == "pandas":
        return pd.DataFrame(columns)
    columns.pop("mixed", None)  # polars has no such columns
    return pl.DataFrame({k: v if isinstance(v, list) else v.tolist() for k, v in columns.items()})


def check_predictions(model: Any, X: Any, rng: np.random.Generator) -> None:
    """Finite predictions with a positive std, also far from the data, alike however asked."""
    queries = X[:7]
    if isinstance(model, LSGPClassifier):
        p = model.predict_proba(queries)
        if not (np.isfinite(p).all() and (p >= 0).all() and np.allclose(p.sum(axis=1), 1.0)):
            raise Finding(f"probabilities {p[:2]}")
        return
    mean, std = model.predict(queries, return_std=True)
    if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()):
        raise Finding(f"mean {mean[:3]}, std {std[:3]}")
    low, high = model.predict_interval(queries, 0.9)
    if not (low <= high).all():
        raise Finding(f"interval from {low[:3]} to {high[:3]}")
    one = model.predict(queries[:1])
    unit = np.abs(std).max()
    if np.abs(one[0] - mean[0]).max() > 1e-6 * max(unit, np.abs(mean).max()):
        raise Finding(f"one query alone: {one[0]}, among others: {mean[0]}")
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        far = np.nan_to_num(X[:3], nan=0.0, posinf=0.0) * 10.0 ** rng.uniform(1, 9)
        if np.isfinite(far).all():
            mean, std = model.predict(far, return_std=True)
            if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()):
                raise Finding(f"far away: mean {mean[:3]}, std {std[:3]}")
