# SPDX-License-Identifier: BSD-3-Clause
"""The methods of the benchmarks of regression: what each is called, given, and returns.

Every method takes the training rows and gives back a function that predicts a distribution. Each
is set up as a competent user would with modest effort; the functions say how. All run on one
thread, and GPyTorch on a GPU where there is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.preprocessing import StandardScaler

from lsgp import LSGPRegressor
from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]
Predict = Callable[[Array], PredictiveDistribution]

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


class Method(NamedTuple):
    """One method; its module is imported before the clock starts."""

    label: str
    package: str
    module: str
    function: str

    def load(self) -> Fit:
        import_module(self.package.replace("scikit-learn", "sklearn"))
        fit: Fit = getattr(import_module(self.module), self.function)
        return fit

    @property
    def version(self) -> str:
        try:
            return f"{self.package} {version(self.package)}"
        except PackageNotFoundError:
            return f"{self.package} (not installed)"


def fit_lsgp(task: Task) -> Predict:
    """`LSGPRegressor(random_state=seed)` without any other setting than one thread."""
    model = LSGPRegressor(random_state=task.seed, n_jobs=1)
    return model.fit(task.X, task.y, queries=task.queries).predict_distribution


def fit_plain(task: Task) -> Predict:
    """The same, and it is never told the queries."""
    return fit_lsgp(task._replace(queries=None))


#: From the nearest relatives to the farthest.
METHODS: dict[str, Method] = {
    "lsgp": Method("lsgp", "lsgp", "peers", "fit_lsgp"),
    "sklearn-gp": Method("scikit-learn GP", "scikit-learn", "peer_sklearn", "fit_gp"),
    "gp-5000": Method("exact GP of 5,000 rows", "scikit-learn", "peer_sklearn", "fit_gp_of_some"),
    "gpytorch": Method("GPyTorch exact", "gpytorch", "peer_gpytorch", "fit_exact"),
    "svgp": Method("GPyTorch SVGP", "gpytorch", "peer_gpytorch", "fit_svgp"),
    "gpboost": Method("GPBoost Vecchia", "gpboost", "peer_gpboost", "fit_gpboost"),
    "muygps": Method("MuyGPyS", "MuyGPyS", "peer_muygps", "fit_muygps"),
    "lightgbm": Method("LightGBM", "lightgbm", "peer_boosting", "fit_lightgbm"),
    "xgboost": Method("XGBoost", "xgboost", "peer_boosting", "fit_xgboost"),
    "catboost": Method("CatBoost", "catboost", "peer_boosting", "fit_catboost"),
    "random-forest": Method("random forest", "scikit-learn", "peer_sklearn", "fit_random_forest"),
    "knn": Method("KNN", "scikit-learn", "peer_sklearn", "fit_knn"),
}
#: Those of regions that are held out.
BEYOND: dict[str, Method] = {
    "exact": Method("exact GP", "lsgp", "peer_exact", "fit_exact"),
    "plain": Method("lsgp", "lsgp", "peers", "fit_plain"),
    "queries": Method("lsgp, `queries=`", "lsgp", "peers", "fit_lsgp"),
}


def run_method(
    name: str, task: Task, queries: Array
) -> tuple[PredictiveDistribution, dict[str, Any]]:
    """Fit one method and predict the queries once, in this process; and what that took."""
    method = (METHODS | BEYOND)[name]
    fit = method.load()
    started = time.process_time()
    predict = fit(task)
    fitted = time.process_time()
    predicted = predict(queries)
    finished = time.process_time()
    return predicted, {
        "fit_cpu": fitted - started,
        "predict_cpu": finished - fitted,
        "n_train": len(task.y),
        "n_test": len(queries),
        # Only a method that can use a GPU says so in its module.
        "device": getattr(import_module(method.module), "DEVICE", "cpu"),
        "version": method.version,
    }


def standardized(fit: Fit) -> Fit:
    """The same method with inputs and targets standardized on the training rows."""

    def fit_standardized(task: Task) -> Predict:
        scaler = StandardScaler().fit(task.X)
        center, spread = task.y.mean(), task.y.std()
        y = (task.y - center) / spread
        predict = fit(task._replace(X=scaler.transform(task.X), y=y))

        def predict_raw(X: Array) -> PredictiveDistribution:
            found = predict(scaler.transform(X))
            mean, scale = center + spread * found.mean, spread * found.scale
            return PredictiveDistribution(mean, scale, found.dof)

        return predict_raw

    return fit_standardized


def folds(n: int, seed: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Rows to fit and rows held out: five folds, or one part of the rows when there are many."""
    rule: Any = KFold(N_FOLDS, shuffle=True, random_state=seed)
    if n > MOST_FOLDED_ROWS:
        rule = ShuffleSplit(1, test_size=N_HELD_OUT, random_state=seed)
    yield from rule.split(np.empty((n, 0)))


def with_residual_spread(predict: Callable[[Array], Array], residuals: Array) -> Predict:
    """A Gaussian around each mean, as wide as the residuals of rows that a fit had not seen."""
    spread = float(np.sqrt(np.mean(np.square(residuals))))

    def predict_gaussian(X: Array) -> PredictiveDistribution:
        mean = np.asarray(predict(X), dtype=np.float64)
        return PredictiveDistribution(mean, np.full(mean.shape, spread))

    return predict_gaussian
