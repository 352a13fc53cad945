# SPDX-License-Identifier: BSD-3-Clause
"""Scorers score what scikit-learn cross-validates, whatever stands around the estimator."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_data import make_data
from untuned import made

from lsgp.metrics import coverage_scorer, crps_scorer, log_density_scorer, make_coverage_scorer

X, Y = make_data(200, 2)


def estimator(**settings):
    return made(objective=None, n_neighbors=20, **settings)


def test_scores_are_those_of_the_calibration():
    model = estimator().fit(X[:150], Y[:150])
    found = model.calibration(X[150:], Y[150:])
    held_out = X[150:], Y[150:]
    assert crps_scorer(model, *held_out) == -found.crps
    assert log_density_scorer(model, *held_out) == -found.nll
    assert coverage_scorer(model, *held_out) == found.coverage_at(0.9)
    assert make_coverage_scorer(0.5)(model, *held_out) == found.coverage_at(0.5)
    away = make_coverage_scorer(0.5, distance=True)(model, *held_out)
    assert away == -abs(found.coverage_at(0.5) - 0.5)


def test_cross_validation_takes_them():
    scorers = {"crps": crps_scorer, "density": log_density_scorer, "covers": coverage_scorer}
    scores = cross_validate(estimator(), X, Y, cv=3, scoring=scorers)
    assert np.all(scores["test_crps"] < 0)
    assert np.all((scores["test_covers"] > 0.5) & (scores["test_covers"] <= 1.0))


def test_pipelines_and_searches_are_scored_as_what_is_inside():
    alone = cross_val_score(estimator(), X, Y, cv=3, scoring=crps_scorer)
    around = make_pipeline(StandardScaler(), estimator())
    found = cross_val_score(around, X, Y, cv=3, scoring=crps_scorer)
    np.testing.assert_allclose(found, alone, rtol=1e-9)
    name = "lsgpregressor__hyperparameters__noise_variance"
    search = GridSearchCV(
        make_pipeline(estimator()), {name: [1e-2, 10.0]}, scoring=crps_scorer, cv=3
    ).fit(X, Y)
    assert search.best_params_ == {name: 1e-2}
    assert crps_scorer(search, X, Y) == crps_scorer(search.best_estimator_[-1], X, Y)


def test_several_targets_are_averaged():
    both = np.column_stack([Y, Y])
    expected = crps_scorer(estimator().fit(X, Y), X, Y)
    assert crps_scorer(estimator().fit(X, both), X, both) == pytest.approx(expected)


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(TypeError, match="LinearRegression has no predict_distribution"):
        crps_scorer(LinearRegression().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match=r"level=90 is not between 0 and 1\."):
        make_coverage_scorer(90)
