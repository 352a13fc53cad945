# SPDX-License-Identifier: BSD-3-Clause
"""An estimator is what it was or what it became, whatever happens in between."""

import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from small_data import make_data
from tuned import regressor
from untuned import made

from lsgp import LSGPRegressor
from lsgp.backends import BACKENDS, cpu
from lsgp.inputs.transforms import TargetScaler
from lsgp.tuning.search import FAMILIES

QUERIES = make_data(20, seed=9)[0]


@pytest.fixture(scope="module")
def fitted():
    return regressor().fit(*make_data(150))


def state_of(model):
    """All that the estimator holds, and what it predicts."""
    return pickle.dumps(vars(model)), model.predict(QUERIES, return_std=True)


def assert_unchanged(model, state):
    assert pickle.dumps(vars(model)) == state[0]
    np.testing.assert_array_equal(model.predict(QUERIES, return_std=True), state[1])


class BrokenError(Exception):
    """Raised on purpose."""


def broken(*args, **kwargs):
    raise BrokenError


#: Places that `fit` passes, from the first to the last.
PLACES = [
    "estimators.estimator.specify",
    "estimators.regressor.check_training_rows",
    "estimators.estimator.TargetScaler.fit",
    "tuning.data.fit_transform_kind",
    "tuning.data.build_index",
    "backends.cpu.search",
    "backends.cpu.score",
    "backends.cpu.predict",
    "tuning.data.leave_one_out",
    "tuning.local.descend_on_sample",
    "tuning.judging.Judge.judge",
    "tuning.local.Local.grow",
    "tuning.search.weigh",
    "tuning.outcome.calibrate_combination",
    "tuning.search.finish",
    "estimators.estimator.build_tuned",
    "estimators.estimator.Ensemble",
]
for kind in dict.fromkeys(type(family) for family in FAMILIES if not family.of_labels):
    PLACES.append(f"{kind.__module__.removeprefix('lsgp.')}.{kind.__name__}.starts")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_refit_changes_nothing(fitted, monkeypatch, place, n_jobs):
    model = pickle.loads(pickle.dumps(fitted)).set_params(n_jobs=n_jobs)
    state = state_of(model)
    # Other units, inputs and names, so that a half-changed estimator would show.
    X, y = make_data(120, seed=1)
    monkeypatch.setattr(f"lsgp.{place}", broken)
    with pytest.raises(BrokenError):
        model.fit(X[:, :2], 1000.0 + 1000.0 * y)
    monkeypatch.undo()
    assert_unchanged(model, state)


@pytest.mark.parametrize("change", ["partial_fit", "forget"])
def test_an_error_in_an_update_changes_nothing(fitted, monkeypatch, change):
    model = pickle.loads(pickle.dumps(fitted))
    state = state_of(model)
    monkeypatch.setattr("lsgp.ensemble.update.change_rows", broken)
    with pytest.raises(BrokenError):
        getattr(model, change)(*(make_data(5, seed=3) if change == "partial_fit" else ([0, 1],)))
    monkeypatch.undo()
    assert_unchanged(model, state)


@pytest.mark.parametrize(
    ("name", "bad"), [("y", "a"), ("sample_weight", -1.0), ("noise_variance", 0.0)]
)
def test_a_refused_refit_changes_nothing(fitted, name, bad):
    model = pickle.loads(pickle.dumps(fitted))
    state = state_of(model)
    X, y = make_data(150, seed=1)
    with pytest.raises((ValueError, TypeError)):
        model.fit(X[:, :2], **{"y": y, name: np.array([bad] * 150)})
    assert_unchanged(model, state)


def test_a_first_fit_that_fails_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr("lsgp.estimators.estimator.build_tuned", broken)
    model = regressor()
    before = dict(vars(model))
    with pytest.raises(BrokenError):
        model.fit(*make_data(60))
    assert vars(model) == before
    assert not hasattr(model, "fitted_")


INTERRUPTED = textwrap.dedent(
    """
    import os, pickle, signal, sys, threading, time, warnings
    import numpy as np
    sys.path.insert(0, {tests!r})
    from small_data import make_data
    from tuned import regressor
    warnings.simplefilter("ignore")
    queries = make_data(20, seed=9)[0]
    X, y = make_data(150)
    other = make_data(150, seed=1)
    old = regressor(n_jobs={n_jobs}).fit(X, y)
    before = old.predict(queries, return_std=True)
    copied = pickle.dumps(old)
    rng = np.random.default_rng({n_jobs})
    # How long it takes, so that interrupts come at every part of it.
    start = time.perf_counter()
    regressor(n_jobs={n_jobs}).fit(other[0], 1000 + 1000 * other[1])
    seconds = time.perf_counter() - start
    outcomes = []
    for k in range(20):
        model = pickle.loads(copied)
        timer = threading.Timer(
            rng.uniform(0, 1.1 * seconds), os.kill, (os.getpid(), signal.SIGINT)
        )
        try:
            timer.start()  # which may be interrupted too: fits are quick
            {change}
            timer.join()
        except KeyboardInterrupt:
            pass
        timer.join()
        mean, std = model.predict(queries, return_std=True)
        if np.array_equal([mean, std], before):
            outcomes.append("old")
        else:
            # Wholly the new one: its predictions are those of its own file.
            model.save({path!r})
            again = type(model).load({path!r}).predict(queries, return_std=True)
            assert np.array_equal([mean, std], again)
            assert {is_new}, mean
            outcomes.append("new")
    print(*outcomes)
    """
)
CHANGES = {
    "fit": (
        "model.fit(other[0], 1000 + 1000 * other[1])",
        "abs(mean - 1000).max() < 5000 and mean.max() > 100",
    ),
    "partial_fit": (
        "[model.partial_fit(other[0][i:i+1], other[1][i:i+1]) for i in range(150)]",
        "150 < model.ensemble_.n_rows <= 300",
    ),
}


# Updates have one thread, whatever n_jobs is.
@pytest.mark.parametrize(("change", "n_jobs"), [("fit", 1), ("fit", 2), ("partial_fit", 1)])
def test_interrupts_leave_the_old_or_the_new_model(tmp_path, change, n_jobs):
    # In a process of its own, whose SIGINT is not ignored, wherever the tests were started from.
    call, is_new = CHANGES[change]
    program = INTERRUPTED.format(
        tests=str(Path(__file__).parents[1]),
        n_jobs=n_jobs,
        change=call,
        is_new=is_new,
        path=str(tmp_path / "model.lsgp"),
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.split()) == 20


# -- settings after fit --------------------------------------------------------------------


def test_another_backend_after_fit_is_used(monkeypatch):
    X, y = make_data(80)
    model = LSGPRegressor(objective=None, n_neighbors=20).fit(X, y)
    expected = model.predict(QUERIES, return_std=True)
    monkeypatch.setattr(cpu, "predict", broken)
    found = model.set_params(backend="reference").predict(QUERIES, return_std=True)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    with pytest.raises(BrokenError):
        model.set_params(backend="cpu").predict(QUERIES)
    with pytest.raises(ValueError, match="backend='abacus' is not one of"):
        model.set_params(backend="abacus").predict(QUERIES)


def test_other_settings_after_fit_count_or_are_refused():
    X, y = make_data(80)
    model = LSGPRegressor(objective=None).fit(X, y)
    expected = model.predict(QUERIES)
    np.testing.assert_array_equal(model.set_params(n_jobs=2).predict(QUERIES), expected)
    for name, wrong, right, message in (
        ("memory_budget", 1000, "1GB", "memory_budget=1000 bytes is less than"),
        ("n_jobs", 0, 1, "n_jobs is 0"),
        ("dtype", "float32", "float64", "^dtype='float32' was set after fit, which was in float64"),
    ):
        with pytest.raises(ValueError, match=message):
            model.set_params(**{name: wrong}).predict(QUERIES)
        model.set_params(**{name: right})
    assert model.set_params(dtype="float32").fit(X, y).predict(QUERIES).shape == (20,)


def test_a_model_loads_where_its_backend_is_missing(tmp_path, monkeypatch):
    X, y = make_data(80)
    model = LSGPRegressor(objective=None, backend="reference").fit(X, y)
    path = tmp_path / "model.lsgp"
    model.save(path)
    expected = model.predict(QUERIES)
    monkeypatch.delitem(BACKENDS, "reference")
    with pytest.warns(UserWarning, match="saved on the backend 'reference', which is not here"):
        loaded = LSGPRegressor.load(path)
    assert loaded.backend == "auto"
    np.testing.assert_allclose(loaded.predict(QUERIES), expected, rtol=1e-9)


# -- threads -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [60, 700])
def test_the_number_of_threads_does_not_change_the_model(n):
    X, y = make_data(n)
    settings = {"random_state": 3, "effort__n_points": 100, "effort__n_models": 4, "kernel": "rbf"}
    one, other = (made(n_jobs=k, **settings).fit(X, y) for k in (1, 3))
    assert len(one.tuning_.candidates) == len(other.tuning_.candidates)
    np.testing.assert_array_equal(one.tuning_.weights, other.tuning_.weights)
    for mine, others in zip(one.fitted_, other.fitted_, strict=True):
        assert repr(mine.model) == repr(others.model)
        assert mine.weight == others.weight
    assert isinstance(one.target_scaler_, TargetScaler)
    assert one.scale_factor_ == other.scale_factor_
