# SPDX-License-Identifier: BSD-3-Clause
"""Estimators whose models are exact GPs, given or tuned: what they predict, and what they need."""

import pickle
import threading

import numpy as np
import pytest
from small_data import make_data
from threadpoolctl import threadpool_info
from untuned import made

from lsgp.backends.dense_host import matrix_bytes
from lsgp.method.kernels import KERNELS
from lsgp.solvers.exact import ExactSolver
from lsgp.solvers.exact_system import FARTHEST, ExactSystem


def untuned(**options):
    options = {"localizer": "rectangular", "n_neighbors": 1000, "objective": None} | options
    return made(**options)


@pytest.mark.parametrize("scale", ["global", "local"])
def test_every_method_agrees_with_the_reference_backend(scale):
    X, y = make_data(60)
    queries = make_data(20, seed=1)[0]
    shared, plain = (
        untuned(hyperparameters__scale=scale, backend=b).fit(X, y) for b in ("auto", "reference")
    )
    assert isinstance(shared.fitted_[0].solver, ExactSolver)
    assert not isinstance(plain.fitted_[0].solver, ExactSolver)
    for name in ("predict", "predict_gradient"):
        found = (getattr(model, name)(queries, return_std=True) for model in (shared, plain))
        np.testing.assert_allclose(*found, rtol=1e-8, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(shared.loo().residuals, plain.loo().residuals, atol=1e-9)
    exclude = np.arange(20)
    explained, wanted = (m.explain(X[:20], exclude=exclude) for m in (shared, plain))
    assert np.array_equal(explained.rows, wanted.rows)
    np.testing.assert_allclose(explained.coefficients, wanted.coefficients, atol=1e-9)
    np.testing.assert_allclose(explained.predicted.scale, wanted.predicted.scale, rtol=1e-9)


def test_threads_and_blocks_do_not_matter_and_pickles_stay_small():
    X, y = make_data(700)
    model = untuned(hyperparameters__scale="global").fit(X, y)
    queries = make_data(600, seed=1)[0]
    expected = model.predict(queries, return_std=True)
    again = pickle.loads(pickle.dumps(model.set_params(n_jobs=2)))
    np.testing.assert_array_equal(again.predict(queries, return_std=True), expected)
    assert len(pickle.dumps(model)) < matrix_bytes(700) / 10


def predict_at_infinity(model):
    """Mean and standard deviation, as columns, where no row says anything but the trend."""
    X, y, noise, local = model.fitted_[0].problem
    mean, variance = 0.0, 1.0 + local.constant_variance
    # With a slope, whatever the rows say of the constant is lost on the way.
    if local.constant_variance > 0 and local.slope_variance == 0:
        z = X / local.lengthscale
        covariance = KERNELS[local.kernel](((z[:, None] - z) ** 2).sum(axis=2))[0]
        by_ones = np.linalg.solve(covariance + local.noise_variance * np.diag(noise), np.ones(60))
        precision = by_ones.sum() + 1.0 / local.constant_variance
        mean, variance = by_ones @ y[:, 0] / precision, 1.0 + 1.0 / precision
    std = np.sqrt(local.signal_variance * (variance + local.noise_variance))
    scaler = model.target_scaler_
    return np.array([[scaler.mean[0] + scaler.std[0] * mean], [scaler.std[0] * std]])


@pytest.mark.parametrize("trend", ["none", "constant", "linear"])
@pytest.mark.parametrize("distance", [1e2, 1e5, 1e10, 1e100])
def test_queries_far_away_are_predicted_by_the_trend(trend, distance):
    X, y = make_data(60)
    queries = distance * np.array([[1.0, -1.0, 0.5], [0.0, 1.0, 0.0]])
    shared, plain = (
        untuned(trend=trend, hyperparameters__scale="global", backend=b).fit(X, y)
        for b in ("auto", "reference")
    )
    predicted = shared.predict(queries, return_std=True)
    # The center of a slope moves away no farther than FARTHEST, which shows in the fourth digit.
    is_moved = trend == "linear" and distance > FARTHEST
    tolerances = {"rtol": 1e-9} if not is_moved else {"rtol": 0, "atol": 1e-3 * y.std()}
    if distance <= 1e5:
        expected = plain.predict(queries, return_std=True)
        np.testing.assert_allclose(predicted, expected, **tolerances)
    if distance > 1e5 or trend != "linear":
        # Farther away the reference cannot tell: its rows, seen from the query, are one point.
        expected = np.repeat(predict_at_infinity(shared), 2, axis=1)
        np.testing.assert_allclose(predicted, expected, **tolerances)
    assert np.isfinite(shared.explain(queries).coefficients).all()
    assert np.isfinite(shared.predict_gradient(queries)).all()


def test_too_small_a_budget_is_named():
    X, y = make_data(300)
    model = untuned(hyperparameters__scale="global", memory_budget=100_000).fit(X, y)
    with pytest.raises(ValueError, match="exact GPs of 300 rows need"):
        model.predict(X)


def test_threads_of_the_user_share_one_system_and_leave_blas_as_it_was(monkeypatch):
    X, y = make_data(400)
    model = untuned(hyperparameters__scale="global").fit(X, y)
    solved = []
    solve = ExactSystem.solve
    monkeypatch.setattr(ExactSystem, "solve", lambda *args: solved.append(1) or solve(*args))
    before = [library["num_threads"] for library in threadpool_info()]
    threads = [threading.Thread(target=model.predict, args=(X,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(solved) == 1
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_rows_added_to_an_untuned_exact_gp_extend_its_system(monkeypatch):
    X, y = make_data(80)
    model = untuned(hyperparameters__scale="global").fit(X[:60], y[:60])
    model.predict(X[:1])
    monkeypatch.setattr(ExactSystem, "solve", None)
    model.partial_fit(X[60:], y[60:])
    assert model.fitted_[0].solver.system.n == 80


def tuned_rbf(**settings):
    return made(kernel="rbf", input_transform="standardize", random_state=0, **settings)


@pytest.fixture(scope="module")
def tuned():
    """Smooth, in six inputs: the more neighbors the better."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (700, 6))
    y = np.sin(X.sum(axis=1)) + X[:, 0] * X[:, 1] + 0.05 * rng.normal(size=700)
    return tuned_rbf().fit(X[:600], y[:600]), X, y


def test_smooth_functions_get_an_exact_gp(tuned):
    model, X, y = tuned
    assert model.n_neighbors_ == 600
    assert isinstance(model.fitted_[0].solver, ExactSolver)
    local = tuned_rbf(n_neighbors=64).fit(X[:600], y[:600])
    errors = [np.mean((m.predict(X[600:]) - y[600:]) ** 2) for m in (model, local)]
    assert errors[0] < 0.8 * errors[1]


def test_little_memory_does_without_it(tuned):
    _, X, y = tuned
    model = tuned_rbf(effort__n_points=50, memory_budget=matrix_bytes(600) - 1)
    fitted = model.fit(X[:600], y[:600]).fitted_
    assert not any(isinstance(f.solver, ExactSolver) for f in fitted)


def test_tuned_exact_gp_stays_one_when_rows_come_and_go(tuned):
    model, X, y = tuned
    model = pickle.loads(pickle.dumps(model))
    model.predict(X[:1])  # solves the system that is then extended
    model.partial_fit(X[600:690], y[600:690])
    assert model.n_neighbors_ == 690
    predicted = model.predict(X[690:], return_std=True)
    anew = pickle.loads(pickle.dumps(model)).predict(X[690:], return_std=True)
    np.testing.assert_allclose(predicted, anew, rtol=1e-9)
    model.forget(np.arange(600, 690))
    assert model.n_neighbors_ == 600
    np.testing.assert_allclose(model.predict(X[690:]), tuned[0].predict(X[690:]), rtol=1e-9)
    model.set_params(memory_budget=matrix_bytes(600)).partial_fit(X[600:690], y[600:690])
    assert model.n_neighbors_ == 512


def test_localizer_that_was_asked_for_stays_local_when_rows_come_and_go(tuned):
    _, X, y = tuned
    settings = {"localizer": "rectangular", "n_neighbors": 40, "kernel": "rbf", "random_state": 0}
    model = made(effort__n_points=30, **settings).fit(X[:100], y[:100])
    expected = model.predict(X[100:])
    model.forget(np.arange(30, 100)).partial_fit(X[30:100], y[30:100])
    assert model.n_neighbors_ == 40
    np.testing.assert_allclose(model.predict(X[100:]), expected, rtol=1e-9)


def test_normalized_localizers_have_no_exact_gp(tuned):
    _, X, y = tuned
    model = tuned_rbf(localizer__normalized=True, effort__n_points=50).fit(X[:520], y[:520])
    assert all(c.model.localizer == "smooth" for c in model.tuning_.candidates)


@pytest.mark.parametrize("n", [100, 600])
@pytest.mark.parametrize("share", [1.2, 2.5, 6.0])
def test_what_was_fitted_within_a_budget_predicts_within_it(tuned, n, share):
    _, X, y = tuned
    budget = int(share * matrix_bytes(n)) + 2_000_000
    model = tuned_rbf(effort__n_points=50, memory_budget=budget).fit(X[:n], y[:n])
    assert np.isfinite(model.predict(X, return_std=True)).all()


def test_exact_gps_are_as_likely_as_any_where_the_density_is_asked_for(tuned):
    _, X, y = tuned
    model = tuned_rbf(objective="log_density", effort__n_points=200).fit(X[:600], y[:600])
    exact = [c for c in model.tuning_.candidates if c.n_neighbors == 600]
    lowest = min(c.loss for c in model.tuning_.candidates)
    assert lowest < 0
    assert min(c.loss for c in exact) < lowest + 0.1
