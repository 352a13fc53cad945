# SPDX-License-Identifier: BSD-3-Clause
"""On a device: memory that is full, Ctrl-C, other processes, leaks, and files for anywhere."""

import gc
import multiprocessing
import signal
import threading
import time

import numpy as np
import pytest

from lsgp import LSGPRegressor
from lsgp.backends import cuda
from lsgp.backends.cuda import residence
from lsgp.backends.cuda.device import DeviceMemoryError, cupy
from lsgp.backends.forwarding import PlacedBackend
from lsgp.solvers.exact import ExactSolver

REASON = cuda.why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))

SETTINGS = {"objective": None, "n_neighbors": 64, "backend": "cuda"}


def make_data(n=20_000, q=50_000, d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(2.0 * X[:, 0]), rng.normal(size=(q, d))


def exact_of(n):
    return {"localizer": "rectangular", "n_neighbors": n, "hyperparameters__scale": "global"}


def fit(X, y, **settings):
    return LSGPRegressor().set_params(**SETTINGS | settings).fit(X, y)


class Limit:
    """So many bytes of the device, for as long as it is entered."""

    def __init__(self, n_bytes):
        self.n_bytes = n_bytes

    def __enter__(self):
        self.pool = cupy().get_default_memory_pool()
        self.pool.free_all_blocks()
        self.hog = []
        self.pool.set_limit(size=max(1, self.pool.total_bytes()))
        # What is left of blocks of which a part is in use.
        for power in range(34, 8, -1):
            self._take(1 << power)
        self.pool.set_limit(size=self.pool.total_bytes() + self.n_bytes)

    def _take(self, n_bytes):
        try:
            while True:
                self.hog.append(cupy().empty(n_bytes, np.uint8))
        except MemoryError:
            return

    def __exit__(self, *error):
        self.hog.clear()
        self.pool.set_limit(size=0)
        self.pool.free_all_blocks()


def test_little_memory_halves_blocks_and_gives_the_same():
    X, y, queries = make_data()
    model = fit(X, y)
    expected = model.predict(queries, return_std=True)
    with Limit(10_000_000):  # neighborhoods alone are 13 MB
        assert np.array_equal(model.predict(queries, return_std=True), expected)


def test_no_memory_is_one_error_and_passes():
    X, y, queries = make_data()
    model = fit(X, y)
    expected = model.predict(queries[:100])
    with Limit(0), pytest.raises(DeviceMemoryError, match="too little memory on the device"):
        model.predict(queries[:100])
    assert np.array_equal(model.predict(queries[:100]), expected)
    exact = fit(X[:3000], y[:3000], **exact_of(3000))
    with Limit(0), pytest.raises(DeviceMemoryError):
        exact.predict(queries[:1])
    assert np.isfinite(exact.predict(queries[:1])).all()


def test_a_budget_bounds_what_blocks_take():
    X, y, queries = make_data()
    model = fit(X, y, memory_budget="8MB")
    expected = fit(X, y).predict(queries)
    model.predict(queries[:10])
    pool = cupy().get_default_memory_pool()
    gc.collect()
    pool.free_all_blocks()
    held = pool.total_bytes()
    assert np.array_equal(model.predict(queries), expected)
    # Of a block, and of what sorting its queries takes; all neighborhoods would be 13 MB.
    assert pool.total_bytes() - held <= 8_000_000


def test_ctrl_c_stops_within_a_block():
    X, y, queries = make_data(100_000, 4_000_000)
    model = fit(X, y)
    model.predict(queries[:300_000], return_std=True)
    began = time.monotonic()
    model.predict(queries, return_std=True)
    whole = time.monotonic() - began
    timer = threading.Timer(0.25 * whole, signal.raise_signal, [signal.SIGINT])
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.predict(queries, return_std=True)
    assert time.monotonic() - began < 0.25 * whole + 0.5
    assert np.isfinite(model.predict(queries[:10])).all()


def predict_elsewhere(connection):
    X, y, queries = make_data()
    model = fit(X, y)
    for _ in range(3):
        mean = model.predict(queries)
    connection.send(mean)


def test_two_processes_share_a_device():
    context = multiprocessing.get_context("spawn")
    pairs = [context.Pipe() for _ in range(2)]
    processes = [context.Process(target=predict_elsewhere, args=(theirs,)) for _, theirs in pairs]
    for process in processes:
        process.start()
    X, y, queries = make_data()
    own = fit(X, y).predict(queries)
    for (mine, _), process in zip(pairs, processes, strict=True):
        assert mine.poll(120)
        assert np.array_equal(mine.recv(), own)
        process.join(60)
        assert process.exitcode == 0


def test_nothing_leaks_over_a_thousand_predictions():
    X, y, queries = make_data(q=2000)
    model = fit(X, y)
    pool, seen = cupy().get_default_memory_pool(), []
    for turn in range(1000):
        model.predict(queries, return_std=True)
        if turn in (20, 999):
            gc.collect()
            seen.append((pool.used_bytes(), pool.total_bytes(), cuda.solves.residence.n_bytes))
    assert seen[0] == seen[1]
    del model
    gc.collect()
    assert cuda.solves.residence.n_bytes < seen[0][2]


def test_small_arrays_are_not_remembered():
    own = residence.Residence()
    own.upload(np.zeros(3))
    assert own.n_bytes == 0


@pytest.mark.parametrize("is_exact", [False, True])
def test_what_was_fitted_on_a_device_loads_and_predicts_on_the_host(
    tmp_path, is_exact, monkeypatch
):
    X, y, queries = make_data(600, 200)
    model = fit(X, y, **(exact_of(600) if is_exact else {}))
    assert isinstance(model.fitted_[0].solver, ExactSolver) == is_exact
    expected = model.predict(queries, return_std=True)
    model.save(tmp_path / "model.lsgp")
    monkeypatch.setattr(PlacedBackend, "why_not", lambda self: "there is none")
    monkeypatch.setattr("lsgp.storage.estimator.is_here", lambda name: name == "cpu")
    with pytest.warns(UserWarning, match="saved on the backend 'cuda', which is not here"):
        loaded = LSGPRegressor.load(tmp_path / "model.lsgp")
    assert loaded.fitted_[0].solver.backend.name == "cpu"
    for got, wanted in zip(loaded.predict(queries, return_std=True), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-8)


def test_a_worker_with_a_device_predicts_lazily():
    """A cluster of one worker, whose model is on the device."""
    distributed = pytest.importorskip("distributed")
    array = pytest.importorskip("dask.array")
    X, y, queries = make_data(2000, 4000)
    model = fit(X, y)
    settings = {"processes": False, "n_workers": 1, "dashboard_address": None}
    with distributed.Client(threads_per_worker=2, **settings):
        lazy = model.predict(array.from_array(queries, chunks=(1000, 3)))
        assert np.array_equal(lazy.compute(), model.predict(queries))
