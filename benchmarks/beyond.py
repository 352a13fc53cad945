# SPDX-License-Identifier: BSD-3-Clause
"""Regions of the data held out: how predictions beyond the rows do, with `queries=` and without.

    python benchmarks/beyond.py --data-folder ../shared/data --out benchmarks/results/beyond.jsonl

Ten tasks, of which each leaves a region of a table out and predicts it from at most 5,000 of the
other rows: a third or a disk of the satellite map (of its training cells), an ocean basin or a
band of latitudes of argo, a cluster (k-means, 10 of them) or the end of the first principal
component (15 % of the rows) of tables. The peer is an exact GP of the same rows: ARD Matérn of
smoothness 1/2, 3/2 or 5/2, a constant mean, and hyperparameters by maximum likelihood of 1,000 of
them, each from two starts. ``--development`` takes other regions of the same tables, eighteen of
them, on which choices may be made. A result is appended as soon as it is there, and what is in the
file is not run again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from data_sets import load_dataset
from isolated import Result
from job_runner import ResultsFile, run_here
from numpy.typing import NDArray
from scores import scores
from sklearn.cluster import KMeans

from lsgp import LSGPRegressor
from lsgp.compute.clock import Clock
from lsgp.inputs.transforms import fit_transform_kind
from lsgp.inputs.transforms.warping import WarpableRows
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.distribution import PredictiveDistribution
from lsgp.method.parameters import Parameters
from lsgp.solvers.evidence import FLAT, NOT_TUNED, EvidenceProblem, ExactGP
from lsgp.solvers.exact_system import ExactSystem

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_ROWS, MOST_QUERIES = 5000, 2000
#: Rows of which the peer's likelihood is maximized, from lengthscales of these.
PEER_ROWS, PEER_STARTS, PEER_ITERATIONS = 1000, (1.0, 4.0), 40
#: A step of the log likelihood gains this much, or is the last.
LEAST_GAIN = 1e-3
PEER_KERNELS = ("matern12", "matern32", "matern52")


Region = Callable[[Array], Mask]


class Task(NamedTuple):
    """A region of a table, for the report, and others for development."""

    table: str
    region: str
    held_out: Region
    development: tuple[Region, ...]

    @property
    def name(self) -> str:
        return f"{self.table} without {self.region}"

    def regions(self, is_development: bool) -> dict[str, Region]:
        """What is held out, by the names of results."""
        if not is_development:
            return {self.name: self.held_out}
        return {f"{self.name}, {k}": region for k, region in enumerate(self.development, 1)}


def beyond(column: int, quantile: float) -> Region:
    """The rows beyond a share of an input's range, from its low end, or its high one below 0."""

    def mask(X: Array) -> Mask:
        low, high = X[:, column].min(), X[:, column].max()
        share = (X[:, column] - low) / (high - low)
        return np.asarray(share < quantile if quantile > 0 else share > 1.0 + quantile)

    return mask


def disk(center: tuple[float, float], cells: float) -> Region:
    """Cells of the satellite map, 500 by 300, around a place in shares of it."""

    def mask(X: Array) -> Mask:
        share = (X - X.min(axis=0)) / np.ptp(X, axis=0)
        away = (share - np.array(center)) * np.array([500.0, 300.0])
        return np.asarray(np.hypot(*away.T) < cells)

    return mask


def box(lon: tuple[float, float], lat: tuple[float, float]) -> Region:
    """Rows of argo, whose longitudes run from 20 to 380."""

    def mask(X: Array) -> Mask:
        inside = (X[:, 0] > lon[0]) & (X[:, 0] < lon[1]) & (X[:, 1] > lat[0]) & (X[:, 1] < lat[1])
        return np.asarray(inside)

    return mask


def cluster(number: int) -> Region:
    def mask(X: Array) -> Mask:
        z = (X - X.mean(axis=0)) / X.std(axis=0)
        return np.asarray(KMeans(10, n_init=3, random_state=0).fit_predict(z) == number)

    return mask


def end(is_high: bool, share: float = 0.15, component: int = 0) -> Region:
    """The end of a principal component, the first, whose largest loading is positive."""

    def mask(X: Array) -> Mask:
        z = (X - X.mean(axis=0)) / X.std(axis=0)
        direction = np.linalg.svd(z, full_matrices=False)[2][component]
        along = z @ direction * np.sign(direction[np.argmax(np.abs(direction))])
        edge = np.quantile(along, 1.0 - share if is_high else share)
        return np.asarray(along > edge if is_high else along < edge)

    return mask


TASKS = (
    Task(
        "satellite",
        "its right third",
        beyond(0, -1 / 3),
        (beyond(0, 1 / 3), beyond(1, -1 / 3)),
    ),
    Task(
        "satellite",
        "a disk of 60 cells",
        disk((0.45, 0.5), 60),
        (disk((0.7, 0.6), 60), disk((0.25, 0.3), 60)),
    ),
    Task(
        "argo",
        "an ocean basin",
        box((20, 120), (-65, 30)),
        (box((290, 380), (-65, 0)), box((130, 250), (0, 60))),
    ),
    Task(
        "argo",
        "a band of latitudes",
        box((0, 400), (-10, 10)),
        (box((0, 400), (-45, -30)), box((0, 400), (15, 35))),
    ),
    Task("kin8nm", "a cluster", cluster(0), (cluster(4),)),
    Task("powerplant", "a cluster", cluster(0), (cluster(4), cluster(7))),
    Task("powerplant", "an end", end(True), (end(False),)),
    Task("concrete", "a cluster", cluster(0), (cluster(4), cluster(2), cluster(6))),
    Task("boston", "an end", end(True), (end(False), end(True, component=1))),
    Task("protein", "an end", end(True), (end(False),)),
)


def load(table: str, folder: Path) -> tuple[Array, Array]:
    if table == "argo":
        argo = pd.read_csv(folder / "argo.csv.gz")
        return argo.iloc[:, :3].to_numpy(float), argo["temp100"].to_numpy(float)
    data = load_dataset(table, str(folder))
    n = data.n_train or len(data.y)
    return np.asarray(data.X[:n], dtype=float), np.asarray(data.y[:n], dtype=float)


def fit_peer(X: Array, y: Array, seed: int) -> Callable[[Array], PredictiveDistribution]:
    """The exact GP."""
    center, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0] = 1.0
    mean, std = y.mean(), y.std()
    z, target = (X - center) / spread, ((y - mean) / std)[:, None]
    noise, d = np.ones(len(y)), X.shape[1]
    some = np.random.default_rng(seed).permutation(len(y))[:PEER_ROWS]
    parameters = Parameters(NOT_TUNED | {"slope_variance"})
    as_it_is = fit_transform_kind(z, None)

    def tune(kernel: str, lengthscale: float) -> ExactGP:
        model = LocalModel(
            kernel=kernel,
            localizer="rectangular",
            lengthscale=np.full(d, lengthscale),
            signal_variance=1.0,
            noise_variance=0.1,
            constant_variance=FLAT,
            slope_variance=0.0,
            localizer_decay=1.0,
            scale_dof=np.inf,
        )
        rows = WarpableRows.of(z[some], z[some], target[some], noise[some], as_it_is)
        evidence = EvidenceProblem(rows, parameters, Clock(None), has_prior=False)
        return evidence.maximize(ExactGP(model, np.empty(0), -np.inf), PEER_ITERATIONS, LEAST_GAIN)

    tuned = [tune(kernel, length) for kernel in PEER_KERNELS for length in PEER_STARTS]
    best = max(tuned, key=lambda found: found.log_evidence).model
    system = ExactSystem.solve(LocalProblem(z, target, noise, best))

    def predict(queries: Array) -> PredictiveDistribution:
        solved = system.predict((queries - center) / spread)
        variance = best.signal_variance * (solved.variance + best.noise_variance)
        return PredictiveDistribution(mean + std * solved.mean[:, 0], std * np.sqrt(variance))

    return predict


METHODS = ("exact", "plain", "queries")


def measure(
    task: str,
    method: str,
    regions: dict[str, tuple[str, Region]],
    folder: Path,
    seed: int,
    most_rows: int,
) -> Result:
    table, region = regions[task]
    X, y = load(table, folder)
    held_out = region(X)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.flatnonzero(~held_out))[:most_rows]
    asked = rng.permutation(np.flatnonzero(held_out))[:MOST_QUERIES]
    began = time.process_time()
    if method == "exact":
        predicted = fit_peer(X[rows], y[rows], seed)(X[asked])
    else:
        model = LSGPRegressor(random_state=seed, n_jobs=1)
        model.fit(X[rows], y[rows], queries=X[asked] if method == "queries" else None)
        predicted = model.predict_distribution(X[asked])
    return {
        "seed": seed,
        "n_train": len(rows),
        "n_test": len(asked),
        **scores(predicted, y[asked]),
        "cpu_seconds": time.process_time() - began,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--development", action="store_true")
    parser.add_argument("--only", default="", help="tasks whose name has this")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=MOST_ROWS)
    options = parser.parse_args()
    regions = {
        name: (task.table, region)
        for task in TASKS
        for name, region in task.regions(options.development).items()
    }
    jobs = [
        {"task": name, "method": method}
        for name in regions
        for method in options.methods
        if options.only in name
    ]
    where = {"folder": options.data_folder, "seed": options.seed, "most_rows": options.rows}
    run_here(jobs, ResultsFile(options.out), partial(measure, regions=regions, **where))


if __name__ == "__main__":
    main()
