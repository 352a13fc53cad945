# SPDX-License-Identifier: BSD-3-Clause
"""Candidates of a search ask a device together, and each is told what it would be told alone.

The native core stands for the device, which counts how often this machine would wait for it.
"""

import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from backend_checks import TOLERANCES, assert_close, assert_identical
from emulated_cupy import needs_compiler, needs_device

import lsgp.backends as backends
from lsgp import LSGPRegressor
from lsgp.backends import cpu, cuda, forwarding, reference
from lsgp.backends.contract import Resources, ScoreRequest
from lsgp.backends.cuda import backend as cuda_backend
from lsgp.backends.cuda import device as cuda_device
from lsgp.backends.cuda import residence
from lsgp.backends.cuda.device import DeviceError, DeviceMemoryError
from lsgp.backends.forwarding import FallbackBackend
from lsgp.backends.gathering import Gathering
from lsgp.compute.clock import Clock, OutOfTimeError
from lsgp.compute.threads import ThreadPool
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.tuning import jobs


class CountingDevice:
    """The native core as a device: how many requests each call for losses has had."""

    name = "counting"
    is_device = True
    device_name = "Counting"

    def __init__(self, error=None):
        self.sizes, self.n_alone, self.error = [], 0, error

    def __getattr__(self, name):
        return getattr(cpu, name)

    def score(self, request):
        self.n_alone += 1
        return cpu.score(request)

    def score_many(self, requests):
        self.sizes.append(len(requests))
        if self.error is not None:
            raise self.error
        return cpu.score_many(requests)


@pytest.fixture
def counting(monkeypatch):
    device = CountingDevice()
    monkeypatch.setitem(backends.BACKENDS, device.name, device)
    return device


def steps(n=200):
    """A step in each of four inputs, and noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 4))
    y = 3.0 * (X[:, 0] > 0.37) + 2.0 * (X[:, 1] > 0.61) * (X[:, 2] > 0.5) - (X[:, 3] > 0.2)
    return X, y + 0.1 * rng.normal(size=n)


def fit(backend, n_jobs=1):
    quick = {"effort__n_points": 40, "effort__n_models": 2, "objective": "squared_error"}
    quick |= {
        "input_transform": "standardize",
        "hyperparameters__scale": "local",
        "random_state": 0,
    }
    return LSGPRegressor().set_params(backend=backend, n_jobs=n_jobs, **quick).fit(*steps())


def outcome(model):
    """All that was tried, and what was made of it."""
    tried = [(c.n_neighbors, c.loss, *c.model.lengthscale) for c in model.tuning_.candidates]
    return np.array(tried), model.tuning_.weights, model.predict(steps(20)[0])


def requests_of(n_requests, n=40, m=8, objective="crps"):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 2)), rng.normal(size=(n, 1))
    targets = np.arange(5, dtype=np.int32)
    neighbors = rng.integers(5, n, (5, m)).astype(np.int32)
    models = (LocalModel("rbf", "smooth", np.full(2, 1.0 + k)) for k in range(n_requests))
    problems = (LocalProblem(X, y, np.ones(n), model) for model in models)
    return [ScoreRequest(problem, targets, neighbors, objective) for problem in problems]


def test_a_fit_on_a_device_finds_what_the_host_finds_in_few_calls(counting):
    expected = outcome(fit("cpu"))
    for n_jobs in (1, 3):
        counting.sizes.clear()
        for one, other in zip(outcome(fit("counting", n_jobs)), expected, strict=True):
            assert np.array_equal(one, other)
        if n_jobs == 1:
            assert max(counting.sizes) == 4, "all kernels of the first rung"
            assert 2 * len(counting.sizes) < sum(counting.sizes)


@pytest.mark.parametrize("backend", [cpu, reference])
def test_scores_of_many_are_those_of_each(backend):
    requests = requests_of(3)
    for request, scores in zip(requests, backend.score_many(requests), strict=True):
        assert_identical(scores, backend.score(request))


def in_threads(gathering, tasks):
    """What each task returns, or the error that it ended with."""
    ended = [None] * len(tasks)

    def run(k):
        try:
            with gathering.candidate():
                ended[k] = tasks[k]()
        except BaseException as error:
            ended[k] = error

    threads = [threading.Thread(target=run, args=(k,), daemon=True) for k in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive(), "a candidate waits forever"
    return ended


def test_on_one_core_every_step_of_all_candidates_is_one_call():
    device = CountingDevice()
    gathering = Gathering(device, 1, 4)
    requests, n_steps = requests_of(4), (3, 1, 2, 3)

    def task(k):
        return lambda: [gathering.score(requests[k]).loss for _ in range(n_steps[k])]

    ended = in_threads(gathering, [task(k) for k in range(4)])
    assert device.sizes == [4, 3, 2]
    for request, losses in zip(requests, ended, strict=True):
        for loss in losses:
            assert np.array_equal(loss, cpu.score(request).loss)


def test_no_more_candidates_work_at_a_time_than_there_are_cores():
    gathering, lock = Gathering(CountingDevice(), 2, 6), threading.Lock()
    working, most = [0], [0]

    def work():
        with lock:
            working[0] += 1
            most[0] = max(most[0], working[0])
        time.sleep(0.005)
        with lock:
            working[0] -= 1

    def task():
        for request in requests_of(3):
            work()
            gathering.score(request)
        work()

    assert in_threads(gathering, [task] * 6) == [None] * 6
    assert most[0] == 2


def test_candidates_that_fail_and_devices_that_do_leave_nobody_waiting():
    (request,) = requests_of(1)
    gathering = Gathering(CountingDevice(RuntimeError("lost")), 1, 3)
    ended = in_threads(gathering, [lambda: gathering.score(request)] * 3)
    assert [str(error) for error in ended] == ["lost"] * 3
    working = Gathering(CountingDevice(), 1, 3)

    def fail():
        raise ValueError("mine")

    ended = in_threads(working, [lambda: working.score(request), fail, fail])
    assert [type(each).__name__ for each in ended] == ["Scores", "ValueError", "ValueError"]
    alone = Gathering(CountingDevice(), 1, 2)  # of two, one does not come
    threading.Timer(0.1, alone.expect_no_more).start()
    (scores,) = in_threads(alone, [lambda: alone.score(request)])
    assert np.array_equal(scores.loss, cpu.score(request).loss)


def test_ctrl_c_while_the_rest_is_asked_for_is_the_callers_too():
    gathering = Gathering(CountingDevice(KeyboardInterrupt()), 1, 2)
    (request,) = requests_of(1)
    ended = []
    alone = threading.Thread(
        target=lambda: ended.extend(in_threads(gathering, [lambda: gathering.score(request)]))
    )
    alone.start()
    while not gathering._asked:
        time.sleep(0.01)
    with pytest.raises(KeyboardInterrupt):
        gathering.expect_no_more()
    alone.join(10)
    assert [type(error) for error in ended] == [KeyboardInterrupt], "the candidate waits no more"


def test_ctrl_c_while_candidates_begin_leaves_none_waiting(monkeypatch):
    began, made = [], []

    class Kept(Gathering):
        def __init__(self, *given):
            super().__init__(*given)
            made.append(self)

    class Interrupted(ThreadPool):
        def submit(self, *given):
            if began:
                raise KeyboardInterrupt
            began.append(super().submit(*given))
            while not made[0]._asked:  # the first waits for the second
                time.sleep(0.01)
            return began[0]

    monkeypatch.setattr(jobs, "Gathering", Kept)
    monkeypatch.setattr(jobs, "ThreadPool", Interrupted)
    (request,) = requests_of(1)
    clock, draw = Clock(), np.random.default_rng
    data = SimpleNamespace(
        backend=CountingDevice(), resources=Resources(2), random=lambda *_: draw(0)
    )
    try:
        with pytest.raises(KeyboardInterrupt):
            tasks = [lambda job: job.scorer.score(request)] * 2
            jobs.Workers(data, clock, lambda *_: None).run(tasks, [])
        assert began[0].done()
        with pytest.raises(OutOfTimeError):
            clock.check()
    finally:
        for gathering in made:
            gathering.expect_no_more()  # else the process would not end


def test_scores_of_many_are_made_one_after_another_where_memory_is_short(monkeypatch):
    class Short(CountingDevice):
        def score_many(self, requests):
            self.sizes.append(len(requests))
            raise DeviceMemoryError("too little")

    backend = forwarding.PlacedBackend()
    backend.solves = Short()
    released = []
    monkeypatch.setattr(backend, "place", nullcontext)
    monkeypatch.setattr(forwarding, "release_memory", lambda: released.append(True))
    requests = requests_of(3)
    for request, scores in zip(requests, backend.score_many(requests), strict=True):
        assert np.array_equal(scores.gradient, cpu.score(request).gradient)
    assert (backend.solves.sizes, backend.solves.n_alone, released) == ([3], 3, [True])


def test_a_device_that_is_lost_is_not_gathered_for_any_more(monkeypatch):
    lost = CountingDevice(DeviceError("lost"))
    either = FallbackBackend("either", lost, cpu)
    monkeypatch.setitem(backends.BACKENDS, "either", either)
    with pytest.warns(UserWarning, match="lost"):
        model = fit("either")
    assert len(lost.sizes) == 1
    assert not either.is_device
    assert model.tuning_.loss == fit("cpu").tuning_.loss


# ---- by emulated kernels ----


@needs_compiler
def test_kernels_of_many_are_launched_before_anything_is_fetched(emulated):
    own, library = emulated()
    assert own.score_many([]) == []
    few, many = requests_of(3, m=5), requests_of(9, n=100, m=12)
    for requests in (few, many):
        library.n_fetched, main = 0, library.queues[0]
        with main:
            found = own.score_many(requests)
        assert library.n_fetched == 1
        for request, scores in zip(requests, found, strict=True):
            assert_close(scores, cpu.score(request), TOLERANCES["float64"], "together")
            assert_identical(own.score(request), scores)


def test_queues_side_by_side_follow_what_was_before_and_precede_what_comes(emulated):
    _, library = emulated()
    before = library.cuda.get_current_stream()
    with cuda_device.side_by_side(20) as queues:
        assert len(set(map(id, queues))) == cuda_device.MOST_SIDE_BY_SIDE
        assert all(queue.after == [before] for queue in queues)
        assert before.after == []
    assert set(map(id, before.after)) == set(map(id, queues))
    with cuda_device.side_by_side(1) as (alone,):
        assert alone is before


# ---- on a device ----


@needs_device
def test_a_device_scores_many_as_each_and_this_machine_waits_once(monkeypatch):
    requests = []
    for m in (8, 33, 90):
        requests += requests_of(4, 200, m) + requests_of(4, 200, m, "log_density")
    alone = [cuda.score(request) for request in requests]
    n_fetched = count_fetched(monkeypatch)
    together = cuda.score_many(requests)
    assert n_fetched == [1]
    for request, one, other in zip(requests, alone, together, strict=True):
        assert_identical(one, other)
        np.testing.assert_allclose(other.loss, cpu.score(request).loss, rtol=1e-9)


@needs_device
def test_a_fit_on_a_device_is_the_hosts_with_few_waits(monkeypatch):
    n_fetched, n_requests = count_fetched(monkeypatch), []
    ask = type(cuda.solves)._score

    def counted(self, requests, are_apart):
        n_requests.append(len(requests))
        return ask(self, requests, are_apart)

    monkeypatch.setattr(type(cuda.solves), "_score", counted)
    on_host, on_device = fit("cpu"), fit("cuda")
    assert 2 * len(n_requests) < sum(n_requests)
    assert n_fetched[0] < sum(n_requests), "searches and predictions included"
    np.testing.assert_allclose(on_device.tuning_.loss, on_host.tuning_.loss, rtol=0.02)
    Q = steps(50)[0]
    spread = np.std(steps()[1])
    np.testing.assert_allclose(on_device.predict(Q), on_host.predict(Q), rtol=0, atol=0.1 * spread)


def count_fetched(monkeypatch):
    """How often something was fetched from the device."""
    n_fetched, fetch = [0], residence.download

    def counted(array):
        n_fetched[0] += 1
        return fetch(array)

    for module in (residence, cuda_backend):
        monkeypatch.setattr(module, "download", counted)
    return n_fetched
