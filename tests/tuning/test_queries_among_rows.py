# SPDX-License-Identifier: BSD-3-Clause
"""Queries that resemble the rows change nothing: the model is that without them, to the bit."""

import numpy as np
import pandas as pd
import pytest
from data_folder import data_folder
from untuned import made

from lsgp import LSGPRegressor


def plane(rng, n):
    X = rng.uniform(0.0, 1.0, (n, 2))
    return X, np.sin(9.0 * X[:, 0]) * np.cos(7.0 * X[:, 1]) + 0.1 * rng.normal(size=n)


def space_and_time(rng, n):
    X = np.column_stack([rng.uniform(0.0, 1.0, (n, 2)), rng.integers(0, 30, n)])
    return X, np.sin(0.5 * X[:, 2]) + 2.0 * X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=n)


def wide(rng, n):
    X = rng.normal(size=(n, 50))
    return X, X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * rng.normal(size=n)


def repeated(rng, n):
    """Half of all rows are at one of few places."""
    X = rng.uniform(0.0, 1.0, (n, 2))
    X[: n // 2] = rng.uniform(0.0, 1.0, (10, 2))[rng.integers(0, 10, n // 2)]
    return X, np.sin(9.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


def assert_same_model(X, y, held_out, **settings):
    rows = np.setdiff1d(np.arange(len(y)), held_out)
    settings = {"random_state": 0, "effort": "fast", **settings}
    plain = made(**settings).fit(X[rows], y[rows])
    told = made(**settings).fit(X[rows], y[rows], queries=X[held_out])
    expected, found = (m.predict_distribution(X[held_out]) for m in (plain, told))
    np.testing.assert_array_equal(found.mean, expected.mean)
    np.testing.assert_array_equal(found.scale, expected.scale)
    np.testing.assert_array_equal(found.dof, expected.dof)


@pytest.mark.parametrize("draw", [plane, space_and_time, wide, repeated])
def test_random_test_rows(draw):
    rng = np.random.default_rng(0)
    X, y = draw(rng, 400)
    assert_same_model(X, y, rng.permutation(400)[:80])


@pytest.mark.parametrize("n_queries", [4, 20])
def test_few_random_test_rows(n_queries):
    """The median of few distances from the rows differs from the usual one by chance."""
    X, y = plane(np.random.default_rng(0), 150)
    settings = {"kernel": "matern32", "input_transform": "standardize", "effort__n_models": 1}
    for seed in range(5):
        held_out = np.random.default_rng(seed).permutation(150)[:n_queries]
        assert_same_model(X, y, held_out, **settings)


def test_the_rows_themselves():
    X, y = plane(np.random.default_rng(0), 150)
    plain = LSGPRegressor(random_state=0, effort="fast").fit(X, y)
    told = LSGPRegressor(random_state=0, effort="fast").fit(X, y, queries=X)
    np.testing.assert_array_equal(told.predict(X), plain.predict(X))


@pytest.mark.parametrize(
    ("name", "inputs", "target"),
    [
        ("tmax_july_1993", ["lon", "lat", "day"], "tmax"),
        ("rio_magnetic", ["longitude", "latitude"], "total_field_anomaly_nt"),
    ],
)
def test_random_test_rows_of_maps(name, inputs, target):
    table = pd.read_csv(data_folder() / "maps" / f"{name}.csv.gz")
    order = np.random.default_rng(0).permutation(len(table))[:600]
    X, y = table[inputs].to_numpy(float)[order], table[target].to_numpy(float)[order]
    assert_same_model(X, y, np.arange(60))
