# SPDX-License-Identifier: BSD-3-Clause
"""Tables of files: with texts, dates and holes; of places on the earth; with labels.

10 % of the rows of each are held out by each seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import peer_labels
from numpy.typing import NDArray
from peers import Array
from scores import calibration_error, confidence_bins, coverage_of, log_loss
from tasks import split

from lsgp import LSGPRegressor, PredictiveDistribution, Sphere

Result = dict[str, Any]

MIXED = ("diamonds", "txhousing", "flights_raw")
HOLED = ("powerplant-20", "concrete-20", "protein-20")
#: Share of the cells that are removed of tables of numbers.
REMOVED = 0.2
#: By hand, categories of fewer levels have an input for each.
FEW_LEVELS = 50
#: Target of each table of places; the first three columns are longitude, latitude and time.
PLACES = {"argo": "temp100", "jason3": "windspeed"}
COORDINATES: dict[str, Result] = {"raw": {}, "sphere": {"coordinates": Sphere(0, 1)}}
LABELED = ("pima", "phoneme", "spambase", "satimage", "magic", "letter")
#: scikit-learn's Gaussian process classifier takes n² memory and n³ time for each class.
SMALL_TABLES = ("pima",)
#: Bins of the calibration error.
N_BINS = 15


def read_mixed(folder: Path, name: str, seed: int) -> tuple[pd.DataFrame, Array]:
    """Inputs as they are in the file, and the target, its last column."""
    rng = np.random.default_rng(seed)
    if name == "levels":
        n, k = 100_000, 50_000
        level = rng.integers(0, k, n)
        table = pd.DataFrame({"x": rng.uniform(size=n), "level": [f"level {c}" for c in level]})
        y = np.sin(6.0 * table["x"].to_numpy()) + rng.normal(size=k)[level]
        return table, y + 0.3 * rng.normal(size=n)
    table = pd.read_csv(folder / f"{name.removesuffix('-20')}.csv.gz")
    y = table.pop(table.columns[-1]).to_numpy(dtype=float)
    if name in HOLED:
        table = table.astype(float).mask(rng.uniform(size=table.shape) < REMOVED)
    return table, y


def numbers_of(table: pd.DataFrame) -> pd.DataFrame:
    """Dates as people make numbers of them; texts as they are."""
    parts: dict[str, Any] = {}
    for name, column in table.items():
        if name not in ("date", "time_hour"):
            parts[str(name)] = column
            continue
        moment = pd.to_datetime(column, utc=True)
        parts[f"{name} days"] = (moment - moment.min()).dt.total_seconds() / 86400
        parts[f"{name} day of year"] = moment.dt.dayofyear.astype(float)
        for part in ("dayofweek", "hour"):
            values = getattr(moment.dt, part).astype(float)
            if values.nunique() > 1:
                parts[f"{name} {part}"] = values
    return pd.DataFrame(parts)


def by_hand(table: pd.DataFrame, train: Array, y: Array, one_hot: bool) -> Array:
    """The simplest encoding by hand: shrunken target means, or ones and zeros for few levels."""
    parts = []
    for _, column in numbers_of(table).items():
        if pd.api.types.is_numeric_dtype(column):
            values = column.to_numpy(dtype=float)
            hole = np.isnan(values)
            parts.append(np.where(hole, np.nanmedian(values[train]), values))
            if hole.any():
                parts.append(hole.astype(float))
            continue
        codes, levels = pd.factorize(column.fillna("missing"))
        if one_hot and len(levels) < FEW_LEVELS:
            parts += list(np.eye(len(levels))[codes].T)
            continue
        counts = np.bincount(codes[train], minlength=len(levels))
        sums = np.bincount(codes[train], y[train], len(levels))
        parts.append(((sums + 10.0 * y[train].mean()) / (counts + 10.0))[codes])
    return np.column_stack(parts)


def fit_mixed(
    method: str, table: pd.DataFrame, train: Array, y: Array, seed: int
) -> Callable[[Array], Any]:
    """What is fitted predicts rows: a distribution, or means.

    Boosting has its native categories and missing values, and dates as by hand.
    """
    if method == "lsgp" or method.startswith("by-hand"):
        X: Any = table
        if method != "lsgp":
            X = pd.DataFrame(by_hand(table, train, y, method == "by-hand-one-hot"))
        ours = LSGPRegressor(random_state=seed, n_jobs=1).fit(X.iloc[train], y[train])
        return lambda rows: ours.predict_distribution(X.iloc[rows])
    X = numbers_of(table)
    texts = [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]
    model: Any
    if method == "lightgbm":
        import lightgbm

        X[texts] = X[texts].astype("category")
        model = lightgbm.LGBMRegressor(
            n_estimators=1000, learning_rate=0.05, random_state=seed, n_jobs=1, verbose=-1
        )
    else:
        import catboost

        X[texts] = X[texts].fillna("missing").astype(str)
        settings = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
        model = catboost.CatBoostRegressor(
            iterations=1500, cat_features=texts, random_seed=seed, **settings
        )
    model.fit(X.iloc[train], y[train])
    return lambda rows: model.predict(X.iloc[rows])


def measure_mixed(table: str, method: str, seed: int, folder: Path) -> Result:
    """Texts, dates and holes: lsgp as it is, encoded by hand, and boosting; in units of the target.

    "-20" has a fifth of its cells removed at random, "levels" a made-up category of 50,000 levels.
    """
    rows, y = read_mixed(folder, table, seed)
    train, test = split(len(y), seed)
    began, busy = time.perf_counter(), time.process_time()
    predict = fit_mixed(method, rows, train, y, seed)
    result = {
        "fit_seconds": time.perf_counter() - began,
        "fit_cpu_seconds": time.process_time() - busy,
    }
    predicted, unit = predict(test), float(y.std())
    mean = predicted
    if isinstance(predicted, PredictiveDistribution):
        mean = predicted.mean
        result["crps"] = float(np.mean(predicted.crps(y[test]))) / unit
        result["coverage_90"] = coverage_of(predicted, y[test], 0.9)
    result["rmse"] = float(np.sqrt(np.mean((mean - y[test]) ** 2))) / unit
    return result


def measure_sphere(dataset: str, inputs: str, seed: int, folder: Path) -> Result:
    """Longitude and latitude as they are, and on the sphere: accuracy, and the seam.

    The seam is the largest difference of predictions at the two ends of the longitudes, of which
    both are the same places.
    """
    table = pd.read_csv(folder / f"{dataset}.csv.gz")
    X, y = table.iloc[:, :3].to_numpy(float), table[PLACES[dataset]].to_numpy(float)
    train, test = split(len(y), seed)
    settings = {"n_jobs": 1, "random_state": seed, **COORDINATES[inputs]}
    began = time.process_time()
    model = LSGPRegressor().set_params(**settings).fit(X[train], y[train])
    found = model.calibration(X[test], y[test])
    west = X[np.linspace(0, len(X) - 1, 200).astype(int)].copy()
    west[:, 0] = np.floor(X[:, 0].min())
    east = west + np.array([360.0, 0.0, 0.0])
    return {
        "n_train": len(train),
        "rmse": float(found.rmse),
        "crps": float(found.crps),
        "coverage_90": float(found.coverage_at(0.9)),
        "seam": float(np.abs(model.predict(west) - model.predict(east)).max()),
        "lengthscale_km": float(model.lengthscales_[0, 0]) if inputs == "sphere" else None,
        "cpu_seconds": time.process_time() - began,
    }


def read_labels(folder: Path, name: str) -> tuple[Array, NDArray[np.int64]]:
    """Inputs, and the label as a number; the last column is the label."""
    path = folder / f"class_{name}.csv.gz"
    table = pd.read_csv(path, header=None)
    if not all(map(pd.api.types.is_numeric_dtype, table.dtypes[:-1])):
        table = pd.read_csv(path)
    codes = np.unique(table.iloc[:, -1].astype(str), return_inverse=True)[1]
    return table.iloc[:, :-1].to_numpy(dtype=float), codes


def measure_labels(table: str, seed: int, method: str, folder: Path) -> Result:
    """Classifiers on six tables: log loss, error and calibration of the same held-out rows."""
    X, y = read_labels(folder, table)
    train, test = split(len(y), seed)
    began, busy = time.perf_counter(), time.process_time()
    proba = peer_labels.METHODS[method](X[train], y[train])(X[test])
    spent = {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - busy,
    }
    is_right = proba.argmax(axis=1) == y[test]
    bins = confidence_bins(proba, is_right, N_BINS)
    return {
        "n": len(train),
        **spent,
        "n_test": len(test),
        "log_loss": log_loss(proba, y[test]),
        "error": float((~is_right).mean()),
        "brier_score": float(((proba - np.eye(proba.shape[1])[y[test]]) ** 2).sum(axis=1).mean()),
        "calibration_error": calibration_error(bins),
        # One test set is too small for a calibration error: the bins of several can be added up.
        "bins": bins.tolist(),
        "smallest": float(proba.min()),
        "largest": float(proba.max()),
    }
