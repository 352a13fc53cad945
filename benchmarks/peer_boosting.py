# SPDX-License-Identifier: BSD-3-Clause
"""Gradient boosting: size and number of trees by held-out rows, then a fit to all rows.

The size of the trees is the one with the least error on the rows that the first fold holds out.
Every fold stops early on the rows that it holds out. The final fit takes all training rows and
the mean number of trees, and the residuals of the held-out rows give the predictive spread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from peers import Array, Predict, Task, folds, with_residual_spread

from lsgp.method.distribution import PredictiveDistribution

LEARNING_RATE = 0.05
MOST_TREES = 5000
PATIENCE = 50
#: Rows and inputs that a tree is grown on.
SHARE = 0.8

#: (size, X, y, held-out rows or None, most trees) -> predicted means, trees that were kept.
Train = Callable[
    [int, Array, Array, tuple[Array, Array] | None, int],
    tuple[Callable[[Array], Array], int],
]


class Stopped(NamedTuple):
    """A fit that stopped early on held-out rows."""

    size: int
    residuals: Array
    n_trees: int


def boost(task: Task, train: Train, sizes: tuple[int, ...]) -> Predict:
    X, y = task.X, task.y

    def stop_early(size: int, rows: Array, held: Array) -> Stopped:
        predict, n_trees = train(size, X[rows], y[rows], (X[held], y[held]), MOST_TREES)
        return Stopped(size, y[held] - predict(X[held]), n_trees)

    first, *others = folds(len(y), task.seed)
    best = min(
        (stop_early(size, *first) for size in sizes),
        key=lambda one: float(np.mean(np.square(one.residuals))),
    )
    stopped = [best, *(stop_early(best.size, *fold) for fold in others)]
    predict, _ = train(best.size, X, y, None, round(np.mean([one.n_trees for one in stopped])))
    return with_residual_spread(predict, np.concatenate([one.residuals for one in stopped]))


def fit_lightgbm(task: Task) -> Predict:
    """LightGBM: trees of up to 8, 31 or 127 leaves, rows and inputs subsampled."""
    import lightgbm

    def train(n_leaves: int, X: Any, y: Any, held_out: Any, n_trees: int) -> tuple[Any, int]:
        model = lightgbm.LGBMRegressor(
            n_estimators=n_trees,
            learning_rate=LEARNING_RATE,
            num_leaves=n_leaves,
            min_child_samples=5,
            subsample=SHARE,
            subsample_freq=1,
            colsample_bytree=SHARE,
            random_state=task.seed,
            n_jobs=1,
            verbose=-1,
        )
        stop = [lightgbm.early_stopping(PATIENCE, verbose=False)] if held_out else None
        model.fit(X, y, eval_set=[held_out] if held_out else None, callbacks=stop)
        return model.predict, model.best_iteration_ or n_trees

    return boost(task, train, sizes=(8, 31, 127))


def fit_xgboost(task: Task) -> Predict:
    """XGBoost: trees of depth 4, 6 or 10, rows and inputs subsampled."""
    import xgboost

    def train(depth: int, X: Any, y: Any, held_out: Any, n_trees: int) -> tuple[Any, int]:
        model = xgboost.XGBRegressor(
            n_estimators=n_trees,
            learning_rate=LEARNING_RATE,
            max_depth=depth,
            subsample=SHARE,
            colsample_bytree=SHARE,
            early_stopping_rounds=PATIENCE if held_out else None,
            random_state=task.seed,
            n_jobs=1,
        )
        model.fit(X, y, eval_set=[held_out] if held_out else None, verbose=False)
        return model.predict, model.best_iteration + 1 if held_out else n_trees

    return boost(task, train, sizes=(4, 6, 10))


def fit_catboost(task: Task) -> Predict:
    """CatBoost: trees of depth 4, 6 or 8, by squared error or with a variance of its own.

    The first fold's held-out CRPS decides between the Gaussian of residuals and CatBoost's
    RMSEWithUncertainty (depth 6), which learns a variance per row.
    """
    import catboost

    def train_loss(
        loss: str, depth: int, X: Any, y: Any, held_out: Any, n_trees: int
    ) -> tuple[Any, int]:
        model = catboost.CatBoostRegressor(
            n_estimators=n_trees,
            learning_rate=LEARNING_RATE,
            depth=depth,
            loss_function=loss,
            random_seed=task.seed,
            thread_count=1,
            allow_writing_files=False,
            verbose=False,
        )
        model.fit(X, y, eval_set=held_out, early_stopping_rounds=PATIENCE if held_out else None)
        return model.predict, model.tree_count_

    train, train_own = (partial(train_loss, loss) for loss in ("RMSE", "RMSEWithUncertainty"))
    rows, held = next(folds(len(task.y), task.seed))
    X, y, X_held, y_held = task.X[rows], task.y[rows], task.X[held], task.y[held]
    predict, _ = train(6, X, y, (X_held, y_held), MOST_TREES)
    by_residuals = with_residual_spread(predict, y_held - predict(X_held))(X_held)
    predict_own, n_trees = train_own(6, X, y, (X_held, y_held), MOST_TREES)
    own = _gaussian(predict_own(X_held))
    if np.mean(by_residuals.crps(y_held)) <= np.mean(own.crps(y_held)):
        return boost(task, train, sizes=(4, 6, 8))
    predict_own, _ = train_own(6, task.X, task.y, None, n_trees)
    return lambda X: _gaussian(predict_own(X))


def _gaussian(mean_and_variance: Array) -> PredictiveDistribution:
    return PredictiveDistribution(mean_and_variance[:, 0], np.sqrt(mean_and_variance[:, 1]))
