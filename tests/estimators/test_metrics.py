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


@pytest.fixture(scope="module")
def data():
    return make_data(200, 2)


def estimator(**settings):
    return made(objective=None, n_neighbors=20, **settings)


def test_scores_are_those_of_the_calibration(data):
    X, y = data
    model = estimator().fit(X[:150], y[:150])
    found = model.calibration(X[150:], y[150:])
    held_out = X[150:], y[150:]
    assert crps_scorer(model, *held_out) == -found.crps
    assert log_density_scorer(model, *held_out) == -found.nll
    assert coverage_scorer(model, *held_out) == found.coverage_at(0.9)
    assert make_coverage_scorer(0.5)(model, *held_out) == found.coverage_at(0.5)
    away = make_coverage_scorer(0.5, distance=True)(model, *held_out)
    assert away == -abs(found.coverage_at(0.5) - 0.5)


def test_cross_validation_takes_them(data):
    scores = cross_validate(
        estimator(),
        *data,
        cv=3,
        scoring={"crps": crps_scorer, "density": log_density_scorer, "covers": coverage_scorer},
    )
    assert np.all(scores["test_crps"] < 0)
    assert np.all((scores["test_covers"] > 0.5) & (scores["test_covers"] <= 1.0))


def test_pipelines_and_searches_are_scored_as_what_is_inside(data):
    X, y = data
    alone = cross_val_score(estimator(), X, y, cv=3, scoring=crps_scorer)
    around = make_pipeline(StandardScaler(), estimator())
    np.testing.assert_allclose(
        cross_val_score(around, X, y, cv=3, scoring=crps_scorer), alone, rtol=1e-9
    )
    search = GridSearchCV(
        make_pipeline(estimator()),
        {"lsgpregressor__hyperparameters__noise_variance": [1e-2, 10.0]},
        scoring=crps_scorer,
        cv=3,
    ).fit(X, y)
    assert search.best_params_ == {"lsgpregressor__hyperparameters__noise_variance": 1e-2}
    assert crps_scorer(search, X, y) == crps_scorer(search.best_estimator_[-1], X, y)


def test_several_targets_are_averaged(data):
    X, y = data
    model = estimator().fit(X, np.column_stack([y, y]))
    one = estimator().fit(X, y)
    both = np.column_stack([y, y])
    assert crps_scorer(model, X, both) == pytest.approx(crps_scorer(one, X, y))


def test_what_cannot_be_scored_is_refused(data):
    with pytest.raises(TypeError, match="LinearRegression has no predict_distribution"):
        crps_scorer(LinearRegression().fit(*data), *data)
    with pytest.raises(ValueError, match=r"level=90 is not between 0 and 1\."):
        make_coverage_scorer(90)
