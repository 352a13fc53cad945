# SPDX-License-Identifier: BSD-3-Clause
"""Classifiers on six tables: log loss, error and calibration of the same held-out rows.

    python benchmarks/classification.py --data ../shared/data --seeds 10,11 --out results.jsonl

10 % of the rows of each table are held out by each seed. Every method is tuned as a competent user
would, by rows that it holds out itself. A result is appended as soon as it is there, and what is in
the file is not run again. Methods whose library is not installed are left out, and named.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from isolated import Result
from job_runner import ResultsFile, run_here
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Method = Callable[[Array, Codes, Array], tuple[Any, Array]]

TABLES = ("pima", "phoneme", "spambase", "satimage", "magic", "letter")
TEST_SHARE = 0.1
#: Bins of the calibration error.
N_BINS = 15
#: Probabilities of peers are cut here: some say 0, whose log loss is infinite.
SMALLEST = 1e-7
#: Threads of every method; each has as many.
N_JOBS = -1
#: More classes than this: steps of boosting are larger, and fewer are tried.
MANY_CLASSES = 6
#: scikit-learn's Gaussian process classifier takes n² memory and n³ time for each class.
SMALL_TABLES = ("pima",)


def read_table(folder: Path, name: str) -> tuple[Array, Codes]:
    """Inputs, and the label as a number; the last column is the label."""
    with gzip.open(folder / f"class_{name}.csv.gz", "rt") as file:
        rows = list(csv.reader(file))
    try:
        [float(value) for value in rows[0][:-1]]
    except ValueError:
        rows = rows[1:]
    X = np.array([[float(value) for value in row[:-1]] for row in rows])
    return X, np.unique([row[-1] for row in rows], return_inverse=True)[1]


def split(X: Array, y: Codes, seed: int) -> tuple[Array, Codes, Array, Codes]:
    order = np.random.default_rng(seed).permutation(len(X))
    n_test = round(TEST_SHARE * len(X))
    test, train = order[:n_test], order[n_test:]
    return X[train], y[train], X[test], y[test]


# -- methods: fitted, and the probabilities of the held-out rows -------------------------------


def lsgp(X: Array, y: Codes, queries: Array) -> tuple[Any, Array]:
    from lsgp import LSGPClassifier

    model = LSGPClassifier(random_state=0, n_jobs=N_JOBS).fit(X, y)
    return model, model.predict_proba(queries)


def lightgbm(X: Array, y: Codes, queries: Array) -> tuple[Any, Array]:
    import lightgbm as lgb

    fit_X, held_X, fit_y, held_y = _hold_out(X, y)
    grid = [(15, 0.05), (63, 0.05)] if len(y) > 1000 else [(4, 0.03), (15, 0.03)]
    if y.max() >= MANY_CLASSES:
        grid = [(31, 0.1)]
    best: tuple[float, Any] = (np.inf, None)
    for n_leaves, rate in grid:
        model = lgb.LGBMClassifier(
            n_estimators=1500,
            learning_rate=rate,
            num_leaves=n_leaves,
            min_child_samples=10,
            subsample=0.8,
            subsample_freq=1,
            colsample_bytree=0.7,
            reg_lambda=1,
            verbose=-1,
            n_jobs=N_JOBS,
            random_state=0,
        )
        stop = lgb.early_stopping(40, verbose=False)
        model.fit(fit_X, fit_y, eval_set=[(held_X, held_y)], callbacks=[stop])
        best = min(best, (log_loss(model.predict_proba(held_X), held_y), model), key=lambda b: b[0])
    settings = best[1].get_params() | {"n_estimators": int(1.1 * best[1].best_iteration_) + 1}
    model = lgb.LGBMClassifier(**settings).fit(X, y)
    return model, model.predict_proba(queries)


def catboost(X: Array, y: Codes, queries: Array) -> tuple[Any, Array]:
    from catboost import CatBoostClassifier

    fit_X, held_X, fit_y, held_y = _hold_out(X, y)
    has_many = y.max() >= MANY_CLASSES
    best: tuple[float, Any] = (np.inf, None)
    for depth in (6,) if y.max() > 1 else (4, 8):
        model = CatBoostClassifier(
            iterations=700 if has_many else 1500,
            learning_rate=0.15 if has_many else 0.06,
            depth=depth,
            verbose=0,
            allow_writing_files=False,
            thread_count=N_JOBS,
            random_seed=0,
        )
        model.fit(fit_X, fit_y, eval_set=(held_X, held_y), early_stopping_rounds=50)
        best = min(best, (log_loss(model.predict_proba(held_X), held_y), model), key=lambda b: b[0])
    settings = best[1].get_params() | {"iterations": int(1.1 * best[1].get_best_iteration()) + 1}
    model = CatBoostClassifier(**settings).fit(X, y)
    return model, model.predict_proba(queries)


def xgboost(X: Array, y: Codes, queries: Array) -> tuple[Any, Array]:
    import xgboost as xgb

    fit_X, held_X, fit_y, held_y = _hold_out(X, y)
    best: tuple[float, Any] = (np.inf, None)
    has_many = y.max() >= MANY_CLASSES
    for depth in (6,) if has_many else (4, 8):
        model = xgb.XGBClassifier(
            n_estimators=1200,
            learning_rate=0.15 if has_many else 0.08,
            max_depth=depth,
            subsample=0.8,
            colsample_bytree=0.7,
            early_stopping_rounds=40,
            tree_method="hist",
            n_jobs=N_JOBS,
            eval_metric="mlogloss" if y.max() > 1 else "logloss",
            random_state=0,
        )
        model.fit(fit_X, fit_y, eval_set=[(held_X, held_y)], verbose=False)
        best = min(best, (log_loss(model.predict_proba(held_X), held_y), model), key=lambda b: b[0])
    settings = best[1].get_params() | {
        "n_estimators": int(1.1 * best[1].best_iteration) + 1,
        "early_stopping_rounds": None,
    }
    model = xgb.XGBClassifier(**settings).fit(X, y)
    return model, model.predict_proba(queries)


def hist_gradient_boosting(X: Array, y: Codes, queries: Array) -> tuple[Any, Array]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    models = [
        HistGradientBoostingClassifier(
            max_iter=600,
            learning_rate=0.15 if y.max() >= MANY_CLASSES else 0.06,
            max_leaf_nodes=n_leaves,
            l2_regularization=1.0,
            early_stopping=True,
            n_iter_no_change=20,
            random_state=0,
        )
        for n_leaves in (15, 31)
    ]
    return _fit_best(models, X, y, queries)


def extra_trees(X: Array, y: Codes, queries: Array) -> tuple[Any, Array]:
    from sklearn.ensemble import ExtraTreesClassifier

    models = [
        ExtraTreesClassifier(500, min_samples_leaf=n, max_features=m, random_state=0, n_jobs=N_JOBS)
        for n in (1, 3)
        for m in ("sqrt", 0.5)
    ]
    return _fit_best(models, X, y, queries, least=1e-3)


def svc(X: Array, y: Codes, queries: Array) -> tuple[Any, Array]:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    part = np.random.default_rng(0).permutation(len(y))[:4000]
    d = X.shape[1]
    grid = {"svc__C": [0.3, 1, 3, 10, 30], "svc__gamma": [g / d for g in (0.1, 0.3, 1, 3, 10)]}
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=3, n_jobs=N_JOBS)
    search.fit(X[part], y[part])
    # Platt's sigmoid on held-out decisions.
    model = CalibratedClassifierCV(search.best_estimator_, cv=5, ensemble=False).fit(X, y)
    return model, model.predict_proba(queries)


def nearest_neighbors(X: Array, y: Codes, queries: Array) -> tuple[Any, Array]:
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    models = [
        make_pipeline(StandardScaler(), KNeighborsClassifier(k, weights=weights))
        for k in (5, 10, 20, 40)
        for weights in ("uniform", "distance")
    ]
    return _fit_best(models, X, y, queries, least=1e-3)


def gaussian_process(X: Array, y: Codes, queries: Array) -> tuple[Any, Array]:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kernel = ConstantKernel(1.0) * RBF(np.ones(X.shape[1]))
    model = make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel, random_state=0))
    return model, model.fit(X, y).predict_proba(queries)


METHODS: dict[str, Method] = {
    "lsgp": lsgp,
    "lightgbm": lightgbm,
    "catboost": catboost,
    "xgboost": xgboost,
    "hist_gradient_boosting": hist_gradient_boosting,
    "extra_trees": extra_trees,
    "svc": svc,
    "nearest_neighbors": nearest_neighbors,
    "gaussian_process": gaussian_process,
}


def _hold_out(X: Array, y: Codes) -> list[Any]:
    from sklearn.model_selection import train_test_split

    return list(train_test_split(X, y, test_size=0.1, random_state=0, stratify=y))


def _fit_best(
    models: list[Any], X: Array, y: Codes, queries: Array, least: float = 0.0
) -> tuple[Any, Array]:
    """The model of the lowest log loss of held-out rows, fitted again on all."""
    fit_X, held_X, fit_y, held_y = _hold_out(X, y)
    losses = [
        log_loss(_cut(model.fit(fit_X, fit_y).predict_proba(held_X), least), held_y)
        for model in models
    ]
    best = models[int(np.argmin(losses))].fit(X, y)
    return best, _cut(best.predict_proba(queries), least)


def _cut(proba: Array, least: float) -> Array:
    proba = np.maximum(proba, least)
    return np.asarray(proba / proba.sum(axis=1, keepdims=True))


# -- scores ------------------------------------------------------------------------------------


def log_loss(proba: Array, y: Codes) -> float:
    return float(-np.log(np.maximum(proba[np.arange(len(y)), y], SMALLEST)).mean())


def scores_of(proba: Array, y: Codes) -> dict[str, Any]:
    likeliest = proba.argmax(axis=1)
    confidence, is_right = proba.max(axis=1), likeliest == y
    place = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    observed = np.eye(proba.shape[1])[y]
    counts, sure, right = (
        np.bincount(place, values, N_BINS) for values in (np.ones(len(y)), confidence, is_right)
    )
    return {
        "n_test": len(y),
        "log_loss": log_loss(proba, y),
        "error": float((~is_right).mean()),
        "brier_score": float(((proba - observed) ** 2).sum(axis=1).mean()),
        "calibration_error": float(np.abs(sure - right).sum() / len(y)),
        # One test set is too small for a calibration error: the bins of several can be added up.
        "bins": [counts.tolist(), sure.tolist(), right.tolist()],
        "smallest": float(proba.min()),
        "largest": float(proba.max()),
    }


def measure(table: str, seed: int, method: str, folder: Path) -> Result:
    X, y, test_X, test_y = split(*read_table(folder, table), seed)
    started, cpu = time.perf_counter(), time.process_time()
    _, proba = METHODS[method](X, y, test_X)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return {"n": len(y), "seconds": seconds, "cpu_seconds": cpu, **scores_of(proba, test_y)}


def is_installed(method: str) -> bool:
    if method in ("lightgbm", "catboost", "xgboost") and find_spec(method) is None:
        print(f"{method} is left out: it is not installed")
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with class_*.csv.gz")
    parser.add_argument("--out", type=Path, default=Path("classification.jsonl"))
    parser.add_argument("--seeds", default="0,1,2,3,4", help="of the splits")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    methods = [name for name in options.methods.split(",") if is_installed(name)]
    jobs = [
        {"table": table, "seed": seed, "method": method}
        for table in options.tables.split(",")
        for seed in map(int, options.seeds.split(","))
        for method in methods
        if method != "gaussian_process" or table in SMALL_TABLES
    ]
    run_here(jobs, ResultsFile(options.out), partial(measure, folder=options.data))


if __name__ == "__main__":
    main()
