# SPDX-License-Identifier: BSD-3-Clause
"""The CUDA kernels compute what the reference does: their sources as plain C++, on no device."""

import itertools
import sys
import threading
import time
from types import SimpleNamespace
from typing import NamedTuple

import cuda_emulation as emulation
import numpy as np
import pytest
from backend_checks import TOLERANCES, assert_close, each_pair
from cases import DTYPES, Case, as_dtype, cases_of, make_instance

from lsgp.backends import cpu, reference
from lsgp.backends.contract import ScoreRequest, Systems
from lsgp.backends.cuda import coarse, residence, search
from lsgp.backends.cuda.coarse import NO_ROOM, ROOM_BESIDE, n_open_of
from lsgp.backends.cuda.device import Device
from lsgp.backends.cuda.modules import allow_shared_memory
from lsgp.backends.cuda.search import power_of_two
from lsgp.backends.cuda.sources import PARTS, source_of
from lsgp.method.contract import (
    OBJECTIVES,
    STATUS_IMPRECISE,
    STATUS_JITTERED,
    STATUS_NOT_FINITE,
    LocalModel,
    LocalProblem,
)
from lsgp.method.kernels import KERNELS
from lsgp.method.localizers import LOCALIZERS
from lsgp.search.coarse import UnitRequest, build_coarse_tree, search_units
from lsgp.search.contract import SearchRequest
from lsgp.search.exclusions import NO_EXCLUSIONS, Exclusions
from lsgp.search.index import build_index

needs_compiler = pytest.mark.skipif(
    emulation.COMPILER is None or not sys.platform.startswith("linux"),
    reason="there is no C++ compiler to ask, or no glibc, which lanes take their stacks from",
)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    kinds = [(name, name, dtype) for name in ("predict", "score") for dtype in DTYPES]
    kinds += [("coefficients", "coefficients", "float64"), ("search", "find", "float64")]
    kinds += [("coarse", "find_units", "float64")]
    return {
        (module, dtype): emulation.compile_kernel(module, kernel, folder, dtype)
        for module, kernel, dtype in kinds
    }


@pytest.mark.parametrize("module", PARTS)
def test_sources_include_nothing(module):
    assert "#include" not in source_of(module)


class Solved(NamedTuple):
    """`Predictions` without what the host adds to them."""

    mean: np.ndarray
    variance: np.ndarray
    scale: np.ndarray
    dof: np.ndarray
    status: np.ndarray


def precise(actual, expected):
    """Both without what is to be solved again, by the kernels of double precision."""
    keep = actual.status != STATUS_IMPRECISE
    return tuple(type(expected)(*(part[keep] for part in each)) for each in (actual, expected))


def solved(predictions):
    return Solved(*predictions[:5])


@needs_compiler
@each_pair
def test_kernels_agree_with_the_reference(libraries, kernel, localizer):
    n_compared = 0
    for turn, case in enumerate(cases_of(kernel, localizer)):
        if turn % 4 or (case.n_neighbors == 65 and turn % 8):
            continue
        instance = make_instance(case)
        objective = OBJECTIVES[turn // 4 % len(OBJECTIVES)]
        places = instance.queries, instance.neighbors
        wanted = solved(reference.predict(Systems(instance.problem, *places)))
        targets = instance.targets, instance.target_neighbors, objective
        wanted_scores = reference.score(ScoreRequest(instance.problem, *targets))
        for dtype in DTYPES:
            cast, label = as_dtype(instance, dtype), f"{case}, {dtype}"
            places = cast.queries, cast.neighbors
            # In the matrix, as the model asks for, or apart, as systems that lost digits are.
            for is_apart in (False, True):
                library = libraries["predict", dtype]
                got = emulation.predict(library, cast.problem, *places, is_apart)
                got, expected = precise(solved(got), wanted)
                n_compared += len(got.mean)
                assert_close(got, expected, TOLERANCES[dtype], f"{label}, apart: {is_apart}")
                library = libraries["score", dtype]
                scores = emulation.score(library, cast.problem, *targets, is_apart)
                scores, expected = precise(scores, wanted_scores)
                assert_close(scores, expected, TOLERANCES[dtype], f"{label}, {objective}")
    assert n_compared > 60


@needs_compiler
@each_pair
def test_coefficients_agree_with_the_reference(libraries, kernel, localizer):
    for case in cases_of(kernel, localizer)[::9]:
        instance = make_instance(case)
        places = instance.problem, instance.queries, instance.neighbors
        expected = reference.coefficients(Systems(*places))
        got = emulation.coefficients(libraries["coefficients", "float64"], *places, False)
        assert np.array_equal(got.status, expected.status)
        np.testing.assert_allclose(got.weight, expected.weight, rtol=1e-9)
        largest = np.abs(expected.beta).max(initial=1.0)
        np.testing.assert_allclose(got.beta, expected.beta, rtol=0, atol=1e-7 * largest)


@needs_compiler
def test_a_singular_system_climbs_the_same_jitter(libraries):
    X = np.repeat(np.linspace(0.0, 1.0, 4)[:, None], 3, axis=0)
    neighbors = np.arange(12, dtype=np.int32)[None]
    for noise_variance in (0.0, 1e-18):
        model = LocalModel("rbf", "rectangular", np.ones(1), noise_variance=noise_variance)
        problem = LocalProblem(X, np.sin(X), np.ones(12), model)
        wanted = reference.predict(Systems(problem, X[:1] + 0.1, neighbors))
        got = emulation.predict(
            libraries["predict", "float64"], problem, X[:1] + 0.1, neighbors, False
        )
        assert got.status == wanted.status == STATUS_JITTERED
        np.testing.assert_allclose(got.mean, wanted.mean, rtol=1e-3)
    far = LocalProblem(1e300 * X, np.sin(X), np.ones(12), model)
    got = emulation.predict(libraries["predict", "float64"], far, X[:1], neighbors, False)
    assert got.status == STATUS_NOT_FINITE


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [32, 64])
def test_warps_agree_with_the_native_core(tmp_path, size, dtype):
    kernels = {
        name: emulation.compile_kernel(f"warp_{name}", f"{name}_warp", tmp_path, dtype, size)
        for name in ("predict", "score")
    }
    rng, n_compared = np.random.default_rng(size), 0
    pairs = itertools.cycle(itertools.product(KERNELS, LOCALIZERS))
    sizes = [1, 3, size // 2 + 1, size - 1, size]
    for turn, (m, d) in enumerate(itertools.product(sizes, (1, 8, 19))):
        kernel, localizer = next(pairs)
        case = Case(kernel, localizer, "linear", "local", m, d, 1, False, turn % 2 == 1)
        instance = as_dtype(make_instance(case), dtype)
        places, label = (instance.queries, instance.neighbors.copy()), f"{case}, {dtype}"
        others = instance.target_neighbors.copy()
        if turn % 3 == 1:
            for row in (*places[1], *others):  # padding may be anywhere
                row[rng.random(m) < 0.3] = -1
        wanted = solved(cpu.predict(Systems(instance.problem, *places)))
        got = solved(emulation.predict_by_warps(kernels["predict"], instance.problem, *places))
        assert_close(*precise(got, wanted), TOLERANCES[dtype], label)
        targets = instance.targets, others, OBJECTIVES[turn % len(OBJECTIVES)]
        wanted = cpu.score(ScoreRequest(instance.problem, *targets))
        got = emulation.score_by_warps(kernels["score"], instance.problem, *targets)
        n_compared += int((got.status != STATUS_IMPRECISE).sum())
        assert_close(*precise(got, wanted), TOLERANCES[dtype], label)
    assert n_compared > 30


@needs_compiler
def test_several_warps_agree_with_the_native_core(tmp_path):
    kernels = {
        name: emulation.compile_kernel(name, name, tmp_path, "float32", n_threads=128)
        for name in ("predict", "score")
    }
    for m, t, is_apart in ((130, 1, False), (100, 4, True), (19, 2, False)):
        case = Case("matern32", "smooth", "linear", "local", m, 3, t, False, False)
        instance = as_dtype(make_instance(case, n_queries=2), "float32")
        places, label = (instance.problem, instance.queries, instance.neighbors), f"{case}"
        got = in_any_order(emulation.predict, kernels["predict"], *places, is_apart)
        got, wanted = precise(solved(got), solved(cpu.predict(Systems(*places))))
        assert len(got.mean) == 2
        assert_close(got, wanted, TOLERANCES["float32"], label)
        targets = instance.problem, instance.targets[:2], instance.target_neighbors[:2], "crps"
        got = in_any_order(emulation.score, kernels["score"], *targets, is_apart)
        got, wanted = precise(got, cpu.score(ScoreRequest(*targets)))
        assert_close(got, wanted, TOLERANCES["float32"], label)


def in_any_order(run, kernel, *arguments):
    """What a kernel computes, the same bits in whatever order its threads run between barriers."""
    results = []
    for _ in range(2):
        results.append(run(kernel, *arguments))
        emulation.turn_around(kernel)
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)
    return results[0]


@needs_compiler
@pytest.mark.parametrize("n_inputs", [1, 3, 9])
@pytest.mark.parametrize("n", [5, 64, 1000])
def test_search_finds_the_neighborhoods_of_the_host(libraries, n, n_inputs):
    rng = np.random.default_rng(n + n_inputs)
    # On a lattice, so that many are at equal distance, and twice.
    X = rng.integers(0, 6, (n, n_inputs)) / 4.0
    index = build_index(X, np.full(n_inputs, 0.5))
    queries = np.concatenate([X[:20], rng.uniform(-1.0, 3.0, (20, n_inputs))])
    rows = np.where(np.arange(len(queries)) < 20, np.arange(len(queries)), -1).astype(np.int32)
    rows = rows[: len(queries)]
    groups = rng.integers(0, 3, n).astype(np.int32)
    own_groups = rng.integers(-1, 3, len(queries)).astype(np.int32)
    radius = rng.uniform(0.0, 0.7, len(queries))
    cases = [
        NO_EXCLUSIONS,
        Exclusions(rows),
        Exclusions(rows, radius),
        Exclusions(None, None, groups, own_groups),
    ]
    for exclusions, m in itertools.product(cases, (1, 7, 64)):
        lengthscale = np.full(n_inputs, 0.5) if m == 7 else np.geomspace(0.3, 1.1, n_inputs)
        in_units, factor = index.enter(SearchRequest(queries, lengthscale, m, exclusions))
        own = index, in_units, factor, exclusions
        expected = index.search(SearchRequest(queries, lengthscale, m, exclusions))
        library = libraries["search", "float64"]
        found, _, farthest = emulation.find(library, *own, -1.0, 128, m)
        assert np.array_equal(found, expected)
        measured = index.measure(SearchRequest(queries, lengthscale, m, exclusions))
        assert np.array_equal(farthest, measured.squares[:, -1])
        within = index.search(SearchRequest(queries, lengthscale, None, exclusions, radius=0.9))
        _, counts, _ = emulation.find(library, *own, 0.9**2, 0, 0)
        assert np.array_equal(counts, (within >= 0).sum(axis=1))
        width = within.shape[1]
        found, _, _ = emulation.find(library, *own, 0.9**2, 1024, width)
        assert np.array_equal(found, within)


@needs_compiler
@pytest.mark.parametrize("n_inputs", [1, 2, 8])
@pytest.mark.parametrize("n", [3, 37, 3001])
def test_walk_finds_the_units_of_the_host(libraries, n, n_inputs):
    rng, q = np.random.default_rng(n + n_inputs), 24
    X = rng.integers(0, 9, (n, n_inputs)) / 4.0  # many at equal distances, and on each other
    X[: n // 2] += rng.normal(size=(n // 2, n_inputs))
    unit = np.geomspace(0.3, 1.1, n_inputs)
    tree, index = build_coarse_tree(X, unit, rng.uniform(0.5, 2.0, n)), build_index(X, unit)
    own = rng.integers(0, n, q).astype(np.int32)
    queries = X[own]
    queries[::3] += rng.normal(size=queries[::3].shape)
    groups = rng.integers(-1, max(2, n // 50), n).astype(np.int32)
    groups[rng.random(n) < 0.2] = 0  # one of them is everywhere
    cases = [
        NO_EXCLUSIONS,
        Exclusions(own),
        Exclusions(own, rng.uniform(0.0, 0.7, q)),
        Exclusions(own, groups=groups, query_groups=rng.integers(-1, 3, q).astype(np.int32)),
    ]
    n_alone = 0
    for exclusions, (m, reach) in itertools.product(cases, [(1, 2.0), (24, 8.0), (40, 3.0)]):
        expected = search_units(UnitRequest(tree, index, queries, m, reach, exclusions))
        nearest = index.measure(SearchRequest(queries, unit, min(m, n), exclusions))
        limits = (reach * nearest.distances[:, -1]) ** 2
        own_limits = limits, nearest.neighbors, exclusions
        sizes = m, power_of_two(m + ROOM_BESIDE), n_open_of(m)
        library = libraries["coarse", "float64"]
        found = emulation.find_units(library, tree, queries, *own_limits, *sizes)
        if m == 24:
            emulation.turn_around(library)
            again = emulation.find_units(library, tree, queries, *own_limits, *sizes)
            emulation.turn_around(library)
            assert np.array_equal(again, found)
        # A walk without room for its nodes is left to the host.
        has_room = found[:, 0] != NO_ROOM
        n_alone += int(has_room.sum())
        assert np.array_equal(found[has_room], expected[has_room]), (m, exclusions)
    assert n_alone > 0.9 * 12 * q


def test_walks_without_room_are_those_of_the_host(monkeypatch):
    class Library:
        asarray, asnumpy, flatnonzero = map(staticmethod, (np.asarray, np.asarray, np.flatnonzero))

    monkeypatch.setattr(coarse, "cupy", lambda: Library)
    rng, unit, q = np.random.default_rng(0), np.ones(2), 9
    X = rng.normal(size=(500, 2))
    tree, index = build_coarse_tree(X, unit, np.ones(500)), build_index(X, unit)
    own = rng.integers(0, 500, q).astype(np.int32)
    exclusions = Exclusions(own, rng.uniform(0.0, 0.5, q), X[:, 0].astype(np.int32), own % 2)
    request = UnitRequest(tree, index, X[own], 16, 4.0, exclusions)
    expected = search_units(request)
    units = expected.copy()
    units[[2, 7]] = NO_ROOM
    coarse._ask_host(units, request)
    assert np.array_equal(units, expected)


@pytest.mark.parametrize("shared_memory", [1, 65_536])
def test_what_a_warp_has_no_room_for_is_searched_by_the_host(monkeypatch, shared_memory):
    class Library:
        asarray, asnumpy = map(staticmethod, (np.asarray, np.asarray))
        zeros, empty = map(staticmethod, (np.zeros, np.empty))

    class LaunchedError(Exception):
        pass

    def refuse(*given):
        raise LaunchedError

    def count(index, entered, exclusions, here, radius, size, neighbors, counts, *more):
        if size:
            raise LaunchedError
        counts[:] = n

    for module in (coarse, search):
        monkeypatch.setattr(module, "cupy", lambda: Library)
    device = Device("Small", 40, shared_memory, 10**9, "7.5", "14")
    monkeypatch.setattr(search, "find_device", lambda: device)
    monkeypatch.setattr(search, "_launch", count)
    rng, unit, n = np.random.default_rng(0), np.ones(2), 4200
    X, queries = rng.normal(size=(n, 2)), rng.normal(size=(3, 2))
    tree, index = build_coarse_tree(X, unit, np.ones(n)), build_index(X, unit)
    exclusions, here = Exclusions(np.arange(3, dtype=np.int32)), residence.Residence()
    nearest = SearchRequest(queries, unit, 4096, exclusions)
    within = nearest._replace(n_neighbors=None, radius=99.0, max_neighbors=n)
    for request in (nearest, within):
        assert np.array_equal(search.find(index, request, here), index.search(request))
    units = UnitRequest(tree, index, queries, 600, 2.0, exclusions)
    assert np.array_equal(coarse.find_units(units, index, here), search_units(units))
    if shared_memory > 1:  # what there is room for is the device's
        monkeypatch.setattr(search, "_launch", refuse)
        with pytest.raises(LaunchedError):
            search.find(index, nearest._replace(n_neighbors=100), here)
        with pytest.raises(LaunchedError):
            coarse.find_units(units._replace(n_units=100), index, here)


def test_shared_memory_that_was_allowed_is_not_taken_back():
    has_read = threading.Event()

    class Kernel:
        allowed = 0

        @property
        def max_dynamic_shared_size_bytes(self):
            before = self.allowed
            if threading.current_thread() is not threading.main_thread():
                has_read.set()
                time.sleep(0.2)  # in which the main thread asks for more
            return before

        @max_dynamic_shared_size_bytes.setter
        def max_dynamic_shared_size_bytes(self, n_bytes):
            self.allowed = n_bytes

    kernel = Kernel()
    other = threading.Thread(target=allow_shared_memory, args=(kernel, 50_000))
    other.start()
    assert has_read.wait(10)
    allow_shared_memory(kernel, 90_000)
    other.join()
    allow_shared_memory(kernel, 60_000)
    assert kernel.allowed == 90_000


# ---- what is on the device ----


def test_parts_of_an_array_are_uploaded_once_and_go_with_it(monkeypatch):
    uploads, current = [], SimpleNamespace(id=0)

    class Library:
        cuda = SimpleNamespace(Device=lambda: current)

        @staticmethod
        def asarray(array):
            uploads.append(array.shape)
            return array.copy()

    monkeypatch.setattr(residence, "cupy", lambda: Library)
    monkeypatch.setattr(residence, "wait", lambda: None)
    here = residence.Residence()
    rows = np.arange(100_000, dtype=np.int32).reshape(1000, 100)
    for _ in range(3):
        assert np.array_equal(here.upload(rows[100:900]), rows[100:900])
        assert here.upload_rows(rows[:800])[1] == 79_999
        assert here.upload_rows(rows)[1] == 99_999
    assert uploads == [(800, 100), (800, 100), (1000, 100)]
    assert here.n_bytes == 2600 * 400
    # Another device has copies of its own.
    first, current.id = here.upload(rows), 1
    second = here.upload(rows)
    assert second is not first
    assert here.upload(rows) is second
    current.id = 0
    assert here.upload(rows) is first
    assert uploads[3:] == [(1000, 100)]
    # Small arrays are not remembered, and neither is one that is gone.
    assert here.upload_rows(rows[:0])[1] == -1
    del rows
    assert here.n_bytes == 0
