# SPDX-License-Identifier: BSD-3-Clause
"""Default fits on the development suite of real tables: what choices of tuning are made by.

    python benchmarks/suite.py run --method base [--seeds 20 21] [--tables airfoil ames]
    python benchmarks/suite.py compare base other

``run`` fits ``LSGPRegressor(random_state=seed)``, or the classifier, to a random 90 % of the rows
of each table and scores the rest; ``--method`` is the name that the rows are stored under. A result
is appended as soon as it is known, and what the file has is not run again. The methods
``catboost`` and ``logistic`` are these (of labels alone, see `peer_labels.py`). ``compare`` prints
geometric means of ratios over the tables that both methods have, with standard errors, and the
worst five. Tables lie in the folder ``suite`` of the data folder (``--data-folder`` or LSGP_DATA).

Seeds from 20 on serve for choices; seeds from 60 on are for one last comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from peer_labels import TABLE_METHODS, fit_lsgp_to_table
from runner import FOLDER, Result, ResultsFile, describe_machine
from scores import calibration_error, confidence_bins, coverage_of, log_loss, rmse_of
from tasks import split

from lsgp import LSGPRegressor

#: 68 % of its rows repeat another row, so that test rows are known: reported apart from the means.
REPEATED = ("keggdirected",)
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
#: Seeds of a table: the fewer its rows, the more chance there is in one split.
N_SEEDS = ((300, 20), (3000, 4))
#: Bins of probabilities in the calibration error.
N_BINS = 10


def measure_regression(X: pd.DataFrame, y: pd.Series, seed: int, settings: Result) -> Result:
    train, test = split(len(y), seed)
    y = y.to_numpy(dtype=float)
    started = time.process_time()
    model = LSGPRegressor().set_params(random_state=seed, **settings).fit(X.iloc[train], y[train])
    fitted = time.process_time()
    predicted = model.predict_distribution(X.iloc[test])
    finished = time.process_time()
    observed, unit = y[test], float(y[train].std())
    return {
        "rmse": rmse_of(predicted, observed) / unit,
        "crps": float(np.mean(predicted.crps(observed))) / unit,
        "nll": -float(np.mean(predicted.logpdf(observed))) - float(np.log(unit)),
        "fit_cpu": fitted - started,
        "predict_cpu": finished - fitted,
        **{f"coverage_{level:g}": coverage_of(predicted, observed, level) for level in LEVELS},
    }


def measure_labels(X: pd.DataFrame, y: pd.Series, seed: int, settings: Result, fit: Any) -> Result:
    train, test = split(len(y), seed)
    labels = y.astype(str).to_numpy(dtype=object)
    started = time.process_time()
    classes, predict_proba = fit(X.iloc[train], labels[train], seed, **settings)
    fitted = time.process_time()
    proba = np.asarray(predict_proba(X.iloc[test]))
    finished = time.process_time()
    # A label that no training row has costs as much as one that was held impossible.
    place = {label: k for k, label in enumerate(classes)}
    codes = np.array([place.get(label, len(classes)) for label in labels[test]])
    proba = np.column_stack([proba, np.zeros(len(proba))])
    is_right = proba.argmax(axis=1) == codes
    return {
        "log_loss": log_loss(np.minimum(proba, 1.0), codes, 1e-15),
        "error": float(np.mean(~is_right)),
        "calibration_error": calibration_error(confidence_bins(proba, is_right, N_BINS)),
        "fit_cpu": fitted - started,
        "predict_cpu": finished - fitted,
    }


def run(arguments: argparse.Namespace) -> None:
    folder = arguments.data_folder or os.environ.get("LSGP_DATA")
    if folder is None:
        raise SystemExit("No data folder: pass --data-folder, or set LSGP_DATA.")
    file, is_begun = ResultsFile(Path(arguments.output)), False
    settings = {} if arguments.effort is None else {"effort": arguments.effort}
    peer = TABLE_METHODS.get(arguments.method)
    measures: dict[str, Any] = {"classification": partial(measure_labels, fit=peer)}
    if peer is None:
        measures["classification"] = partial(measure_labels, fit=fit_lsgp_to_table)
        measures["regression"] = measure_regression
    paths = [path for task in measures for path in Path(folder, "suite", task).glob("*.csv.gz")]
    # Small tables first: most of them are there after minutes.
    for path in sorted(paths, key=lambda p: p.stat().st_size):
        task, name = path.parent.name, path.name.removesuffix(".csv.gz")
        is_wanted = not arguments.tables or name in arguments.tables
        if not is_wanted or arguments.task not in (None, task):
            continue
        table = pd.read_csv(path)
        X, y = table.iloc[:, :-1], table.iloc[:, -1]
        n_seeds = next((count for most, count in N_SEEDS if len(y) < most), 1)
        seeds = range(arguments.first_seed, arguments.first_seed + n_seeds)
        for seed in list(seeds)[: arguments.most_seeds]:
            job = {"method": arguments.method, "task": task, "table": name, "seed": seed}
            if file.select(**job):
                continue
            if not is_begun:
                file.add({"machine": describe_machine()})
                is_begun = True
            result = {"n": len(y), "d": X.shape[1]}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    result |= measures[task](X, y, seed, settings)
                except ValueError as error:  # a table that is refused has no figures
                    result["refused"] = str(error)
            file.add(job | result)
            print(json.dumps(job | result), flush=True)


def compare(arguments: argparse.Namespace) -> None:
    file = ResultsFile(Path(arguments.output))
    rows = pd.DataFrame([r for r in file.results if "table" in r and "refused" not in r])
    for task, own in rows.groupby("task", sort=False):
        pair = [own[own.method == m].set_index(["table", "seed"]) for m in arguments.methods]
        common = pair[0].index.intersection(pair[1].index)
        common = common[~common.get_level_values("table").isin(REPEATED)]
        if not len(common):
            continue
        base, other = (each.loc[common] for each in pair)
        print(f"\n{task}: {arguments.methods[1]} relative to {arguments.methods[0]}")
        show_ratios(base, other, ("crps", "rmse") if task == "regression" else ("log_loss",))
        if task == "regression":
            show_differences(base, other)
        for name in ("fit_cpu", "predict_cpu"):
            print(f"  {name:12s} {other[name].sum() / base[name].sum():.3f} of the sum")


def show_ratios(base: pd.DataFrame, other: pd.DataFrame, metrics: tuple[str, ...]) -> None:
    for metric in metrics:
        # Tables count alike, however many seeds they have.
        logs = np.log(other[metric] / base[metric]).groupby("table").agg(["mean", "sem", "size"])
        mean, error = logs["mean"].mean(), logs["mean"].sem()
        print(
            f"  {metric:12s} {np.exp(mean):.4f} ± {error:.4f} "
            f"(median {np.exp(logs['mean'].median()):.4f}, {len(logs)} tables)"
        )
        worst = logs.sort_values("mean", ascending=False).head(5)
        for table, row in worst.iterrows():
            print(f"      {table:20s} {np.exp(row['mean']):.3f} ± {row['sem']:.3f}")


def show_differences(base: pd.DataFrame, other: pd.DataFrame) -> None:
    change = (other["nll"] - base["nll"]).groupby("table").mean()
    print(f"  {'nll':12s} {change.mean():+.4f} ± {change.sem():.4f}")
    is_large = other["n"] > 1000
    for level in LEVELS:
        name = f"coverage_{level:g}"
        covered = [each[name][is_large].groupby("table").mean().mean() for each in (base, other)]
        print(f"  {name:12s} {covered[0]:.3f} -> {covered[1]:.3f} (more than 1,000 rows)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", default=FOLDER / "suite.jsonl")
    parts = parser.add_subparsers(required=True)
    runs = parts.add_parser("run", help="fit and score what the file does not have yet")
    runs.add_argument("--method", required=True, help="name that results are stored under")
    runs.add_argument("--data-folder")
    runs.add_argument("--task", choices=("classification", "regression"))
    runs.add_argument("--tables", nargs="*", help="names of tables (default: all)")
    runs.add_argument("--first-seed", type=int, default=20)
    runs.add_argument("--most-seeds", type=int, help="of each table (default: by its rows)")
    runs.add_argument("--effort", choices=("fast", "balanced", "best"))
    runs.set_defaults(work=run)
    compares = parts.add_parser("compare", help="print ratios of two methods")
    compares.add_argument("methods", nargs=2, help="the base, and another")
    compares.set_defaults(work=compare)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
