# SPDX-License-Identifier: BSD-3-Clause
"""Predictions that fail say why, and those that are interrupted stop."""

import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from small_data import make_data
from untuned import regressor

from lsgp.backends import cpu

X, Y = make_data(400, 2, noise=0.2)
QUERIES = make_data(150, 2, seed=1)[0]


def test_failed_local_systems_are_one_error_with_a_remedy():
    model = regressor(
        input_transform=None,
        prior_mean=0.0,
        hyperparameters__signal_variance=1.0,
        hyperparameters__lengthscale=1.0,
    ).fit(X, Y)
    message = (
        "1 of 151 local systems are not finite (first: query 150, with 0 duplicate "
        "neighbors). Check the scale of the inputs against the lengthscale."
    )
    with pytest.raises(np.linalg.LinAlgError, match=re.escape(message)):
        model.predict(np.vstack([QUERIES, [[1e200, 0.0]]]))


def test_system_that_is_not_positive_definite_names_query_duplicates_and_remedy(monkeypatch):
    copies = X.copy()
    copies[:4] = QUERIES[42]
    model = regressor(hyperparameters__noise_variance=1e-3).fit(copies, Y)
    solve = cpu.predict

    def fail_at_query_42(systems):
        result = solve(systems)
        result.status[(systems.neighbors[:, :4] < 4).all(axis=1)] = 2
        return result

    monkeypatch.setattr(cpu, "predict", fail_at_query_42)
    message = (
        r"^\d+ of 150 local systems are not positive definite \(first: query \d+, with 3 "
        r"duplicate neighbors\)\. Increase noise_variance \(now \S+ times the signal's\)\.$"
    )
    for n_jobs in (1, 3):
        with pytest.raises(np.linalg.LinAlgError, match=message):
            model.set_params(n_jobs=n_jobs).predict(QUERIES)


def test_duplicates_without_noise_are_averaged_not_refused():
    repeated = np.repeat(X[:50], 8, axis=0)
    noisy = np.repeat(Y[:50], 8) + np.tile([-1.0, 1.0], 200)
    model = regressor(
        hyperparameters__noise_variance=1e-14, trend="none", hyperparameters__scale="global"
    ).fit(repeated, noisy)
    mean, std = model.predict(X[:50], return_std=True)
    np.testing.assert_allclose(mean, Y[:50], atol=1e-2)
    assert (np.isfinite(std) & (std > 0)).all()


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_interrupt_stops_after_the_blocks_that_run(monkeypatch, n_jobs):
    calls, solve = [], cpu.predict

    def interrupt(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return solve(*arguments)

    monkeypatch.setattr(cpu, "predict", interrupt)
    model = regressor(memory_budget="600kB", n_jobs=n_jobs).fit(X, Y)
    with pytest.raises(KeyboardInterrupt):
        model.predict(np.zeros((20_000, 2)))
    assert len(calls) < 20
    # The model is as good as before.
    monkeypatch.undo()
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child on Windows")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_a_long_prediction(n_jobs):
    code = f"""
import numpy as np
from lsgp import LSGPRegressor
rng = np.random.default_rng(0)
X = rng.uniform(size=(5000, 3))
model = LSGPRegressor(objective=None, n_neighbors=300, n_jobs={n_jobs}).fit(X, X[:, 0])
queries = rng.uniform(size=(10_000_000, 3))  # hours of work
print("predicting", flush=True)
model.predict(queries)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "predicting\n"
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
