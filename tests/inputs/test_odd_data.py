# SPDX-License-Identifier: BSD-3-Clause
"""Data that are odd, but fine: duplicates, constants, few rows, extreme units, far queries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from small_regression import QUERIES, X, Y, assert_same_predictions, assert_sane, regressor

from lsgp import Hyperparameters
from lsgp.method.localizers import LOCALIZERS


@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_ten_thousand_equal_rows_average_their_targets(localizer):
    rng = np.random.default_rng(32)
    y = 5.0 + rng.normal(size=10_000)
    model = regressor(localizer=localizer, n_neighbors=200).fit(np.ones((10_000, 2)), y)
    mean, std = model.predict([[1.0, 1.0], [1.0, 2.0]], return_std=True)
    assert_sane(mean, std)
    # Of equal distances, the first rows are the neighbors.
    assert mean == pytest.approx(y[:200].mean(), abs=0.02)
    assert std == pytest.approx(1.0, abs=0.2)


def test_equal_rows_with_equal_targets_predict_that_target():
    model = regressor().fit(np.ones((1000, 3)), np.full(1000, 7.0))
    mean, std = model.predict(np.ones((2, 3)), return_std=True)
    assert mean == pytest.approx(7.0)
    assert_sane(mean, std)


def test_constant_column_changes_nothing_where_the_lengthscale_is_given():
    def pad(Z):
        return np.column_stack([Z, np.full(len(Z), 7.0)])

    model = regressor(hyperparameters__lengthscale=0.7)
    expected = model.fit(X, Y).predict(QUERIES, return_std=True)
    actual = model.fit(pad(X), Y).predict(pad(QUERIES), return_std=True)
    np.testing.assert_allclose(actual, expected, rtol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("scale", ["local", "global"])
@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_few_rows_are_enough(n, localizer, scale):
    model = regressor(localizer=localizer, hyperparameters__scale=scale).fit(X[:n], Y[:n])
    mean, std = model.predict(QUERIES, return_std=True)
    assert_sane(mean, std)
    if n == 1:
        assert mean == pytest.approx(Y[0])
    assert model.n_neighbors_ == n


@pytest.mark.parametrize("has_known_noise", [False, True])
def test_weight_zero_equals_removing_the_row(has_known_noise):
    rng = np.random.default_rng(33)
    weight = rng.integers(0, 3, len(X)).astype(float)
    kept = weight > 0
    noise = np.where(kept, rng.uniform(0.05, 0.2, len(X)), 100.0) if has_known_noise else None
    known = noise[kept] if has_known_noise else None
    expected = regressor().fit(X[kept], Y[kept], weight[kept], noise_variance=known)
    actual = regressor().fit(X, Y, sample_weight=weight, noise_variance=noise)
    found = [model.predict(QUERIES, return_std=True) for model in (actual, expected)]
    np.testing.assert_array_equal(*found)


def test_more_neighbors_than_rows_are_all_rows():
    mean = regressor(n_neighbors=len(X)).fit(X, Y).predict(QUERIES)
    assert np.array_equal(regressor(n_neighbors=10**9).fit(X, Y).predict(QUERIES), mean)


@pytest.mark.parametrize("scale_y", [1.0, 1e150, 1e-150])
@pytest.mark.parametrize("scale_x", [1.0, 1e150, 1e-150])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_units_do_not_matter(scale_x, scale_y, dtype):
    model = regressor(dtype=dtype).fit(scale_x * X, scale_y * Y)
    rtol = 1e-9 if dtype == "float64" else 1e-4
    assert_same_predictions(model, scale_x * QUERIES, scale_y, rtol=rtol)


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_units_do_not_matter_without_transforms(scale):
    found = []
    for unit in (1.0, scale):
        given = Hyperparameters(lengthscale=unit, signal_variance=unit**2, scale="global")
        model = regressor(input_transform=None, prior_mean=0.0, hyperparameters=given)
        predicted = model.fit(unit * X, unit * Y).predict(unit * QUERIES, return_std=True)
        found.append(np.divide(predicted, unit))
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.parametrize("where", ["X", "y"])
@pytest.mark.parametrize("value", [1e150, -1e150, 1e-150, 0.0])
def test_one_extreme_value_does_no_harm(where, value):
    changed, targets = X.copy(), Y.copy()
    {"X": changed[:, 0], "y": targets}[where][5] = value
    assert_sane(*regressor().fit(changed, targets).predict(QUERIES, return_std=True))


@pytest.mark.parametrize("bandwidth", ["adaptive", 0.1])
def test_a_query_that_is_far_away_or_alone_in_its_ball_has_the_prior(bandwidth):
    given = Hyperparameters(scale="global", signal_variance=2.0, noise_variance=0.5)
    model = regressor(localizer__bandwidth=bandwidth, trend="none", hyperparameters=given)
    far = [[1e3, 0.0], [1e150, 0.0], [1e200, -1e200], [1.7e308, 1.7e308]]
    mean, std = model.fit(X, Y).predict(far, return_std=True)
    assert mean == pytest.approx(Y.mean())
    assert std == pytest.approx(np.sqrt(2.0 + 0.5))


def test_offset_of_the_inputs_does_not_matter():
    assert_same_predictions(regressor().fit(X + 1e6, Y), QUERIES + 1e6, rtol=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    X=hnp.arrays(
        float,
        st.tuples(st.integers(1, 12), st.integers(1, 3)),
        elements=st.floats(-1e150, 1e150, allow_subnormal=False),
    ),
    y_scale=st.sampled_from([1e-150, 1.0, 1e150]),
    localizer=st.sampled_from(sorted(LOCALIZERS)),
    seed=st.integers(0, 2**16),
)
def test_predictions_are_finite_for_any_finite_data(X, y_scale, localizer, seed):
    y = y_scale * np.random.default_rng(seed).normal(size=len(X))
    model = regressor(localizer=localizer, n_neighbors=7).fit(X, y)
    assert_sane(*model.predict(np.vstack([X, 0.5 * X, np.zeros_like(X)]), return_std=True))
