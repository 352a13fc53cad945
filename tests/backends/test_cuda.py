# SPDX-License-Identifier: BSD-3-Clause
"""The GPU backend: it computes what the reference does, and finds what the host finds.

By its kernels on a device, and as plain C++ where there is none. How a device rounds, and what it
does with its memory, only a device shows.
"""

import gc
import itertools
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
from emulated_cupy import needs_compiler, needs_device, on_each_place

from lsgp import LSGPRegressor
from lsgp import backends as all_backends
from lsgp.backends import choose_backend, cpu, reference
from lsgp.backends.contract import Resources, SystemSize, around
from lsgp.backends.cuda import device
from lsgp.backends.cuda.device import DeviceError
from lsgp.method.contract import (
    OBJECTIVES,
    STATUS_JITTERED,
    STATUS_NOT_FINITE,
    LocalModel,
    LocalProblem,
)
from lsgp.search.coarse import UnitRequest, build_coarse_tree
from lsgp.search.contract import NO_EXCLUSIONS, Exclusions, TooManyNeighborsError
from lsgp.search.index import build_index


def some(cuda, cases, step):
    """The cases, of which emulated lanes take but a few: they are slow."""
    return list(cases) if cuda is all_backends.cuda else list(cases)[::step]


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


@on_each_place
@each_pair
def test_kernels_agree_with_the_reference(cuda, kernel, localizer):
    for turn, case in some(cuda, enumerate(cases_of(kernel, localizer)), 5):
        instance = make_instance(case)
        objective = OBJECTIVES[turn % len(OBJECTIVES)]
        predicted = reference.predict(instance.systems)
        scored = reference.score(instance.judged_by(objective))
        for dtype in DTYPES:
            cast, label = as_dtype(instance, dtype), f"{case}, {dtype}"
            actual = cuda.predict(cast.systems)
            assert_close(actual, predicted, TOLERANCES[dtype], label)
            actual = cuda.score(cast.judged_by(objective))
            assert_close(actual, scored, TOLERANCES[dtype], f"{label}, {objective}")


@on_each_place
@each_pair
def test_kernels_agree_on_coefficients_and_on_averages(cuda, kernel, localizer):
    for turn, case in some(cuda, enumerate(cases_of(kernel, localizer)[::5]), 2):
        instance = make_instance(case)
        expected, got = (b.coefficients(instance.systems) for b in (reference, cuda))
        assert np.array_equal(got.status, expected.status)
        np.testing.assert_allclose(got.weight, expected.weight, rtol=1e-9)
        largest = np.abs(expected.beta).max(initial=1.0)
        np.testing.assert_allclose(got.beta, expected.beta, rtol=0, atol=1e-7 * largest)
        if turn == 0:
            points = instance.queries[:, None, :] + np.linspace(-0.1, 0.1, 3)[:, None]
            areas = instance.systems._replace(points=points)
            assert_identical(cuda.predict(areas), cpu.predict(areas))


#: Sizes around those at which another kernel, or another kind of memory, is taken.
LARGE = [(31, 3), (33, 8), (63, 17), (64, 8), (64, 1), (65, 2), (128, 40), (256, 8), (300, 3)]
LARGE += [(345, 3), (512, 8), (1024, 2), (700, 80)]
LARGEST_EMULATED = 150


@on_each_place
@each_dtype
@pytest.mark.parametrize("trend", ["linear", "vague", "unknown"])
@pytest.mark.parametrize(("m", "d"), LARGE)
def test_systems_of_any_size_agree_with_the_native_core(cuda, m, d, trend, dtype):
    if m > LARGEST_EMULATED and cuda is not all_backends.cuda:
        pytest.skip("emulated lanes are slow")
    case = Case("matern32", "smooth", "linear", "local", m, d, 1 + m % 2, False, False)
    instance = as_dtype(make_instance(case, n_queries=5), dtype)
    variances = {"linear": (0.7, 0.2), "vague": (1e4, 1e3), "unknown": (np.inf, 0.0)}[trend]
    model = instance.problem.model.replace(
        constant_variance=variances[0], slope_variance=variances[1]
    )
    instance = instance._replace(problem=instance.problem._replace(model=model))
    expected, actual = (b.predict(instance.systems) for b in (cpu, cuda))
    assert_close(actual, expected, TOLERANCES[dtype], f"{m}, {d}")
    expected, actual = (b.score(instance.judged_by("log_density")) for b in (cpu, cuda))
    assert_close(actual, expected, TOLERANCES[dtype], f"{m}, {d}")


@on_each_place
@each_dtype
@pytest.mark.parametrize("n_targets", [1, 2])
def test_a_query_does_not_depend_on_its_company(cuda, dtype, n_targets):
    case = PLAIN._replace(n_neighbors=32, n_targets=n_targets)
    instance = as_dtype(make_instance(case, n_queries=40), dtype)
    rng = np.random.default_rng(3)
    for row, size in zip(instance.neighbors, rng.integers(0, 33, 40), strict=True):
        row[size:] = -1
        rng.shuffle(row)  # padding may be anywhere
    together = cuda.predict(instance.systems)
    assert_close(together, cpu.predict(instance.systems), TOLERANCES[dtype], "padded")
    order = rng.permutation(40)
    queries, neighbors = instance.queries[order], instance.neighbors[order]
    again = cuda.predict(instance._replace(queries=queries, neighbors=neighbors).systems)
    assert_identical(again, type(together)(*(part[order] for part in together)))


@needs_compiler
@pytest.mark.parametrize("n_threads", [32, 128])
def test_no_bit_depends_on_the_order_in_which_threads_run(emulated, n_threads):
    """Between barriers; also where several warps solve one system."""
    cuda, library = emulated(n_threads)
    for m, t, constant in ((70, 1, 0.7), (50, 4, 1e4), (19, 2, 0.7), (40, 1, 0.7)):
        case = Case("matern32", "smooth", "linear", "local", m, 3, t, False, False)
        instance = as_dtype(make_instance(case, n_queries=2), "float32")
        model = instance.problem.model.replace(constant_variance=constant)
        instance = instance._replace(problem=instance.problem._replace(model=model))
        for ask, given in (("predict", instance.systems), ("score", instance.judged_by("crps"))):
            found = getattr(cuda, ask)(given)
            library.turn_around()
            assert_identical(getattr(cuda, ask)(given), found)
            library.turn_around()
            assert_close(found, getattr(cpu, ask)(given), TOLERANCES["float32"], f"{case}")


@on_each_place
@each_dtype
def test_singular_systems_climb_the_same_ladder(cuda, dtype):
    X = np.repeat(np.linspace(0.0, 1.0, 4)[:, None], 3, axis=0).astype(dtype)
    for noise_variance in (0.0, 1e-18):
        model = LocalModel("rbf", "rectangular", np.ones(1), noise_variance=noise_variance)
        problem = LocalProblem(X, np.sin(X), np.ones(12, dtype), model)
        systems = make_instance(PLAIN).systems._replace(
            problem=problem,
            queries=X[:1] + np.asarray(0.1, dtype),
            neighbors=np.arange(12, dtype=np.int32)[None],
        )
        actual, expected = (b.predict(systems) for b in (cuda, cpu))
        assert actual.status == expected.status == STATUS_JITTERED
        np.testing.assert_allclose(actual.mean, expected.mean, rtol=1e-3)
    wide = (array.astype(float) for array in (1e300 * X.astype(float), *problem[1:3]))
    endless = systems._replace(problem=LocalProblem(*wide, model), queries=X[:1].astype(float))
    assert cuda.predict(endless).status == STATUS_NOT_FINITE


@on_each_place
def test_rows_that_are_not_there_are_refused(cuda):
    systems = make_instance(PLAIN).systems
    wrong = systems.neighbors.copy()
    wrong[1, 2] = len(systems.problem.X)
    with pytest.raises(ValueError, match="neighbors names a row that X does not have"):
        cuda.predict(systems._replace(neighbors=wrong))
    assert len(cuda.predict(systems.block(0, 0)).mean) == 0


# ---- search ----


def points_and_exclusions(n, n_inputs, q):
    """Rows and queries, many at equal distances and on each other, and what may be left out."""
    rng = np.random.default_rng(n + n_inputs)
    X = rng.integers(0, 30 if n_inputs < 3 else 4, (n, n_inputs)) / 4.0
    X[: n // 2] += rng.normal(size=(n // 2, n_inputs))
    own = rng.integers(0, n, q).astype(np.int32)
    queries = X[own]
    queries[::3] += rng.normal(size=queries[::3].shape)
    groups = rng.integers(-1, max(2, n // 50), n).astype(np.int32)
    groups[rng.random(n) < 0.2] = 0  # one of them is everywhere
    own_groups = rng.integers(-1, 3, q).astype(np.int32)
    exclusions = (
        NO_EXCLUSIONS,
        Exclusions(own),
        Exclusions(own, rng.uniform(0.0, 0.7, q)),
        Exclusions(own, groups=groups, query_groups=own_groups),
    )
    return X, queries, exclusions


@on_each_place
@pytest.mark.parametrize("n_inputs", [1, 2, 7, 20])
@pytest.mark.parametrize("n", [5, 64, 1000, 20_000])
def test_the_neighborhoods_of_the_host_are_found(cuda, n, n_inputs):
    if n > 1000 and cuda is not all_backends.cuda:
        pytest.skip("emulated lanes are slow")
    X, queries, cases = points_and_exclusions(n, n_inputs, 400 if n > 1000 else 40)
    index = build_index(X, np.full(n_inputs, 0.5))
    for exclusions, m in itertools.product(cases, (1, 7, 64, 65, 400)):
        scale = np.full(n_inputs, 0.5) if m == 7 else np.geomspace(0.3, 1.1, n_inputs)
        model = LocalModel("rbf", "smooth", scale)
        nearest = around(model, queries, m, exclusions)
        found = cuda.search(index, nearest)
        assert np.array_equal(found, cpu.search(index, nearest)), (m, exclusions)
        within = around(model.replace(bandwidth=0.4), queries, None, exclusions).block(0, 50)
        assert outcome(cuda, index, within) == outcome(cpu, index, within)


@on_each_place
@pytest.mark.parametrize("n_inputs", [1, 2, 8])
@pytest.mark.parametrize("n", [3, 500, 3001, 30_000])
def test_the_units_of_the_host_are_found(cuda, n, n_inputs):
    if n > 3001 and cuda is not all_backends.cuda:
        pytest.skip("emulated lanes are slow")
    X, queries, cases = points_and_exclusions(n, n_inputs, 300 if n > 3001 else 24)
    unit = np.geomspace(0.3, 1.1, n_inputs)
    noise = np.random.default_rng(n).uniform(0.5, 2.0, n)
    tree, index = build_coarse_tree(X, unit, noise), build_index(X, 2.0 * unit)
    sizes = some(cuda, ((1, 2.0), (400, 4.0), (24, 8.0), (64, 3.0)), 2)
    for exclusions, (m, reach) in itertools.product(cases, sizes):
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
@pytest.mark.parametrize(
    ("n", "d", "dtype", "settings"),
    [
        (3000, 3, "float64", {"localizer__bandwidth": "adaptive"}),
        (3000, 3, "float32", {"localizer__bandwidth": "adaptive"}),
        (3000, 3, "float64", {"localizer__bandwidth": 0.4}),
        (3000, 3, "float32", {"localizer__bandwidth": 0.4}),
        (20_000, 2, "float64", {"localizer__reach": 4.0, "n_neighbors": 48}),
    ],
)
def test_an_estimator_on_the_device_predicts_as_on_the_host(n, d, dtype, settings):
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(n, d)), rng.normal(size=(9000, d))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=n)
    answers = [
        LSGPRegressor(backend=name, dtype=dtype)
        .set_params(**BARE | settings)
        .fit(X, y)
        .predict(queries, return_std=True)
        for name in ("cpu", "cuda")
    ]
    tolerance = 1e-9 if dtype == "float64" else 1e-3
    for left, right in zip(*answers, strict=True):
        np.testing.assert_allclose(right, left, rtol=tolerance, atol=tolerance)


@needs_device
def test_rows_are_uploaded_once_and_go_with_their_arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    gc.collect()  # what other tests left, whose copies go when it does
    residence = all_backends.cuda.solves.residence
    before = residence.n_bytes
    model = LocalModel("rbf", "smooth", np.ones(4))
    problem = LocalProblem(X, X[:, :1].copy(), np.ones(20_000), model)
    for _ in range(2):
        all_backends.cuda.prepare(problem)
        assert residence.n_bytes - before == X.nbytes + 2 * X[:, 0].nbytes
    del X, problem
    gc.collect()
    assert residence.n_bytes == before


@on_each_place
def test_plan_stays_within_the_budget(cuda):
    size = SystemSize.of(make_instance(PLAIN).problem, 64)
    small, large = (cuda.plan(size, 10**6, Resources(memory_budget=10**k)) for k in (6, 9))
    assert small.block_size < large.block_size
    with pytest.raises(ValueError, match="memory_budget=100 bytes is less than"):
        cuda.plan(size, 10**6, Resources(memory_budget=100))
