# SPDX-License-Identifier: BSD-3-Clause
"""Processes that are forked while other threads work do not wait for them."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from lsgp import Effort, LSGPRegressor
from lsgp.compute.threads import ForkableLock
from lsgp.solvers.exact_system import ExactSystem

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore::lsgp.TuningStoppedWarning"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]

#: Seconds after which a process is held to hang. One takes a tenth.
PATIENCE = 30.0


def run_forked(function):
    """The exit code of a forked process that calls the function, or "hangs"."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            code = 0 if function() else 2
        finally:
            os._exit(code)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return "hangs"


def exact(n_jobs=1):
    whole = {"localizer": "rectangular", "hyperparameters__scale": "global", "n_jobs": n_jobs}
    return LSGPRegressor(objective=None, n_neighbors=300).set_params(**whole)


def make_data():
    X = np.random.default_rng(0).uniform(size=(300, 2))
    return X, np.sin(6 * X[:, 0]) + X[:, 1]


def test_a_lock_that_another_thread_holds_is_open_after_a_fork():
    lock = ForkableLock()
    is_held, may_go = threading.Event(), threading.Event()

    def hold():
        with lock:
            is_held.set()
            may_go.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait(PATIENCE)

    def take():
        with lock:
            return lock.locked()

    assert run_forked(take) == 0
    assert lock.locked()
    may_go.set()
    thread.join()
    assert not lock.locked()


def test_an_exact_gp_that_another_thread_is_solving_is_solved_after_a_fork(monkeypatch):
    X, y = make_data()
    model, expected = exact().fit(X, y), exact().fit(X, y).predict(X)
    is_solving, may_go = threading.Event(), threading.Event()
    solve = ExactSystem.solve

    def solve_slowly(*args):
        is_solving.set()
        may_go.wait(PATIENCE)
        return solve(*args)

    monkeypatch.setattr(ExactSystem, "solve", solve_slowly)
    thread = threading.Thread(target=model.predict, args=(X,))
    thread.start()
    is_solving.wait(PATIENCE)
    monkeypatch.setattr(ExactSystem, "solve", solve)
    assert run_forked(lambda: np.array_equal(model.predict(X), expected)) == 0
    may_go.set()
    thread.join()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_forks_while_threads_fit_and_predict_do_not_hang(n_jobs):
    X, y = make_data()
    local = LSGPRegressor(objective=None, n_neighbors=20, n_jobs=n_jobs).fit(X, y)
    whole = exact(n_jobs).fit(X, y)
    expected = local.predict(X), whole.predict(X)
    quick = {"effort": Effort(n_models=1, n_points=50), "max_time": 0.2, "random_state": 0}
    quick |= {"kernel": "rbf", "n_neighbors": 20, "n_jobs": n_jobs}
    stop, failures = threading.Event(), []

    def work():
        try:
            while not stop.is_set():
                exact(n_jobs).fit(X, y).predict(X)
                local.predict(X)
                LSGPRegressor(**quick).fit(X, y)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()

    def predict_and_fit():
        found = local.predict(X), whole.predict(X), exact(n_jobs).fit(X, y).predict(X)
        return all(map(np.array_equal, found, (*expected, expected[1])))

    try:
        codes = [run_forked(predict_and_fit) for _ in range(25)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures
    assert codes == [0] * 25
