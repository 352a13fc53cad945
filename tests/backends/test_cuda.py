# SPDX-License-Identifier: BSD-3-Clause
"""The GPU backend: it computes what the reference does, and finds what the host finds.

Without CuPy, or without a device, only what it says then is tested.
"""

import gc
import sys

import numpy as np
import pytest
from backend_checks import (
    PLAIN,
    TOLERANCES,
    assert_close,
    assert_identical,
    each_dtype,
    each_pair,
)
from bare import BARE
from cases import DTYPES, Case, as_dtype, cases_of, make_instance

from lsgp import LSGPRegressor
from lsgp.backends import choose_backend, cpu, cuda, reference
from lsgp.backends.contract import Resources, ScoreRequest, Systems, SystemSize, around
from lsgp.backends.cuda import device
from lsgp.backends.cuda.device import DeviceError
from lsgp.method.contract import OBJECTIVES, STATUS_JITTERED, LocalModel, LocalProblem
from lsgp.search.coarse import UnitRequest, build_coarse_tree
from lsgp.search.contract import TooManyNeighborsError
from lsgp.search.exclusions import NO_EXCLUSIONS, Exclusions
from lsgp.search.index import build_index

REASON = cuda.why_not()
needs_device = pytest.mark.skipif(REASON is not None, reason=str(REASON))


# ---- without a device ----


def test_without_cupy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    device.forget_devices()
    try:
        with pytest.raises(DeviceError, match=r"^backend='cuda' needs CuPy.*lsgp\[cuda12\]"):
            choose_backend("cuda", LocalModel("rbf", "smooth", np.ones(1)))
    finally:
        device.forget_devices()


# ---- against the reference ----


@needs_device
@each_pair
def test_device_agrees_with_the_reference(kernel, localizer):
    for turn, case in enumerate(cases_of(kernel, localizer)):
        instance = make_instance(case)
        objective = OBJECTIVES[turn % len(OBJECTIVES)]
        predicted = reference.predict(instance.systems)
        targets = instance.targets, instance.target_neighbors, objective
        scored = reference.score(ScoreRequest(instance.problem, *targets))
        for dtype in DTYPES:
            cast, label = as_dtype(instance, dtype), f"{case}, {dtype}"
            actual = cuda.predict(cast.systems)
            assert_close(actual, predicted, TOLERANCES[dtype], label)
            actual = cuda.score(ScoreRequest(cast.problem, *targets))
            assert_close(actual, scored, TOLERANCES[dtype], f"{label}, {objective}")


@needs_device
@each_pair
def test_device_agrees_on_coefficients_and_on_averages(kernel, localizer):
    for turn, case in enumerate(cases_of(kernel, localizer)[::5]):
        instance = make_instance(case)
        places = instance.problem, instance.queries, instance.neighbors
        expected, got = (
            reference.coefficients(Systems(*places)),
            cuda.coefficients(Systems(*places)),
        )
        assert np.array_equal(got.status, expected.status)
        np.testing.assert_allclose(got.weight, expected.weight, rtol=1e-9)
        largest = np.abs(expected.beta).max(initial=1.0)
        np.testing.assert_allclose(got.beta, expected.beta, rtol=0, atol=1e-7 * largest)
        if turn == 0:
            points = instance.queries[:, None, :] + np.linspace(-0.1, 0.1, 3)[:, None]
            assert_identical(
                cuda.predict(Systems(*places, points)), cpu.predict(Systems(*places, points))
            )


#: Sizes around those at which another kernel, or another kind of memory, is taken.
LARGE = [(31, 3), (33, 8), (63, 17), (64, 8), (64, 1), (65, 2), (128, 40), (256, 8), (300, 3)]
LARGE += [(345, 3), (512, 8), (1024, 2), (700, 80)]


@needs_device
@each_dtype
@pytest.mark.parametrize("trend", ["linear", "vague", "unknown"])
@pytest.mark.parametrize(("m", "d"), LARGE)
def test_systems_of_any_size_agree_with_the_native_core(m, d, trend, dtype):
    case = Case("matern32", "smooth", "linear", "local", m, d, 1 + m % 2, False, False)
    instance = as_dtype(make_instance(case, n_queries=5), dtype)
    variances = {"linear": (0.7, 0.2), "vague": (1e4, 1e3), "unknown": (np.inf, 0.0)}[trend]
    model = instance.problem.model.replace(
        constant_variance=variances[0], slope_variance=variances[1]
    )
    problem = instance.problem._replace(model=model)
    expected = cpu.predict(Systems(problem, instance.queries, instance.neighbors))
    actual = cuda.predict(Systems(problem, instance.queries, instance.neighbors))
    assert_close(actual, expected, TOLERANCES[dtype], f"{m}, {d}")
    targets = instance.targets, instance.target_neighbors, "log_density"
    expected, actual = (
        cpu.score(ScoreRequest(problem, *targets)),
        cuda.score(ScoreRequest(problem, *targets)),
    )
    assert_close(actual, expected, TOLERANCES[dtype], f"{m}, {d}")


@needs_device
@each_dtype
def test_a_query_does_not_depend_on_its_company(dtype):
    case = PLAIN._replace(n_neighbors=32)
    instance = as_dtype(make_instance(case, n_queries=40), dtype)
    rng = np.random.default_rng(3)
    neighbors = instance.neighbors.copy()
    for row, size in zip(neighbors, rng.integers(0, 33, len(neighbors)), strict=True):
        row[size:] = -1
        rng.shuffle(row)  # padding may be anywhere
    together = cuda.predict(Systems(instance.problem, instance.queries, neighbors))
    assert_close(
        together,
        cpu.predict(Systems(instance.problem, instance.queries, neighbors)),
        TOLERANCES[dtype],
        "padded",
    )
    order = rng.permutation(40)
    again = cuda.predict(Systems(instance.problem, instance.queries[order], neighbors[order]))
    assert_identical(again, type(together)(*(part[order] for part in together)))


@needs_device
@each_dtype
def test_singular_systems_climb_the_same_ladder(dtype):
    X = np.repeat(np.linspace(0.0, 1.0, 4)[:, None], 3, axis=0).astype(dtype)
    neighbors = np.arange(12, dtype=np.int32)[None]
    model = LocalModel("rbf", "rectangular", np.ones(1), noise_variance=0.0)
    problem = LocalProblem(X, np.sin(X), np.ones(12, dtype), model)
    query = X[:1] + np.asarray(0.1, dtype)
    actual, expected = (b.predict(problem, query, neighbors) for b in (cuda, cpu))
    assert actual.status == expected.status == STATUS_JITTERED
    np.testing.assert_allclose(actual.mean, expected.mean, rtol=1e-3)


@needs_device
def test_rows_that_are_not_there_are_refused():
    instance = make_instance(PLAIN)
    wrong = instance.neighbors.copy()
    wrong[1, 2] = len(instance.problem.X)
    with pytest.raises(ValueError, match="neighbors names a row that X does not have"):
        cuda.predict(Systems(instance.problem, instance.queries, wrong))
    nobody = cuda.predict(Systems(instance.problem, instance.queries[:0], instance.neighbors[:0]))
    assert len(nobody.mean) == 0


# ---- search ----


@needs_device
@pytest.mark.parametrize("n_inputs", [1, 2, 7, 20])
@pytest.mark.parametrize("n", [5, 64, 20_000])
def test_device_finds_the_neighborhoods_of_the_host(n, n_inputs):
    rng = np.random.default_rng(n + n_inputs)
    # On a lattice, so that many are at equal distance, some of them twice.
    X = rng.integers(0, 30 if n_inputs < 3 else 4, (n, n_inputs)) / 4.0
    index = build_index(X, np.full(n_inputs, 0.5))
    queries = np.concatenate([X[:200], rng.uniform(-1.0, 3.0, (200, n_inputs))])
    q = len(queries)
    rows = np.where(np.arange(q) < min(n, 200), np.arange(q), -1).astype(np.int32)
    groups = rng.integers(0, 3, n).astype(np.int32)
    own_groups = rng.integers(-1, 3, q).astype(np.int32)
    radius = rng.uniform(0.0, 0.7, q)
    model = LocalModel("rbf", "smooth", np.geomspace(0.3, 1.1, n_inputs))
    for exclusions in (
        NO_EXCLUSIONS,
        Exclusions(rows),
        Exclusions(rows, radius),
        Exclusions(None, None, groups, own_groups),
    ):
        for m in (1, 7, 64, 65, 400):
            expected = cpu.search(index, around(model, queries, m, exclusions))
            actual = cuda.search(index, around(model, queries, m, exclusions))
            assert np.array_equal(actual, expected), (m, exclusions)
        ball = model.replace(bandwidth=0.4)
        few = around(ball, queries, None, exclusions).block(0, 50)
        assert outcome(cuda, index, few) == outcome(cpu, index, few)


@needs_device
@pytest.mark.parametrize("n_inputs", [1, 2, 8])
@pytest.mark.parametrize("n", [3, 500, 30_000])
def test_device_finds_the_units_of_the_host(n, n_inputs):
    rng, q = np.random.default_rng(n + n_inputs), 300
    X = rng.integers(0, 30 if n_inputs < 3 else 4, (n, n_inputs)) / 4.0
    X[: n // 2] += rng.normal(size=(n // 2, n_inputs))
    unit = np.geomspace(0.3, 1.1, n_inputs)
    tree, index = build_coarse_tree(X, unit, rng.uniform(0.5, 2.0, n)), build_index(X, 2.0 * unit)
    own = rng.integers(0, n, q).astype(np.int32)
    queries = X[own]
    queries[::3] += rng.normal(size=queries[::3].shape)
    groups = rng.integers(-1, max(2, n // 50), n).astype(np.int32)
    groups[rng.random(n) < 0.2] = 0  # one of them is everywhere
    for exclusions in (
        NO_EXCLUSIONS,
        Exclusions(own),
        Exclusions(own, rng.uniform(0.0, 0.7, q)),
        Exclusions(own, groups=groups, query_groups=rng.integers(-1, 3, q).astype(np.int32)),
    ):
        for m, reach in ((1, 2.0), (24, 8.0), (64, 3.0), (400, 4.0)):
            given = UnitRequest(tree, index, queries, m, reach, exclusions)
            expected, actual = cpu.search_units(given), cuda.search_units(given)
            assert np.array_equal(actual, expected), (m, exclusions)


def outcome(backend, *arguments):
    """What is found; the message, where a query reaches more rows than a system may have."""
    try:
        return backend.search(*arguments).tolist()
    except TooManyNeighborsError as error:
        return str(error)


# ---- the whole ----


@needs_device
@each_dtype
@pytest.mark.parametrize("bandwidth", ["adaptive", 0.4])
def test_an_estimator_on_the_device_predicts_as_on_the_host(bandwidth, dtype):
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(3000, 3)), rng.normal(size=(5000, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=3000)
    settings = {**BARE, "dtype": dtype, "localizer__bandwidth": bandwidth}
    models = [
        LSGPRegressor().set_params(**settings, backend=name).fit(X, y) for name in ("cpu", "cuda")
    ]
    tolerance = 1e-9 if dtype == "float64" else 1e-3
    for left, right in zip(*(m.predict(queries, return_std=True) for m in models), strict=True):
        np.testing.assert_allclose(right, left, rtol=tolerance, atol=tolerance)


@needs_device
def test_a_coarse_estimator_on_the_device_predicts_as_on_the_host():
    rng = np.random.default_rng(1)
    X, queries = rng.normal(size=(20_000, 2)), rng.normal(size=(9000, 2))
    y = np.sin(2.0 * X[:, 0]) + rng.normal(size=20_000)
    settings = {**BARE, "localizer__reach": 4.0, "n_neighbors": 48}
    models = [
        LSGPRegressor().set_params(**settings, backend=name).fit(X, y) for name in ("cpu", "cuda")
    ]
    for left, right in zip(*(m.predict(queries, return_std=True) for m in models), strict=True):
        np.testing.assert_allclose(right, left, rtol=1e-9, atol=1e-9)


@needs_device
def test_rows_are_uploaded_once_and_go_with_their_arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    gc.collect()  # what other tests left, whose copies go when it does
    before = cuda.residence.n_bytes
    model = LocalModel("rbf", "smooth", np.ones(4))
    problem = LocalProblem(X, X[:, :1].copy(), np.ones(20_000), model)
    cuda.prepare(problem)
    held = cuda.residence.n_bytes
    assert held - before == X.nbytes + 2 * X[:, 0].nbytes
    cuda.prepare(problem)
    assert cuda.residence.n_bytes == held
    del X, problem
    gc.collect()
    assert cuda.residence.n_bytes == before


@needs_device
def test_plan_stays_within_the_budget():
    instance = make_instance(PLAIN)
    small = cuda.plan(SystemSize.of(instance.problem, 64), 10**6, Resources(memory_budget=10**6))
    large = cuda.plan(SystemSize.of(instance.problem, 64), 10**6, Resources(memory_budget=10**9))
    assert small.block_size < large.block_size
    with pytest.raises(ValueError, match="memory_budget=100 bytes is less than"):
        cuda.plan(SystemSize.of(instance.problem, 64), 10**6, Resources(memory_budget=100))
