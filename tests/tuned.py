# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of tuning share: small data, and an estimator that is quick on it."""

import numpy as np

from lsgp import LSGPRegressor

QUICK = {
    "random_state": 0,
    "effort__n_points": 60,
    "kernel": "matern32",
    "input_transform": "standardize",
    "effort__n_models": 2,
    "n_neighbors": 30,
}


def regressor(**settings):
    """An estimator that tunes in a fraction of a second."""
    return LSGPRegressor().set_params(**{**QUICK, **settings})


def make_data(n, seed=0):
    """Three inputs, of which the last says nothing."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 3))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)
    return X, y


def assert_same_predictions(one, other, queries):
    for first, second in zip(
        one.predict(queries, return_std=True), other.predict(queries, return_std=True), strict=True
    ):
        assert np.array_equal(first, second)
