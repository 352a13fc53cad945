# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs in single precision: near those in double precision, and only where noise allows."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from untuned import made

from lsgp import Hyperparameters, LSGPRegressor
from lsgp.backends.contract import Resources
from lsgp.backends.dense_host import HostFactor
from lsgp.backends.dense_single import TILE, SingleFactor
from lsgp.compute.blas import one_blas_thread
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.solvers.choose import choose_solver
from lsgp.solvers.exact import ExactSolver, differentiate
from lsgp.solvers.exact_system import ExactSystem
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block
from lsgp.tuning.exact import choose_precision

N, D, NOISE = 700, 3, 0.05


def make_problem(n=N, noise=NOISE, is_single=True, kernel="matern52", **changes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D))
    y = np.sin(2.0 * X[:, :1]) + X[:, 1:2] + np.sqrt(noise) * rng.normal(size=(n, 1))
    model = LocalModel(
        kernel,
        "rectangular",
        np.full(D, 1.5),
        noise_variance=noise,
        constant_variance=50.0,
        slope_variance=0.1,
        is_single=is_single,
    )
    return LocalProblem(X, y, rng.uniform(0.5, 2.0, n), model.replace(**changes))


QUERIES = np.random.default_rng(1).normal(size=(TILE + 40, D))


def both(**settings):
    return [ExactSystem.solve(make_problem(is_single=single, **settings)) for single in (0, 1)]


def assert_near(found, expected, tolerance=1e-4):
    """In the standard deviation of an observation; of latent ones too."""
    std = np.sqrt(expected.variance + NOISE)
    assert np.abs((found.mean - expected.mean)[:, 0] / std).max() < tolerance
    np.testing.assert_allclose(found.variance, expected.variance, rtol=10 * tolerance)
    assert np.array_equal(found.status, expected.status)


@pytest.mark.parametrize("kernel", ["rbf", "matern12", "matern32", "matern52"])
def test_predictions_are_those_of_double_precision_as_far_as_noise_tells(kernel):
    double, single = both(kernel=kernel)
    assert isinstance(double.factor, HostFactor)
    assert isinstance(single.factor, SingleFactor)
    assert_near(single.predict(QUERIES), double.predict(QUERIES))
    rows = np.arange(0, N, 3, dtype=np.int32)
    assert_near(single.leave_out(rows), double.leave_out(rows))
    members = np.arange(40, 90)
    assert_near(
        single.leave_group_out(members[:9], single.without(members)),
        double.leave_group_out(members[:9], double.without(members)),
    )
    without = [s.predict_without(QUERIES[:9], rows[:9]).mean for s in (single, double)]
    np.testing.assert_allclose(*without, atol=1e-5)
    (_, found), (_, expected) = (differentiate(s, QUERIES[:9]) for s in (single, double))
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-4)
    np.testing.assert_allclose(found.variance, expected.variance, atol=1e-4)


def test_solutions_have_the_digits_of_the_correlations():
    double, single = both()
    np.testing.assert_allclose(single.alpha, double.alpha, atol=2e-5 * np.abs(double.alpha).max())
    columns = np.random.default_rng(2).normal(size=(N, 2))
    solved = single.factor.solve(columns)
    np.testing.assert_allclose(single.factor._multiply(solved), columns, atol=1e-9)


@one_blas_thread()  # as solvers call it: several threads would share the columns out
def test_nothing_depends_on_what_else_is_asked_for():
    system = ExactSystem.solve(make_problem())
    at_once = system.predict(QUERIES)
    for some in ([3], [TILE + 7, 3], np.arange(TILE // 2)[::-1], np.arange(100, 140)):
        alone = system.predict(QUERIES[some])
        assert np.array_equal(alone.mean, at_once.mean[some])
        assert np.array_equal(alone.variance, at_once.variance[some])
    only_means = system.predict(QUERIES, mean_only=True).mean
    assert np.array_equal(only_means, at_once.mean)
    rows = np.array([650, 3, 20, 3])
    alone = ExactSystem.solve(make_problem()).factor.diagonal(rows)
    assert np.array_equal(alone, system.factor.diagonal(np.arange(N))[rows])


def test_rows_are_added_to_a_factor():
    problem = make_problem()
    part = problem._replace(X=problem.X[:600], y=problem.y[:600], noise=problem.noise[:600])
    system = ExactSystem.solve(part)
    system.leave_out(np.arange(5))
    grown = system.extend(problem)
    assert isinstance(grown.factor, SingleFactor)
    expected = ExactSystem.solve(problem)
    assert_near(grown.predict(QUERIES), expected.predict(QUERIES))
    rows = np.arange(N, dtype=np.int32)
    assert_near(grown.leave_out(rows), expected.leave_out(rows))


def test_without_noise_double_precision_is_taken():
    system = ExactSystem.solve(make_problem(noise=1e-10, kernel="rbf"))
    assert isinstance(system.factor, HostFactor)


def test_far_rows_and_queries_keep_their_digits():
    problem = make_problem()
    X = problem.X.copy()
    X[:2] = [[1e6], [1e6 + 0.5]]  # as near to each other as others are, and far from all
    systems = [
        ExactSystem.solve(problem._replace(X=X, model=problem.model.replace(is_single=single)))
        for single in (True, False)
    ]
    queries = np.array([[1e6, 1e6, 1e6], [1e160, 0.0, 0.0], [0.0, 0.0, 0.0]])
    found, expected = (system.predict(queries) for system in systems)
    assert np.isfinite(found.variance).all()
    np.testing.assert_allclose(found.variance[0], expected.variance[0], rtol=1e-4)
    near = [ExactSystem.solve(make_problem(is_single=s)).predict(queries[1:]) for s in (1, 0)]
    np.testing.assert_allclose(near[0].variance, near[1].variance, rtol=1e-4)


def fitted(**settings):
    """An estimator with one exact GP, in double precision and in single."""
    X, y = make_problem()[:2]
    double = made(
        objective=None,
        localizer="rectangular",
        n_neighbors=N,
        hyperparameters__scale="global",
        **settings,
    ).fit(X, y[:, 0])
    (model,) = double.ensemble_.models
    assert not model.model.is_single  # never where hyperparameters are given
    problem = model.problem._replace(model=model.model.replace(is_single=True))
    solver = choose_solver(problem, model.index, model.n_neighbors, model.solver.backend)
    single = made(**double.get_params()).fit(X, y[:, 0])
    single.ensemble_ = replace(single.ensemble_, models=(model.with_solver(solver),))
    return double, single


def test_joint_predictions_are_those_of_double_precision():
    double, single = fitted()
    one, other = (model.ensemble_.models[0].solver for model in (single, double))
    queries = double.ensemble_.models[0].inputs_of(QUERIES[:5])
    block = Block(one.plan(5, Resources(1, 2**30)), 0, Failures())
    np.testing.assert_array_equal(one.covariance(queries, block), other.covariance(queries, block))
    draws = [model.sample_y(QUERIES[:5], 3, random_state=0) for model in (single, double)]
    np.testing.assert_allclose(*draws, atol=1e-4)
    # While predictions of single queries are not the same.
    means, stds = zip(*(m.predict(QUERIES, return_std=True) for m in (single, double)), strict=True)
    assert not np.array_equal(*stds)
    np.testing.assert_allclose(*stds, rtol=1e-5)
    np.testing.assert_allclose(*means, atol=1e-4 * stds[0].min())


def test_explanations_are_those_of_predictions():
    _, single = fitted()
    mean, std = single.predict(QUERIES[:4], return_std=True)
    explained = single.explain(QUERIES[:4])
    np.testing.assert_allclose(explained.predicted.mean, mean, atol=1e-9 * std.min())
    np.testing.assert_allclose(explained.predicted.std, std, rtol=1e-9)
    summed = explained.baseline + explained.contributions.sum(axis=1)
    np.testing.assert_allclose(summed, mean, atol=1e-7 * std.min())


def test_memory_of_both_precisions_is_counted_and_given_back_where_there_is_no_room():
    double, single = fitted()
    (one,), (other,) = double.ensemble_.models, single.ensemble_.models
    assert other.solver.nbytes == one.solver.nbytes // 2
    expected = single.predict(QUERIES)
    joint = single.sample_y(QUERIES[:3], random_state=0)
    both = other.solver.nbytes
    assert both == one.solver.nbytes + one.solver.nbytes // 2
    single.predict(QUERIES)
    assert other.solver.nbytes == both  # there is room
    single.memory_budget = both - 1
    np.testing.assert_array_equal(single.predict(QUERIES), expected)
    assert other.solver.nbytes == one.solver.nbytes // 2
    np.testing.assert_array_equal(single.sample_y(QUERIES[:3], random_state=0), joint)


def test_what_joint_predictions_keep_leaves_room_for_the_local_models_beside_it():
    _, single = fitted()
    X, y = make_problem()[:2]
    local = LSGPRegressor(
        objective=None, n_neighbors=40, hyperparameters=Hyperparameters(scale="global")
    ).fit(X, y[:, 0])
    models = [replace(m.ensemble_.models[0], weight=0.5) for m in (single, local)]
    single.ensemble_ = replace(single.ensemble_, models=tuple(models))
    expected = single.predict(QUERIES)
    before = single.ensemble_.nbytes
    single.sample_y(QUERIES[:3], n_samples=20, random_state=0)
    assert single.ensemble_.nbytes > before
    single.memory_budget = single.ensemble_.nbytes  # of both systems, and of nothing else
    np.testing.assert_array_equal(single.predict(QUERIES), expected)


def test_files_and_updates_keep_the_precision(tmp_path):
    _, single = fitted()
    single.save(tmp_path / "model.lsgp")
    loaded = LSGPRegressor.load(tmp_path / "model.lsgp")
    assert loaded.ensemble_.models[0].model.is_single
    np.testing.assert_array_equal(*(m.predict(QUERIES, return_std=True) for m in (single, loaded)))
    forgotten = loaded.forget([0, 1])
    assert forgotten.ensemble_.models[0].model.is_single


def precise(model, n=5000, noise=1.0, is_fast=False, may_round=True):
    """The model as it is factored."""
    return choose_precision(model, n, noise, SimpleNamespace(is_fast=is_fast), may_round)


def test_single_precision_is_taken_only_where_it_is_harmless_and_pays():
    model = make_problem(is_single=False).model.replace(noise_variance=0.01)
    assert precise(model).is_single
    for change in ({"n": 1000}, {"is_fast": True}, {"noise": 1e-3}, {"may_round": False}):
        assert not precise(model, **change).is_single, change
    # More rows need more noise: sums have more terms.
    little = model.replace(noise_variance=3e-3)
    assert precise(little, n=5000).is_single
    assert not precise(little, n=9000).is_single
    # What was so is asked again.
    silent = model.replace(noise_variance=1e-6, is_single=True)
    assert not precise(silent).is_single


def test_what_tuning_chooses_is_kept_and_predicts_as_it_was_judged(monkeypatch):
    monkeypatch.setattr("lsgp.tuning.exact.MOST_IN_DOUBLE", 100)
    X, y = make_problem(200, noise=0.1)[:2]
    settings = {"kernel": "rbf", "input_transform": "standardize"}
    model = made(n_jobs=1, random_state=0, **settings).fit(X, y[:, 0])
    found = [f for f in model.ensemble_.models if isinstance(f.solver, ExactSolver)]
    assert found
    for each in found:
        assert each.model.is_single
        assert isinstance(each.solver.system.factor, SingleFactor)
