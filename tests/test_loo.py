# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out diagnostics of a fitted model."""

import numpy as np
import pytest
from tuned import make_data, regressor

from lsgp import LSGPRegressor

GIVEN = {
    "objective": None,
    "input_transform": None,
    "normalize_y": False,
    "lengthscale": 0.7,
    "noise_variance": 0.05,
}


@pytest.mark.parametrize("scale", ["local", "global"])
@pytest.mark.parametrize(
    "settings",
    [{"n_neighbors": 9}, {"n_neighbors": 100}, {"bandwidth": 0.6}],
    ids=["adaptive", "all", "fixed"],
)
@pytest.mark.parametrize("n_targets", [None, 2])
def test_loo_is_prediction_by_a_model_without_the_row(settings, scale, n_targets):
    X, y = make_data(25)
    if n_targets:
        y = np.column_stack([y, X[:, 0] - y])
    estimator = LSGPRegressor(scale=scale, **GIVEN, **settings)
    result = estimator.fit(X, y).loo()
    assert np.array_equal(result.rows, np.arange(25))
    np.testing.assert_allclose(result.observed, y, rtol=1e-12)
    for row in range(25):
        others = np.arange(25) != row
        alone = LSGPRegressor(scale=scale, **GIVEN, **settings).fit(X[others], y[others])
        expected = alone.predict_distribution(X[[row]])
        for name in ("mean", "scale", "dof"):
            np.testing.assert_allclose(
                getattr(result.predicted, name)[[row]], getattr(expected, name), rtol=1e-10
            )


@pytest.mark.parametrize("settings", [{"n_jobs": 3}, {"memory_budget": "3MB"}, {"n_jobs": -1}])
def test_loo_depends_neither_on_blocks_nor_on_threads(settings):
    X, y = make_data(500)
    model = LSGPRegressor(**GIVEN, n_neighbors=20).fit(X, y)
    expected = model.loo().predicted
    actual = model.set_params(**settings).loo().predicted
    for name in ("mean", "scale", "dof"):
        assert np.array_equal(getattr(actual, name), getattr(expected, name))


def test_loo_of_a_sample_is_part_of_that_of_all():
    X, y = make_data(150)
    model = regressor(n_tuning_points=30).fit(X, y)
    everything, part = model.loo(), model.loo(n_points=40, random_state=1)
    assert len(np.unique(part.rows)) == 40
    assert np.array_equal(part.predicted.mean, everything.predicted.mean[part.rows])
    assert np.array_equal(part.observed, everything.observed[part.rows])
    assert np.array_equal(part.rows, model.loo(40, random_state=1).rows)
    assert not np.array_equal(part.rows, model.loo(40, random_state=2).rows)
    assert part.calibration.n == 40
    np.testing.assert_allclose(part.residuals, part.observed - part.predicted.mean)


def test_loo_errors_are_those_of_new_rows():
    X, y = make_data(1400, seed=8)
    model = regressor(n_neighbors=40).fit(X[:400], y[:400])
    inside, outside = model.loo().calibration, model.calibration(X[400:], y[400:])
    assert inside.rmse == pytest.approx(outside.rmse, rel=0.15)
    assert inside.nll == pytest.approx(outside.nll, abs=0.15)


def test_each_row_is_predicted_with_its_own_noise():
    rng = np.random.default_rng(7)
    X = rng.uniform(size=(400, 1))
    noise_variance = np.where(np.arange(400) % 2, 0.01, 1.0)
    y = np.sin(6.0 * X[:, 0]) + np.sqrt(noise_variance) * rng.normal(size=400)
    model = LSGPRegressor(objective=None, scale="global").fit(X, y, noise_variance=noise_variance)
    predicted = model.loo().predicted
    low, high = predicted.interval(0.95)
    is_inside = (low < y) & (y < high)
    for rows in (noise_variance < 0.5, noise_variance > 0.5):
        assert 0.9 < is_inside[rows].mean() < 0.99
