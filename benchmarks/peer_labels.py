# SPDX-License-Identifier: BSD-3-Clause
"""The methods of the benchmarks of classification.

Each is given the training rows and gives back a function that predicts probabilities. Each is tuned
as a competent user would, by rows that it holds out itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from peers import Array
from scores import log_loss
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from lsgp import LSGPClassifier

Codes = NDArray[np.int64]
PredictProba = Callable[[Any], Array]

#: More classes than this: steps of boosting are larger, and fewer sizes are tried.
MANY_CLASSES = 6


def fit_lsgp(X: Array, y: Codes) -> PredictProba:
    return LSGPClassifier(random_state=0, n_jobs=1).fit(X, y).predict_proba


def fit_lightgbm(X: Array, y: Codes) -> PredictProba:
    import lightgbm as lgb

    grid = [(15, 0.05), (63, 0.05)] if len(y) > 1000 else [(4, 0.03), (15, 0.03)]
    if y.max() >= MANY_CLASSES:
        grid = [(31, 0.1)]
    settings = {"min_child_samples": 10, "subsample": 0.8, "subsample_freq": 1}
    settings |= {"colsample_bytree": 0.7, "reg_lambda": 1, "n_estimators": 1500}
    models = [
        lgb.LGBMClassifier(
            learning_rate=rate, num_leaves=n, verbose=-1, n_jobs=1, random_state=0, **settings
        )
        for n, rate in grid
    ]

    def stop_early(model: Any, X: Array, y: Codes, held: Any) -> int:
        stop = [lgb.early_stopping(40, verbose=False)]
        model.fit(X, y, eval_set=[held], callbacks=stop)
        return int(model.best_iteration_)

    return _boost(models, X, y, stop_early, "n_estimators")


def fit_catboost(X: Array, y: Codes) -> PredictProba:
    from catboost import CatBoostClassifier

    has_many = y.max() >= MANY_CLASSES
    settings = {"iterations": 700, "learning_rate": 0.15} if has_many else {}
    settings = {"iterations": 1500, "learning_rate": 0.06, "random_seed": 0, **settings}
    settings |= {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    models = [
        CatBoostClassifier(depth=depth, **settings) for depth in ((6,) if y.max() > 1 else (4, 8))
    ]

    def stop_early(model: Any, X: Array, y: Codes, held: Any) -> int:
        model.fit(X, y, eval_set=held, early_stopping_rounds=50)
        return int(model.get_best_iteration())

    return _boost(models, X, y, stop_early, "iterations")


def fit_xgboost(X: Array, y: Codes) -> PredictProba:
    import xgboost as xgb

    has_many = y.max() >= MANY_CLASSES
    settings = {"n_estimators": 1200, "learning_rate": 0.15 if has_many else 0.08}
    settings |= {"subsample": 0.8, "colsample_bytree": 0.7, "n_jobs": 1, "random_state": 0}
    metric = "mlogloss" if y.max() > 1 else "logloss"
    models = [
        xgb.XGBClassifier(
            max_depth=depth,
            early_stopping_rounds=40,
            tree_method="hist",
            eval_metric=metric,
            **settings,
        )
        for depth in ((6,) if has_many else (4, 8))
    ]

    def stop_early(model: Any, X: Array, y: Codes, held: Any) -> int:
        model.fit(X, y, eval_set=[held], verbose=False)
        return int(model.best_iteration)

    return _boost(models, X, y, stop_early, "n_estimators", early_stopping_rounds=None)


def _boost(
    models: Sequence[Any],
    X: Array,
    y: Codes,
    stop_early: Callable[[Any, Array, Codes, Any], int],
    n_trees: str,
    **final: Any,
) -> PredictProba:
    """The model of the lowest log loss of held-out rows, with a tenth more trees on all rows."""
    fit_X, held_X, fit_y, held_y = _hold_out(X, y)
    counts = [stop_early(model, fit_X, fit_y, (held_X, held_y)) for model in models]
    best = int(np.argmin([log_loss(model.predict_proba(held_X), held_y) for model in models]))
    settings = models[best].get_params() | {n_trees: int(1.1 * counts[best]) + 1} | final
    predict: PredictProba = type(models[best])(**settings).fit(X, y).predict_proba
    return predict


def fit_hist_gradient_boosting(X: Array, y: Codes) -> PredictProba:
    rate = 0.15 if y.max() >= MANY_CLASSES else 0.06
    settings = {"max_iter": 600, "l2_regularization": 1.0, "learning_rate": rate}
    settings |= {"early_stopping": True, "n_iter_no_change": 20, "random_state": 0}
    models = [HistGradientBoostingClassifier(max_leaf_nodes=n, **settings) for n in (15, 31)]
    return _fit_best(models, X, y)


def fit_extra_trees(X: Array, y: Codes) -> PredictProba:
    models = [
        ExtraTreesClassifier(500, min_samples_leaf=n, max_features=m, random_state=0, n_jobs=1)
        for n in (1, 3)
        for m in ("sqrt", 0.5)
    ]
    return _fit_best(models, X, y, least=1e-3)


def fit_svc(X: Array, y: Codes) -> PredictProba:
    """Platt's sigmoid on held-out decisions."""
    part = np.random.default_rng(0).permutation(len(y))[:4000]
    gammas = [g / X.shape[1] for g in (0.1, 0.3, 1, 3, 10)]
    grid = {"svc__C": [0.3, 1, 3, 10, 30], "svc__gamma": gammas}
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=3, n_jobs=1)
    best = search.fit(X[part], y[part]).best_estimator_
    return CalibratedClassifierCV(best, cv=5, ensemble=False).fit(X, y).predict_proba


def fit_nearest_neighbors(X: Array, y: Codes) -> PredictProba:
    models = [
        make_pipeline(StandardScaler(), KNeighborsClassifier(k, weights=weights))
        for k in (5, 10, 20, 40)
        for weights in ("uniform", "distance")
    ]
    return _fit_best(models, X, y, least=1e-3)


def fit_gaussian_process(X: Array, y: Codes) -> PredictProba:
    kernel = ConstantKernel(1.0) * RBF(np.ones(X.shape[1]))
    model = make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel, random_state=0))
    return model.fit(X, y).predict_proba


def _fit_best(models: Sequence[Any], X: Array, y: Codes, least: float = 0.0) -> PredictProba:
    """The model of the lowest log loss of held-out rows, fitted again on all."""
    fit_X, held_X, fit_y, held_y = _hold_out(X, y)
    losses = [log_loss(_cut(m.fit(fit_X, fit_y), least)(held_X), held_y) for m in models]
    return _cut(models[int(np.argmin(losses))].fit(X, y), least)


def _cut(model: Any, least: float) -> PredictProba:
    """Its probabilities, none less than this."""

    def predict(X: Array) -> Array:
        proba = np.maximum(model.predict_proba(X), least)
        return np.asarray(proba / proba.sum(axis=1, keepdims=True))

    return predict


def _hold_out(X: Array, y: Codes) -> list[Any]:
    return list(train_test_split(X, y, test_size=0.1, random_state=0, stratify=y))


METHODS: dict[str, Callable[[Array, Codes], PredictProba]] = {
    "lsgp": fit_lsgp,
    "lightgbm": fit_lightgbm,
    "catboost": fit_catboost,
    "xgboost": fit_xgboost,
    "hist_gradient_boosting": fit_hist_gradient_boosting,
    "extra_trees": fit_extra_trees,
    "svc": fit_svc,
    "nearest_neighbors": fit_nearest_neighbors,
    "gaussian_process": fit_gaussian_process,
}


def fit_catboost_to_table(X: pd.DataFrame, y: NDArray[Any], seed: int) -> Any:
    """500 trees with CatBoost's own categories."""
    from catboost import CatBoostClassifier

    texts = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    model = CatBoostClassifier(
        iterations=500,
        cat_features=texts,
        random_seed=seed,
        thread_count=1,
        verbose=0,
        allow_writing_files=False,
    ).fit(with_texts(X, texts), y)
    return model.classes_, lambda queries: model.predict_proba(with_texts(queries, texts))


def with_texts(X: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Categories as text, which has no holes."""
    return X.assign(**{name: X[name].astype(object).fillna("").astype(str) for name in names})


def fit_logistic_to_table(X: pd.DataFrame, y: NDArray[Any], seed: int) -> Any:
    """Logistic regression of standardized and one-hot inputs."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    encoder = make_column_transformer(
        (numbers, make_column_selector(dtype_include=np.number)),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude=np.number)),
    )
    model = make_pipeline(encoder, LogisticRegression(C=0.1, max_iter=5000)).fit(X, y)
    return model.classes_, model.predict_proba


def fit_lsgp_to_table(X: pd.DataFrame, y: NDArray[Any], seed: int, **settings: Any) -> Any:
    model = LSGPClassifier().set_params(random_state=seed, **settings).fit(X, y)
    return model.classes_, model.predict_proba


TABLE_METHODS = {"catboost": fit_catboost_to_table, "logistic": fit_logistic_to_table}
