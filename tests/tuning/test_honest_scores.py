# SPDX-License-Identifier: BSD-3-Clause
"""The score that is told is that of the model that is returned."""

import re

import numpy as np
import pytest
from untuned import made

from lsgp import LSGPClassifier
from lsgp.solvers.log_odds import N_FOLDS, logistic_held_out
from lsgp.tuning.log_odds import RIDGES, Logistic

QUICK = {"random_state": 0, "effort": "fast", "input_transform": "standardize"}


def with_large_errors(n, seed=0):
    """A fifth of the rows has errors that are fifteen times as large."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    error = np.where(rng.random(n) < 0.2, 1.5, 0.1) * rng.normal(size=n)
    return X, np.sin(3.0 * X[:, 0]) * np.cos(2.0 * X[:, 1]) + error


def described_crps(model):
    return float(re.search(r"leave-one-out CRPS: ([\d.]+)", model.describe())[1])


def test_regressors_tell_the_score_after_calibration():
    X, y = with_large_errors(800)
    model = made(kernel="matern32", **QUICK).fit(X, y)
    left_out = model.loo().calibration.crps
    assert model.tuning_.loss * y.std() == pytest.approx(left_out, rel=1e-3)
    assert described_crps(model) == pytest.approx(left_out, rel=1e-3)


def test_rows_of_known_noise_are_judged_with_their_own():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (800, 2))
    noise = np.where(rng.random(800) < 0.5, 1e-3, 1.0)
    y = np.sin(3.0 * X[:, 0]) + np.sqrt(noise) * rng.normal(size=800)
    model = made(kernel="matern32", hyperparameters__scale="global", **QUICK)
    model.fit(X, y, noise_variance=noise)
    left_out = model.loo().calibration.crps
    assert model.tuning_.loss * y.std() == pytest.approx(left_out, rel=0.01)


def test_new_rows_are_predicted_as_well_as_was_told():
    X, y = with_large_errors(800)
    model = made(kernel="matern32", **QUICK).fit(X, y)
    fresh, observed = with_large_errors(4000, seed=1)
    crps = model.predict_distribution(fresh).crps(observed).mean()
    assert described_crps(model) == pytest.approx(crps, rel=0.12)


def test_score_is_that_of_all_members():
    """Also of an average over the posterior, and of exact and local models together."""
    X, y = with_large_errors(120)
    model = made(**QUICK).fit(X, y)
    assert len(model.tuning_.chosen) > 2
    left_out = model.loo().calibration.crps
    assert model.tuning_.loss * y.std() == pytest.approx(left_out, rel=1e-3)


def two_apart(n, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    X[:, 0] += 3.0 * y
    return X, y


def note_logistic(monkeypatch):
    """A list that fits fill: the problem, the model and what came of it, for each judged."""
    judged, predict = [], Logistic.predict

    def note(family, problem, spec, job):
        judged.append((problem, spec, predict(family, problem, spec, job)))
        return judged[-1][2]

    monkeypatch.setattr(Logistic, "predict", note)
    return judged


def test_the_ridge_is_that_of_the_least_weighted_loss(monkeypatch):
    """Rows of hardly any weight, whose labels are noise, do not choose it."""
    judged, rng = note_logistic(monkeypatch), np.random.default_rng(0)
    X, y = two_apart(240, 0)
    y[:180] = rng.integers(0, 2, 180)
    weight = np.where(np.arange(240) < 180, 1e-3, 1.0)
    LSGPClassifier(random_state=0, effort="fast").fit(X, y, sample_weight=weight)
    assert judged
    for problem, spec, found in judged:
        rows, labels = problem.hold_out.targets, problem.data.labels
        folds = problem.hold_out.folds(len(X), N_FOLDS)
        losses = [
            np.average(
                labels.losses(
                    logistic_held_out(spec.space.X, labels.known, ridge, rows, folds), rows
                ),
                weights=weight[rows],
            )
            for ridge in RIDGES
        ]
        assert found.loss == pytest.approx(min(losses))


def test_labels_are_judged_by_their_weights(monkeypatch):
    judged = note_logistic(monkeypatch)
    weight = np.random.default_rng(0).uniform(0.1, 5.0, 150)
    LSGPClassifier(random_state=0, effort="fast").fit(*two_apart(150, 0), sample_weight=weight)
    assert judged
    for problem, _, found in judged:
        rows, labels = problem.hold_out.targets, problem.data.labels
        losses = -found.log_proba[np.arange(len(rows)), labels.codes[rows]]
        assert found.loss == pytest.approx(np.average(losses, weights=weight[rows]))


def test_classifiers_tell_the_log_loss_of_the_whole_pool():
    """Beside local models it has logistic regression and Gaussian process classification."""
    fresh, labels = two_apart(4000, 99)
    told, seen = [], []
    for seed in range(4):
        model = LSGPClassifier(random_state=0, effort="fast").fit(*two_apart(250, seed))
        told.append(model.tuning_.loss)
        seen.append(-np.mean(model.predict_log_proba(fresh)[np.arange(4000), labels]))
    # 125 rows judge: their mean loss is known to a fifth, of four samples to a tenth.
    assert np.mean(told) == pytest.approx(np.mean(seen), rel=0.25)
