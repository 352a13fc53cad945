# SPDX-License-Identifier: BSD-3-Clause
"""BLAS runs on one thread while ours do, and is left as it was found."""

import os
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from lsgp import Hyperparameters, LSGPRegressor
from lsgp.compute import blas
from lsgp.compute.blas import one_blas_thread
from lsgp.solvers.exact_system import ExactSystem

#: More than one, also on machines of one core: a setting needs no cores.
N_BEFORE = 3


def threads_of_blas():
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


@pytest.fixture(autouse=True)
def several_threads():
    libraries = [library for part in blas._libraries() for library in part.lib_controllers]
    before = [(library, library.num_threads) for library in libraries if library.num_threads]
    for library, _ in before:
        blas._set(library, N_BEFORE)
    if threads_of_blas() != {N_BEFORE}:
        pytest.skip("this BLAS has no number of threads to set")
    yield
    for library, n_threads in before:
        blas._set(library, n_threads)


class Inside(threading.Thread):
    """A thread inside `one_blas_thread` until it is told to leave."""

    def __init__(self, context=one_blas_thread):
        super().__init__(daemon=True)
        self.context, self.seen = context, None
        self.is_inside, self.may_leave = threading.Event(), threading.Event()
        self.start()
        assert self.is_inside.wait(20)

    def run(self):
        with self.context():
            self.seen = threads_of_blas()
            self.is_inside.set()
            self.may_leave.wait(20)

    def leave(self):
        self.may_leave.set()
        self.join(20)
        assert not self.is_alive()


def test_one_thread_inside_and_as_before_outside_also_after_errors():
    with one_blas_thread(), one_blas_thread():
        assert threads_of_blas() == {1}
    assert threads_of_blas() == {N_BEFORE}
    with pytest.raises(RuntimeError), one_blas_thread():
        raise RuntimeError
    assert threads_of_blas() == {N_BEFORE}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_whoever_leaves_last_puts_back_what_the_first_found(order):
    inside = [Inside() for _ in range(3)]
    assert [thread.seen for thread in inside] == [{1}] * 3
    for k in order[:-1]:
        inside[k].leave()
        assert threads_of_blas() == {1}
    inside[order[-1]].leave()
    assert threads_of_blas() == {N_BEFORE}


def test_a_thread_of_the_user_that_holds_control_does_not_keep_ours_from_it():
    # Without `with`, threadpoolctl lets no other thread set a limit any more.
    limit = threadpool_limits(limits=2, user_api="blas")
    other = Inside()
    assert other.seen == {1}
    other.leave()
    assert threads_of_blas() == {2}
    limit.restore_original_limits()
    assert threads_of_blas() == {N_BEFORE}


def test_a_limit_of_the_user_that_ends_while_ours_runs_is_not_brought_back():
    user = Inside(lambda: threadpool_limits(limits=2, user_api="blas"))
    ours = Inside()
    user.leave()
    ours.leave()
    assert threads_of_blas() == {N_BEFORE}


def test_what_the_user_sets_while_ours_runs_stays():
    ours = Inside()
    with threadpool_limits(limits=2, user_api="blas"):
        ours.leave()
        assert threads_of_blas() == {2}


def test_fits_in_several_threads_run_on_one_blas_thread_and_leave_it(monkeypatch):
    X = np.random.default_rng(0).uniform(size=(250, 2))
    seen, solve = [], ExactSystem.solve
    monkeypatch.setattr(
        ExactSystem, "solve", lambda *args: seen.append(threads_of_blas()) or solve(*args)
    )
    settings = {"n_neighbors": 250, "localizer": "rectangular"}

    def work():
        plain = Hyperparameters(scale="global")
        model = LSGPRegressor(objective=None, hyperparameters=plain, **settings)
        for _ in range(5):
            model.fit(X, X[:, 0]).predict(X)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen
    assert all(found == {1} for found in seen)
    assert threads_of_blas() == {N_BEFORE}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_forked_process_has_the_threads_from_before_and_limits_them_anew(is_inside):
    """Also where the fork itself is inside, which it leaves in peace."""
    other = Inside()
    if is_inside:
        with one_blas_thread():
            process = os.fork()
    else:
        process = os.fork()
    if process == 0:
        is_right = threads_of_blas() == {N_BEFORE}
        with one_blas_thread():
            is_right &= threads_of_blas() == {1}
        is_right &= threads_of_blas() == {N_BEFORE}
        os._exit(0 if is_right else 1)
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert threads_of_blas() == {1}
    other.leave()
    assert threads_of_blas() == {N_BEFORE}
