# SPDX-License-Identifier: BSD-3-Clause
"""Importance is what predictions depend on, and effects are how."""

import numpy as np
import pandas as pd
import pytest
from data_folder import data_folder
from scipy.stats import spearmanr
from sklearn.datasets import make_friedman1
from sklearn.inspection import permutation_importance
from tuned import regressor
from untuned import made

from lsgp import Effort, LSGPRegressor
from lsgp.ensemble.effects import sketch
from lsgp.ensemble.predict import predict_mean_without
from reproduction.datasets import load_dataset, split


def fit_given(X, y, noise=1e-3, **settings):
    given = {"hyperparameters__lengthscale": 1.0, "hyperparameters__noise_variance": noise}
    return made(objective=None, kernel="rbf", **{"n_neighbors": 30, **given, **settings}).fit(X, y)


def make_data(n=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, (n, d)), rng


#: Of local and of exact models, and of both with several targets.
SETTINGS = [{}, {"localizer": "rectangular", "n_neighbors": 10_000}, {"trend": "none"}]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_predictions_without_a_row_are_those_of_a_model_without_it(settings, n_targets):
    X, rng = make_data(60)
    y = rng.normal(size=(60, n_targets))
    model = fit_given(X, y, **settings)
    queries, rows = rng.uniform(-1.0, 1.0, (8, 3)), np.array([3, 3, 9, 0, 59, 17, 9, 30])
    found = predict_mean_without(model.ensemble_, queries, rows, model._resources())
    for query, row, mean in zip(queries, rows, found, strict=True):
        without = fit_given(X, y, **settings).forget([row])
        np.testing.assert_allclose(mean, without.predict(query[None])[0], atol=1e-9)


def test_an_input_that_the_trend_carries_is_important():
    X, rng = make_data(1500)
    y = np.sin(20.0 * X[:, 0] ** 2) + 3.0 * X[:, 1] + 0.1 * rng.normal(size=1500)
    model = regressor(effort__n_points=150).fit(X, y)
    # The metric hardly sees it: what relevance_ went by.
    assert np.all(model.lengthscales_[:, 1] > 5.0 * model.lengthscales_[:, 0])
    found = model.importance()
    assert list(found.order) == [1, 0, 2]
    # Shuffling costs twice the variance that an additive input explains.
    expected = 2.0 * np.array([np.var(np.sin(20.0 * X[:, 0] ** 2)), 3.0, 0.0]) / np.var(y)
    assert np.all(np.abs(found.values - expected) < 3.0 * found.standard_errors + 0.02)


def test_standard_errors_are_those_of_repeated_samples():
    X, rng = make_data(4000, 2)
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=4000)
    several = [
        fit_given(X[part], y[part]).importance(n_points=200)
        for part in np.split(rng.permutation(4000), 10)
    ]
    spread = np.std([found.values for found in several], axis=0, ddof=1)
    claimed = np.mean([found.standard_errors for found in several], axis=0)
    # Values that are given to rows vary too, which adds to what rows alone tell.
    assert np.all((0.5 * spread < claimed) & (claimed < 2.0 * spread))


def test_ranking_agrees_with_permutation_on_held_out_rows():
    X, y = make_friedman1(1500, n_features=8, noise=1.0, random_state=0)
    model = regressor(effort__n_points=150).fit(X[:1000], y[:1000])
    held_out = permutation_importance(model, X[1000:], y[1000:], n_repeats=5, random_state=0)
    found = model.importance()
    expected = np.argsort(-held_out.importances_mean)
    # The third and the fifth input explain nearly the same variance, 2.2 and 2.1.
    assert list(found.order[:3]) == list(expected[:3])
    assert set(found.order[:5]) == set(expected[:5])
    np.testing.assert_allclose(found.values, held_out.importances_mean, atol=0.1)
    assert np.all(np.abs(found.values[5:]) < 0.03)


@pytest.mark.filterwarnings("ignore:.* rows are copies of others")
@pytest.mark.parametrize("name", ["yacht", "boston", "concrete", "kin8nm", "powerplant", "protein"])
def test_ranking_agrees_on_real_tables(name):
    data = load_dataset(name, data_folder())
    train, test = split(len(data.X), 10)
    X, y = data.X[train[:2000]], data.y[train[:2000]]
    model = LSGPRegressor(
        kernel="matern32",
        effort=Effort("balanced" if name == "yacht" else "fast", n_models=1, n_points=100),
        n_neighbors=64,
        random_state=0,
    ).fit(X, y)
    permuted = permutation_importance(
        model, data.X[test[:500]], data.y[test[:500]], n_repeats=10, random_state=0
    )
    held_out, found = permuted.importances_mean, model.importance()
    # 51 rows of boston, held out, do not tell its three strongest inputs apart.
    alike = 0.4 if name == "boston" else 0.9
    assert held_out[found.order[0]] >= alike * held_out.max()
    assert len(set(found.order[:3]) & set(np.argsort(-held_out)[:3])) >= 2
    # Of the six inputs of yacht, 31 rows held out tell but one apart from the others. Of four, two
    # that are as important as each other may be exchanged, which is .8.
    assert spearmanr(found.values, held_out)[0] > (0.7 if name == "yacht" else 0.79)
    # No two inputs are ordered against each other, each time by more than twice their errors.
    surely_less = (
        values[:, None] + 2.0 * np.hypot(errors[:, None], errors) < values
        for values, errors in (
            (found.values, found.standard_errors),
            (held_out, permuted.importances_std),
        )
    )
    assert not np.any(next(surely_less).T & next(surely_less))


def test_all_inputs_that_a_column_became_are_shuffled_together():
    rng = np.random.default_rng(0)
    colors = rng.choice(["red", "green", "blue", "black"], 400)
    frame = pd.DataFrame({"color": colors, "noise": rng.normal(size=400)})
    y = frame["color"].map({"red": 0.0, "green": 3.0, "blue": -2.0, "black": 1.0}).to_numpy()
    found = fit_given(frame, y + 0.05 * rng.normal(size=400)).importance()
    # Values of another row cost twice the variance, all of which is the color's.
    assert found.values[0] == pytest.approx(2.0, abs=0.3)
    assert abs(found.values[1]) < 0.02


def test_importance_is_the_same_every_time_and_on_any_number_of_threads():
    X, rng = make_data()
    model = fit_given(X, X[:, 0] + 0.1 * rng.normal(size=len(X)))
    first = model.importance()
    for other in (model.importance(), model.set_params(n_jobs=3).importance()):
        np.testing.assert_array_equal(first.values, other.values)
        np.testing.assert_array_equal(first.standard_errors, other.standard_errors)


def test_constant_inputs_and_single_rows_have_no_importance():
    X, _ = make_data()
    X[:, 2] = 1.0
    for rows, y, nothing in (
        (np.ones((9, 2)), np.arange(9.0), [0, 1]),
        (X * 1e200, X[:, 0], [2]),
        (X[:1], [1.0], [0, 1, 2]),
        (X[:2], [1.0, 2.0], [2]),
    ):
        model = LSGPRegressor(objective=None).fit(rows, y)
        found = model.importance()
        np.testing.assert_array_equal(found.values[nothing], 0.0)
        assert np.isfinite(found.standard_errors).all()
        assert "importance" in model.describe()


def test_a_description_does_not_fail_where_predictions_do():
    X, _ = make_data(300)
    model = fit_given(X, X[:, 0], localizer="rectangular", n_neighbors=1000)
    model.set_params(memory_budget=1000)
    with pytest.raises(ValueError, match="memory_budget=1000 bytes"):
        model.importance()
    assert "importance: not known, because its predictions failed: memory" in model.describe()
    assert "importance: not known" in model._repr_html_()


# -- effects -------------------------------------------------------------------------------------


def test_effects_of_an_additive_function_are_its_parts():
    X, _ = make_data(600)
    model = fit_given(X, np.sin(3.0 * X[:, 0]) - 2.0 * X[:, 1], noise=1e-6)
    wave, slope, nothing = model.effects([0, 1, 2])
    part = np.sin(3.0 * wave.grid)
    shift = np.mean(wave.effect - part)
    # Beside what the ends of the data do not say.
    np.testing.assert_allclose(wave.effect, part + shift, atol=0.03)
    np.testing.assert_allclose(slope.effect, -2.0 * (slope.grid - X[:, 1].mean()), atol=0.03)
    assert [e.direction for e in (wave, slope, nothing)] == ["bends", "falls", "flat"]
    assert np.ptp(nothing.effect) < 0.03
    assert np.all(np.diff(slope.grid) > 0)


def test_effects_do_not_ask_where_no_data_are(monkeypatch):
    # The inputs are nearly the same; a partial dependence would leave the diagonal.
    rng = np.random.default_rng(0)
    one = rng.uniform(-1.0, 1.0, 500)
    X = np.column_stack([one, one + 0.02 * rng.normal(size=500)])
    model = fit_given(X, X[:, 0], noise=1e-6)
    asked = []
    kind = type(model.ensemble_.heaviest.transform)
    original = kind.transform

    def watch(transform, X, *more):
        asked.append(np.array(X))
        return original(transform, X, *more)

    monkeypatch.setattr(kind, "transform", watch)
    model.effects([0, 1])
    moved = np.concatenate(asked)
    assert len(moved) == 2 * 2 * 500
    assert np.abs(moved[:, 0] - moved[:, 1]).max() < 0.35


def test_effects_of_inputs_with_few_values():
    X, rng = make_data()
    X[:, 0] = rng.integers(0, 2, len(X))
    X[:, 1] = 4.0
    model = fit_given(X, 5.0 * X[:, 0], noise=1e-6)
    switch, constant = model.effects([0, 1])
    np.testing.assert_array_equal(switch.grid, [0.0, 1.0])
    assert switch.effect[1] - switch.effect[0] == pytest.approx(5.0, abs=0.02)
    assert constant.direction == "flat"
    assert len(constant.grid) == 1
    assert len(set(sketch(constant))) == 1


def test_effects_by_name_of_a_target_by_name_in_its_units():
    X, _ = make_data()
    frame = pd.DataFrame(X, columns=["east", "north", "depth"])
    y = pd.DataFrame({"a": X[:, 0], "b": 1000.0 * X[:, 2]})
    model = fit_given(frame, y, noise=1e-6)
    (effect,) = model.effects(["depth"], target="b")
    assert (effect.name, effect.input, effect.direction) == ("depth", 2, "rises")
    assert np.ptp(effect.effect) == pytest.approx(1000.0 * np.ptp(X[:, 2]), rel=0.02)
    with pytest.raises(ValueError, match=r"^'dept' is not an input of the model\. Its inputs"):
        model.effects(["dept"])
    assert next(e.name for e in model.effects(target="b")) in {"depth", "east"}


def test_band_is_the_error_of_the_curve():
    rng = np.random.default_rng(1)
    curves = []
    for _ in range(12):
        X = rng.uniform(-1.0, 1.0, (150, 2))
        # The effect of the first depends on the second: rows disagree.
        model = fit_given(X, X[:, 0] * (1.0 + 2.0 * X[:, 1]), noise=1e-6)
        curves.append(model.effects([0])[0])
    ends = np.array([curve.effect[-1] - curve.effect[0] for curve in curves])
    claimed = np.mean([np.hypot(c.standard_error[0], c.standard_error[-1]) for c in curves])
    assert 0.4 < claimed / ends.std(ddof=1) < 2.5
