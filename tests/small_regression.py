# SPDX-License-Identifier: BSD-3-Clause
"""A small regression that is not tuned, its predictions, and how others are compared with them."""

import re

import numpy as np
import pytest
from small_data import make_data

from lsgp import LSGPRegressor


def regressor(**settings):
    return LSGPRegressor().set_params(**{"objective": None, "n_neighbors": 30, **settings})


X, Y = make_data(120, 2)
QUERIES = make_data(9, 2, seed=1)[0]
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
