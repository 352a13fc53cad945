# SPDX-License-Identifier: BSD-3-Clause
"""A model that tunes and calibrates itself: how good it is, and what decides the result."""

import math
import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic, WhiteKernel
from small_data import make_data, smooth
from threadpoolctl import threadpool_limits
from tuned import assert_same_predictions, regressor
from untuned import made

from lsgp import LSGPRegressor
from lsgp.inputs.estimator_settings import ALL_OBJECTIVES
from lsgp.method.distribution import PredictiveDistribution


@pytest.fixture(scope="module")
def data():
    return make_data(150)


def fit_exact_gp(X, y):
    """The likelier of two exact GPs with a lengthscale per input, tuned with a restart."""
    fitted = []
    for family in (RBF(np.ones(X.shape[1])), Matern(np.ones(X.shape[1]), nu=2.5)):
        kernel = 1.0 * family + WhiteKernel(0.1)
        gp = GaussianProcessRegressor(
            kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0
        )
        with warnings.catch_warnings(), threadpool_limits(1):
            # An irrelevant input takes its lengthscale to the bound, which it should.
            warnings.simplefilter("ignore")
            fitted.append(gp.fit(X, y))
    return max(fitted, key=lambda gp: gp.log_marginal_likelihood_value_)


SMALL_PROBLEMS = {
    "smooth": (3, 0.1, lambda X: np.sin(3.0 * X[:, 0]) * np.cos(2.0 * X[:, 1])),
    "rough": (2, 0.2, lambda X: 3.0 * np.abs(X[:, 0] - 0.2) + 0.5 * np.sign(X[:, 1])),
    "additive": (4, 0.3, lambda X: np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2 + X[:, 2]),
}


@cache
def fit_default(name, n):
    """A default fit of so many rows, with those rows, and a thousand others."""
    d, noise, function = SMALL_PROBLEMS[name]
    rng = np.random.default_rng(list(SMALL_PROBLEMS).index(name))
    X = rng.uniform(-1.0, 1.0, (n + 1000, d))
    y = function(X) + noise * rng.normal(size=len(X))
    return LSGPRegressor(random_state=0).fit(X[:n], y[:n]), (X[:n], y[:n]), (X[n:], y[n:])


def test_default_beats_a_constant_and_knows_how_well():
    model, _, (X, y) = fit_default("smooth", 150)
    said = model.calibration(X, y)
    assert said.rmse < 0.35 * y.std()
    constant = PredictiveDistribution(np.full(len(y), y.mean()), np.full(len(y), y.std()))
    assert said.crps < 0.35 * constant.crps(y).mean()
    assert 0.85 < said.coverage_at(0.95) < 0.99


@pytest.mark.parametrize("n", [30, 150])
def test_default_is_as_good_as_an_exact_gp_on_small_data(n):
    log_ratios = []
    for name in SMALL_PROBLEMS:
        model, rows, (X, y) = fit_default(name, n)
        mean, std = fit_exact_gp(*rows).predict(X, return_std=True)
        exact = PredictiveDistribution(mean, std).crps(y).mean()
        log_ratios.append(math.log(model.calibration(X, y).crps / exact))
    assert math.exp(np.mean(log_ratios)) < 1.02
    # The smooth functions are what an exact GP assumes: to the letter, and everywhere.
    assert math.exp(max(log_ratios)) < 1.1


def test_irrelevant_inputs_fade():
    ratios = []
    for seed in range(4):
        model = regressor(effort__n_points=None).fit(*make_data(400, seed=seed))
        lengthscale = model.model_.lengthscale
        assert np.isfinite(lengthscale).all()
        assert abs(model.importance().values[2]) < 0.05
        ratios.append(lengthscale[2] / lengthscale[:2].max())
    assert np.mean(ratios) > 1.5


def test_result_is_reproducible_and_depends_on_random_state():
    X, y = make_data(400)
    first, again, other = (
        regressor(effort__n_points=50, random_state=state).fit(X, y) for state in (0, 0, 1)
    )
    assert_same_predictions(first, again, X)
    assert not np.array_equal(first.predict(X), other.predict(X))
    # The choice of the sample matters less than the noise of one observation, which is 0.1.
    assert np.sqrt(np.mean((first.predict(X) - other.predict(X)) ** 2)) < 0.04


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hyperparameters__lengthscale", 0.8),
        ("hyperparameters__lengthscale", [0.5, 1.0, 2.0]),
        ("hyperparameters__signal_variance", 2.5),
        ("hyperparameters__noise_variance", 0.03),
        ("localizer__decay", 0.4),
        ("localizer__decay", 0.0),
        ("hyperparameters__scale_dof", 7.0),
    ],
)
def test_what_is_given_stays_and_the_rest_is_tuned(data, name, value):
    settings = {"hyperparameters__scale": "local", "input_transform": "auto", name: value}
    model = regressor(**settings).fit(*data)
    start = made(objective=None, hyperparameters__scale="local").fit(*data).model_
    name = name.rpartition("__")[2].replace("decay", "localizer_decay")
    for fitted in model.fitted_:
        found = getattr(fitted.model, name)
        if name.endswith("variance"):  # in the units of the data
            found = found * model.target_scaler_.std[0] ** 2
        if name == "noise_variance":
            found = found * fitted.model.signal_variance
        np.testing.assert_allclose(found, value, rtol=1e-12)
        for other in ("lengthscale", "signal_variance", "noise_variance", "scale_dof"):
            if other != name:
                assert not np.array_equal(getattr(fitted.model, other), getattr(start, other))


def test_what_is_given_stays_when_more_neighbors_are_tried(data):
    settings = {
        "localizer__decay": 0.4,
        "hyperparameters__noise_variance": 0.05,
        "trend": (2.0, 0.3),
    }
    model = regressor(n_neighbors="auto", **settings).fit(*data)
    for candidate in model.tuning_.candidates:
        assert candidate.model.localizer_decay == 0.4
        own, unit = candidate.model, model.target_scaler_.std[0] ** 2
        assert own.noise_variance * own.signal_variance * unit == pytest.approx(0.05)
        assert (candidate.model.constant_variance, candidate.model.slope_variance) == (2.0, 0.3)


def test_with_everything_given_tuning_only_scores(data):
    model = regressor(
        hyperparameters__lengthscale=1.0,
        hyperparameters__signal_variance=1.0,
        hyperparameters__noise_variance=0.1,
        localizer__decay=1.0,
        hyperparameters__scale_dof=5.0,
        hyperparameters__scale="local",
        input_transform=None,
        trend=(1.0, 0.1),
    ).fit(*data)
    assert len(model.fitted_) == 1
    signal = model.model_.signal_variance * model.target_scaler_.std[0] ** 2
    assert signal == pytest.approx(1.0)
    assert model.model_.scale_dof == 5.0
    assert np.isfinite(model.tuning_.loss)


@pytest.mark.parametrize("scale", ["local", "global"])
@pytest.mark.parametrize("trend", ["none", "constant", "linear"])
def test_what_is_switched_off_stays_off(data, trend, scale):
    settings = {"trend": trend, "hyperparameters__scale": scale, "effort__n_points": 40}
    model = regressor(**settings).fit(*data).model_
    assert (model.constant_variance == 0.0) == (trend == "none")
    assert (model.slope_variance == 0.0) == (trend != "linear")
    assert math.isinf(model.scale_dof) == (scale == "global")


def test_kernel_object_that_the_core_knows_is_tuned(data):
    X, y = data
    shared = regressor(kernel=2.0 * Matern(1.0, nu=1.5) + WhiteKernel(0.5)).fit(X, y)
    assert shared.model_.kernel == "matern32"
    assert len(set(shared.model_.lengthscale)) == 1
    assert shared.model_.lengthscale[0] != 1.0
    assert shared.model_.noise_variance != 0.25
    separate = regressor(kernel=RBF(np.ones(3)) + WhiteKernel(0.5)).fit(X, y)
    assert len(set(separate.model_.lengthscale)) == 3
    for model in (shared, separate):
        assert model.loo().calibration.rmse < 0.4 * y.std()


def test_kernel_object_that_the_core_does_not_know_is_tuned():
    X, y = make_data(60)
    kernel = RationalQuadratic(0.1, 1.0)
    few = {"kernel": kernel, "n_neighbors": 15, "hyperparameters__scale": "global"}
    with pytest.warns(UserWarning, match="runs on the reference backend, which is much slower"):
        model = regressor(effort__n_points=15, **few).fit(X, y)
    assert model.model_.kernel.length_scale > 0.2
    assert kernel.length_scale == 0.1
    with pytest.warns(UserWarning, match="runs on the reference backend"):
        untuned = made(objective=None, **few).fit(X, y)
    assert model.loo().calibration.rmse < 0.7 * untuned.loo().calibration.rmse


@pytest.mark.parametrize("bandwidth", [0.9, 1e-6])
def test_a_fixed_bandwidth_is_kept(data, bandwidth):
    X, y = data
    settings = {"input_transform": "auto", "n_neighbors": "auto", "effort__n_points": 50}
    model = regressor(localizer__bandwidth=bandwidth, **settings).fit(X, y)
    assert model.n_neighbors_ is None
    assert all(fitted.model.bandwidth == bandwidth for fitted in model.fitted_)
    assert np.isfinite(model.predict(X, return_std=True)).all()


@pytest.mark.parametrize("objective", ALL_OBJECTIVES)
def test_every_objective_improves_on_the_start(data, objective):
    X, y = data
    few = {"effort__n_points": 20} if objective == "marginal_likelihood" else {}
    model = regressor(objective=objective, hyperparameters__scale="local", **few).fit(X, y)
    assert model.tuning_.objective == objective
    untuned = regressor(objective=None, hyperparameters__scale="local").fit(X, y).loo().calibration
    tuned = model.loo().calibration
    assert tuned.rmse < 0.9 * untuned.rmse
    assert tuned.crps < 0.9 * untuned.crps
    assert 0.88 < tuned.coverage_at(0.95) < 0.995


def test_loss_is_that_of_the_leave_one_out_predictions(data):
    X, y = data
    model = regressor().fit(X, y)
    # All rows are compared here, and the predictions are calibrated.
    assert model.tuning_.n_compared == len(X)
    assert model.loo().calibration.crps / y.std() == pytest.approx(model.tuning_.loss, rel=1e-9)


def test_several_targets_share_one_model(data):
    X, y = data
    rng = np.random.default_rng(3)
    targets = np.column_stack([y, 1e4 * (np.cos(2.0 * X[:, 0]) + 0.1 * rng.normal(size=len(X)))])
    model = regressor().fit(X, targets)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (150, 2)
    errors = model.loo().residuals
    assert (errors.std(axis=0) < 0.4 * targets.std(axis=0)).all()


def test_sample_weight_counts_in_tuning():
    X, y = make_data(200)
    spoiled = y.copy()
    spoiled[::2] += np.random.default_rng(4).normal(size=100)
    weight = np.ones(200)
    weight[::2] = 0.01
    plain, weighted = (regressor().fit(X, spoiled, sample_weight=w) for w in (None, weight))
    truth = smooth(X)
    errors = [np.sqrt(np.mean((m.predict(X) - truth) ** 2)) for m in (plain, weighted)]
    assert errors[1] < 0.5 * errors[0]
    # Of an observation of weight 1, which is a good one: 0.1, where bad ones have 1.
    assert 0.1 < np.median(weighted.predict(X, return_std=True)[1]) < 0.2


def test_rows_of_no_weight_are_as_good_as_absent(data):
    X, y = data
    kept = np.arange(150) % 3 > 0
    absent = regressor().fit(X[kept], y[kept])
    weightless = regressor().fit(X, np.where(kept, y, 1e6), sample_weight=kept.astype(float))
    found = (model.predict(X, return_std=True) for model in (absent, weightless))
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-4)  # weighted sums round differently


def test_groups_of_common_error_make_predictions_more_cautious():
    rng = np.random.default_rng(5)
    centers = rng.uniform(-1.0, 1.0, (40, 2))
    groups = np.repeat(np.arange(40), 5)
    X = centers[groups] + 0.01 * rng.normal(size=(200, 2))
    y = np.sin(3.0 * X[:, 0]) + rng.normal(size=40)[groups] + 0.05 * rng.normal(size=200)
    queries = rng.uniform(-1.0, 1.0, (300, 2))
    truth = np.sin(3.0 * queries[:, 0]) + rng.normal(size=300)
    settings = {"trend": "constant", "n_neighbors": 40}
    alone = regressor(**settings).fit(X, y)
    grouped = regressor(**settings).fit(X, y, groups=[f"site {g}" for g in groups])
    stds = [np.median(m.predict(queries, return_std=True)[1]) for m in (alone, grouped)]
    assert stds[1] > 1.05 * stds[0]
    assert grouped.calibration(queries, truth).nll < alone.calibration(queries, truth).nll


@pytest.mark.parametrize("n_groups", [1, 2])
def test_even_few_groups_leave_a_model(data, n_groups):
    X, y = data
    model = regressor(effort__n_points=30).fit(X, y, groups=np.arange(150) % n_groups)
    assert np.isfinite(model.predict(X, return_std=True)).all()


def make_map_with_a_hole(seed=0):
    """A smooth field with fine detail on a grid, of which a square is not observed."""
    rng = np.random.default_rng(seed)
    axis = np.linspace(0.0, 1.0, 26)
    X = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    covariance = RBF(0.3)(X) + 0.1 * Matern(0.05, nu=1.5)(X) + 1e-6 * np.eye(len(X))
    y = np.linalg.cholesky(covariance) @ rng.normal(size=len(X))
    is_inside = (np.abs(X - 0.5) < 0.2).all(axis=1)
    return X[~is_inside], y[~is_inside], X[is_inside], y[is_inside]


def test_knowing_the_queries_helps_in_a_hole_of_the_map():
    # The detail is what neighbors predict each other by; it does not reach into the hole.
    scores = []
    for seed in range(5):
        X, y, X_hole, y_hole = make_map_with_a_hole(seed)
        settings = {"n_neighbors": 60, "effort__n_points": 100, "effort__n_models": 4}
        plain = regressor(**settings).fit(X, y).calibration(X_hole, y_hole)
        informed = regressor(**settings).fit(X, y, queries=X_hole).calibration(X_hole, y_hole)
        scores.append([(said.nll, said.crps) for said in (plain, informed)])
    nll, crps = np.mean(scores, axis=0).T
    assert nll[1] < nll[0] - 0.05
    assert crps[1] < crps[0]


def test_models_with_and_without_a_trend_compete_in_a_hole():
    X, y, X_hole, _ = make_map_with_a_hole()
    settings = {"effort__n_points": 50, "kernel": "matern32"}
    model = made(random_state=0, **settings).fit(X, y, queries=X_hole)
    local = [c.model for c in model.tuning_.candidates if c.n_neighbors < len(X)]
    assert {m.slope_variance > 0 for m in local} == {True, False}


def test_what_was_asked_for_is_kept_in_a_hole():
    X, y, X_hole, _ = make_map_with_a_hole()
    for objective in ("crps", "log_density"):
        model = regressor(effort__n_models=1, objective=objective).fit(X, y, queries=X_hole)
        assert len(model.tuning_.chosen) == 1
    model = regressor(hyperparameters__scale="local", effort__n_points=30).fit(X, y, queries=X_hole)
    assert all(math.isfinite(fitted.model.scale_dof) for fitted in model.fitted_)


@pytest.mark.parametrize("objective", ["squared_error", "log_density"])
def test_one_model_is_the_best_by_the_objective(data, objective):
    X, y = data
    few = {"effort__n_models": 1, "effort__n_points": 30, "random_state": 0}
    tuning = made(objective=objective, **few).fit(X, y).tuning_
    assert tuning.chosen[0][0].loss == min(c.loss for c in tuning.candidates)
