# SPDX-License-Identifier: BSD-3-Clause
"""Functions without noise: less of it than its range allows for, and intervals of the function."""

import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from lsgp import LSGPRegressor
from lsgp.tuning import outcome, search
from lsgp.tuning.calibration import ScaleAndShape
from lsgp.tuning.functions import judging
from lsgp.tuning.functions.judging import Tuned
from lsgp.tuning.functions.plan import N_HALF_PROVEN_UNSEEN
from lsgp.tuning.parameters import SHARED_BOUNDS
from lsgp.tuning.plan import BAD_LOSS, SMALLEST_ODDS, integrated_share
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages import noiseless
from lsgp.tuning.stages.boost import Boost
from lsgp.tuning.stages.first import First
from lsgp.tuning.stages.integrate import Integrate
from lsgp.tuning.stages.likely import Likely
from lsgp.tuning.stages.noiseless import Noiseless, _finished, odds_of

FLOOR = math.exp(SHARED_BOUNDS["noise_variance"][0])


def function(X):
    return np.exp(X[:, 0]) * np.cos(2.0 * X[:, 1]) + X[:, 2]


def regressor(**settings):
    few = {"kernel": "rbf", "input_transform": "standardize", "n_tuning_points": 40}
    return LSGPRegressor(**{**few, "n_models": 2, "random_state": 0, **settings})


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


def test_models_of_a_function_have_less_noise_than_the_floor(fitted):
    assert 0.0 < fitted.model_.noise_variance < 1e-3 * FLOOR
    assert not fitted.ensemble_.shape.is_noisy
    assert fitted.describe().count("no noise found") == 1


def test_less_noise_than_the_floor_makes_errors_smaller(fitted, data):
    X, queries, _ = data
    floor = regressor(noise_variance=2.0 * FLOOR).fit(X, function(X))
    assert floor.ensemble_.shape.is_noisy  # a noise that is given is there
    error = [np.std(m.predict(queries) - function(queries)) for m in (fitted, floor)]
    assert error[0] < 0.8 * error[1]


def test_intervals_of_a_function_cover_it(fitted, data):
    low, high = fitted.predict_interval(data[1], level=0.9, kind="latent")
    truth = function(data[1])
    assert np.mean((low <= truth) & (truth <= high)) > 0.8


@pytest.fixture
def short(monkeypatch):
    """Only the stages that functions without noise need."""
    monkeypatch.setattr(search, "STAGES", (First(), Likely(), Noiseless()))


def test_intervals_of_a_smooth_function_are_no_wider_than_its_errors(short):
    # Folds were solved with another noise than what they calibrate: standardized errors of .35.
    rng = np.random.default_rng(0)
    X, queries = rng.uniform(size=(150, 6)), rng.uniform(size=(300, 6))
    model = regressor().fit(X, (X**2).sum(axis=1))
    mean, std = model.predict(queries, return_std=True)
    z = ((queries**2).sum(axis=1) - mean) / std
    assert 0.5 < math.sqrt(np.mean(z**2)) < 2.0


def predictions_of_folds(monkeypatch, change=lambda found: found):
    """What folds say in the fits to come, as changed, and what is judged."""
    told, judged, predict, add = [], [], judging._predict_unseen, noiseless._add

    def watched(*arguments):
        told.append(change(predict(*arguments)))
        return told[-1]

    def adding(problem, found, runner, those):
        judged.extend(those)
        add(problem, found, runner, those)

    monkeypatch.setattr(judging, "_predict_unseen", watched)
    monkeypatch.setattr(noiseless, "_add", adding)
    return told, judged


def test_what_a_fold_cannot_be_predicted_by_is_left_out(data, short, monkeypatch):
    # No number is less than none, and all of the weight was that of such a model.
    def break_first(found):
        predicted, variance = found
        mean = np.where(np.arange(len(predicted.mean))[:, None] < 5, np.nan, predicted.mean)
        return replace(predicted, mean=mean), variance

    _, judged = predictions_of_folds(monkeypatch, break_first)
    model = regressor().fit(data[0], function(data[0]))
    assert not judged
    assert np.isfinite(model.predict(data[1])).all()


def test_a_signal_that_is_given_is_not_widened_by_folds_alone(data, short, monkeypatch):
    # The folds had a factor that the model did not get.
    told, judged = predictions_of_folds(monkeypatch)
    regressor(signal_variance=1.0).fit(data[0], function(data[0]))
    assert judged
    assert [variance for _, variance in told] == [1.0] * len(told)
    assert {each.contender.model.signal_variance for each in judged} == {1.0}


def test_models_with_noise_have_no_share_where_none_is_found(fitted):
    assert integrated_share(120) > 0
    assert not any(one.is_integrated for one in fitted.ensemble_.models)


def test_rows_that_were_not_seen_set_the_scale_and_nothing_else_is_searched(data, monkeypatch):
    # Whatever leave-one-out says: it was half of the errors of other rows.
    seen, numbers, search_once, heard = [], [], search._search, []
    trees, tune_once = [], search._tune_once

    def calibrate(predicted, observed, n_half_proven, has_contrast):
        seen.append((len(observed), n_half_proven, has_contrast))
        return ScaleAndShape(7.0)

    def count(problem, comparison, found, watch, number=0):
        numbers.append(number)
        is_complete = search_once(problem, comparison, found, watch, number)
        trees.append(found.boosted)
        return is_complete

    monkeypatch.setattr(outcome, "calibrate_combination", calibrate)
    monkeypatch.setattr(search, "_search", count)
    monkeypatch.setattr(search, "_tune_once", lambda problem, _: tune_once(problem, heard.append))
    monkeypatch.setattr(search, "STAGES", (First(), Likely(), Noiseless(), Boost()))
    monkeypatch.setattr(TuningProblem, "admits_boosting", True)
    monkeypatch.setattr(TuningProblem, "n_searches", 3)
    model = regressor().fit(data[0], function(data[0]))
    assert seen == [(120, N_HALF_PROVEN_UNSEEN, False)]
    assert model.ensemble_.scale_factor == 7.0
    assert numbers == [0]
    assert heard[-1] == 1.0
    assert trees == [None]  # they would have a share by leave-one-out, and calibrate by it


@pytest.mark.parametrize(("n", "noise"), [(220, 0.0), (80, 0.2)])
def test_searches_that_find_the_same_are_calibrated_as_one(n, noise, monkeypatch):
    # Without noise, or beside models that are integrated over, their mean was calibrated as any.
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 2))
    y = np.sin(3.0 * X[:, 0]) * np.cos(2.0 * X[:, 1]) + noise * rng.normal(size=n)
    monkeypatch.setattr(search, "STAGES", (First(), Integrate(), Likely(), Noiseless()))
    monkeypatch.setattr(search, "STAGES_AGAIN", (First(),))
    monkeypatch.setattr(search, "STREAMS_OF_SEARCH", 0)  # the same rows
    fitted = []
    for number in (1, 2):
        monkeypatch.setattr(TuningProblem, "n_searches", number)
        fitted.append(regressor().fit(X, y).ensemble_)
    assert abs(fitted[0].scale_factor - 1.0) > 1e-4
    assert fitted[1].scale_factor == pytest.approx(fitted[0].scale_factor, rel=1e-6)
    assert any(one.is_integrated for one in fitted[1].models) == (noise > 0)


def test_without_a_usable_model_of_a_function_others_have_all_of_the_weight(data, monkeypatch):
    # No weights were left at all.
    class Spoil(Noiseless):
        def run(self, problem, found, runner):
            super().run(problem, found, runner)
            assert found.unseen is not None
            for contender, _ in found.likely:
                object.__setattr__(contender.candidate, "loss", BAD_LOSS)

    monkeypatch.setattr(search, "STAGES", (First(), Likely(), Spoil()))
    model = regressor().fit(data[0], function(data[0]))
    assert model.tuning_.weights.sum() == pytest.approx(1.0)
    assert model.model_.noise_variance >= 0.99 * FLOOR


def test_bends_that_are_less_likely_than_none_are_left_out():
    def tuned(space, kernel, log_evidence, is_bent):
        model = SimpleNamespace(kernel=kernel)
        return Tuned(space, SimpleNamespace(model=model, log_evidence=log_evidence), is_bent)

    one, other = object(), object()
    plain = tuned(one, "rbf", 5.0, False)
    kept = [plain, tuned(one, "matern52", 4.0, True), tuned(other, "rbf", 3.0, True)]
    assert _finished([*kept, tuned(one, "rbf", 4.9, True)]) == kept
    better = tuned(one, "rbf", 5.1, True)
    assert _finished([plain, better]) == [plain, better]


def test_a_kernel_that_is_much_less_likely_still_has_a_say():
    # By the evidence itself, a gap of 20 is one in 500 million.
    odds = odds_of([-20.0, 0.0, -100.0], 100)
    assert odds[1] == 1.0
    assert 0.1 < odds[0] < 0.5
    assert odds[2] < SMALLEST_ODDS
    # A gap that grows with the rows says no more.
    np.testing.assert_allclose(odds_of([-120.0, 0.0, -600.0], 600), odds)


def test_noise_that_is_there_is_found(data):
    X, _, noise = data
    model = regressor().fit(X, function(X) + 0.05 * noise)
    assert model.ensemble_.shape.is_noisy
    assert all(one.model.noise_variance > FLOOR for one in model.ensemble_.chosen)
    assert "no noise" not in model.describe()
