# SPDX-License-Identifier: BSD-3-Clause
"""Cross-validation of LSGPR: noise variance and lengthscale on a grid, m doubled while it pays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, KFold

from lsgp.estimators.regressor import LSGPRegressor

Array = NDArray[np.float64]
Fold = tuple[NDArray[np.int64], NDArray[np.int64]]

N_FOLDS = 3

#: Up to here a solve is so cheap that every pair of noise variance and lengthscale is tried.
ALL_PAIRS_UP_TO = 64
FEWEST_PAIRS = 8

#: The error may rise once by chance; after this many rises in a row, m is not doubled again.
N_RISES = 2


#: Where the estimator has what is searched.
NESTED = {
    "noise_variance": "hyperparameters__noise_variance",
    "lengthscale": "hyperparameters__lengthscale",
    "n_neighbors": "n_neighbors",
}


def nested(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings that were searched, as the estimator's `set_params` takes them."""
    return {NESTED[name]: value for name, value in settings.items()}


class Choice(NamedTuple):
    """Settings of the least cross-validation error, and those at an end of what was tried."""

    settings: dict[str, Any]
    at_end: list[str]


def make_folds(n: int, seed: int, n_validation: int) -> list[Fold]:
    """Rows to fit and rows to predict, of which each fold has at most ``n_validation``."""
    rng = np.random.default_rng(seed)
    folds = KFold(N_FOLDS, shuffle=True, random_state=seed).split(np.zeros(n))
    return [(train, rng.permutation(valid)[:n_validation]) for train, valid in folds]


def smallest_training_set(n: int) -> int:
    """The fewest rows that a fold leaves to fit."""
    return n - -(-n // N_FOLDS)


def choose_lsgpr(
    model: LSGPRegressor,
    X: Array,
    y: Array,
    folds: Sequence[Fold],
    noise_variances: Sequence[float],
    lengthscales: Sequence[float],
    n_neighbors: Sequence[int],
) -> Choice:
    """The best settings; a large m is only tried with the pairs that were good with half of it."""
    most = smallest_training_set(len(y))
    pairs = list(product(noise_variances, lengthscales))
    best, best_error, n_rises = {}, np.inf, 0
    for m in sorted({min(m, most) for m in n_neighbors}):
        if m > ALL_PAIRS_UP_TO:
            pairs = pairs[: max(len(pairs) // 2, FEWEST_PAIRS)]
        errors = _errors(model, X, y, folds, pairs, m)
        order = np.argsort(errors)
        pairs = [pairs[k] for k in order]
        if errors[order[0]] < best_error:
            best_error, n_rises = errors[order[0]], 0
            noise_variance, lengthscale = pairs[0]
            best = {"noise_variance": noise_variance, "lengthscale": lengthscale, "n_neighbors": m}
        else:
            n_rises += 1
            if n_rises == N_RISES:
                break
    tried = {
        "noise_variance": noise_variances,
        "lengthscale": lengthscales,
        "n_neighbors": n_neighbors,
    }
    at_end = [name for name, values in tried.items() if best[name] in (min(values), max(values))]
    return Choice(best, at_end)


def _errors(
    model: LSGPRegressor,
    X: Array,
    y: Array,
    folds: Sequence[Fold],
    pairs: Sequence[tuple[float, float]],
    m: int,
) -> Array:
    """Mean squared error of each pair with m neighbors."""
    grid = [
        nested({"noise_variance": [noise], "lengthscale": [lengthscale], "n_neighbors": [m]})
        for noise, lengthscale in pairs
    ]
    search = GridSearchCV(
        model, grid, scoring="neg_mean_squared_error", cv=list(folds), refit=False
    ).fit(X, y)
    return -np.asarray(search.cv_results_["mean_test_score"])
