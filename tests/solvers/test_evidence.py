# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs by their evidence: its value and gradient, its maximum, and its use in tuning."""

import math
from dataclasses import replace

import numpy as np
import pytest
from differences import differences
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from small_data import make_data

from lsgp import Effort, LSGPRegressor
from lsgp.backends import reference
from lsgp.compute.clock import Clock
from lsgp.inputs.transforms import fit_transform_kind
from lsgp.inputs.transforms.warping import WarpableRows
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.kernels import KERNELS
from lsgp.method.parameters import Parameters
from lsgp.solvers.evidence import (
    BAD_EVIDENCE,
    NOT_TUNED,
    ROUNDING_NOISE,
    EvidenceProblem,
    ExactGP,
    make_exact,
    negative_log_evidence,
    negative_log_prior,
    with_noise_of_targets,
)
from lsgp.solvers.exact import ExactSolver


def draw():
    """Rows, two targets, and known noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.column_stack([np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1], X[:, 2]])
    return X, y + 0.1 * rng.normal(size=(40, 2)), rng.uniform(0.5, 2.0, 40)


X, Y, NOISE = draw()


def problem(kernel="matern32", trend=(0.8, 0.15), y=Y, noise=NOISE):
    model = LocalModel(kernel, "rectangular", np.array([0.7, 1.3, 2.0]), 1.4, 0.2, *trend)
    return LocalProblem(X, y, noise, model)


def maximize(own, parameters, n_steps):
    """The likeliest exact GP of the rows of a problem, from its model on."""
    rows = WarpableRows.of(own.X, own.X, own.y, own.noise, fit_transform_kind(own.X, None))
    start = ExactGP(own.model, np.empty(0), -math.inf)
    return EvidenceProblem(rows, parameters, Clock()).maximize(start, n_steps, 0.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient_is_that_of_finite_differences(kernel):
    parameters = Parameters(frozenset({"localizer_decay", "scale_dof"}))
    own = problem(kernel)

    def value(vector):
        model = parameters.unpack(vector, own.model)
        return negative_log_evidence(own._replace(model=model))[0] + negative_log_prior(model)[0]

    gradient = negative_log_evidence(own)[1] + negative_log_prior(own.model)[1]
    numeric = differences(value, parameters.pack(own.model), 1e-5)
    np.testing.assert_allclose(parameters.restrict(gradient, own.model), numeric, atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
def test_evidence_is_that_of_scikit_learn(kernel):
    family = {"rbf": RBF, "matern52": lambda scale: Matern(scale, nu=2.5)}[kernel]
    noise = np.ones(len(X))
    own = problem(kernel, trend=(0.8, 0.0), y=Y[:, :1], noise=noise)
    sk = 1.4 * family(own.model.lengthscale) + ConstantKernel(1.4 * 0.8) + WhiteKernel(1.4 * 0.2)
    gp = GaussianProcessRegressor(sk, optimizer=None, alpha=0.0).fit(X, Y[:, 0])
    assert negative_log_evidence(own)[0] == pytest.approx(-gp.log_marginal_likelihood_value_)


def test_evidence_is_the_marginal_likelihood_of_a_neighborhood_of_all_rows():
    X_centered = X - X.mean(axis=0)
    # The reference centers the trend at a target: one in the middle, which is not in the sample.
    with_center = np.vstack([X_centered, np.zeros(3)])
    own = problem()
    larger = LocalProblem(
        with_center, np.vstack([Y, np.zeros(2)]), np.append(NOISE, 1.0), own.model
    )
    rows = np.arange(40, dtype=np.int32)[np.newaxis]
    scores = reference.marginal_likelihood(larger, np.array([40], dtype=np.int32), rows)
    value, gradient, _ = negative_log_evidence(own._replace(X=X_centered))
    assert value == pytest.approx(40 * scores.loss[0])
    np.testing.assert_allclose(gradient, 40 * scores.gradient[0], rtol=1e-8, atol=1e-8)


def test_maximum_is_better_than_its_surroundings():
    parameters = Parameters(NOT_TUNED)
    own = problem()._replace(model=make_exact(problem().model))
    found = maximize(own, parameters, 100)
    best, bounds = parameters.pack(found.model), np.transpose(parameters.bounds(found.model))
    for step in 0.05 * np.vstack([np.eye(len(best)), -np.eye(len(best))]):
        model = parameters.unpack(np.clip(best + step, *bounds), found.model)
        value = negative_log_evidence(own._replace(model=model))[0]
        assert -(value + negative_log_prior(model)[0]) <= found.log_evidence


def test_evidence_prefers_the_kernel_that_made_the_data():
    rng = np.random.default_rng(1)
    # Far from where the search starts, and from what the prior prefers.
    lengthscale, signal_variance = 0.2, 9.0
    x = np.sort(rng.uniform(0.0, 50.0 * lengthscale, 150))[:, None]
    covariance = np.exp(-np.abs(x - x.T) / lengthscale) + 1e-6 * np.eye(150)
    y = np.sqrt(signal_variance) * np.linalg.cholesky(covariance) @ rng.normal(size=(150, 1))
    problems = [
        LocalProblem(x, y, np.ones(150), make_exact(LocalModel(kernel, "smooth", np.ones(1))))
        for kernel in KERNELS
    ]
    tuned = [maximize(p, Parameters(NOT_TUNED), 50) for p in problems]
    gp = max(tuned, key=lambda gp: gp.log_evidence)
    assert gp.model.kernel == "matern12"
    # From a path as long as 50 lengthscales, its own has a standard error of sqrt(2 / 50), and
    # the variance of a step, 2 s²/lengthscale, of sqrt(2 / 150): here two of each.
    found = gp.model
    assert found.lengthscale[0] == pytest.approx(lengthscale, rel=0.4)
    steps = found.signal_variance / found.lengthscale[0]
    assert steps == pytest.approx(signal_variance / lengthscale, rel=0.23)


def test_impossible_covariance_is_bad_but_no_error():
    twice = np.vstack([X, X])
    model = problem().model.replace(noise_variance=1e-30, kernel="rbf")
    own = LocalProblem(twice, np.vstack([Y, Y + 1.0]), np.ones(80), model)
    assert negative_log_evidence(own)[0] == math.inf


def test_a_start_without_a_factor_gets_as_much_noise_as_it_needs():
    # What 120 rows had found had no factor of 150, and the likeliest kernel was lost.
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-1.5, 1.5, size=(150, 6))
    y = (inputs**2).sum(axis=1, keepdims=True)
    smooth = LocalModel("rbf", "smooth", np.full(6, 100.0), 1e6, 1e-20)
    # Rows of little noise, so that the least there is has no factor for sure.
    own = LocalProblem(inputs, y - y.mean(), np.full(150, 1e-3), make_exact(smooth))
    lowest = own.model.replace(noise_variance=150 * ROUNDING_NOISE)
    assert negative_log_evidence(own._replace(model=lowest))[0] == math.inf
    found = maximize(own, with_noise_of_targets(Parameters(NOT_TUNED)), 20)
    noisy = negative_log_evidence(own._replace(model=lowest.replace(noise_variance=0.1)))[0]
    assert negative_log_evidence(own._replace(model=found.model))[0] < noisy - 100.0
    is_given = Parameters(NOT_TUNED | {"noise_variance"})
    given = maximize(own, with_noise_of_targets(is_given), 20)
    assert given.log_evidence < -BAD_EVIDENCE
    assert given.model.noise_variance == lowest.noise_variance


def exact_models(**settings):
    X, y = make_data(60, 1)
    X = np.column_stack([X, X[::-1]])  # with another that does not matter
    model = LSGPRegressor(kernel="rbf", input_transform="standardize", random_state=0)
    model.set_params(**settings).fit(X, y)
    return [f for f in model.fitted_ if f.model.localizer == "rectangular"], model


def test_small_data_are_also_predicted_by_an_exact_gp():
    found, model = exact_models(trend="constant")
    (exact,) = [fitted for fitted in found if not fitted.is_integrated]
    assert exact.n_neighbors == 60
    queries = np.array([[0.1, -0.3], [0.9, 0.9], [3.0, 0.0]])
    model.ensemble_ = replace(model.ensemble_, models=(exact,))
    kernel = exact.model.signal_variance * (
        RBF(exact.model.lengthscale) + ConstantKernel(exact.model.constant_variance)
    )
    gp = GaussianProcessRegressor(
        kernel, alpha=exact.model.signal_variance * exact.model.noise_variance, optimizer=None
    ).fit(exact.problem.X, exact.problem.y[:, 0])
    scaled = gp.predict(exact.transform.transform(queries))
    expected = model.target_scaler_.inverse_mean(scaled[:, None])[:, 0]
    np.testing.assert_allclose(model.predict(queries), expected, rtol=1e-8)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_neighbors": 30},
        {"localizer": "epanechnikov"},
        {"localizer__decay": 1.0},
        {"hyperparameters__scale": "local"},
        {"localizer__bandwidth": 0.5, "input_transform": None},
        {"effort__n_models": 1},
        {"objective": "marginal_likelihood"},
    ],
    ids=str,
)
def test_what_was_asked_for_rules_exact_gps_out(settings):
    assert not exact_models(effort__n_points=20, **settings)[0]


def test_given_hyperparameters_stay_in_exact_gps():
    exact, model = exact_models(
        hyperparameters__noise_variance=0.03,
        hyperparameters__lengthscale=0.8,
        trend=(2.0, 0.0),
        input_transform=None,
    )
    assert exact
    for fitted in exact:
        own, unit = fitted.model, model.target_scaler_.std[0] ** 2
        assert own.noise_variance * own.signal_variance * unit == pytest.approx(0.03)
        assert own.signal_variance != 1.0  # which is tuned
        assert fitted.model.constant_variance == 2.0
        np.testing.assert_array_equal(fitted.model.lengthscale, 0.8)


@pytest.mark.parametrize("n_neighbors", [150, 10**9])
@pytest.mark.parametrize("localizer", ["rectangular", "smooth"])
def test_all_rows_as_neighbors_are_an_exact_gp(localizer, n_neighbors):
    X, y = make_data(150)
    model = LSGPRegressor(localizer=localizer, n_neighbors=n_neighbors, random_state=0).fit(X, y)
    for fitted in model.fitted_:
        assert isinstance(fitted.solver, ExactSolver)
        assert fitted.n_neighbors == 150
    assert sum(fitted.weight for fitted in model.fitted_) == pytest.approx(1.0)
    if n_neighbors > 150:
        grown = model.partial_fit(X[:5] + 0.01, y[:5])
        assert all(isinstance(fitted.solver, ExactSolver) for fitted in grown.fitted_)
        assert grown.n_neighbors_ == 155


def test_an_exact_gp_on_request_is_scikit_learns():
    """The same kernel with the same bounds, tuned by the same evidence."""
    X, y = make_data(80, 2)
    kernel = 1.0 * RBF([1.0, 1.0]) + WhiteKernel(0.1)
    model = LSGPRegressor(
        kernel=kernel,
        localizer="rectangular",
        n_neighbors=80,
        trend=None,
        input_transform=None,
        prior_mean=0.0,
        effort=Effort(n_models=1),
    ).fit(X, y)
    peer = GaussianProcessRegressor(kernel, alpha=0.0).fit(X, y)
    found = model.model_
    signal = found.signal_variance * model.target_scaler_.std[0] ** 2
    theta = np.log([signal, *found.lengthscale, found.noise_variance * signal])
    best = peer.log_marginal_likelihood_value_
    assert peer.log_marginal_likelihood(theta) == pytest.approx(best, abs=0.02)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=0.01)


def test_one_model_on_request_is_the_likeliest():
    X, y = make_data(100)
    model = LSGPRegressor(n_neighbors=100, effort=Effort(n_models=1), random_state=0).fit(X, y)
    assert len(model.fitted_) == 1
    assert model.fitted_[0].solver.describe() == "all rows"
