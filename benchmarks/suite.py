# SPDX-License-Identifier: BSD-3-Clause
"""Default fits on the development suite of real tables: what choices of tuning are made by.

    python benchmarks/suite.py run --method base [--seeds 20 21] [--tables airfoil ames]
    python benchmarks/suite.py compare base other

``run`` fits ``LSGPRegressor(random_state=seed)``, or the classifier, to a random 90 % of the rows
of each table and scores the rest; ``--method`` is the name that the rows are stored under. A result
is appended as soon as it is known, and what the file has is not run again. The methods
``catboost`` and ``logistic`` are these (of labels alone, see `suite_peers.py`). ``compare`` prints
geometric means of ratios over the tables that both methods have, with standard errors, and the
worst five. Tables lie in the folder ``suite`` of the data folder (``--data-folder`` or LSGP_DATA).

Seeds from 20 on serve for choices; seeds from 60 on are for one last comparison.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from data_sets import split
from job_runner import ResultsFile, run_here
from numpy.typing import NDArray
from scores import coverage_of, rmse_of
from suite_peers import PEERS

from lsgp import LSGPClassifier, LSGPRegressor

#: 68 % of its rows repeat another row, so that test rows are known: reported apart from the means.
REPEATED = ("keggdirected",)
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
#: Seeds of a table: the fewer its rows, the more chance there is in one split.
N_SEEDS = ((300, 20), (3000, 4))
#: Bins of probabilities in the calibration error.
N_BINS = 10

Measured = dict[str, Any]


def read_table(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Inputs, and the target, which is the last column."""
    table = pd.read_csv(path)
    return table.iloc[:, :-1], table.iloc[:, -1]


def seeds_of(n: int, first: int) -> list[int]:
    """As many seeds as a table of so many rows has, from the first on."""
    count = next((count for most, count in N_SEEDS if n < most), 1)
    return list(range(first, first + count))


def measure_regression(X: pd.DataFrame, y: pd.Series, seed: int, settings: Measured) -> Measured:
    train, test = split(len(y), seed)
    y = y.to_numpy(dtype=float)
    started = time.process_time()
    model = LSGPRegressor().set_params(random_state=seed, **settings).fit(X.iloc[train], y[train])
    fitted = time.process_time()
    predicted = model.predict_distribution(X.iloc[test])
    finished = time.process_time()
    observed, unit = y[test], float(y[train].std())
    result = {
        "rmse": rmse_of(predicted, observed) / unit,
        "crps": float(np.mean(predicted.crps(observed))) / unit,
        "nll": -float(np.mean(predicted.logpdf(observed))) - float(np.log(unit)),
        "fit_cpu": fitted - started,
        "predict_cpu": finished - fitted,
    }
    for level in LEVELS:
        result[f"coverage_{level:g}"] = coverage_of(predicted, observed, level)
    return result


def measure_labels(
    X: pd.DataFrame, y: pd.Series, seed: int, settings: Measured, peer: str | None = None
) -> Measured:
    train, test = split(len(y), seed)
    labels = y.astype(str).to_numpy(dtype=object)
    started = time.process_time()
    if peer is None:
        model = (
            LSGPClassifier()
            .set_params(random_state=seed, **settings)
            .fit(X.iloc[train], labels[train])
        )
    else:
        model = PEERS[peer](X.iloc[train], labels[train], seed)
    fitted = time.process_time()
    probabilities = model.predict_proba(X.iloc[test])
    finished = time.process_time()
    # A label that no training row has costs as much as one that was held impossible.
    place = {label: k for k, label in enumerate(model.classes_)}
    pairs = zip(probabilities, labels[test], strict=True)
    own = np.array([p[place[c]] if c in place else 0.0 for p, c in pairs])
    is_right = model.classes_[probabilities.argmax(axis=1)] == labels[test]
    return {
        "log_loss": -float(np.mean(np.log(np.clip(own, 1e-15, 1.0)))),
        "error": float(np.mean(~is_right)),
        "calibration_error": calibration_error(probabilities.max(axis=1), is_right),
        "fit_cpu": fitted - started,
        "predict_cpu": finished - fitted,
    }


def calibration_error(confidence: NDArray[Any], is_right: NDArray[Any]) -> float:
    """Mean difference between confidence and frequency over bins, weighted by their counts."""
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    differences = [
        abs(float(np.sum(confidence[bins == b] - is_right[bins == b]))) for b in range(N_BINS)
    ]
    return sum(differences) / len(confidence)


MEASURES = {"regression": measure_regression, "classification": measure_labels}


def run(arguments: argparse.Namespace) -> None:
    file = ResultsFile(Path(arguments.output))
    settings = {} if arguments.effort is None else {"effort": arguments.effort}
    measures = dict(MEASURES)
    if arguments.method in PEERS:
        measures = {"classification": partial(measure_labels, peer=arguments.method)}
    paths = [p for task in measures for p in (folder_of(arguments) / task).glob("*.csv.gz")]
    # Small tables first: most of them are there after minutes.
    for path in sorted(paths, key=lambda p: p.stat().st_size):
        task, name = path.parent.name, path.name.removesuffix(".csv.gz")
        is_wanted = not arguments.tables or name in arguments.tables
        if not is_wanted or (arguments.task and task != arguments.task):
            continue
        X, y = read_table(path)
        key = {"method": arguments.method, "task": task, "table": name}
        seeds = seeds_of(len(y), arguments.first_seed)[: arguments.most_seeds]
        jobs = [{**key, "seed": seed} for seed in seeds]
        run_here(
            jobs, file, partial(measure, of_task=measures[task], table_of=(X, y), settings=settings)
        )


def measure(
    seed: int,
    of_task: Any,
    table_of: tuple[pd.DataFrame, pd.Series],
    settings: Measured,
    **key: Any,
) -> Measured:
    X, y = table_of
    found = {"n": len(y), "d": X.shape[1]}
    try:
        return found | of_task(X, y, seed, settings)
    except ValueError as error:  # a table that is refused has no figures
        return found | {"refused": str(error)}


def folder_of(arguments: argparse.Namespace) -> Path:
    folder = arguments.data_folder or os.environ.get("LSGP_DATA")
    if folder is None:
        raise SystemExit("No data folder: pass --data-folder, or set LSGP_DATA.")
    return Path(folder) / "suite"


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
    parser.add_argument("--output", default="benchmarks/results/suite.jsonl")
    parts = parser.add_subparsers(required=True)
    runs = parts.add_parser("run", help="fit and score what the file does not have yet")
    runs.add_argument("--method", required=True, help="name that results are stored under")
    runs.add_argument("--data-folder")
    runs.add_argument("--task", choices=sorted(MEASURES))
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
