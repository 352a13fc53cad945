# SPDX-License-Identifier: BSD-3-Clause
"""What the benchmarks of regression fit and predict: data sets, functions, regions held out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from peers import Array, Task
from sklearn.cluster import KMeans

# Scripts of this folder are run by their paths, so that the root of the repository is not searched.
sys.path.append(str(Path(__file__).parents[1]))

from reproduction.datasets import DATASETS, load_dataset, split

Mask = NDArray[np.bool_]

#: Smallest first.
NAMES = sorted(DATASETS, key=lambda name: DATASETS[name].rows)
N_QUERIES, N_FLIGHTS_TEST = 10_000, 20_000
#: Standard deviation of the noise of functions.
NOISE = 0.2
MOST_ROWS, MOST_QUERIES = 5000, 2000


class Problem(NamedTuple):
    """Rows to fit and rows to predict; the function itself at these, where it is known."""

    task: Task
    queries: Array
    observed: Array
    truth: Array | None = None


def data_set(name: str, seed: int, folder: Path | None) -> Problem:
    """90 % of the rows, or all that are training rows; lsgp knows where gaps of a map are."""
    data = load_dataset(name, folder)
    if data.n_train is None:
        train, test = split(len(data.y), seed)
    else:
        train, test = np.arange(data.n_train), np.arange(data.n_train, len(data.y))
    queries = data.X[test]
    told = None if data.n_train is None else queries
    return Problem(Task(data.X[train], data.y[train], seed, told), queries, data.y[test])


def square(seed: int, folder: Path | None) -> Problem:
    """A smooth function on the unit square with noise of twice its size, 100,000 rows."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(100_000 + N_QUERIES, 2))
    f = np.sin(7.0 * X[:, 0]) + np.cos(5.0 * X[:, 1] + 2.0 * X[:, 0])
    y = f + 2.0 * rng.normal(size=len(f))
    return _first_are_queries(X, y, N_QUERIES, seed, f[:N_QUERIES])


def pure_noise(seed: int, folder: Path | None) -> Problem:
    """20,000 rows of 8 inputs that have nothing to do with the target."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30_000, 8)), rng.normal(size=30_000)
    return _first_are_queries(X, y, N_QUERIES, seed)


def flights(seed: int, folder: Path | None) -> Problem:
    """Delays of flights from New York: flights.csv.gz of the folder."""
    if folder is None:
        raise FileNotFoundError("flights.csv.gz is in no folder: give --data-folder")
    table = pd.read_csv(folder / "flights.csv.gz").to_numpy(dtype=float)
    table = table[np.random.default_rng(seed).permutation(len(table))]
    return _first_are_queries(table[:, :-1], table[:, -1], N_FLIGHTS_TEST, seed)


def million(seed: int, folder: Path | None) -> Problem:
    """The function of 2 inputs whose growth is measured, a million rows."""
    rng = np.random.default_rng(seed + 1)
    (X, f), (queries, truth) = smooth(1_000_000, 2, seed), smooth(N_QUERIES, 2, seed + 2)
    y, observed = (g + NOISE * rng.normal(size=len(g)) for g in (f, truth))
    return Problem(Task(X, y, seed), queries, observed, truth)


NOISY: dict[str, Callable[[int, Path | None], Problem]] = {
    "square": square,
    "noise": pure_noise,
    "flights": flights,
    "million": million,
}


def _first_are_queries(
    X: Array, y: Array, n: int, seed: int, truth: Array | None = None
) -> Problem:
    X, queries = np.ascontiguousarray(X[n:]), np.ascontiguousarray(X[:n])
    return Problem(Task(X, y[n:], seed), queries, y[:n], truth)


def smooth(n: int, d: int, seed: int) -> tuple[Array, Array]:
    """Inputs uniform on [-1, 1]^d and a smooth function of them; of 8 inputs, 2 are irrelevant."""
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, d))
    f = np.sin(4.0 * X[:, 0]) * np.cos(3.0 * X[:, 1])
    if d >= 8:
        f += X[:, 2] ** 2 + 0.5 * np.sin(3.0 * X[:, 3] * X[:, 4]) + 0.2 * X[:, 5]
    return X, f


def growing(n: int, d: int) -> Problem:
    """Its first n rows, and its values at other places without noise."""
    X, f = smooth(n, d, seed=0)
    y = f + NOISE * np.random.default_rng(1).normal(size=n)
    queries, truth = smooth(N_QUERIES, d, seed=2)
    return Problem(Task(X, y, 0), queries, truth, truth)


Region = Callable[[Array], Mask]


def margin(column: int, share: float) -> Region:
    """Rows in a share of an input's range, from its low end, or its high one below 0."""

    def mask(X: Array) -> Mask:
        low, high = X[:, column].min(), X[:, column].max()
        place = (X[:, column] - low) / (high - low)
        return np.asarray(place < share if share > 0 else place > 1.0 + share)

    return mask


def disk(center: tuple[float, float], cells: float) -> Region:
    """Cells of the satellite map, 500 by 300, around a place in shares of it."""

    def mask(X: Array) -> Mask:
        share = (X - X.min(axis=0)) / np.ptp(X, axis=0)
        away = (share - np.array(center)) * np.array([500.0, 300.0])
        return np.asarray(np.hypot(*away.T) < cells)

    return mask


def box(*ends: float) -> Region:
    """Rows of argo between two longitudes, which run from 20 to 380, and two latitudes."""
    west, east, south, north = ends
    return lambda X: (X[:, 0] > west) & (X[:, 0] < east) & (X[:, 1] > south) & (X[:, 1] < north)


def cluster(number: int) -> Region:
    """One of ten clusters (k-means)."""

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


#: Tables without a region: the one of the report, and others, on which choices may be made.
REGIONS: dict[str, tuple[Region, ...]] = {
    "satellite without its right third": (margin(0, -1 / 3), margin(0, 1 / 3), margin(1, -1 / 3)),
    "satellite without a disk of 60 cells": (
        disk((0.45, 0.5), 60),
        disk((0.7, 0.6), 60),
        disk((0.25, 0.3), 60),
    ),
    "argo without an ocean basin": (
        box(20, 120, -65, 30),
        box(290, 380, -65, 0),
        box(130, 250, 0, 60),
    ),
    "argo without a band of latitudes": (
        box(0, 400, -10, 10),
        box(0, 400, -45, -30),
        box(0, 400, 15, 35),
    ),
    "kin8nm without a cluster": (cluster(0), cluster(4)),
    "powerplant without a cluster": (cluster(0), cluster(4), cluster(7)),
    "powerplant without an end": (end(True), end(False)),
    "concrete without a cluster": (cluster(0), cluster(4), cluster(2), cluster(6)),
    "boston without an end": (end(True), end(False), end(True, component=1)),
    "protein without an end": (end(True), end(False)),
}


def beyond(name: str, number: int, seed: int, folder: Path) -> Problem:
    """A region of a table, predicted from at most 5,000 of the other rows."""
    table = name.partition(" ")[0]
    if table == "argo":
        argo = pd.read_csv(folder / "argo.csv.gz")
        X, y = argo.iloc[:, :3].to_numpy(float), argo["temp100"].to_numpy(float)
    else:
        data = load_dataset(table, folder)
        n = data.n_train or len(data.y)
        X, y = np.asarray(data.X[:n], dtype=float), np.asarray(data.y[:n], dtype=float)
    held_out, rng = REGIONS[name][number](X), np.random.default_rng(seed)
    rows = rng.permutation(np.flatnonzero(~held_out))[:MOST_ROWS]
    asked = rng.permutation(np.flatnonzero(held_out))[:MOST_QUERIES]
    return Problem(Task(X[rows], y[rows], seed, X[asked]), X[asked], y[asked])
