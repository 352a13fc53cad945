# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the GPU backend that need no kernels: sources, what the host takes over, copies."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from lsgp.backends.cuda import modules, residence, search
from lsgp.backends.cuda.device import Device
from lsgp.backends.cuda.modules import PARTS, allow_shared_memory, source_of
from lsgp.search.coarse import UnitRequest, build_coarse_tree, search_units
from lsgp.search.contract import Exclusions, SearchRequest
from lsgp.search.index import build_index


@pytest.mark.parametrize("module", PARTS)
def test_sources_include_nothing(module):
    assert "#include" not in source_of(module)


def test_walks_without_room_are_those_of_the_host(monkeypatch):
    class Library:
        asarray, asnumpy, flatnonzero = map(staticmethod, (np.asarray, np.asarray, np.flatnonzero))

    monkeypatch.setattr(search, "cupy", lambda: Library)
    rng, unit, q = np.random.default_rng(0), np.ones(2), 9
    X = rng.normal(size=(500, 2))
    tree, index = build_coarse_tree(X, unit, np.ones(500)), build_index(X, unit)
    own = rng.integers(0, 500, q).astype(np.int32)
    exclusions = Exclusions(own, rng.uniform(0.0, 0.5, q), X[:, 0].astype(np.int32), own % 2)
    request = UnitRequest(tree, index, X[own], 16, 4.0, exclusions)
    expected = search_units(request)
    units = expected.copy()
    units[[2, 7]] = search.NO_ROOM
    search._ask_host(units, request)
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

    monkeypatch.setattr(search, "cupy", lambda: Library)
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
    assert np.array_equal(search.find_units(units, index, here), search_units(units))
    if shared_memory > 1:  # what there is room for is the device's
        monkeypatch.setattr(search, "_launch", refuse)
        with pytest.raises(LaunchedError):
            search.find(index, nearest._replace(n_neighbors=100), here)
        with pytest.raises(LaunchedError):
            search.find_units(units._replace(n_units=100), index, here)


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


# ---- which thread compiles a kernel, and who waits for it ----


@pytest.fixture
def compiler(monkeypatch):
    """In the place of CuPy's: notes what it is asked for, waits, and fails as told."""
    own = SimpleNamespace(asked=[], may_end=threading.Event(), error=None)

    def compile_one(*wanted):
        own.asked.append(wanted)
        assert own.may_end.wait(10)
        if own.error is not None:
            raise own.error
        return object()

    runtime = SimpleNamespace(getDevice=lambda: 0)
    library = SimpleNamespace(cuda=SimpleNamespace(Device=nullcontext, runtime=runtime))
    monkeypatch.setattr(modules, "_kernels", {})
    monkeypatch.setattr(modules, "_compile", compile_one)
    monkeypatch.setattr(modules, "cupy", lambda: library)
    return own


def test_threads_that_need_one_kernel_have_it_compiled_once(compiler):
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(modules.kernel_of, "score", "score", "M=64") for _ in range(4)]
        compiler.may_end.set()
        kernels = {id(future.result(10)) for future in futures}
    assert len(kernels) == 1
    assert compiler.asked == [("score", "score", "M=64")]
    other = modules.kernel_of("score", "score", "M=32")
    assert id(other) not in kernels


def test_what_is_begun_ahead_is_not_waited_for_and_not_begun_again(compiler):
    wanted = [("score", "score"), ("predict", "predict")]
    modules.compile_ahead(wanted)
    modules.compile_ahead(wanted)
    compiler.may_end.set()
    assert modules.kernel_of(*wanted[0]) is modules.kernel_of(*wanted[0])
    modules.kernel_of(*wanted[1])
    assert sorted(compiler.asked) == sorted(wanted)


def test_who_needs_a_kernel_that_failed_ahead_learns_why_and_may_try_again(compiler):
    compiler.error = RuntimeError("no memory for the compiler")
    compiler.may_end.set()
    modules.compile_ahead([("score", "score")])
    with pytest.raises(RuntimeError, match="no memory"):
        modules.kernel_of("score", "score")
    compiler.error = None
    assert modules.kernel_of("score", "score") is not None
