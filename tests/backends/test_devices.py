# SPDX-License-Identifier: BSD-3-Clause
"""Which device, how many of them, whether at all, and what is said when one fails.

Mostly without a device: something that fails or counts stands for it.
"""

import pickle
import sys
import types
import warnings
from contextlib import AbstractContextManager

import numpy as np
import pytest
from backend_checks import PLAIN, assert_identical
from cases import make_instance
from fake_device import LikeCuPy

import lsgp.backends as backends
from lsgp import LSGPRegressor
from lsgp.backends import WORTH, backend_named, choose_backend, cpu, cuda, is_here, seconds_to_solve
from lsgp.backends.contract import Resources, Systems, SystemSize, around
from lsgp.backends.cuda import device
from lsgp.backends.cuda.device import DeviceError, DeviceMemoryError
from lsgp.backends.forwarding import MOST_ON_HOST, DealtBackend, FallbackBackend, PlacedBackend
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.search.index import build_index
from lsgp.solvers.choose import seconds_on_host
from lsgp.solvers.evidence import negative_log_evidence
from lsgp.solvers.exact_system import ExactSystem

REASON = cuda.why_not()
needs_device = pytest.mark.skipif(REASON is not None, reason=str(REASON))
MODEL = LocalModel("rbf", "smooth", np.ones(2))


@pytest.fixture
def pretend(monkeypatch):
    """Put another library in the place of CuPy."""

    def put(library):
        device.forget_devices()
        monkeypatch.setitem(sys.modules, "cupy", library)
        return library

    yield put
    device.forget_devices()


class OnHost:
    """The native core, in the place of the kernels of a device; may fail."""

    name, dense = "on host", cpu.dense

    def __init__(self, most=10**9, error=None):
        self.most, self.error, self.sizes = most, error, []

    def __getattr__(self, name):
        function = getattr(cpu, name)

        def ask(*given):
            self.sizes.append(given[-1].size)
            if self.error is not None:
                raise self.error
            if self.sizes[-1] > self.most:
                raise LikeCuPy.OutOfMemoryError("Out of memory allocating 1 byte.")
            return function(*given)

        return ask if name in ("search", "predict", "predict_at", "score") else function


def placed(number=None, **settings):
    backend = PlacedBackend(number)
    backend.solves = OnHost(**settings)
    return backend


# ---- which one ----


@pytest.mark.parametrize("name", ["cuda:", "cuda:-1", "cuda:x", "cuda:0x1", "gpu", "CUDA"])
def test_other_names_are_refused_with_those_that_there_are(name):
    with pytest.raises(ValueError, match="is not one of 'auto', 'cpu', 'cuda', 'reference', "):
        choose_backend(name, MODEL)
    assert not is_here(name)


@pytest.mark.parametrize(("n_devices", "told"), [(1, "there is 1, number 0"), (2, "there are 2,")])
def test_a_device_that_is_not_there_is_told_with_the_count(pretend, n_devices, told):
    pretend(LikeCuPy(n_devices))
    assert all(map(is_here, ("cuda:0", "cuda", "cuda:all")))
    with pytest.raises(DeviceError, match=rf"backend='cuda:7' asks for device 7, but {told}"):
        choose_backend("cuda:7", MODEL)
    assert not is_here("cuda:7")


def test_no_device_and_an_old_driver_are_one_message_each(pretend, monkeypatch):
    for error, told in (
        ("cudaErrorInsufficientDriver: too old", "finds a driver that is older than CuPy's CUDA"),
        ("cudaErrorNoDevice: none", "finds no device that it can use.*nvidia-smi"),
    ):
        pretend(LikeCuPy(error=error))
        for name in ("cuda", "cuda:1", "cuda:all"):
            with pytest.raises(DeviceError, match=f"^backend='cuda' {told}.*backend='cpu'"):
                choose_backend(name, MODEL)
    pretend(LikeCuPy(0))
    with pytest.raises(DeviceError, match=r"^backend='cuda' finds no device"):
        choose_backend("cuda", MODEL)
    monkeypatch.setattr(backends, "find_spec", lambda name: object())
    assert choose_backend("auto", MODEL, 1e9) is cpu


def test_work_runs_on_the_device_of_the_number(pretend):
    library = pretend(LikeCuPy(3))
    backend, wide = placed(2), LocalModel("rbf", "smooth", np.ones(4))
    backend.predict(make_instance(PLAIN).systems)
    backend.search(build_index(np.eye(4), np.ones(4)), around(wide, np.eye(4), 2))
    assert set(library.used) == {2}


# ---- what fails ----


def test_out_of_memory_halves_blocks_and_gives_the_same(pretend):
    pretend(LikeCuPy())
    instance = make_instance(PLAIN)
    q = len(instance.queries)
    backend = placed(most=3)
    got = backend.predict(instance.systems)
    expected = cpu.predict(instance.systems)
    assert_identical(got, expected)
    assert backend.solves.sizes[0] == q
    assert sum(n for n in backend.solves.sizes if n <= 3) == q
    scores = backend.score(instance.judged_by("crps"))
    wanted = cpu.score(instance.judged_by("crps"))
    assert np.array_equal(scores.gradient, wanted.gradient)
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(200, 2)), rng.normal(size=(17, 2))
    ball = MODEL.replace(bandwidth=0.5)
    for model, m in ((MODEL, 5), (ball, None)):
        index, request = build_index(X, np.ones(2)), around(model, queries, m)
        expected = cpu.search(index, request)
        assert np.array_equal(backend.search(index, request), expected)
        problem = LocalProblem(X, X[:, :1].copy(), np.ones(200), model)
        predicted, rows = backend.predict_at(problem, index, request)
        assert np.array_equal(predicted.mean, cpu.predict(Systems(problem, queries, expected)).mean)
        for query in range(17):
            own = rows[query]
            assert np.array_equal(own, expected[query, : len(own)])


def test_memory_is_released_and_halves_are_joined_on_the_device_of_the_number(pretend):
    library = pretend(LikeCuPy(3))
    inside, seen = [], []
    make_context = library.device

    class Context(AbstractContextManager):
        def __init__(self, number=0):
            self.id = make_context(number).id

        def __enter__(self):
            inside.append(self.id)

        def __exit__(self, *error):
            inside.pop()

    library.cuda.Device = Context
    pool = types.SimpleNamespace(
        free_all_blocks=lambda: seen.append(list(inside)), free_bytes=lambda: 0
    )
    library.get_default_memory_pool = lambda: pool

    class Numbers(list):
        size = property(len)

        def block(self, start, stop):
            return Numbers(self[start:stop])

    def ask(numbers):
        if len(numbers) > 2:
            raise LikeCuPy.OutOfMemoryError("Out of memory allocating 1 byte.")
        return [numbers[0]]

    def join(halves):
        seen.append(list(inside))
        return [start for half in halves for start in half]

    assert placed(2)._halving(ask, Numbers(range(4)), join) == [0, 2]
    assert seen
    assert all(set(each) == {2} for each in seen)


def test_what_halves_do_not_mend_is_one_error(pretend):
    pretend(LikeCuPy())
    systems = make_instance(PLAIN).systems
    told = "^backend='cuda' has too little memory on the device.*Reduce memory_budget"
    with pytest.raises(DeviceMemoryError, match=told) as caught:
        placed(most=0).predict(systems)
    assert isinstance(caught.value, MemoryError)
    lost = LikeCuPy.CUDARuntimeError("cudaErrorIllegalAddress: an illegal access")
    with pytest.raises(DeviceError, match=r"^backend='cuda:1' failed on the device.*start a new"):
        placed(1, error=lost).predict(systems)
    mine = ValueError("neighbors names a row that X does not have")
    with pytest.raises(ValueError, match=r"^neighbors names a row"):
        placed(error=mine).predict(systems)


# ---- all of them ----


class Remembering:
    """A device that counts the neighborhoods that were found elsewhere."""

    name, dense = "remembering", cpu.dense

    def __init__(self):
        self.found, self.n_elsewhere = [], 0

    def __getattr__(self, name):
        return getattr(cpu, name)

    def search(self, *given):
        self.found.append(cpu.search(*given))
        return self.found[-1]

    def predict_at(self, *given):
        predicted, rows = cpu.predict_at(*given)
        self.found.append(rows)
        return predicted, rows

    def predict(self, systems):
        self.n_elsewhere += not any(systems.neighbors is each for each in self.found)
        return cpu.predict(systems)


def test_blocks_are_dealt_over_all_devices_and_stay_on_them(monkeypatch):
    members = [Remembering(), Remembering(), Remembering()]
    dealt = DealtBackend("dealt", lambda: members)
    monkeypatch.setitem(backends.BACKENDS, "dealt", dealt)
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(500, 2)), rng.normal(size=(3000, 2))
    y = np.sin(X[:, 0])
    settings = {"objective": None, "n_neighbors": 8}
    expected = LSGPRegressor().set_params(**settings, backend="cpu").fit(X, y).predict(queries)
    # One thread was asked for: three devices have one each.
    model = LSGPRegressor().set_params(**settings, backend="dealt", n_jobs=1).fit(X, y)
    assert np.array_equal(model.predict(queries), expected)
    n_found = [sum(map(len, member.found)) for member in members]
    assert sum(n_found) == 3000
    assert max(n_found) - min(n_found) <= 1000
    assert all(n_found)
    assert not any(member.n_elsewhere for member in members)
    size = SystemSize.of(model.fitted_[0].problem, 8)
    assert {dealt.plan(size, 3000, Resources(k)).n_threads for k in (1, 3)} == {3}


@needs_device
def test_one_device_under_several_names_predicts_alike(monkeypatch):
    """As if there were two devices: the first one twice."""
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(3000, 2)), rng.normal(size=(20_000, 2))
    y = np.sin(X[:, 0])
    twice = DealtBackend("twice", lambda: [backend_named("cuda:0"), cuda])
    monkeypatch.setitem(backends.BACKENDS, "twice", twice)
    predicted = [
        LSGPRegressor(objective=None, backend=name).fit(X, y).predict(queries, return_std=True)
        for name in ("cuda", "cuda:0", "cuda:all", "twice")
    ]
    for other in predicted[1:]:
        assert np.array_equal(other, predicted[0])


# ---- auto ----


def fallback(error=None):
    """A device that fails with this error, if any, and the host."""
    first = OnHost(error=error)
    first.dense = FailingDense(error)
    return FallbackBackend("first or cpu", first, cpu)


class FailingDense:
    """The host's, until the error is to come."""

    def __init__(self, error):
        self.error = error

    def __getattr__(self, name):
        if self.error is not None and name in ("invert", "covariance", "room"):
            raise self.error
        return getattr(cpu.dense, name)


@pytest.mark.filterwarnings("error")
def test_auto_goes_on_with_the_host_and_warns_once():
    systems = make_instance(PLAIN).systems
    expected = cpu.predict(systems)
    backend = fallback(DeviceError("the device is gone"))
    with pytest.warns(UserWarning, match="goes on with 'cpu': the device is gone"):
        first = backend.predict(systems)
    assert_identical(first, expected)
    assert_identical(backend.predict(systems), expected)
    assert backend.first.sizes == [systems.size]
    working = fallback()
    working.predict(systems)
    assert working.first.sizes
    assert not working.is_lost


def test_a_factor_on_a_lost_device_is_made_again_on_the_host():
    instance, backend = make_instance(PLAIN), fallback()
    model = instance.problem.model.replace(localizer="rectangular")
    problem = instance.problem._replace(model=model)
    system = ExactSystem.solve(problem, backend.dense)
    expected = ExactSystem.solve(problem).predict(instance.queries)
    evidence = negative_log_evidence(problem)

    def fail(*arguments):
        raise DeviceError("the device is gone")

    system.factor._first = types.SimpleNamespace(products=fail)
    with pytest.warns(UserWarning, match="the device is gone"):
        found = system.predict(instance.queries)
    assert np.array_equal(found.mean, expected.mean)
    failing = fallback(DeviceError("the device is gone")).dense
    with pytest.warns(UserWarning, match="the device is gone"):
        value, gradient, _ = negative_log_evidence(problem, failing)
    assert value == evidence[0]
    assert np.array_equal(gradient, evidence[1])
    failing = fallback(DeviceError("the device is gone")).dense
    with pytest.raises(DeviceError):  # not for hours
        failing.invert(np.zeros((MOST_ON_HOST + 1, 1)), problem)


def test_auto_takes_a_device_for_much_work_alone(pretend, monkeypatch):
    pretend(LikeCuPy())
    monkeypatch.setattr(backends, "find_spec", lambda name: object())
    monkeypatch.setattr(backends.cuda_or_cpu, "is_lost", False)
    assert choose_backend("auto", MODEL) is cpu
    assert choose_backend("auto", MODEL, 0.9 * WORTH) is cpu
    assert choose_backend("auto", MODEL, 1.1 * WORTH) is backends.cuda_or_cpu
    assert choose_backend("auto", MODEL.replace(localizer_metric="inputs"), 1e9).is_slow
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    assert choose_backend("auto", MODEL, 1e9) is cpu
    assert seconds_on_host(100, 1.0, 1) < WORTH < seconds_on_host(100_000, 1.0, 1)
    assert seconds_on_host(100_000, 1.0, 16) < WORTH < seconds_on_host(8000, 1.0, 16)
    assert seconds_to_solve(1e12, 16) == seconds_to_solve(1e12, 1) / 16


def test_auto_moves_models_by_the_number_of_queries(monkeypatch):
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(300, 2)), rng.normal(size=(500, 2))
    device_like = fallback()
    monkeypatch.setattr(backends, "cuda_or_cpu", device_like)
    monkeypatch.setitem(backends._OTHERS, device_like.name, device_like)
    monkeypatch.setattr(backends, "_has_device", lambda: True)
    monkeypatch.setattr("lsgp.backends.WORTH", seconds_to_solve(400 * 60**3 / 6, 1))
    model = LSGPRegressor(objective=None, n_neighbors=64).fit(X, X[:, 0])
    expected = model.predict(queries[:10])
    assert not device_like.first.sizes
    assert np.array_equal(model.predict(queries)[:10], expected)
    assert device_like.first.sizes
    # What was moved for a call has not moved the estimator, nor what is pickled of it.
    assert model.fitted_[0].solver.backend is cpu
    moved = model.ensemble_.on("auto", 500, 1)
    assert moved.models[0].solver.backend is device_like
    assert pickle.loads(pickle.dumps(moved)).models[0].solver.backend is device_like
    assert moved.on("auto").models[0].solver.backend is device_like
    assert moved.on("auto", 10, 1).models[0].solver.backend is cpu


@needs_device
def test_auto_predicts_much_on_the_device():
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(2000, 4)), rng.normal(size=(400_000, 4))
    y = np.sin(X[:, 0])
    model = LSGPRegressor(objective=None, n_neighbors=64).fit(X, y)
    assert model.ensemble_.on("auto", len(queries), 1).models[0].solver.backend.name != "cpu"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean = model.predict(queries)
    np.testing.assert_allclose(mean[:50], model.predict(queries[:50]), rtol=1e-9, atol=1e-9)


def test_a_plan_stays_within_the_memory_of_the_device(pretend):
    pretend(LikeCuPy())
    seen, backend = [], PlacedBackend()
    backend.solves = types.SimpleNamespace(plan=lambda *a: seen.append(a[2].memory_budget))
    for budget in (10**6, 10**12):
        size = SystemSize.of(make_instance(PLAIN).problem, 64)
        backend.plan(size, 10, Resources(memory_budget=budget))
    assert seen == [10**6, 5 * 10**8]
