# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs on a device are those of the host: factors, predictions, leave-one-out and evidence.

Without a device, by the same blocks over NumPy's arrays, whose unwritten parts are poisoned.
"""

import numpy as np
import pytest
from fake_device import MEMORY, dense_on_host

from lsgp import Hyperparameters, LSGPRegressor
from lsgp.backends import cuda
from lsgp.backends.cuda import dense as device_dense
from lsgp.backends.dense_host import HOST
from lsgp.method.contract import STATUS_JITTERED, STATUS_NOT_FINITE, LocalModel, LocalProblem
from lsgp.method.kernels import KERNELS
from lsgp.solvers.evidence import negative_log_evidence
from lsgp.solvers.exact import ExactSolver, differentiate
from lsgp.solvers.exact_system import LARGEST_EXACT, ExactSystem

REASON = cuda.why_not()
PLACES = [
    "fake",
    pytest.param("device", marks=pytest.mark.skipif(REASON is not None, reason=str(REASON))),
]


@pytest.fixture(params=PLACES)
def dense(request, monkeypatch):
    """Small blocks, so that there are several, the last one smaller."""
    monkeypatch.setattr(device_dense, "FEWEST_ROWS", 0)
    monkeypatch.setattr(device_dense, "BLOCK_ROWS", 24)
    monkeypatch.setattr(device_dense, "SMALL_TRIANGLE", 7)
    monkeypatch.setattr(device_dense, "TILE", 8)
    return cuda.dense if request.param == "device" else dense_on_host(monkeypatch)


def make_problem(kernel="matern32", trend=(1.0, 0.1), n=100, n_targets=2, noise=0.01):
    rng = np.random.default_rng(len(kernel) + n)
    X = rng.uniform(-1.0, 1.0, (n, 3))
    y = np.column_stack([np.sin(2.0 * X.sum(axis=1) + k) for k in range(n_targets)])
    variances = {"constant_variance": trend[0], "slope_variance": trend[1], "noise_variance": noise}
    variances |= {"signal_variance": 1.7, "scale_dof": 4.0}
    model = LocalModel(kernel, "rectangular", np.array([0.9, 1.4, 2.0]), **variances)
    return LocalProblem(X, y, rng.uniform(0.5, 2.0, n), model), rng.uniform(-1.2, 1.2, (21, 3))


def assert_alike(got, expected, tolerance=1e-8):
    for name, left, right in zip(expected._fields, got, expected, strict=True):
        largest = np.abs(right[np.isfinite(right)]).max(initial=1e-3)
        np.testing.assert_allclose(left, right, tolerance, tolerance * largest, err_msg=name)


TRENDS = [(0.0, 0.0), (1.0, 0.1), (np.inf, 0.0), (1e6, np.inf)]


@pytest.mark.parametrize("trend", TRENDS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_answers_are_those_of_the_host(dense, kernel, trend):
    problem, queries = make_problem(kernel, trend)
    here, there = (ExactSystem.solve(problem, place) for place in (HOST, dense))
    assert there.status == here.status
    rows, members = np.array([3, 99, 24, 0]), np.array([5, 30, 31, 98])
    for method, arguments in (
        ("predict", (queries,)),
        ("predict_areas", (queries[:2], queries[:8].reshape(2, 4, 3))),
        ("leave_out", (rows,)),
        ("predict_without", (queries[:4], rows)),
    ):
        got, expected = (getattr(system, method)(*arguments) for system in (there, here))
        assert_alike(got, expected)
    got, expected = (s.leave_group_out(members, s.without(members)) for s in (there, here))
    assert_alike(got, expected)
    np.testing.assert_allclose(there.covariance(queries), here.covariance(queries), atol=1e-8)
    np.testing.assert_allclose(there.factor.to_host(), here.factor.to_host(), atol=1e-8)
    (_, got), (_, expected) = (differentiate(system, queries) for system in (there, here))
    assert_alike(got, expected, 1e-7)


@pytest.mark.parametrize("trend", TRENDS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_evidence_and_its_gradient_are_those_of_the_host(dense, kernel, trend):
    problem, _ = make_problem(kernel, trend)
    value, gradient, _ = negative_log_evidence(problem, dense)
    expected_value, expected, _ = negative_log_evidence(problem, HOST)
    assert value == pytest.approx(expected_value, rel=1e-10)
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


def test_a_prediction_does_not_depend_on_the_others(dense):
    problem, queries = make_problem()
    system = ExactSystem.solve(problem, dense)
    together = system.predict(queries)
    for one in (0, 7, 8, 20):
        alone = system.predict(queries[one : one + 1])
        assert np.array_equal(alone.mean[0], together.mean[one])
        assert alone.variance[0] == together.variance[one]


def test_rows_that_come_later_are_solved_with_the_others(dense):
    problem, queries = make_problem()
    first = problem._replace(X=problem.X[:60], y=problem.y[:60], noise=problem.noise[:60])
    grown = ExactSystem.solve(first, dense).extend(problem)
    assert_alike(grown.predict(queries), ExactSystem.solve(problem).predict(queries))


def test_singular_and_endless_systems_have_the_status_of_the_host(dense):
    problem, queries = make_problem(noise=0.0)
    twice = problem._replace(X=np.repeat(problem.X[:50], 2, axis=0))
    system = ExactSystem.solve(twice, dense)
    assert system.status == ExactSystem.solve(twice).status == STATUS_JITTERED
    assert np.isfinite(system.predict(queries).mean).all()
    endless = ExactSystem.solve(problem._replace(X=1e200 * problem.X), dense)
    assert endless.status == STATUS_NOT_FINITE
    assert negative_log_evidence(twice, dense)[0] == negative_log_evidence(twice)[0] == np.inf


def test_few_rows_stay_on_the_host_and_count_there(monkeypatch):
    place, (problem, queries) = dense_on_host(monkeypatch), make_problem()
    got, expected = (ExactSystem.solve(problem, d).predict(queries) for d in (place, HOST))
    assert np.array_equal(got.mean, expected.mean)
    assert negative_log_evidence(problem, place)[0] == negative_log_evidence(problem)[0]
    few, many = 100, 36_000
    assert place.room(10**6, few) == 10**6
    assert place.room(10**6, many) == int(0.6 * MEMORY)
    assert place.host_bytes(few) == HOST.host_bytes(few)
    assert place.host_bytes(many) == 0


def test_large_exact_gps_of_a_device_are_exact_on_the_host_and_say_what_they_need():
    n = LARGEST_EXACT + 1
    X = np.linspace(0.0, 1.0, n)[:, None]
    model = LSGPRegressor(
        objective=None,
        localizer="rectangular",
        n_neighbors=n,
        hyperparameters=Hyperparameters(scale="global"),
        backend="cpu",
        memory_budget="100MB",
    ).fit(X, X[:, 0])
    assert isinstance(model.fitted_[0].solver, ExactSolver)
    with pytest.raises(ValueError, match=f"exact GPs of {n} rows need. Increase memory_budget"):
        model.predict(X[:1])
