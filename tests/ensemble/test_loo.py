# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out diagnostics of a fitted model."""

import numpy as np
import pytest
from model_files import rewrite
from small_data import make_data
from tuned import regressor

from lsgp import Hyperparameters, LSGPRegressor, ModelFileError

GIVEN = {
    "objective": None,
    "input_transform": None,
    "prior_mean": 0.0,
    "hyperparameters__signal_variance": 1.0,
    "hyperparameters__lengthscale": 0.7,
    "hyperparameters__noise_variance": 0.05,
}


@pytest.mark.parametrize("scale", ["local", "global"])
@pytest.mark.parametrize(
    "settings",
    [{"n_neighbors": 9}, {"n_neighbors": 100}, {"localizer__bandwidth": 0.6}],
    ids=["adaptive", "all", "fixed"],
)
@pytest.mark.parametrize("n_targets", [None, 2])
def test_loo_is_prediction_by_a_model_without_the_row(settings, scale, n_targets):
    X, y = make_data(25)
    if n_targets:
        y = np.column_stack([y, X[:, 0] - y])
    estimator = LSGPRegressor().set_params(hyperparameters__scale=scale, **GIVEN, **settings)
    result = estimator.fit(X, y).loo()
    assert np.array_equal(result.rows, np.arange(25))
    np.testing.assert_allclose(result.observed, y, rtol=1e-12)
    for row in range(25):
        others = np.arange(25) != row
        alone = (
            LSGPRegressor()
            .set_params(hyperparameters__scale=scale, **GIVEN, **settings)
            .fit(X[others], y[others])
        )
        expected = alone.predict_distribution(X[[row]])
        for name in ("mean", "scale", "dof"):
            np.testing.assert_allclose(
                getattr(result.predicted, name)[[row]], getattr(expected, name), rtol=1e-10
            )


@pytest.mark.parametrize("settings", [{"n_jobs": 3}, {"memory_budget": "3MB"}, {"n_jobs": -1}])
def test_loo_depends_neither_on_blocks_nor_on_threads(settings):
    X, y = make_data(500)
    model = LSGPRegressor().set_params(**GIVEN, n_neighbors=20).fit(X, y)
    expected = model.loo().predicted
    actual = model.set_params(**settings).loo().predicted
    for name in ("mean", "scale", "dof"):
        assert np.array_equal(getattr(actual, name), getattr(expected, name))


def test_loo_of_a_sample_is_part_of_that_of_all():
    X, y = make_data(150)
    model = regressor(effort__n_points=30).fit(X, y)
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
    model = LSGPRegressor(objective=None, hyperparameters=Hyperparameters(scale="global")).fit(
        X, y, noise_variance=noise_variance
    )
    predicted = model.loo().predicted
    low, high = predicted.interval(0.95)
    is_inside = (low < y) & (y < high)
    for rows in (noise_variance < 0.5, noise_variance > 0.5):
        assert 0.9 < is_inside[rows].mean() < 0.99


# -- groups ------------------------------------------------------------------------------------

LABELS = np.array(["b", "a", "c", "a", "d"])[np.random.default_rng(3).integers(5, size=40)]
SOLVERS = {
    "adaptive": {"n_neighbors": 9},
    "fixed": {"localizer__bandwidth": 0.6},
    "exact": {"n_neighbors": 100, "localizer": "rectangular"},
    "exact without trend": {"n_neighbors": 100, "localizer": "rectangular", "trend": "none"},
    "reference": {"n_neighbors": 9, "backend": "reference"},
}


@pytest.mark.parametrize("scale", ["local", "global"])
@pytest.mark.parametrize("name", SOLVERS)
def test_loo_with_groups_is_prediction_by_a_model_without_the_group(name, scale):
    X, y = make_data(40)
    y = np.column_stack([y, X[:, 0] - y])
    settings = {**GIVEN, **SOLVERS[name], "hyperparameters__scale": scale}
    model = LSGPRegressor().set_params(**settings).fit(X, y, groups=LABELS)
    result = model.loo()
    explained = model.explain(X, exclude=np.arange(40)).predicted
    for label in np.unique(LABELS):
        inside = label == LABELS
        without = LSGPRegressor().set_params(**settings).fit(X[~inside], y[~inside])
        expected = without.predict_distribution(X[inside])
        for predicted in (result.predicted, explained):
            for part in ("mean", "scale", "dof"):
                np.testing.assert_allclose(
                    getattr(predicted, part)[inside], getattr(expected, part), rtol=1e-9
                )


@pytest.mark.parametrize("name", SOLVERS)
def test_explaining_with_no_row_left_out_leaves_out_no_group(name):
    X, y = make_data(40)
    settings = {**GIVEN, **SOLVERS[name]}
    model = LSGPRegressor().set_params(**settings).fit(X, y, groups=LABELS)
    plain = model.explain(X)
    found = model.explain(X, exclude=np.full(40, -1))
    np.testing.assert_allclose(found.predicted.mean, plain.predicted.mean, rtol=1e-9)
    np.testing.assert_allclose(found.predicted.std, plain.predicted.std, rtol=1e-9)
    np.testing.assert_allclose(found.extrapolation, plain.extrapolation, rtol=1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_groups_outlive_files_and_updates(name, tmp_path):
    X, y = make_data(40)
    settings = {**GIVEN, **SOLVERS[name]}
    expected = LSGPRegressor().set_params(**settings).fit(X, y, groups=LABELS).loo().predicted
    model = LSGPRegressor().set_params(**settings).fit(X[:30], y[:30], groups=LABELS[:30])
    model.save(tmp_path / "model")
    model = LSGPRegressor.load(tmp_path / "model").partial_fit(X[30:], y[30:], groups=LABELS[30:])
    grown = model.loo().predicted
    np.testing.assert_allclose(grown.mean, expected.mean, rtol=1e-9)
    np.testing.assert_allclose(grown.std, expected.std, rtol=1e-9)
    kept = np.arange(40) % 3 > 0
    fresh = (
        LSGPRegressor()
        .set_params(**settings)
        .fit(X[kept], y[kept], groups=LABELS[kept])
        .loo()
        .predicted
    )
    np.testing.assert_allclose(model.forget(~kept).loo().predicted.mean, fresh.mean, rtol=1e-9)


def test_the_first_rows_that_come_may_have_groups():
    X, y = make_data(40)
    settings = {**GIVEN, "n_neighbors": 9}
    expected = LSGPRegressor().set_params(**settings).fit(X, y, groups=LABELS).loo().predicted
    model = LSGPRegressor().set_params(**settings).partial_fit(X, y, groups=LABELS)
    np.testing.assert_array_equal(model.loo().predicted.mean, expected.mean)


def test_rows_that_came_without_groups_belong_to_none():
    X, y = make_data(40)
    model = LSGPRegressor().set_params(**GIVEN, n_neighbors=9).fit(X[:20], y[:20])
    plain = LSGPRegressor().set_params(**GIVEN, n_neighbors=9).fit(X, y).loo().predicted.mean
    model.partial_fit(X[20:], y[20:], groups=np.arange(20))  # each of its own
    np.testing.assert_array_equal(model.loo().predicted.mean, plain)


def test_labels_of_groups_may_be_numbers_dates_or_texts(tmp_path):
    X, y = make_data(40)
    numbers = np.arange(40) // 8
    expected = (
        LSGPRegressor().set_params(**GIVEN, n_neighbors=9).fit(X, y, groups=numbers).loo().predicted
    )
    for labels in (
        numbers + 0.5,
        [f"site {g}" for g in numbers],
        np.datetime64("2020-01-01") + numbers,
        numbers.astype(object),
    ):
        model = (
            LSGPRegressor()
            .set_params(**GIVEN, n_neighbors=9)
            .fit(X[:20], y[:20], groups=labels[:20])
        )
        model.save(tmp_path / "model")
        model = LSGPRegressor.load(tmp_path / "model")
        model.partial_fit(X[20:], y[20:], groups=labels[20:])
        np.testing.assert_allclose(model.loo().predicted.mean, expected.mean, rtol=1e-9)


def test_groups_of_common_error_are_seen_in_loo():
    """Rows of a group share an error: without groups, loo predicts it from the others."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 5)
    X = rng.uniform(size=(40, 2))[groups] + 0.01 * rng.normal(size=(200, 2))
    y = np.sin(3.0 * X[:, 0]) + rng.normal(size=40)[groups] + 0.05 * rng.normal(size=200)
    model = LSGPRegressor(objective=None, hyperparameters=Hyperparameters(lengthscale=0.3))
    alone = model.fit(X, y).loo().calibration.rmse
    assert model.fit(X, y, groups=groups).loo().calibration.rmse > 2 * alone


@pytest.mark.parametrize(
    "change",
    [
        lambda state, arrays: arrays["groups.numbers"].put(0, 99),
        lambda state, arrays: arrays["groups.numbers"].put(0, -2),
        lambda state, arrays: arrays.update({"groups.numbers": arrays["groups.numbers"][:-1]}),
        lambda state, arrays: arrays.update({"groups.labels": np.frombuffer(b"[1, 1]", np.uint8)}),
        lambda state, arrays: arrays.update({"groups.labels": np.frombuffer(b"{", np.uint8)}),
    ],
    ids=["no label", "below all", "fewer rows", "twice", "no list"],
)
def test_groups_of_a_file_that_make_no_sense_are_refused(change, tmp_path):
    X, y = make_data(40)
    LSGPRegressor().set_params(**GIVEN, n_neighbors=9).fit(X, y, groups=LABELS).save(
        tmp_path / "model"
    )
    rewrite(tmp_path / "model", change)
    with pytest.raises(ModelFileError, match="its contents contradict each other"):
        LSGPRegressor.load(tmp_path / "model")
