# SPDX-License-Identifier: BSD-3-Clause
"""The spherical kernel: a covariance of up to three inputs, and only when it is asked for."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from small_data import make_data

from lsgp import Effort, Hyperparameters, LSGPRegressor
from lsgp.inputs.settings import specify
from lsgp.method.kernels import KERNELS, MOST_INPUTS


def smallest_eigenvalue(d):
    X = np.stack(np.meshgrid(*[np.arange(int(400 ** (1 / d)))] * d), axis=-1).reshape(-1, d)
    return np.linalg.eigvalsh(KERNELS["spherical"](cdist(X, X, "sqeuclidean") / 1.6**2)[0])[0]


def test_it_is_positive_definite_up_to_three_inputs_and_not_beyond():
    assert all(smallest_eigenvalue(d) > 0 for d in (1, 2, 3))
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=8)))
    K = KERNELS["spherical"](cdist(corners, corners, "sqeuclidean") / 1.5**2)[0]
    assert np.linalg.eigvalsh(K)[0] < 0
    assert MOST_INPUTS["spherical"] == 3


def test_more_inputs_are_refused_with_a_remedy():
    X = np.random.default_rng(0).normal(size=(50, 4))
    with pytest.raises(ValueError, match="spherical") as caught:
        LSGPRegressor(kernel="spherical", objective=None).fit(X, X[:, 0])
    assert str(caught.value) == (
        "kernel='spherical' is a covariance of up to 3 inputs, and there are 4 inputs here. Use "
        "'matern12', which begins as it does, or fewer inputs."
    )


def test_tuning_does_not_try_it_by_itself():
    settings = LSGPRegressor().get_params(deep=False)
    assert "spherical" not in specify(settings, 2).kernels
    assert specify({**settings, "kernel": "spherical"}, 2).kernels == ("spherical",)


def test_it_can_be_tuned_and_ends_at_its_lengthscale():
    X, y = make_data(200, 2, noise=0.05)
    model = LSGPRegressor(
        kernel="spherical", effort=Effort(n_models=1, n_points=60), n_neighbors=30, random_state=0
    ).fit(X, y)
    assert model.loo().calibration.rmse < 0.1
    alone = LSGPRegressor(
        kernel="spherical",
        objective=None,
        trend=None,
        input_transform=None,
        hyperparameters=Hyperparameters(lengthscale=0.5, signal_variance=1.0),
        prior_mean=0.0,
    ).fit([[0.0], [0.1]], [1.0, 1.0])
    assert alone.predict([[0.6]])[0] == 0.0
    assert alone.predict([[0.55]])[0] > 0.0
