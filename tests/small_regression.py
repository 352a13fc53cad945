# SPDX-License-Identifier: BSD-3-Clause
"""A small regression that is not tuned, its predictions, and how others are compared with them."""

import re

import numpy as np
import pytest

from lsgp import LSGPRegressor


def regressor(**settings):
    return LSGPRegressor().set_params(**{"objective": None, "n_neighbors": 30, **settings})


def make_data(n=120, n_queries=9):
    rng = np.random.default_rng(31)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    return X, y, rng.uniform(-1.0, 1.0, (n_queries, 2))


X, Y, QUERIES = make_data()
MEAN, STD = regressor().fit(X, Y).predict(QUERIES, return_std=True)


def assert_same_predictions(model, queries, scale=1.0, rtol=1e-9):
    mean, std = model.predict(queries, return_std=True)
    np.testing.assert_allclose(mean / scale, MEAN, rtol=rtol)
    np.testing.assert_allclose(std / scale, STD, rtol=rtol)


def assert_sane(mean, std):
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std > 0).all()


def raises(error, message):
    return pytest.raises(error, match=f"^{re.escape(message)}$")


def with_value(array, value):
    array = array.copy()
    array[3] = value
    return array
