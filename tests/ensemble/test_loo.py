# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out diagnostics of a fitted model."""

import numpy as np
import pytest
from model_files import rewrite
from small_data import make_data
from tuned import regressor
from untuned import made

from lsgp import LSGPRegressor, ModelFileError

X, Y = make_data(40)
LABELS = np.array(["b", "a", "c", "a", "d"])[np.random.default_rng(3).integers(5, size=40)]
SOLVERS = {
    "adaptive": {"n_neighbors": 9},
    "all": {"n_neighbors": 100},
    "fixed": {"localizer__bandwidth": 0.6},
    "exact": {"n_neighbors": 100, "localizer": "rectangular"},
    "exact without trend": {"n_neighbors": 100, "localizer": "rectangular", "trend": "none"},
    "reference": {"n_neighbors": 9, "backend": "reference"},
}
each_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


#: What depends on no rows.
GIVEN = {
    "objective": None,
    "input_transform": None,
    "prior_mean": 0.0,
    "hyperparameters__signal_variance": 1.0,
    "hyperparameters__lengthscale": 0.7,
    "hyperparameters__noise_variance": 0.05,
}


def given(**settings):
    return made(**{**GIVEN, **(settings or SOLVERS["adaptive"])})


def assert_same(predicted, expected, rtol=1e-9):
    for name in ("mean", "scale", "dof"):
        np.testing.assert_allclose(getattr(predicted, name), getattr(expected, name), rtol=rtol)


@pytest.mark.parametrize("scale", ["local", "global"])
@each_solver
@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("has_groups", [False, True])
def test_loo_is_prediction_by_a_model_without_the_row_or_its_group(
    solver, scale, n_targets, has_groups
):
    y = Y if n_targets == 1 else np.column_stack([Y, X[:, 0] - Y])
    settings = {**solver, "hyperparameters__scale": scale}
    groups = LABELS if has_groups else np.arange(40)
    model = given(**settings).fit(X, y, groups=LABELS if has_groups else None)
    result = model.loo()
    np.testing.assert_array_equal(result.rows, np.arange(40))
    np.testing.assert_allclose(result.observed, y, rtol=1e-12)
    explained = model.explain(X, exclude=np.arange(40)).predicted
    for group in np.unique(groups):
        inside = group == groups
        without = given(**settings).fit(X[~inside], y[~inside]).predict_distribution(X[inside])
        assert_same(result.predicted[inside], without)
        assert_same(explained[inside], without)


@pytest.mark.parametrize("settings", [{"n_jobs": 3}, {"memory_budget": "3MB"}, {"n_jobs": -1}])
def test_loo_depends_neither_on_blocks_nor_on_threads(settings):
    model = given(n_neighbors=20).fit(*make_data(500))
    expected = model.loo().predicted
    assert_same(model.set_params(**settings).loo().predicted, expected, rtol=0)


def test_loo_of_a_sample_is_part_of_that_of_all():
    model = regressor(effort__n_points=30).fit(*make_data(150))
    everything, part = model.loo(), model.loo(n_points=40, random_state=1)
    assert len(np.unique(part.rows)) == part.calibration.n == 40
    assert np.array_equal(part.predicted.mean, everything.predicted.mean[part.rows])
    assert np.array_equal(part.observed, everything.observed[part.rows])
    assert np.array_equal(part.rows, model.loo(40, random_state=1).rows)
    assert not np.array_equal(part.rows, model.loo(40, random_state=2).rows)
    np.testing.assert_allclose(part.residuals, part.observed - part.predicted.mean)


def test_loo_errors_are_those_of_new_rows():
    rows, y = make_data(1400, seed=8)
    model = regressor(n_neighbors=40).fit(rows[:400], y[:400])
    inside, outside = model.loo().calibration, model.calibration(rows[400:], y[400:])
    assert inside.rmse == pytest.approx(outside.rmse, rel=0.15)
    assert inside.nll == pytest.approx(outside.nll, abs=0.15)


def test_each_row_is_predicted_with_its_own_noise():
    rng = np.random.default_rng(7)
    rows = rng.uniform(size=(400, 1))
    noise_variance = np.where(np.arange(400) % 2, 0.01, 1.0)
    y = np.sin(6.0 * rows[:, 0]) + np.sqrt(noise_variance) * rng.normal(size=400)
    model = made(objective=None, hyperparameters__scale="global")
    predicted = model.fit(rows, y, noise_variance=noise_variance).loo().predicted
    low, high = predicted.interval(0.95)
    is_inside = (low < y) & (y < high)
    for part in (noise_variance < 0.5, noise_variance > 0.5):
        assert 0.9 < is_inside[part].mean() < 0.99


# -- groups ------------------------------------------------------------------------------------


@each_solver
def test_explaining_with_no_row_left_out_leaves_out_no_group(solver):
    model = given(**solver).fit(X, Y, groups=LABELS)
    plain, found = model.explain(X), model.explain(X, exclude=np.full(40, -1))
    assert_same(found.predicted, plain.predicted)
    np.testing.assert_allclose(found.extrapolation, plain.extrapolation, rtol=1e-9)


@each_solver
def test_groups_outlive_files_and_updates(solver, tmp_path):
    expected = given(**solver).fit(X, Y, groups=LABELS).loo().predicted
    model = given(**solver).fit(X[:30], Y[:30], groups=LABELS[:30])
    model.save(tmp_path / "model")
    model = LSGPRegressor.load(tmp_path / "model").partial_fit(X[30:], Y[30:], groups=LABELS[30:])
    assert_same(model.loo().predicted, expected)
    kept = np.arange(40) % 3 > 0
    fresh = given(**solver).fit(X[kept], Y[kept], groups=LABELS[kept]).loo().predicted
    assert_same(model.forget(~kept).loo().predicted, fresh)


def test_rows_that_came_without_groups_belong_to_none_and_the_first_may_have_some():
    plain = given().fit(X, Y).loo().predicted
    model = given().fit(X[:20], Y[:20])
    model.partial_fit(X[20:], Y[20:], groups=np.arange(20))  # each of its own
    assert_same(model.loo().predicted, plain, rtol=0)
    expected = given().fit(X, Y, groups=LABELS).loo().predicted
    assert_same(given().partial_fit(X, Y, groups=LABELS).loo().predicted, expected, rtol=0)


def test_labels_of_groups_may_be_numbers_dates_or_texts(tmp_path):
    numbers = np.arange(40) // 8
    expected = given().fit(X, Y, groups=numbers).loo().predicted
    for labels in (
        numbers + 0.5,
        [f"site {g}" for g in numbers],
        np.datetime64("2020-01-01") + numbers,
        numbers.astype(object),
    ):
        given().fit(X[:20], Y[:20], groups=labels[:20]).save(tmp_path / "model")
        model = LSGPRegressor.load(tmp_path / "model")
        model.partial_fit(X[20:], Y[20:], groups=labels[20:])
        assert_same(model.loo().predicted, expected)


def test_groups_of_common_error_are_seen_in_loo():
    """Rows of a group share an error: without groups, loo predicts it from the others."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 5)
    rows = rng.uniform(size=(40, 2))[groups] + 0.01 * rng.normal(size=(200, 2))
    y = np.sin(3.0 * rows[:, 0]) + rng.normal(size=40)[groups] + 0.05 * rng.normal(size=200)
    model = made(objective=None, hyperparameters__lengthscale=0.3)
    alone = model.fit(rows, y).loo().calibration.rmse
    assert model.fit(rows, y, groups=groups).loo().calibration.rmse > 2 * alone


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
    given().fit(X, Y, groups=LABELS).save(tmp_path / "model")
    rewrite(tmp_path / "model", change)
    with pytest.raises(ModelFileError, match="its contents contradict each other"):
        LSGPRegressor.load(tmp_path / "model")
