# SPDX-License-Identifier: BSD-3-Clause
"""Functions without noise: next to none is found, errors are small, and intervals cover them."""

import math
import warnings

import numpy as np
import pytest
from untuned import made

from lsgp import Effort, LSGPRegressor
from lsgp.method.parameters import NO_NOISE
from lsgp.tuning.exact import Exact


def function(X):
    return np.exp(X[:, 0]) * np.cos(2.0 * X[:, 1]) + X[:, 2]


def regressor(**settings):
    return made(**{"kernel": "rbf", "random_state": 0, **settings})


def noise_of_targets(fitted):
    """Relative to the variance of the targets."""
    return fitted.model.noise_variance * fitted.model.signal_variance


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.uniform(size=(120, 3)), rng.uniform(size=(500, 3)), rng.normal(size=120)


@pytest.fixture(scope="module")
def fitted(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing alarming, and no jitter
        model = regressor().fit(data[0], function(data[0]))
        model.predict(data[1])
    return model


def test_next_to_no_noise_is_found_and_said(fitted):
    exact = [one for one in fitted.fitted_ if not one.is_integrated]
    assert exact
    assert all(0.0 < noise_of_targets(one) < NO_NOISE for one in exact)
    assert not fitted.ensemble_.shape.is_noisy
    assert fitted.describe().count("no noise found") == 1


def test_errors_are_smaller_than_with_a_little_noise(fitted, data):
    X, queries, _ = data
    noisy = regressor(hyperparameters__noise_variance=1e-6).fit(X, function(X))
    assert noisy.ensemble_.shape.is_noisy  # a noise that is given is there
    error = [np.std(m.predict(queries) - function(queries)) for m in (fitted, noisy)]
    assert error[0] < 0.8 * error[1]


def test_intervals_cover_the_function(fitted, data):
    low, high = fitted.predict_interval(data[1], level=0.9, kind="latent")
    truth = function(data[1])
    assert np.mean((low <= truth) & (truth <= high)) > 0.8


def test_intervals_of_a_smooth_function_are_no_wider_than_its_errors():
    rng = np.random.default_rng(0)
    X, queries = rng.uniform(size=(150, 6)), rng.uniform(size=(300, 6))
    model = regressor(input_transform="standardize").fit(X, (X**2).sum(axis=1))
    mean, std = model.predict(queries, return_std=True)
    z = ((queries**2).sum(axis=1) - mean) / std
    assert 0.5 < math.sqrt(np.mean(z**2)) < 2.0


def test_a_signal_that_is_given_stays(data):
    model = regressor(hyperparameters__signal_variance=1.0).fit(data[0], function(data[0]))
    unit = model.target_scaler_.std[0] ** 2
    for one in model.fitted_:
        assert unit * one.model.signal_variance == pytest.approx(1.0)


def test_noise_that_is_there_is_found(data):
    X, _, noise = data
    model = regressor().fit(X, function(X) + 0.05 * noise)
    assert model.ensemble_.shape.is_noisy
    assert all(noise_of_targets(one) > NO_NOISE for one in model.fitted_)
    assert "no noise" not in model.describe()


def test_little_noise_of_a_smooth_function_is_no_noise_of_the_signal():
    # A line beyond the range of its input: the signal's variance is many times that of the targets.
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(size=200))
    y = 3.0 * x + 0.05 * rng.normal(size=200)
    model = LSGPRegressor(random_state=0).fit(x[:, None], y)
    assert model.ensemble_.shape.is_noisy
    mean, std = model.predict([[1.3]], return_std=True)
    assert abs(mean[0] - 3.9) < 3.0 * std[0] < 1.5


@pytest.mark.parametrize("size", [0.0, 0.05])
def test_a_warm_fit_knows_whether_there_is_noise(data, size):
    X, _, noise = data
    y = function(X) + size * noise
    model = regressor(warm_start=True, input_transform="standardize").fit(X[:100], y[:100])
    model.fit(X, y)
    assert model.ensemble_.shape.is_noisy == (size > 0.0)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_warps_are_tried_with_each_kernel_where_there_is_no_noise(monkeypatch, noise):
    """Kernels that make the rows less likely often predict better, at corners above all."""
    grown, grow = [], Exact.grow

    def watched(*given):
        found = grow(*given)
        grown.extend(found)
        return found

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(150, 2))
    y = np.arctan((X[:, 0] - 0.3) / (0.02 + X[:, 1])) + noise * rng.normal(size=150)
    monkeypatch.setattr(Exact, "grow", watched)
    LSGPRegressor(random_state=0, effort=Effort(n_models=2)).fit(X, y)
    kernels = {each.spec.model.kernel for each in grown if isinstance(each.spec.model.kernel, str)}
    assert len(kernels) >= 2 if noise == 0.0 else len(kernels) <= 1
