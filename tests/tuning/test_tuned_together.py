# SPDX-License-Identifier: BSD-3-Clause
"""What tuning does to a problem, where one part of it meets another."""

import numpy as np
import pytest

from lsgp import Effort, LSGPRegressor


def curve(U):
    return np.exp(U[:, 0]) / (1.2 + U[:, 1]) + np.sin(U[:, 2])


@pytest.mark.parametrize(("shift", "unit"), [(2000.0, 7.0), (-1e4, 1.0), (1e6, 1.0), (0.0, 1e-9)])
def test_functions_of_inputs_far_from_zero_are_learnt(shift, unit):
    rng = np.random.default_rng(0)
    U, Q = rng.uniform(0.0, 3.0, (80, 3)), rng.uniform(0.0, 3.0, (50, 3))
    model = LSGPRegressor(random_state=0, effort=Effort(n_points=80)).fit(
        shift + unit * U, curve(U)
    )
    errors = model.predict(shift + unit * Q) - curve(Q)
    assert np.sqrt(np.mean(errors**2)) < 0.05 * curve(Q).std()


def test_models_of_all_inputs_are_those_that_were_tuned_with_some():
    rng = np.random.default_rng(0)
    X, Q = rng.uniform(0.0, 3.0, (1000, 48)), rng.uniform(0.0, 3.0, (100, 48))
    model = LSGPRegressor(random_state=0, kernel="rbf", effort=Effort(n_points=200))
    mean, std = model.fit(X, curve(X)).predict(Q, return_std=True)
    assert np.mean(((mean - curve(Q)) / std) ** 2) < 4.0


def test_given_transforms_are_kept_with_many_inputs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 48))
    y = 2.0 * np.sin(X[:, 0]) + 2.0 * X[:, 1] + 0.1 * rng.normal(size=1000)
    X[:, -1] *= 1e6
    given = [None] * 47 + ["standardize"]
    model = LSGPRegressor(
        effort=Effort("fast", n_points=200), kernel="rbf", random_state=0, input_transform=given
    ).fit(X[:900], y[:900])
    assert all(fitted.transform.kinds == tuple(given) for fitted in model.fitted_)
    assert np.sqrt(np.mean((model.predict(X[900:]) - y[900:]) ** 2)) < 0.25
