# SPDX-License-Identifier: BSD-3-Clause
"""Rows that repeat others but for rounding are one observation, and no proof of a model."""

import numpy as np
import pandas as pd
import pytest
from data_folder import data_folder
from untuned import made

from lsgp import LSGPRegressor

NOISE = 0.3


def wave(X):
    return np.sin(6.0 * X[:, 0]) * np.cos(5.0 * X[:, 1])


def with_near_copies(n, n_copied):
    """Rows in the unit square, and some of them again, moved by next to nothing."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (n, 2))
    y = wave(X) + NOISE * rng.normal(size=n)
    again = X[:n_copied] + 1e-9 * rng.normal(size=(n_copied, 2))
    return np.vstack([X, again]), np.append(y, y[:n_copied])


@pytest.mark.parametrize("n", [120, 200, 600])
def test_noise_is_neither_missed_nor_exaggerated(n):
    X, y = with_near_copies(n, 9 * n // 10)
    settings = {"effort": "fast", "kernel": "matern52"} if n > 300 else {}
    model = made(random_state=0, **settings).fit(X, y)
    queries = np.random.default_rng(1).uniform(0.0, 1.0, (300, 2))
    distribution = model.predict_distribution(queries)
    assert 0.8 * NOISE < np.median(distribution.std) < 1.4 * NOISE
    assert distribution.std.max() < 2.0 * NOISE
    assert np.sqrt(np.mean((distribution.mean - wave(queries)) ** 2)) < NOISE


def test_models_are_judged_without_their_copies():
    """Else 9 of 10 rows would be predicted by their own targets."""
    X, y = with_near_copies(200, 180)
    model = LSGPRegressor(random_state=0, effort="fast").fit(X, y)
    rng = np.random.default_rng(1)
    queries = rng.uniform(0.0, 1.0, (2000, 2))
    observed = wave(queries) + NOISE * rng.normal(size=2000)
    crps = model.predict_distribution(queries).crps(observed).mean()
    assert model.tuning_.loss * y.std() == pytest.approx(crps, rel=0.25)


def test_replicates_are_observations_of_their_own():
    """Rows with equal inputs and other targets say how large the noise is."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(0.0, 1.0, (60, 2)), 4, axis=0)
    y = wave(X) + NOISE * rng.normal(size=240)
    model = LSGPRegressor(random_state=0, effort="fast").fit(X, y)
    # At the inputs, three others are there to tell.
    assert model.loo().calibration.crps < 0.75 * NOISE


def test_gps_stations_at_nearly_the_same_place():
    table = pd.read_csv(data_folder() / "maps" / "california_gps.csv.gz")
    X, y = table[["longitude", "latitude"]].to_numpy(), 1000.0 * table["velocity_up"].to_numpy()
    order = np.random.default_rng(1).permutation(len(y))
    held_out, rows = np.split(order, [len(y) // 5])
    model = LSGPRegressor(random_state=0, effort="fast", kernel="matern32").fit(X[rows], y[rows])
    distribution = model.predict_distribution(X[held_out])
    # Some stations are wrong by as much.
    assert distribution.std.max() < 5.0 * y.std()
    low, high = distribution.interval(0.9)
    is_within = (low <= y[held_out]) & (y[held_out] <= high)
    assert 0.82 < is_within.mean() < 0.99
