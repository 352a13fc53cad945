# SPDX-License-Identifier: BSD-3-Clause
"""Functions without noise: what is tried of them, and what is left out."""

from types import SimpleNamespace

import numpy as np
import pytest

from lsgp import LSGPRegressor
from lsgp.tuning import search
from lsgp.tuning.stages import noiseless
from lsgp.tuning.stages.boost import Boost
from lsgp.tuning.stages.first import First
from lsgp.tuning.stages.likely import Likely
from lsgp.tuning.stages.noiseless import Noiseless


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Only the stages that functions without noise need."""
    monkeypatch.setattr(search, "STAGES", (First(), Likely(), Noiseless()))


def smooth(X):
    return np.exp(2.0 * X[:, 0]) * np.cos(3.0 * X[:, 1]) + 1.0 / (0.2 + X[:, 2])


def fast(X):
    return np.cos(4.0 * X[:, 0]) * np.cos(4.0 * X[:, 1]) * np.cos(4.0 * X[:, 2])


def fit(n=300, noise=0.0, function=smooth):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 3))
    y = function(X) + noise * rng.normal(size=n)
    few = {"kernel": "rbf", "n_tuning_points": 40, "n_models": 2}
    return LSGPRegressor(**few, random_state=0).fit(X, y)


@pytest.mark.parametrize(("noise", "is_tried"), [(0.0, True), (0.3, False)])
def test_a_function_is_tried_where_little_noise_is_as_likely_as_none(noise, is_tried, monkeypatch):
    # Whose noise is far from none by itself: priors keep some of functions that vary fast.
    monkeypatch.setattr(noiseless, "finds_no_noise", lambda model: False)
    monkeypatch.setattr(noiseless, "LITTLE_NOISE", 0.0)
    monkeypatch.setattr(noiseless, "SOME_NOISE", 1.0)
    tried, tune = [], noiseless._tune_plain

    def watch(job, **settings):
        tried.append(settings["kind"])
        return tune(job, **settings)

    monkeypatch.setattr(noiseless, "_tune_plain", watch)
    fit(noise=noise, function=fast)
    assert bool(tried) == is_tried


def test_of_more_rows_bends_begin_from_inputs_as_they_are(monkeypatch):
    # From the bends of few rows, descents of a wing's weight ended 50 in the log evidence lower.
    begun = []

    def watch(problem, rows, start, is_bent=False, is_last=True, **settings):
        if is_bent and is_last:
            begun.append((len(rows.y), start.bends))
        return maximize(problem, rows, start, is_bent, is_last, **settings)

    maximize = noiseless.maximize_noiseless
    monkeypatch.setattr(noiseless, "maximize_noiseless", watch)
    fit()
    assert begun
    assert all(n == 300 and not bends.any() for n, bends in begun)


def test_bends_begin_from_those_of_few_rows_where_none_gain_nothing(monkeypatch):
    found = [SimpleNamespace(log_evidence=value) for value in (5.0, 7.0)]
    starts = []

    def maximize(problem, part, start, is_bent, is_last):
        starts.append(start)
        return found[len(starts) - 1]

    monkeypatch.setattr(noiseless, "maximize_noiseless", maximize)
    part = SimpleNamespace(part=lambda rows: rows)
    monkeypatch.setattr(noiseless, "bendable_rows", lambda problem, space: part)
    plain = noiseless.Tuned(None, SimpleNamespace(log_evidence=4.9), False)
    few = noiseless.Tuned(None, SimpleNamespace(log_evidence=1.0), True)
    job = SimpleNamespace(problem=None)
    bent = noiseless._bend_further(job, plain, few, np.arange(3))
    assert starts == [plain.found, few.found]
    assert bent.is_bent
    assert bent.found is found[1]


@pytest.mark.parametrize(("noise", "is_noiseless"), [(0.0, True), (0.3, False)])
def test_trees_have_no_share_in_a_function(noise, is_noiseless, monkeypatch):
    # Of Hartmann's function with 600 rows they had .1 to .15, and errors were larger by 7 %.
    seen = []

    class Last(Boost):
        def run(self, problem, found, runner):
            seen.append(found)

    monkeypatch.setattr(search, "STAGES", (First(), Noiseless(), Last()))
    fit(n=510, noise=noise)
    assert [found.is_noiseless for found in seen] == [is_noiseless]
    reported = []
    runner = SimpleNamespace(report=lambda work, what: reported.append(what), stream=0)
    try:
        Boost().run(SimpleNamespace(admits_boosting=True), seen[0], runner)
    except AttributeError:
        assert not is_noiseless  # it went on to a problem that is none
    assert reported == ([] if is_noiseless else ["boosted trees"])


def test_trees_are_tried_where_a_function_of_few_rows_may_be_none():
    reported = []
    runner = SimpleNamespace(report=lambda work, what: reported.append(what), stream=0)
    found = SimpleNamespace(all=[1], unseen=None, is_noiseless=True, likely=[(1, 1.0)], folds=None)
    with pytest.raises(AttributeError):  # it went on to a problem that is none
        Boost().run(SimpleNamespace(admits_boosting=True), found, runner)
    assert reported == ["boosted trees"]


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_warm_fit_knows_whether_there_is_noise(noise, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 3))
    y = smooth(X) + noise * rng.normal(size=200)
    few = {"kernel": "rbf", "n_tuning_points": 40, "n_models": 2, "random_state": 0}
    tried, tune = [], noiseless._tune_plain

    def watch(job, **settings):
        tried.append(settings["kind"])
        return tune(job, **settings)

    monkeypatch.setattr(noiseless, "_tune_plain", watch)
    monkeypatch.setattr(noiseless, "LITTLE_NOISE", 0.1)
    model = LSGPRegressor(warm_start=True, **few).fit(X, y)
    assert tried
    tried.clear()
    model.fit(X, y)
    assert bool(tried) == (noise == 0.0)
