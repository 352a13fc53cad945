# SPDX-License-Identifier: BSD-3-Clause
"""One system of all rows for all queries is the local solve of each, and nothing else."""

import itertools
import warnings

import numpy as np
import pytest
from backend_checks import TOLERANCES, assert_close, assert_identical
from cases import DIMENSIONS, SCALE_DOFS, SIZES, TRENDS, Case, make_instance
from sklearn.gaussian_process.kernels import RationalQuadratic

from lsgp.backends import cpu, reference
from lsgp.backends.contract import Systems
from lsgp.backends.local_system import solve_system
from lsgp.method.contract import STATUS_JITTERED, STATUS_NOT_FINITE, STATUS_OK, LocalProblem
from lsgp.method.kernels import KERNELS
from lsgp.search.index import build_index
from lsgp.solvers.choose import choose_solver
from lsgp.solvers.exact import ExactSolver, differentiate, query_system
from lsgp.solvers.exact_system import ExactSystem

EXACT = TOLERANCES["float64"]


def problem_of(kernel="matern32", trend="linear", scale="global", n=32, d=2, t=2):
    case = Case(kernel, "rectangular", trend, scale, n, d, t, False, False)
    problem, queries, *_ = make_instance(case, n_queries=5)
    rows = slice(n)
    X, y, noise = (np.ascontiguousarray(array[rows]) for array in problem[:3])
    return LocalProblem(X, y, noise, problem.model), queries


def everyone(n, q):
    return np.tile(np.arange(n, dtype=np.int32), (q, 1))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("trend", [*TRENDS, "slope alone"])
def test_predictions_are_those_of_the_reference(kernel, trend):
    for scale, n, d in itertools.product(SCALE_DOFS, SIZES, DIMENSIONS):
        problem, queries = problem_of(
            kernel, "linear" if trend == "slope alone" else trend, scale, n, d
        )
        if trend == "slope alone":
            problem = problem._replace(model=problem.model.replace(constant_variance=0.0))
        label = f"{scale}, {n} rows, {d} inputs"
        system = ExactSystem.solve(problem)
        expected = reference.predict(Systems(problem, queries, everyone(n, len(queries))))
        assert_close(system.predict(queries), expected, EXACT, label)
        if n > 1:
            others = np.array([np.delete(np.arange(n, dtype=np.int32), i) for i in range(n)])
            expected = reference.predict(Systems(problem, problem.X, others))
            assert_close(system.leave_out(np.arange(n)), expected, EXACT, label)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("trend", [*TRENDS, "slope alone", "unknown"])
def test_derivatives_are_those_of_the_reference(kernel, trend):
    variances = {"slope alone": (0.0, 0.2), "unknown": (np.inf, np.inf)}
    for scale, n, d in itertools.product(SCALE_DOFS, (7, 65), DIMENSIONS):
        if trend == "unknown" and n <= d + 1:
            continue
        problem, queries = problem_of(kernel, "linear", scale, n, d)
        constant, slope = variances.get(trend) or TRENDS[trend]
        changed = problem.model.replace(constant_variance=constant, slope_variance=slope)
        problem = problem._replace(model=changed)
        expected = reference.differentiate(Systems(problem, queries, everyone(n, len(queries))))
        solved, derivatives = differentiate(ExactSystem.solve(problem), queries)
        label = f"{scale}, {n} rows, {d} inputs"
        assert_close(solved, expected[0], EXACT, label)
        tolerances = dict.fromkeys(derivatives._fields, 1e-07)
        assert_close(derivatives, expected[1], tolerances, label)


@pytest.mark.parametrize("left_out", [[], [0], [17], [3, 4, 20]])
@pytest.mark.parametrize("trend", TRENDS)
def test_local_systems_are_those_of_the_reference(trend, left_out):
    problem, queries = problem_of(trend=trend)
    rows = np.arange(32, dtype=np.int32)
    rows = np.delete(rows, left_out)
    expected = solve_system(problem, queries[0], rows, with_derivatives=False)
    system = query_system(ExactSystem.solve(problem), queries[0], np.array(left_out, int))
    names = ("rows", "y", "z", "weight", "noise", "alpha", "beta", "mean", "variance", "misfit")
    for name in (*names, "status"):
        value, wanted = getattr(system, name), getattr(expected, name)
        np.testing.assert_allclose(value, wanted, rtol=1e-10, atol=1e-11, err_msg=name)
    for value, wanted in zip(
        system.slopes(problem.model), expected.slopes(problem.model), strict=True
    ):
        np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-11)


def test_results_do_not_depend_on_the_other_queries():
    problem, _ = problem_of(n=65, d=9)
    queries = np.random.default_rng(0).normal(size=(150, 9))
    system = ExactSystem.solve(problem)
    together, slopes = differentiate(system, queries)
    parts = [slice(0, 1), slice(63, 66), slice(77, 78), slice(100, 130), slice(None, None, -1)]
    for part in parts:
        alone, own_slopes = differentiate(system, queries[part])
        assert_identical(alone, type(together)(*(values[part] for values in together)))
        assert_identical(own_slopes, type(slopes)(*(values[part] for values in slopes)))
        assert_identical(system.predict(queries[part]), alone)
    assert len(system.predict(queries[:0]).mean) == 0
    # Means do not need the variances.
    assert np.array_equal(system.predict(queries, mean_only=True).mean, together.mean)


def test_extended_system_is_that_of_all_rows():
    problem, queries = problem_of(n=65)
    part = LocalProblem(problem.X[:40], problem.y[:40], problem.noise[:40], problem.model)
    extended = ExactSystem.solve(part).extend(problem)
    solved = ExactSystem.solve(problem)
    assert_close(extended.predict(queries), solved.predict(queries), EXACT, "extended")
    rows = np.arange(65)
    assert_close(extended.leave_out(rows), solved.leave_out(rows), EXACT, "extended")


def test_duplicates_without_noise_are_jittered_also_when_they_come_later():
    problem, queries = problem_of(n=32)
    model = problem.model.replace(noise_variance=1e-300)
    twice = LocalProblem(*(np.concatenate([array, array[:3]]) for array in problem[:3]), model)
    solved = ExactSystem.solve(twice)
    assert solved.status == STATUS_JITTERED
    first = ExactSystem.solve(problem._replace(model=model))
    assert first.status == STATUS_OK
    assert_identical(first.extend(twice).predict(queries), solved.predict(queries))


def test_leaving_out_a_row_leaves_out_its_jitter():
    problem, _ = problem_of(trend="none", n=32)
    twice = LocalProblem(
        *(np.concatenate([array, array[:3]]) for array in problem[:3]),
        problem.model.replace(noise_variance=1e-300),
    )
    system = ExactSystem.solve(twice)
    assert system.status == STATUS_JITTERED
    own = system.leave_out(np.array([0])).variance[0]
    # Its twin is in the system, so what is left is about the twin's own jitter.
    assert own == pytest.approx(system.jitter, rel=0.1)


@pytest.mark.parametrize("weight", [1e-16, 1e-30])
def test_rows_of_next_to_no_weight_are_left_out_rightly(weight):
    problem, _ = problem_of(n=32)
    noise = problem.noise.copy()
    noise[5] = 1.0 / weight
    problem = problem._replace(noise=noise)
    others = np.delete(np.arange(32, dtype=np.int32), 5)[None]
    expected = reference.predict(Systems(problem, problem.X[5:6], others))
    found = ExactSystem.solve(problem).leave_out(np.array([5]))
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-4)


def test_rows_that_are_not_finite_give_a_status_and_no_warning():
    problem, queries = problem_of()
    problem.X[0] = 1e200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        system = ExactSystem.solve(problem)
        assert (system.predict(queries).status == STATUS_NOT_FINITE).all()


def test_query_that_is_not_finite_spoils_no_other():
    problem, queries = problem_of()
    system = ExactSystem.solve(problem)
    expected = system.predict(queries)
    queries[1] = 1e200
    status = system.predict(queries).status
    assert status.tolist() == [STATUS_OK, STATUS_NOT_FINITE, *[STATUS_OK] * 3]
    assert np.array_equal(system.predict(queries).mean[2:], expected.mean[2:])
    assert query_system(system, queries[1]).status == STATUS_NOT_FINITE


def test_only_all_rows_with_weight_1_share_a_system():
    problem = problem_of()[0]
    n, model = len(problem.X), problem.model
    index = build_index(np.ascontiguousarray(problem.X, dtype=float), np.ones(problem.X.shape[1]))

    def is_exact(model, n_neighbors, backend=cpu):
        changed = problem._replace(model=model)
        return isinstance(choose_solver(changed, index, n_neighbors, backend), ExactSolver)

    assert is_exact(model, n)
    assert is_exact(model, 3 * n)
    assert not is_exact(model, n - 1)
    assert not is_exact(model, n, reference)
    assert not is_exact(model.replace(localizer="smooth"), n)
    assert not is_exact(model.replace(bandwidth=10.0), None)
    assert not is_exact(model.replace(normalize=True), n)
    assert not is_exact(model.replace(kernel=RationalQuadratic()), n)
