# SPDX-License-Identifier: BSD-3-Clause
"""Scorers of predicted distributions, for `cross_val_score`, searches and the like.

>>> from lsgp.metrics import coverage_scorer, crps_scorer, log_density_scorer

They are called as scikit-learn calls scorers, ``scorer(estimator, X, y)``, and take an estimator
that predicts distributions, or a pipeline or a search around one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from lsgp.method.distribution import PredictiveDistribution

__all__ = ["coverage_scorer", "crps_scorer", "log_density_scorer", "make_coverage_scorer"]

#: What scikit-learn calls a scorer.
Scorer = Callable[[BaseEstimator, ArrayLike, ArrayLike], float]


def crps_scorer(estimator: BaseEstimator, X: ArrayLike, y: ArrayLike) -> float:
    """Minus the mean continuous ranked probability score, in the units of y: greater is better.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.metrics import crps_scorer
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = LSGPRegressor(objective=None)
    >>> scores = cross_val_score(model, X, np.sin(6 * X[:, 0]), cv=5, scoring=crps_scorer)
    >>> bool(scores.max() < 0.0)
    True
    """
    return -float(np.mean(_predict(estimator, X).crps(y)))


def log_density_scorer(estimator: BaseEstimator, X: ArrayLike, y: ArrayLike) -> float:
    """Mean log density of the observations: greater is better."""
    return float(np.mean(_predict(estimator, X).logpdf(y)))


def coverage_scorer(estimator: BaseEstimator, X: ArrayLike, y: ArrayLike) -> float:
    """Share of the observations inside their 90 % intervals: to look at, not to maximize."""
    return _coverage(estimator, X, y, 0.9)


def make_coverage_scorer(level: float, *, distance: bool = False) -> Scorer:
    """A scorer of the share of observations inside their intervals.

    Parameters
    ----------
    level : float
        Probability of the intervals.
    distance : bool
        Whether it is minus the distance of the share from ``level``, which a search can maximize.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.metrics import make_coverage_scorer
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
    >>> make_coverage_scorer(0.5)(model, X, np.sin(6 * X[:, 0]))
    1.0
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} is not between 0 and 1.")

    def scorer(estimator: BaseEstimator, X: ArrayLike, y: ArrayLike) -> float:
        share = _coverage(estimator, X, y, level)
        return -abs(share - level) if distance else share

    return scorer


def _coverage(estimator: BaseEstimator, X: ArrayLike, y: ArrayLike, level: float) -> float:
    low, high = _predict(estimator, X).interval(level)
    observed = np.asarray(y, dtype=np.float64)
    return float(np.mean((observed >= low) & (observed <= high)))


def _predict(estimator: BaseEstimator, X: ArrayLike) -> PredictiveDistribution:
    """The distributions that an estimator predicts, also one inside a search or a pipeline."""
    if hasattr(estimator, "predict_distribution"):
        predicted: PredictiveDistribution = estimator.predict_distribution(X)
        return predicted
    if hasattr(estimator, "best_estimator_"):
        return _predict(estimator.best_estimator_, X)
    if hasattr(estimator, "steps"):
        return _predict(estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X)
    raise TypeError(
        f"{type(estimator).__name__} has no predict_distribution, which this scorer needs. Give it "
        "an LSGPRegressor, or a pipeline or search around one."
    )
