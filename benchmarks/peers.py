# SPDX-License-Identifier: BSD-3-Clause
"""The methods of the comparison: what each is called, and how it is fitted.

Every method takes the training rows and gives back a function that predicts a distribution. Each
is set up as a competent user would with modest effort; the functions say how. All run on one
thread, and GPyTorch on a GPU where there is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from peer_task import Array, Fit, Predict, Task

from lsgp import LSGPRegressor
from lsgp.method.distribution import PredictiveDistribution


class Method(NamedTuple):
    """One method; its module is imported before the clock starts."""

    label: str
    package: str
    module: str
    function: str

    def load(self) -> Fit:
        import_module(self.package.replace("scikit-learn", "sklearn"))
        fit: Callable[[Task], Predict] = getattr(import_module(self.module), self.function)
        return fit

    @property
    def device(self) -> str:
        """Where it computes; only a method that can use a GPU says so in its module."""
        return getattr(import_module(self.module), "DEVICE", "cpu")

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


def run_method(
    name: str, task: Task, queries: Array
) -> tuple[PredictiveDistribution, dict[str, Any]]:
    """Fit one method and predict the queries once, in this process; and what that took."""
    fit = METHODS[name].load()
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
        "device": METHODS[name].device,
    }
