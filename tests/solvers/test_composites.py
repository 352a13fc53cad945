# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that are sums of two correlations: exact GPs, and their evidence."""

import math

import numpy as np
import pytest
from backend_checks import TOLERANCES, assert_close
from differences import differences

from lsgp.backends import cpu, reference
from lsgp.backends.contract import Systems
from lsgp.backends.dense_host import HOST
from lsgp.method.contract import STATUS_OK, LocalModel, LocalProblem
from lsgp.method.kernels import CHOSEN_FROM, KERNELS, SumKernel
from lsgp.method.parameters import Parameters
from lsgp.method.spectral import draw_waves
from lsgp.search.index import build_index
from lsgp.solvers.choose import change_rows, choose_solver
from lsgp.solvers.evidence import NOT_TUNED, negative_log_evidence, negative_log_prior
from lsgp.solvers.exact import ExactSolver, differentiate, query_system
from lsgp.solvers.exact_system import ExactSystem
from lsgp.storage.records import ArrayStore, Reader, write_record

EXACT = TOLERANCES["float64"]
RATIOS = (0.2, 0.6, 1.4)


def sum_of(first="matern52", second="matern12", constant=0.4, ratios=RATIOS):
    return SumKernel((first, second), constant, tuple(ratios))


EVERY = {
    **{f"{name} and matern12": sum_of(name) for name in CHOSEN_FROM},
    **{f"rbf and {name}": sum_of("rbf", name) for name in CHOSEN_FROM},
}
one_kind = pytest.mark.parametrize("kernel", [sum_of()], ids=str)
each_kernel = pytest.mark.parametrize("kernel", EVERY.values(), ids=EVERY)


def problem_of(kernel=None, n=23, t=2, **changes):
    rng, d = np.random.default_rng(5), 3
    X = rng.standard_normal((n, d))
    y = np.column_stack([np.sin(X[:, 0]) + X[:, 1] * X[:, -1], X.sum(axis=1)])[:, :t]
    own = {
        "kernel": sum_of() if kernel is None else kernel,
        "localizer": "rectangular",
        "lengthscale": np.linspace(0.7, 1.9, d),
        "signal_variance": 1.3,
        "noise_variance": 0.05,
        "constant_variance": 2.0,
        "slope_variance": 0.3,
    }
    model = LocalModel(**{**own, **changes})
    return LocalProblem(X, y, rng.uniform(0.5, 2.0, n), model), rng.standard_normal((6, d))


def covariance(problem, left, right):
    """By the definition, one pair after another."""
    model = problem.model
    found = np.empty((len(left), len(right)))
    for i, a in enumerate(left):
        for k, b in enumerate(right):
            found[i, k] = correlation(model.kernel, (a - b) / model.lengthscale)
    return found


def correlation(kernel, u):
    own = (np.array(u @ u), np.array((u / kernel.ratios) @ (u / kernel.ratios)))
    one, other = (KERNELS[name](r2)[0] for name, r2 in zip(kernel.names, own, strict=True))
    return (one + kernel.constant * other) / (1.0 + kernel.constant)


def everyone(n, q):
    return np.tile(np.arange(n, dtype=np.int32), (q, 1))


@each_kernel
def test_predictions_are_those_of_a_gaussian_process_with_that_covariance(kernel):
    problem, queries = problem_of(kernel, constant_variance=0.0, slope_variance=0.0)
    model, X = problem.model, problem.X
    A = covariance(problem, X, X) + model.noise_variance * np.diag(problem.noise)
    k = covariance(problem, queries, X)
    system = ExactSystem.solve(problem)
    predicted = system.predict(queries)
    np.testing.assert_allclose(predicted.mean, k @ np.linalg.solve(A, problem.y), rtol=1e-9)
    variance = 1.0 - np.einsum("qn,nq->q", k, np.linalg.solve(A, k.T))
    np.testing.assert_allclose(predicted.variance, variance, rtol=1e-8)
    joint = covariance(problem, queries, queries) - k @ np.linalg.solve(A, k.T)
    np.testing.assert_allclose(system.covariance(queries), joint, atol=1e-10)


@one_kind
@pytest.mark.parametrize("trend", [(0.0, 0.0), (2.0, 0.3), (np.inf, np.inf)])
def test_exact_systems_are_those_of_the_reference(trend, kernel):
    for dof in (np.inf, 4.0):
        problem, queries = problem_of(
            kernel, constant_variance=trend[0], slope_variance=trend[1], scale_dof=dof
        )
        n, label = len(problem.X), f"{trend}, {dof}"
        system = ExactSystem.solve(problem)
        expected = reference.predict(Systems(problem, queries, everyone(n, len(queries))))
        assert_close(system.predict(queries), expected, EXACT, label)
        others = np.array([np.delete(np.arange(n, dtype=np.int32), i) for i in range(n)])
        expected = reference.predict(Systems(problem, problem.X, others))
        assert_close(system.leave_out(np.arange(n)), expected, EXACT, label)
        solved, slopes = differentiate(system, queries)
        expected, expected_slopes = reference.differentiate(
            Systems(problem, queries, everyone(n, len(queries)))
        )
        assert_close(solved, expected, EXACT, label)
        assert_close(slopes, expected_slopes, dict.fromkeys(slopes._fields, 1e-7), label)
        one = query_system(system, queries[0])
        np.testing.assert_allclose(one.mean, solved.mean[0], rtol=1e-9)


GROUPED = sum_of(ratios=(0.2, 0.2, 1.4)), (0, 0, 1)


@pytest.mark.parametrize(
    ("kernel", "groups"),
    [*((kernel, None) for kernel in EVERY.values()), GROUPED],
    ids=[*EVERY, "inputs of one lengthscale"],
)
@pytest.mark.parametrize("trend", [(0.0, 0.0), (2.0, 0.3), (1e6, 0.3), (1e6, 0.0)])
def test_gradients_of_the_evidence_are_differences_of_it(kernel, groups, trend):
    problem, _ = problem_of(kernel, constant_variance=trend[0], slope_variance=trend[1])
    parameters = Parameters(NOT_TUNED, groups=groups)
    if groups is not None:
        tied = problem.model.replace(lengthscale=np.array([0.7, 0.7, 1.9]))
        problem = problem._replace(model=tied)
    vector = parameters.pack(problem.model)

    def value(changed):
        return negative_log_evidence(
            problem._replace(model=parameters.unpack(changed, problem.model))
        ).value

    found, step = negative_log_evidence(problem), 1e-5
    expected = differences(value, vector, step)
    gradient = parameters.restrict(found.gradient, problem.model)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)
    moved = problem.X.copy()
    moved[3, 1] += step
    above = negative_log_evidence(problem._replace(X=moved)).value
    moved[3, 1] -= 2.0 * step
    below = negative_log_evidence(problem._replace(X=moved)).value
    np.testing.assert_allclose(found.by_rows[3, 1], (above - below) / (2.0 * step), rtol=1e-4)


@one_kind
def test_evidence_is_the_density_of_the_targets(kernel):
    problem, _ = problem_of(kernel, t=1)
    model, z = problem.model, problem.X - problem.X.mean(axis=0)
    z = z / model.lengthscale
    A = covariance(problem, problem.X, problem.X) + model.constant_variance
    A += model.slope_variance * z @ z.T + model.noise_variance * np.diag(problem.noise)
    A *= model.signal_variance
    y = problem.y[:, 0]
    expected = 0.5 * (y @ np.linalg.solve(A, y) + np.linalg.slogdet(2.0 * math.pi * A)[1])
    assert negative_log_evidence(problem).value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("constant", [1e-300, 1e-5, 1e5, 1e300])
@pytest.mark.parametrize("name", CHOSEN_FROM)
def test_extreme_constants_leave_finite_numbers(name, constant):
    kernel = sum_of(name, name, constant, (math.exp(-6.0), 1.0, math.exp(3.0)))
    problem, queries = problem_of(kernel)
    for width in (1.0, 1e-6, 1e6):
        own = problem.model.replace(lengthscale=width * problem.model.lengthscale)
        found = negative_log_evidence(problem._replace(model=own))
        assert math.isfinite(found.value)
        assert np.isfinite(found.gradient).all()
        assert np.isfinite(found.by_rows).all()
        solved, slopes = differentiate(ExactSystem.solve(problem._replace(model=own)), queries)
        assert (solved.status == STATUS_OK).all()
        assert all(np.isfinite(part).all() for part in (*solved[:3], *slopes))


@pytest.mark.parametrize("kernel", [sum_of(), *CHOSEN_FROM], ids=str)
def test_nothing_is_read_that_was_not_written(kernel, monkeypatch):
    problem, queries = problem_of(kernel)
    expected = negative_log_evidence(problem), ExactSystem.solve(problem).predict(queries)

    def poisoned(shape, dtype=float, **_):
        is_float = np.issubdtype(dtype, np.floating)
        return np.full(shape, np.inf if is_float else np.iinfo(dtype).max, dtype)

    monkeypatch.setattr(np, "empty", poisoned)
    found = negative_log_evidence(problem), ExactSystem.solve(problem).predict(queries)
    for after, before in zip(found, expected, strict=True):
        for own, other in zip(after, before, strict=True):
            np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize(
    ("kernel", "groups"), [(sum_of(), None), GROUPED], ids=["sum", "inputs of one lengthscale"]
)
def test_gradients_of_the_prior_are_differences_of_it(kernel, groups):
    problem, _ = problem_of(kernel, lengthscale=np.array([0.7, 0.7, 1.9]))
    parameters, model = Parameters(NOT_TUNED, groups=groups), problem.model
    gradient = parameters.restrict(negative_log_prior(model, groups)[1], model)
    expected = differences(
        lambda v: negative_log_prior(parameters.unpack(v, model), groups)[0], parameters.pack(model)
    )
    np.testing.assert_allclose(gradient, expected, atol=1e-6)


def test_bounds_of_lengthscales_are_not_those_of_constants():
    problem, _ = problem_of()
    own = Parameters(NOT_TUNED, own_bounds={"lengthscale": np.array([[-1.0, 1.0]])})
    bounds = own.bounds(problem.model)
    assert bounds[:3] == [(-1.0, 1.0)] * 3
    assert bounds[3:6] == Parameters(NOT_TUNED).bounds(problem.model)[3:6]
    edge = problem.model.replace(kernel=sum_of(constant=math.exp(5.0)))
    assert "lengthscale" not in own.at_bounds(edge)
    assert "constant" in own.at_bounds(edge)


@pytest.mark.parametrize("kernel", [sum_of("rbf", "matern32")], ids=str)
def test_waves_have_the_covariance_of_the_kernel(kernel):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((9, 3))
    total = np.zeros((9, 9))
    for seed in range(40):
        waves = draw_waves(kernel, 3, 0.2, np.random.default_rng(seed))
        phase = z @ waves.frequency.T
        weight = waves.amplitude**2
        total += (np.cos(phase) * weight) @ np.cos(phase).T
        total += (np.sin(phase) * weight) @ np.sin(phase).T
    np.testing.assert_allclose(total / 40, kernel.cross(z, z, z, z), atol=0.02)


@one_kind
def test_rows_are_added_to_the_factor_and_beyond_exact_ones_the_reference_solves(kernel):
    problem, queries = problem_of(kernel, n=30)
    part = LocalProblem(*(a[:20] for a in problem[:3]), problem.model)
    solver = choose_solver(part, build_index(part.X, np.ones(3), 1), 20, cpu)
    assert isinstance(solver, ExactSolver)
    solver.system  # noqa: B018
    index = build_index(problem.X, np.ones(3), 1)
    longer = change_rows(solver, problem, index, 30, may_extend=True)
    assert isinstance(longer, ExactSolver)
    assert_close(
        longer.system.predict(queries), ExactSystem.solve(problem).predict(queries), EXACT, "rows"
    )
    fewer = change_rows(solver, problem, index, 8, may_extend=True)
    assert fewer.backend.name == "reference"


@one_kind
def test_a_device_leaves_them_to_the_host(kernel):
    class Device:
        is_fast = True

    problem, _ = problem_of(kernel)
    assert ExactSystem.solve(problem, Device()).dense is HOST
    assert math.isfinite(negative_log_evidence(problem, Device()).value)


def read_again(model):
    store = ArrayStore()
    record = write_record(model, "model", store)
    return Reader(store.arrays).read(LocalModel, record)


@pytest.mark.parametrize(
    "kernel",
    [
        sum_of("spherical"),
        sum_of("rbf", "none"),
        SumKernel(("rbf",), 1.0, RATIOS),
        sum_of(constant=0.0),
        sum_of(constant=math.inf),
        sum_of(ratios=(1.0, 2.0)),
        sum_of(ratios=(1.0, 2.0, 0.0)),
    ],
)
def test_files_with_other_kernels_are_refused(kernel):
    model = problem_of(sum_of())[0].model
    assert read_again(model).kernel == sum_of()
    with pytest.raises(ValueError, match="sum"):
        read_again(model.replace(kernel=kernel))
