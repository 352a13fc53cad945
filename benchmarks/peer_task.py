# SPDX-License-Identifier: BSD-3-Clause
"""What every method of the comparison is given, what it returns, and what several of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.preprocessing import StandardScaler

from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]
Predict = Callable[[Array], PredictiveDistribution]
PredictMean = Callable[[Array], Array]

N_FOLDS = 5
#: Beyond this many rows one held-out part of `N_HELD_OUT` rows takes the place of the folds.
MOST_FOLDED_ROWS = 150_000
N_HELD_OUT = 20_000


class Task(NamedTuple):
    """The training rows of one split; a method never sees the test targets."""

    X: Array  # (n, d)
    y: Array  # (n,)
    seed: int
    queries: Array | None = None  # (q, d) where the method may know where it will predict


Fit = Callable[[Task], Predict]


def standardized(fit: Fit) -> Fit:
    """The same method with inputs and targets standardized on the training rows."""

    def fit_standardized(task: Task) -> Predict:
        scaler = StandardScaler().fit(task.X)
        center, spread = task.y.mean(), task.y.std()
        y = (task.y - center) / spread
        predict = fit(task._replace(X=scaler.transform(task.X), y=y))

        def predict_raw(X: Array) -> PredictiveDistribution:
            found = predict(scaler.transform(X))
            return PredictiveDistribution(
                center + spread * found.mean, spread * found.scale, found.dof
            )

        return predict_raw

    return fit_standardized


def folds(n: int, seed: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Rows to fit and rows held out: five folds, or one part of the rows when there are many."""
    rule: Any = KFold(N_FOLDS, shuffle=True, random_state=seed)
    if n > MOST_FOLDED_ROWS:
        rule = ShuffleSplit(1, test_size=N_HELD_OUT, random_state=seed)
    yield from rule.split(np.empty((n, 0)))


def with_residual_spread(predict: PredictMean, residuals: Array) -> Predict:
    """A Gaussian around each mean, as wide as the residuals of rows that a fit had not seen."""
    spread = float(np.sqrt(np.mean(np.square(residuals))))

    def predict_gaussian(X: Array) -> PredictiveDistribution:
        mean = np.asarray(predict(X), dtype=np.float64)
        return PredictiveDistribution(mean, np.full(mean.shape, spread))

    return predict_gaussian
