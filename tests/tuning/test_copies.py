# SPDX-License-Identifier: BSD-3-Clause
"""Weights count observations, and copies of rows are observations that prove nothing."""

import numpy as np
import pytest
from small_data import make_data
from tuned import regressor

from lsgp import Hyperparameters, LSGPClassifier, LSGPRegressor
from lsgp.method.localizers import LOCALIZERS
from lsgp.tuning.hold_out import leave_one_out


def parts_of(model, queries):
    predicted = model.predict_distribution(queries)
    return predicted.mean, predicted.scale, predicted.dof


@pytest.mark.parametrize("settings", [{}, {"objective": None}, {"input_transform": "half-rank"}])
def test_no_weights_are_weights_of_one_to_the_bit(settings):
    X, y = make_data(90)
    queries = make_data(40, seed=5)[0]
    plain = regressor(**settings).fit(X, y)
    ones = regressor(**settings).fit(X, y, sample_weight=np.ones(90))
    np.testing.assert_array_equal(parts_of(plain, queries), parts_of(ones, queries))
    assert plain.describe() == ones.describe()


def test_labels_without_weights_have_weights_of_one_to_the_bit():
    X, y = make_data(90)
    both = [
        LSGPClassifier(effort="fast", random_state=0).fit(X, y > 0, sample_weight=weight)
        for weight in (None, np.ones(90))
    ]
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in both))


@pytest.mark.parametrize("localizer", LOCALIZERS)
@pytest.mark.parametrize("is_given", [True, False])
def test_a_weight_of_two_is_two_rows(localizer, is_given):
    """Where all rows are neighbors, nothing is tuned, and the signal variance is global.

    A local one is estimated with as many degrees of freedom as there are rows.
    """
    X, y = make_data(50)
    queries = make_data(40, seed=5)[0]
    twice = np.arange(50) % 3 == 0
    numbers = {"lengthscale": 0.7, "signal_variance": 0.8, "noise_variance": 0.05}
    model = LSGPRegressor(
        objective=None,
        n_neighbors=100,
        localizer=localizer,
        hyperparameters=Hyperparameters(scale="global", **(numbers if is_given else {})),
    )
    weighted = parts_of(model.fit(X, y, sample_weight=1.0 + twice), queries)
    rows = np.concatenate([np.arange(50), np.flatnonzero(twice)])
    repeated = parts_of(model.fit(X[rows], y[rows]), queries)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-8, atol=1e-10)


def test_copies_are_observations_and_users_see_them_all(tmp_path):
    X, y = make_data(60)
    again = np.concatenate([np.arange(60), np.arange(0, 60, 3)])
    model = regressor().fit(X[again], y[again])
    model.save(tmp_path / "m.lsgp")
    for own in (model, LSGPRegressor.load(tmp_path / "m.lsgp")):
        assert own.ensemble_.n_rows == len(own.fitted_[0].problem.X) == 80
        np.testing.assert_allclose(own.loo().observed, y[again], rtol=1e-12)
    model.forget(np.arange(60, 80))
    assert model.ensemble_.n_rows == 60


def test_a_row_is_predicted_without_its_copies():
    X, _ = make_data(60)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=60)  # nothing can be learnt but from copies
    three = np.tile(np.arange(60), 3)
    model = regressor(objective=None).fit(X[three], noise[three])
    found = model.loo()
    assert found.calibration.rmse > 0.8 * noise.std()
    np.testing.assert_allclose(found.predicted.mean[:60], found.predicted.mean[60:120], rtol=1e-9)
    explained = model.explain(X[:5], exclude=np.arange(5))
    np.testing.assert_allclose(explained.predicted.mean, found.predicted.mean[:5], rtol=1e-9)
    for q in range(5):
        seen = explained.rows[q][explained.rows[q] >= 0]
        assert not np.any((X[three][seen] == X[q]).all(axis=1))


def test_copies_do_not_make_tuning_believe_in_itself():
    X, _ = make_data(60)
    noise = np.random.default_rng(1).normal(size=60)
    three = np.tile(np.arange(60), 3)
    model = regressor().fit(X[three], noise[three])
    new = np.random.default_rng(2).normal(size=400)
    std = model.predict_distribution(make_data(400, seed=9)[0]).std
    assert 0.6 * new.std() < std.mean() < 1.6 * new.std()


def test_replicates_with_other_targets_are_no_copies():
    X, y = make_data(60)
    twice = np.repeat(np.arange(60), 2)
    targets = y[twice] + 0.1 * np.random.default_rng(0).normal(size=120)
    model = regressor(objective=None).fit(X[twice], targets)
    assert model.ensemble_.left_out_together() is None


def test_rows_that_are_left_out_together_count_as_one():
    """Weights of models would be trusted too much, as if each copy were an observation."""
    targets = np.arange(12, dtype=np.int32)
    block = np.repeat([0, 1, 2, -1], 3).astype(np.int32)
    assert leave_one_out(targets, targets, None).n_independent == 12
    assert leave_one_out(targets, targets, block).n_independent == 6
