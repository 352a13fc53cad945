# SPDX-License-Identifier: BSD-3-Clause
"""What is given is in the units of the data: variances of y², lengths of the inputs."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from small_data import make_data
from tuned import regressor

from lsgp import Hyperparameters, LSGPRegressor

X, Y = make_data(120)
QUERIES = make_data(40, seed=5)[0]


def predict(settings, x_unit=1.0, y_unit=1.0, offset=0.0):
    model = regressor(input_transform="auto", **settings)
    predicted = model.fit(x_unit * X, y_unit * Y + offset).predict_distribution(x_unit * QUERIES)
    return (predicted.mean - offset) / y_unit, predicted.scale / y_unit


@pytest.mark.parametrize("objective", [None, "crps"])
@pytest.mark.parametrize("names", [("signal", "noise"), ("signal",), ("noise",)], ids="+".join)
@pytest.mark.parametrize("y_unit", [1e-4, 300.0])
def test_variances_are_those_of_targets(objective, names, y_unit):
    variances = {"signal": 0.8, "noise": 0.02}

    def given(factor):
        own = {f"hyperparameters__{name}_variance": factor * variances[name] for name in names}
        return {"objective": objective, "effort__n_points": 30, **own}

    plain = predict(given(1.0))
    scaled = predict(given(y_unit**2), y_unit=y_unit, offset=5.0 * y_unit)
    tolerance = 1e-6 if objective is None else 1e-2
    for one, other in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(other, one, atol=tolerance)


@pytest.mark.parametrize("bandwidth", ["adaptive", 1.5])
@pytest.mark.parametrize("x_unit", [1e-3, 5e4])
def test_lengths_are_those_of_inputs(bandwidth, x_unit):
    def given(factor):
        return {
            "objective": None,
            "hyperparameters__lengthscale": [0.7 * factor, 1.1 * factor, 2.0 * factor],
            "localizer__bandwidth": bandwidth if bandwidth == "adaptive" else factor * bandwidth,
        }

    for one, other in zip(predict(given(1.0)), predict(given(x_unit), x_unit), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-8)


def test_inputs_are_taken_as_they_are_where_a_length_is_given():
    for name in ("hyperparameters__lengthscale", "localizer__bandwidth"):
        model = LSGPRegressor(objective=None).set_params(**{name: 1.0}).fit(X, Y)
        assert model.fitted_[0].transform.kinds == (None,) * 3
        with pytest.raises(ValueError, match="is in the units of the inputs, and input_transform"):
            model.set_params(input_transform="half-rank").fit(X, Y)


@pytest.mark.parametrize("objective", [None, "crps"])
def test_a_noise_that_is_given_holds_for_every_target(objective):
    model = regressor(objective=objective, hyperparameters__noise_variance=0.02)
    both = np.column_stack([Y, 10.0 * Y + X[:, 1]])
    model.fit(X, both)
    for fitted in model.fitted_:
        own = fitted.model
        noise = own.noise_of(np.ones(1)).ravel() * own.signal_variance
        np.testing.assert_allclose(noise * model.target_scaler_.std**2, 0.02, rtol=1e-9)


def test_a_mean_that_is_known_is_predicted_where_nothing_else_is():
    model = LSGPRegressor(objective=None, trend="none", prior_mean=-3.0).fit(X, Y)
    assert model.predict([[100.0, 0.0, 0.0]])[0] == pytest.approx(-3.0)
    tuned = regressor(trend="none", prior_mean=-3.0).fit(X, 1e3 * Y)
    assert tuned.predict([[1e4, 0.0, 0.0]])[0] == pytest.approx(-3.0, abs=1.0)
    assert tuned.loo().calibration.rmse < 0.4 * (1e3 * Y).std()


def test_a_kernel_object_is_in_the_units_of_the_data_too():
    kernel = 0.8 * Matern([0.7, 1.1, 2.0], nu=1.5) + WhiteKernel(0.02)
    given = Hyperparameters(lengthscale=[0.7, 1.1, 2.0], signal_variance=0.8, noise_variance=0.02)
    one = LSGPRegressor(objective=None, kernel=kernel).fit(X, Y)
    other = LSGPRegressor(objective=None, kernel="matern32", hyperparameters=given).fit(X, Y)
    np.testing.assert_allclose(one.predict(QUERIES), other.predict(QUERIES), rtol=1e-9)
