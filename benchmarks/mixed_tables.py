# SPDX-License-Identifier: BSD-3-Clause
"""Tables with texts, dates and holes: lsgp without configuration, encoded by hand, and boosting.

    python benchmarks/mixed_tables.py --data-folder ../shared/data --seeds 10 --out results.jsonl

10 % of the rows of each table are held out by each seed; errors are in standard deviations of the
target. Boosting has its native categories and missing values, and dates as elapsed days, day of
year, weekday and hour, as by hand. "-20" is a table of numbers of which a fifth of the cells was
removed at random; "levels" is made up, with a category of 50,000 levels. A result is appended as
soon as it is there, and what is in the file is not run again. Methods whose library is not
installed are left out, and named.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from data_sets import split
from isolated import Result
from job_runner import ResultsFile, run_here
from numpy.typing import NDArray
from scores import coverage_of

from lsgp import LSGPRegressor, PredictiveDistribution

Array = NDArray[np.float64]

MIXED = ("diamonds", "txhousing", "flights_raw")
HOLED = ("powerplant-20", "concrete-20", "protein-20")
TABLES = (*MIXED, *HOLED, "levels")
#: Share of the cells that are removed of tables of numbers.
REMOVED = 0.2
#: By hand, categories of fewer levels have an input for each.
FEW_LEVELS = 50


def read_table(folder: Path, name: str, seed: int) -> tuple[pd.DataFrame, Array]:
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


def is_date(column: pd.Series) -> bool:
    return column.name in ("date", "time_hour")


def numbers_of(table: pd.DataFrame) -> pd.DataFrame:
    """Dates as people make numbers of them; texts as they are."""
    parts: dict[str, Any] = {}
    for name, column in table.items():
        if not is_date(column):
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


# -- methods: what is fitted predicts the held-out rows -----------------------------------------


def fit_lsgp(table: pd.DataFrame, train: Array, y: Array, seed: int) -> Callable[[Array], Any]:
    model = LSGPRegressor(random_state=seed, n_jobs=1).fit(table.iloc[train], y[train])
    return lambda rows: model.predict_distribution(table.iloc[rows])


def fit_by_hand(one_hot: bool) -> Callable[..., Callable[[Array], Any]]:
    def fit(table: pd.DataFrame, train: Array, y: Array, seed: int) -> Callable[[Array], Any]:
        X = by_hand(table, train, y, one_hot)
        model = LSGPRegressor(random_state=seed, n_jobs=1).fit(X[train], y[train])
        return lambda rows: model.predict_distribution(X[rows])

    return fit


def fit_lightgbm(table: pd.DataFrame, train: Array, y: Array, seed: int) -> Callable[[Array], Any]:
    import lightgbm

    X = numbers_of(table)
    for name in X.columns:
        if not pd.api.types.is_numeric_dtype(X[name]):
            X[name] = X[name].astype("category")
    model = lightgbm.LGBMRegressor(
        n_estimators=1000, learning_rate=0.05, random_state=seed, n_jobs=1, verbose=-1
    )
    model.fit(X.iloc[train], y[train])
    return lambda rows: model.predict(X.iloc[rows])


def fit_catboost(table: pd.DataFrame, train: Array, y: Array, seed: int) -> Callable[[Array], Any]:
    import catboost

    X = numbers_of(table)
    texts = [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]
    X[texts] = X[texts].fillna("missing").astype(str)
    model = catboost.CatBoostRegressor(
        iterations=1500,
        cat_features=texts,
        random_seed=seed,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    )
    model.fit(X.iloc[train], y[train])
    return lambda rows: model.predict(X.iloc[rows])


METHODS: dict[str, tuple[str, Callable[..., Callable[[Array], Any]]]] = {
    "lsgp": ("lsgp", fit_lsgp),
    "by-hand-means": ("lsgp", fit_by_hand(False)),
    "by-hand-one-hot": ("lsgp", fit_by_hand(True)),
    "lightgbm": ("lightgbm", fit_lightgbm),
    "catboost": ("catboost", fit_catboost),
}


def measure(table: str, method: str, seed: int, folder: Path) -> Result:
    rows, y = read_table(folder, table, seed)
    train, test = split(len(y), seed)
    started, cpu = time.perf_counter(), time.process_time()
    predict = METHODS[method][1](rows, train, y, seed)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    predicted, unit = predict(test), float(y.std())
    is_distribution = isinstance(predicted, PredictiveDistribution)
    mean = predicted.mean if is_distribution else predicted
    result = {
        "rmse": float(np.sqrt(np.mean((mean - y[test]) ** 2))) / unit,
        "fit_seconds": seconds,
        "fit_cpu_seconds": cpu,
        "peak_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }
    if is_distribution:
        result["crps"] = float(np.mean(predicted.crps(y[test]))) / unit
        result["coverage_90"] = coverage_of(predicted, y[test], 0.9)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("mixed_tables.jsonl"))
    parser.add_argument("--seeds", default="10")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    methods = []
    for method in options.methods.split(","):
        if find_spec(METHODS[method][0]) is None:
            print(f"{method} is left out: {METHODS[method][0]} is not installed")
        else:
            methods.append(method)
    jobs = [
        {"table": name, "method": method, "seed": seed}
        for method in methods
        for seed in map(int, options.seeds.split(","))
        for name in options.tables.split(",")
        if name in MIXED or "by-hand" not in method
    ]
    run_here(jobs, ResultsFile(options.out), partial(measure, folder=options.data_folder))


if __name__ == "__main__":
    main()
