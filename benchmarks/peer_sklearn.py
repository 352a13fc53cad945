# SPDX-License-Identifier: BSD-3-Clause
"""Methods of scikit-learn: exact GP, random forest, nearest neighbors."""

from __future__ import annotations

import warnings

import numpy as np
from peers import Array, Predict, Task, folds, standardized, with_residual_spread
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.neighbors import KNeighborsRegressor, NearestNeighbors

from lsgp.method.distribution import PredictiveDistribution

#: With more rows, the GP's hyperparameters come from this many of them.
MOST_TUNING_ROWS = 1000
#: With more, an exact GP takes minutes of CPU time and gigabytes.
MOST_EXACT_ROWS = 5000
N_TREES = 300
NEIGHBOR_COUNTS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)


@standardized
def fit_gp(task: Task) -> Predict:
    """Exact GP, ARD Matérn 3/2 or 5/2 by marginal likelihood, the better one from two starts.

    The likelihood costs O(n³) a time: beyond 1,000 rows it is maximized on a random 1,000, and the
    GP with these hyperparameters then conditions on all rows.
    """
    n, d = task.X.shape
    rows = np.random.default_rng(task.seed).permutation(n)[:MOST_TUNING_ROWS]
    start = ConstantKernel(1.0, (1e-3, 1e4)) * Matern(np.ones(d), (1e-3, 1e3), nu=1.5)
    start += WhiteKernel(0.1, (1e-6, 10.0))

    def tune(nu: float, length_scale: Array) -> GaussianProcessRegressor:
        kernel = clone(start).set_params(k1__k2__nu=nu, k1__k2__length_scale=length_scale)
        model = GaussianProcessRegressor(kernel, copy_X_train=False)
        with warnings.catch_warnings():
            # An irrelevant input's lengthscale ends at its bound.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(task.X[rows], task.y[rows])

    def likelihood(model: GaussianProcessRegressor) -> float:
        return float(model.log_marginal_likelihood_value_)

    model = max((tune(nu, np.ones(d)) for nu in (1.5, 2.5)), key=likelihood)
    again = tune(model.kernel_.get_params()["k1__k2__nu"], np.full(d, 5.0))
    model = max(model, again, key=likelihood)
    if n > MOST_TUNING_ROWS:
        model = GaussianProcessRegressor(model.kernel_, optimizer=None, copy_X_train=False)
        model.fit(task.X, task.y)

    def predict(X: Array) -> PredictiveDistribution:
        # The White kernel is part of the kernel: the noise is in the variance.
        blocks = [model.predict(block, return_std=True) for block in _blocks(X)]
        mean, std = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return PredictiveDistribution(mean, std)

    return predict


def fit_gp_of_some(task: Task) -> Predict:
    """The same of 5,000 random rows, where all are too many."""
    rows = np.random.default_rng(task.seed).permutation(len(task.y))[:MOST_EXACT_ROWS]
    return fit_gp(task._replace(X=task.X[rows], y=task.y[rows]))


def fit_random_forest(task: Task) -> Predict:
    """300 trees; a third of the inputs per split or all, whichever has less out-of-bag error.

    The out-of-bag residuals also give the spread.
    """
    forests = [
        RandomForestRegressor(
            N_TREES, max_features=share, oob_score=True, random_state=task.seed, n_jobs=1
        ).fit(task.X, task.y)
        for share in (1 / 3, 1.0)
    ]
    forest = max(forests, key=lambda one: one.oob_score_)
    return with_residual_spread(forest.predict, task.y - forest.oob_prediction_)


@standardized
def fit_knn(task: Task) -> Predict:
    """Nearest neighbors, equally or inversely weighted; weights and number by cross-validation."""
    largest = NEIGHBOR_COUNTS[-1]
    choices = [(k, weights) for k in NEIGHBOR_COUNTS for weights in ("uniform", "distance")]
    residuals: dict[tuple[int, str], list[Array]] = {choice: [] for choice in choices}
    for rows, held in folds(len(task.y), task.seed):
        # One search serves every number of neighbors.
        found = NearestNeighbors(n_neighbors=largest).fit(task.X[rows])
        distance, index = found.kneighbors(task.X[held])
        targets = task.y[rows][index]
        for k, weights in choices:
            weight = 1 / np.maximum(distance[:, :k], 1e-12) if weights == "distance" else None
            mean = np.average(targets[:, :k], axis=1, weights=weight)
            residuals[k, weights].append(task.y[held] - mean)
    best = min(choices, key=lambda choice: np.mean(np.square(np.concatenate(residuals[choice]))))
    model = KNeighborsRegressor(best[0], weights=best[1], n_jobs=1).fit(task.X, task.y)
    return with_residual_spread(model.predict, np.concatenate(residuals[best]))


def _blocks(X: Array, size: int = 1000) -> list[Array]:
    return [X[start : start + size] for start in range(0, len(X), size)]
