# SPDX-License-Identifier: BSD-3-Clause
"""What follows from the objective: scales after squares, and the paper's as it is."""

import numpy as np
import pytest
from small_data import make_data
from tuned import regressor

from lsgp.backends import reference
from lsgp.method.calibration import calibrate
from lsgp.method.contract import LocalModel, Predictions
from lsgp.method.parameters import SHARED_BOUNDS, Parameters


@pytest.mark.parametrize("scale", ["local", "global"])
def test_intervals_cover_after_tuning_by_squares(scale):
    X, y = make_data(300)
    queries, observed = make_data(400, seed=3)
    model = regressor(
        objective="squared_error", hyperparameters__scale=scale, effort__n_models=1
    ).fit(X, y)
    low, high = model.predict_interval(queries, 0.9)
    assert 0.82 < np.mean((low <= observed) & (observed <= high)) < 0.97


@pytest.mark.parametrize("scale_dof", [np.inf, 5.0])
@pytest.mark.parametrize("tiny", [1e-2, 1e-8])
def test_calibration_finds_a_scale_far_above_the_range_of_the_descent(scale_dof, tiny):
    # Errors of size 1, of which the model believes that they are tiny.
    rng = np.random.default_rng(0)
    n = 500
    y = rng.normal(size=(n, 1))
    model = LocalModel("rbf", "smooth", np.ones(1), noise_variance=tiny, scale_dof=scale_dof)
    predictions = Predictions(
        np.zeros((n, 1)),
        np.full(n, tiny),
        np.ones((n, 1)),
        np.full(n, scale_dof),
        np.zeros(n, np.int32),
    )
    signal_range = Parameters(frozenset(), is_isotropic=False).signal_range(model)
    changed, calibrated = calibrate(model, predictions, y, np.ones(n), frozenset(), signal_range)
    std = np.sqrt(calibrated.scale[:, 0] * (calibrated.variance + tiny))
    np.testing.assert_allclose(std, 1.0, rtol=0.1)
    if tiny == 1e-8:
        assert changed.signal_variance > np.exp(SHARED_BOUNDS["signal_variance"][1])


def test_the_paper_s_objective_reports_itself():
    settings = {"trend": "none", "localizer": "epanechnikov", "hyperparameters__scale": "global"}
    settings |= {"kernel": "auto", "effort__n_points": 20, "effort__n_models": 8}
    paper = regressor(objective="marginal_likelihood", **settings).fit(*make_data(120))
    tuning, (fitted,) = paper.tuning_, paper.fitted_
    problem, rows = fitted.problem, np.arange(120, dtype=np.int32)
    distances = (((problem.X[:, None] - problem.X[None]) / fitted.model.lengthscale) ** 2).sum(
        axis=2
    )
    np.fill_diagonal(distances, np.inf)
    neighbors = np.argsort(distances, axis=1)[:, :30].astype(np.int32)
    own = reference.marginal_likelihood(problem, rows, neighbors).loss
    assert tuning.loss == pytest.approx(own.mean(), rel=1e-6)
    assert tuning.loss == min(candidate.loss for candidate in tuning.candidates)
    assert "negative log marginal likelihood of neighborhoods per row" in paper.describe()
    assert "leave-one-out" not in paper.describe()
    assert paper.scale_factor_ == 1.0


def test_hyperparameters_at_a_bound_are_counted():
    parameters = Parameters(frozenset())
    inside = LocalModel("rbf", "smooth", np.ones(2), slope_variance=0.1, constant_variance=1.0)
    assert parameters.at_bounds(inside) == []
    low, high = np.exp(SHARED_BOUNDS["noise_variance"][0]), np.exp([-6.0, 7.0])
    at = inside.replace(noise_variance=float(low), lengthscale=high)
    assert parameters.at_bounds(at) == ["lengthscale", "lengthscale", "noise_variance"]
    assert parameters.cut_off(at) == ["lengthscale"]
    assert Parameters(frozenset({"lengthscale"})).cut_off(at) == []


def test_a_bound_that_cuts_is_warned_of_once(monkeypatch):
    monkeypatch.setattr(Parameters, "cut_off", lambda self, model: ["lengthscale"])
    monkeypatch.setattr(Parameters, "at_bounds", lambda self, model: ["lengthscale"])
    with pytest.warns(UserWarning, match="ended at a bound") as caught:
        model = regressor(effort__n_points=20, effort__n_models=1).fit(*make_data(60))
    (warning,) = caught
    assert str(warning.message) == (
        "Tuning ended at a bound of lengthscale in 1 of 1 models: the targets change faster, or "
        "differ more in size, than the ranges of hyperparameters allow for. Check the scaling of "
        "the inputs and targets, and how predictions do in loo()."
    )
    assert model.tuning_.at_bounds == {"lengthscale": 1}
