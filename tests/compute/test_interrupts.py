# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C at any moment: what threads share stays usable, and nothing waits forever."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from lsgp import LSGPRegressor, TuningStoppedWarning
from lsgp.compute.clock import Interrupts, OutOfTimeError
from lsgp.compute.threads import interrupts_later
from lsgp.tuning import jobs
from lsgp.tuning.search import Search

# Ctrl-C comes while the main thread holds the lock of a condition, at the first time that it takes
# one, then at the second, ... until the work is done before: each lock of it was tried.
PROGRAM = textwrap.dedent(
    """
    import signal, sys, threading
    from lsgp.compute.threads import ThreadPool, result_of, run_blocks

    enter, left = threading.Condition.__enter__, [-1]

    def interrupted(self):
        taken = enter(self)
        if threading.get_ident() == threading.main_thread().ident:
            left[0] -= 1
            if left[0] == 0:
                signal.raise_signal(signal.SIGINT)
        return taken

    threading.Condition.__enter__ = interrupted

    def blocks():
        assert list(run_blocks(lambda i, j: i, 6, 1, n_threads=2)) == list(range(6))

    def blocks_in_pool():
        with ThreadPool(2) as pool:
            found = list(run_blocks(lambda i, j: i, 6, 1, n_threads=2, pool=pool))
        assert found == list(range(6))

    def compiled_once():
        from lsgp.backends.cuda import modules
        modules._compile = lambda *wanted: wanted
        modules._kernels.clear()
        modules.kernel_of("solve", "one")
        with ThreadPool(1) as pool:
            assert result_of(pool.submit(modules.kernel_of, "solve", "one")) == ("solve", "one")

    n_interrupted = 0
    while left[0] <= 0:
        left[0] = n_interrupted + 1
        try:
            {work}()
        except KeyboardInterrupt:
            n_interrupted += 1
    left[0] = -1
    {work}()
    print(n_interrupted)
    """
)


@pytest.mark.parametrize("work", ["blocks", "blocks_in_pool", "compiled_once"])
def test_an_interrupt_while_a_lock_is_held_does_not_leave_it_closed(work):
    # In a process of its own, which may be stopped when it hangs.
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(work=work)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0


def test_interrupts_come_after_what_must_not_be_cut_and_the_handler_is_back():
    heard: list[int] = []

    def note(number, frame):
        heard.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        with interrupts_later():
            signal.raise_signal(signal.SIGINT)
            assert not heard
        assert heard == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is note
        # An error inside is not lost to the handler's silence.
        with pytest.raises(ValueError, match="inside"), interrupts_later():
            raise ValueError("inside")
        # Other threads set no handler, and interrupts that are ignored stay so.
        found = []
        thread = threading.Thread(target=lambda: found.append(handler_inside()))
        thread.start()
        thread.join()
        assert found == [note]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert handler_inside() is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def handler_inside():
    with interrupts_later():
        return signal.getsignal(signal.SIGINT)


@pytest.mark.parametrize("error", [OutOfTimeError, KeyboardInterrupt])
@pytest.mark.parametrize("is_beyond", [False, True])
def test_a_fit_that_is_stopped_while_it_judges_again_has_its_first_models(
    monkeypatch, error, is_beyond
):
    X = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 26)] * 2), axis=-1).reshape(-1, 2)
    is_seen = (np.abs(X - 0.5) > 0.2).any(axis=1) if is_beyond else np.full(len(X), True)
    queries = X[~is_seen] if is_beyond else None
    X = X[is_seen]
    y = np.sin(4.0 * X[:, 0]) * np.cos(3.0 * X[:, 1])
    settings = {"kernel": "rbf", "input_transform": "standardize", "max_time": 60.0}
    model, asked = LSGPRegressor().set_params(random_state=0, **settings), []

    def stop(*_):
        asked.append(1)
        raise error

    monkeypatch.setattr(Search, "judge_again", stop)
    monkeypatch.setattr(jobs, "INTERRUPTS", Interrupts())  # of another test is long ago
    with pytest.warns(TuningStoppedWarning):
        model.fit(X, y, queries=queries)
    assert asked
    assert not model.tuning_.is_complete
    assert np.isfinite(model.predict(X + 0.05)).all()
