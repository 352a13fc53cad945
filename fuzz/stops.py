# SPDX-License-Identifier: BSD-3-Clause
"""Fits and savings that are interrupted or killed at any moment: nothing is lost or half done."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from fuzz.outcome import Tally
from lsgp import LSGPRegressor

#: After Ctrl-C a program ends within so many seconds.
LONGEST = 10.0
#: Tunes, saves and saves again; the old model predicts about 1, the new one about 2.
PROGRAM = """
import sys
import numpy as np
print("started", flush=True)
from lsgp import Effort, LSGPRegressor
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 3))
model = LSGPRegressor(effort=Effort("fast"), random_state=0, n_jobs=2)
model.fit(X, 2.0 + 0.01 * rng.normal(size=3000))
for k in range(200):
    model.save(sys.argv[1])
print("done", flush=True)
"""


def interrupt(seed: int, tally: Tally) -> None:
    """Ctrl-C at a random time ends the program soon, by KeyboardInterrupt."""
    _stop(seed, tally, signal.SIGINT)


def kill(seed: int, tally: Tally) -> None:
    """A program that is killed leaves the old model or the new one."""
    _stop(seed, tally, signal.SIGKILL)


def _stop(seed: int, tally: Tally, by: signal.Signals) -> None:
    rng = np.random.default_rng([seed, 33])
    delay = float(rng.uniform(0.0, 4.0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.lsgp"
        X = np.linspace(0, 1, 30)[:, None]
        LSGPRegressor(objective=None).fit(np.repeat(X, 3, axis=1), np.ones(30)).save(path)
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(delay)
        child.send_signal(by)
        sent = time.monotonic()
        try:
            _, errors = child.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            tally.find(seed, f"did not end within {LONGEST:g} s", f"{by.name} after {delay:.2f} s")
            return
        seconds = time.monotonic() - sent
        case = f"{by.name} after {delay:.2f} s, ended in {seconds:.1f} s with {child.returncode}"
        last = errors.strip().splitlines()[-1:] or [""]
        if by == signal.SIGINT and child.returncode and "KeyboardInterrupt" not in last[0]:
            tally.find(seed, f"ended with {last[0][:150]}", case)
            return
        try:
            mean = float(LSGPRegressor.load(path).predict(np.zeros((1, 3)))[0])
        except Exception as error:
            tally.find(seed, f"the model is lost: {error}", case)
            return
        if min(abs(mean - 1.0), abs(mean - 2.0)) > 0.1:
            tally.find(seed, f"the model predicts {mean}", case)
        tally.add("done before" if child.returncode == 0 else "stopped well")
