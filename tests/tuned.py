# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of tuning share: an estimator that is quick on small data."""

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


def assert_same_predictions(one, other, queries):
    found = (model.predict(queries, return_std=True) for model in (one, other))
    np.testing.assert_array_equal(*found)
