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
PLACES = {
    "checking the settings": ("lsgp.estimators.estimator.specify", broken),
    "checking the rows": ("lsgp.estimators.regressor.check_training_rows", broken),
    "scaling the targets": ("lsgp.estimators.estimator.TargetScaler.fit", broken),
    "transforming the inputs": ("lsgp.tuning.data.fit_transform_kind", broken),
    "indexing": ("lsgp.tuning.data.build_index", broken),
    "searching": ("lsgp.backends.cpu.search", broken),
    "scoring": ("lsgp.backends.cpu.score", broken),
    "predicting": ("lsgp.backends.cpu.predict", broken),
    "holding out": ("lsgp.tuning.data.leave_one_out", broken),
    "tuning": ("lsgp.tuning.local.descend_on_sample", broken),
    "judging": ("lsgp.tuning.local.judge", broken),
    "growing": ("lsgp.tuning.local.Local.grow", broken),
    "weighing": ("lsgp.tuning.search.weigh", broken),
    "calibrating": ("lsgp.tuning.outcome.calibrate_combination", broken),
    "finishing": ("lsgp.tuning.search.finish", broken),
    "building": ("lsgp.estimators.estimator.build_tuned", broken),
    "assembling": ("lsgp.estimators.estimator.Ensemble", broken),
} | {
    f"starting {family.name}": (
        f"{type(family).__module__}.{type(family).__name__}.starts",
        broken,
    )
    for family in FAMILIES
    if not family.of_labels
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_refit_changes_nothing(fitted, monkeypatch, place, n_jobs):
    model = pickle.loads(pickle.dumps(fitted)).set_params(n_jobs=n_jobs)
    state = state_of(model)
    # Other units, inputs and names, so that a half-changed estimator would show.
    X, y = make_data(120, seed=1)
    monkeypatch.setattr(*PLACES[place])
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
    "bad",
    [
        {"y": "text"},
        {"sample_weight": [-1.0] * 150},
        {"noise_variance": [0.0] * 150},
    ],
    ids=lambda bad: next(iter(bad)),
)
def test_a_refused_refit_changes_nothing(fitted, bad):
    model = pickle.loads(pickle.dumps(fitted))
    state = state_of(model)
    X, y = make_data(150, seed=1)
    arguments = {"y": y, **bad}
    if bad.get("y") == "text":
        arguments["y"] = np.array(["a"] * 150)
    with pytest.raises((ValueError, TypeError)):
        model.fit(X[:, :2], **arguments)
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


def test_another_precision_after_fit_is_refused():
    X, y = make_data(80)
    model = LSGPRegressor(objective=None).fit(X, y)
    with pytest.raises(
        ValueError, match=r"^dtype='float32' was set after fit, which was in float64"
    ):
        model.set_params(dtype="float32").predict(QUERIES)
    assert model.fit(X, y).predict(QUERIES).shape == (20,)


def test_another_memory_budget_or_number_of_threads_after_fit_counts():
    X, y = make_data(80)
    model = LSGPRegressor(objective=None).fit(X, y)
    expected = model.predict(QUERIES)
    np.testing.assert_array_equal(model.set_params(n_jobs=2).predict(QUERIES), expected)
    with pytest.raises(ValueError, match="memory_budget=1000 bytes is less than"):
        model.set_params(memory_budget=1000).predict(QUERIES)
    with pytest.raises(ValueError, match="n_jobs is 0"):
        model.set_params(n_jobs=0).predict(QUERIES)


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
