# SPDX-License-Identifier: BSD-3-Clause
"""Sums of two correlations in fits: where they are chosen, and what is done with them."""

import math
from copy import copy, deepcopy
from dataclasses import replace

import numpy as np
import pytest
from differences import assert_gradients_are_differences
from untuned import made

from lsgp import LSGPRegressor, Sphere, variogram
from lsgp.method.kernels import SumKernel
from lsgp.solvers.exact import ExactSolver
from lsgp.tuning import exact
from lsgp.tuning.exact import Exact


def long_and_short(n=400, seed=0):
    """Something smooth over all of the square, and something rough over little of it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    rough = np.sign(np.sin(25.0 * X[:, 0])) * np.cos(20.0 * X[:, 1])
    return X, 5.0 * np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.4 * rough + 0.05 * rng.normal(size=n)


SETTINGS = {
    "random_state": 0,
    "n_jobs": 1,
    "effort__boosting": False,
    "input_transform": "standardize",
}


@pytest.fixture(scope="module")
def fitted():
    X, y = long_and_short()
    model = made(**SETTINGS).fit(X, y)
    assert sums_in(model), "it was made for them"
    return model, X, y


def sums_in(model):
    return [f for f in model.ensemble_.models if isinstance(f.model.kernel, SumKernel)]


def alone(model, fitted):
    """The estimator with one of its models."""
    one = copy(model)
    one.ensemble_ = replace(model.ensemble_, models=(replace(fitted, weight=1.0),), boosted=None)
    return one


def test_what_varies_over_long_and_short_distances_chooses_a_sum(fitted):
    model, _, _ = fitted
    kernel = sums_in(model)[0].model.kernel
    assert max(kernel.ratios) < 1.0, "the second is the short one"
    assert str(kernel).startswith("sum of ")
    assert str(kernel) in model.describe()
    assert isinstance(sums_in(model)[0].solver, ExactSolver)


def test_saved_ones_predict_the_same_bits(fitted, tmp_path):
    model, X, _ = fitted
    model.save(tmp_path / "model.lsgp")
    again = LSGPRegressor.load(tmp_path / "model.lsgp")
    np.testing.assert_array_equal(again.predict(X + 0.01), model.predict(X + 0.01))
    assert sums_in(again)[0].model.kernel == sums_in(model)[0].model.kernel


def test_draws_have_the_spread_that_is_predicted(fitted):
    model, X, _ = fitted
    one = alone(model, sums_in(model)[0])
    queries = np.vstack([X[:4] + 0.02, [[0.5, 1.3]]])
    draws = one.sample_y(queries, n_samples=400, random_state=0)
    _, std = one.predict(queries, return_std=True)
    np.testing.assert_allclose(draws.reshape(len(queries), -1).std(axis=1), std, rtol=0.2)


def test_gradients_are_differences_of_predictions(fitted):
    model, X, _ = fitted
    one = alone(model, sums_in(model)[0])
    assert_gradients_are_differences(one, X[:3] + 0.011, atol=1e-4)


def test_rows_that_come_later_are_known(fitted):
    model, X, _ = fitted
    later = deepcopy(model).partial_fit(X[:3] + 0.02, np.full(3, 9.0))
    assert len(sums_in(later)[0].problem.X) == len(X) + 3
    assert (later.predict(X[:3] + 0.02) > model.predict(X[:3] + 0.02)).all()


def test_a_warm_fit_goes_on_from_them_and_tries_no_others(fitted, monkeypatch):
    model, X, y = fitted
    before = {f.model.kernel for f in sums_in(model)}
    monkeypatch.setattr(Exact, "_sums_and_warps", lambda *_: pytest.fail("begun anew"))
    more_X, more_y = long_and_short(20, seed=1)
    warm = deepcopy(model).set_params(warm_start=True)
    warm.fit(np.vstack([X, more_X]), np.append(y, more_y))
    after = {f.model.kernel for f in sums_in(warm)}
    assert after, "what paid pays"
    assert not after & before, "tuned for the rows that there are now"


def test_a_warm_fit_of_sums_alone_has_local_models_by_name(fitted):
    model, X, y = fitted
    one = alone(model, sums_in(model)[0]).set_params(warm_start=True)
    one.fit(X, y)
    local = [f for f in one.ensemble_.models if not isinstance(f.solver, ExactSolver)]
    assert all(isinstance(f.model.kernel, str) for f in local)
    assert np.isfinite(one.predict(X)).all()


def test_a_kernel_that_is_given_is_not_replaced(fitted):
    _, X, y = fitted
    model = made(kernel="matern32", **SETTINGS).fit(X[:120], y[:120])
    assert {f.model.kernel for f in model.ensemble_.models} == {"matern32"}


def test_beyond_the_rows_they_have_most_of_the_weight():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(400, 3))
    y = 2.0 * X[:, 0] + np.sin(4.0 * X[:, 1]) + 0.3 * np.sign(np.sin(20.0 * X[:, 2]))
    y += 0.05 * rng.normal(size=400)
    beyond = X[:, 0] > 0.75
    model = made(**SETTINGS)
    model.fit(X[~beyond], y[~beyond], queries=X[beyond])
    share = sum(f.weight for f in model.ensemble_.models if isinstance(f.model.kernel, SumKernel))
    assert share >= 0.35  # .7 of all, or of the half that is tuned for the queries
    predicted = model.predict_distribution(X[beyond])
    low, high = predicted.interval(0.95)
    assert np.mean((low <= y[beyond]) & (y[beyond] <= high)) > 0.8
    assert np.sqrt(np.mean((predicted.mean - y[beyond]) ** 2)) < 0.5 * y[beyond].std()


def test_on_a_sphere_there_are_more_inputs_than_columns(monkeypatch):
    monkeypatch.setattr(exact, "WORTH_A_TRIAL", -math.inf)  # whether they pay or not
    rng = np.random.default_rng(0)
    X = np.c_[rng.uniform(-180, 180, 80), rng.uniform(-80, 80, 80), rng.uniform(size=80)]
    y = np.sin(X[:, 0] / 30.0) + X[:, 2] + 0.1 * rng.normal(size=80)
    model = LSGPRegressor(random_state=0, coordinates=Sphere(0, 1)).fit(X, y)
    kernels = [c.model.kernel for c in model.tuning_.candidates]
    assert {len(k.ratios) for k in kernels if isinstance(k, SumKernel)} == {4}
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"effort__n_models": 1},
        {"memory_budget": "1MB"},
        {"objective": "marginal_likelihood", "effort__n_points": 3},
        {"kernel": "rbf"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_warm_fits_have_none_where_cold_ones_would_not(fitted, settings):
    model, X, y = fitted
    warm = deepcopy(model).set_params(warm_start=True, **settings).fit(X, y)
    assert not sums_in(warm)
    assert np.isfinite(warm.predict(X[:3])).all()


def test_the_variogram_of_a_sum_has_two_nested_structures(fitted):
    model, _, _ = fitted
    one = alone(model, sums_in(model)[0])
    own = sums_in(model)[0]
    kernel, (first, _) = own.model.kernel, own.model.lengthscale
    found = variogram(one, lags=[0.01, 0.1, 5.0])
    z = np.array([[lag / (first * own.transform.scale[0]), 0.0] for lag in found.lags])
    rho = kernel.cross(z, z, np.zeros((1, 2)), np.zeros((1, 2)))[:, 0]
    np.testing.assert_allclose(found.semivariance, found.nugget + found.psill * (1.0 - rho))
