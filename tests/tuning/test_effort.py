# SPDX-License-Identifier: BSD-3-Clause
"""Effort: how hard tuning tries, and what a refit starts from."""

import copy
from itertools import pairwise

import numpy as np
import pytest
from small_data import make_data
from untuned import made

import lsgp.solvers.evidence
from lsgp import Effort, LSGPClassifier, LSGPRegressor
from lsgp.tuning.budget import BUDGETS
from lsgp.tuning.space import Space

EFFORTS = ("fast", "balanced", "best")


def work_of(action):
    """What tuning computes, in multiply-adds of its systems: seconds depend on what else runs."""
    total = [0.0]
    evaluate, evidence = Space.evaluate, lsgp.solvers.evidence.negative_log_evidence

    def counted(self, model, sample, objective):
        n_targets, m = sample.neighbors.shape
        total[0] += n_targets * m**3
        return evaluate(self, model, sample, objective)

    def counted_evidence(problem, *rest):
        total[0] += len(problem.X) ** 3
        return evidence(problem, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Space, "evaluate", counted)
        patch.setattr(lsgp.solvers.evidence, "negative_log_evidence", counted_evidence)
        result = action()
    return total[0], result


def test_what_is_given_by_hand_wins_over_the_effort():
    given = LSGPRegressor(effort=Effort("fast", n_points=1000, n_models=5), max_time=7.0)
    budget = given._budget()
    assert budget == BUDGETS["fast"]._replace(work=0.5, n_combined=5, seconds=7.0)
    assert budget.rungs(10_000)[-1].n_targets == 1000
    X, y = make_data(200)
    model = LSGPRegressor(effort="fast", kernel="rbf", n_neighbors=20, random_state=0).fit(X, y)
    assert {(f.model.kernel, f.n_neighbors) for f in model.fitted_} == {("rbf", 20)}


@pytest.mark.parametrize("name", EFFORTS)
def test_later_rungs_tune_fewer_models_on_more_targets_of_at_most_half_of_the_rows(name):
    for n in (3, 100, 1000, 10_000):
        for rung in BUDGETS[name].rungs(n):
            assert 1 <= rung.n_targets <= max(min(n, 64), n // 2)
    rungs = BUDGETS[name].rungs(10**6)
    assert [rung.is_first for rung in rungs] == [True, False, False]
    for before, after in pairwise(rungs):
        assert before.n_targets < after.n_targets
        assert before.n_rows < after.n_rows
        assert before.n_kept >= after.n_kept


def test_more_effort_is_more_of_everything():
    for less, more in pairwise(BUDGETS[name] for name in EFFORTS):
        assert less.worth_of_millisecond > more.worth_of_millisecond
        assert less.n_compared < more.n_compared
        assert less.n_combined < more.n_combined
        for one, other in zip(less.rungs(10**6), more.rungs(10**6), strict=True):
            assert one.n_targets < other.n_targets


@pytest.fixture(scope="module")
def balanced():
    """A balanced fit of 250 rows, the work that it was, and rows that it has not seen."""
    X, y = make_data(1250, seed=2)
    model = LSGPRegressor(warm_start=True, random_state=0)
    work, _ = work_of(lambda: model.fit(X[:250], y[:250]))
    return model, work, model.calibration(X[270:], y[270:]).crps, (X, y)


def test_less_effort_is_cheaper_and_nearly_as_good(balanced):
    _, work, score, (X, y) = balanced
    model = LSGPRegressor(effort="fast", random_state=0)
    less, _ = work_of(lambda: model.fit(X[:250], y[:250]))
    assert less < 0.5 * work
    assert model.calibration(X[270:], y[270:]).crps < 1.15 * score
    assert score < 0.3 * y.std()


def test_an_effort_for_labels_too():
    X, y = make_data(500, seed=3)
    labels = np.where(y > 0.2, "high", "low")
    tuned = {
        effort: work_of(
            lambda effort=effort: LSGPClassifier(effort=effort, random_state=0).fit(
                X[:160], labels[:160]
            )
        )
        for effort in ("fast", "balanced")
    }
    assert tuned["fast"][0] < 0.5 * tuned["balanced"][0]
    scores = [model.score(X[160:], labels[160:]) for _, model in tuned.values()]
    assert min(scores) > 0.85
    assert scores[0] > scores[1] - 0.05


def test_models_of_many_rows_are_compared_on_as_many_as_the_effort_says():
    X, y = make_data(2500)
    model = LSGPRegressor(effort="fast", n_neighbors=10, random_state=0).fit(X, y)
    assert model.tuning_.n_compared == BUDGETS["fast"].n_compared == 1000
    assert all(len(c.predicted.mean) == 1000 for c in model.tuning_.candidates)


@pytest.mark.parametrize("n_neighbors", ["auto", 20])
def test_neighbors_that_are_given_are_those_of_all_candidates(n_neighbors):
    X, y = make_data(200)
    few = {"input_transform": "standardize", "random_state": 0, "effort__n_models": 2}
    few |= {"hyperparameters__scale": "local", "n_neighbors": n_neighbors}
    model = made(**few).fit(X, y)
    sizes = {c.n_neighbors for c in model.tuning_.candidates}
    assert sizes == {20} if n_neighbors == 20 else min(sizes) == 64


def test_a_warm_refit_takes_a_third_of_a_cold_one_at_most_and_is_as_good(balanced):
    cold, work, score, (X, y) = balanced
    model = copy.copy(cold)
    # Some rows more: what was learnt of the others holds.
    warm, _ = work_of(lambda: model.fit(X[:270], y[:270]))
    assert warm < work / 3.0
    assert model.calibration(X[270:], y[270:]).crps < 1.03 * score


def test_a_warm_refit_keeps_exact_gps_and_tries_no_other_kernel():
    X, y = make_data(260, seed=5)
    model = LSGPRegressor(effort="fast", warm_start=True, random_state=0).fit(X[:200], y[:200])
    kinds = {(f.model.kernel, f.transform.kinds, f.model.localizer) for f in model.fitted_}
    assert any(localizer == "rectangular" for _, _, localizer in kinds)
    model.fit(X, y)
    again = {(f.model.kernel, f.transform.kinds, f.model.localizer) for f in model.fitted_}
    assert again <= kinds
    assert any(localizer == "rectangular" for _, _, localizer in again)
    # A setting that speaks of neighborhoods rules them out.
    model.set_params(n_neighbors=25).fit(X, y)
    assert {f.n_neighbors for f in model.fitted_} == {25}
    assert {f.model.localizer for f in model.fitted_} == {"smooth"}


@pytest.mark.parametrize("is_warm", [False, True])
def test_no_model_is_there_twice(is_warm):
    X, y = make_data(200, 1)
    model = LSGPRegressor(effort=Effort("best", n_points=200), random_state=0).fit(X, y)
    if is_warm:
        model.set_params(warm_start=True).fit(X, y)
    members = {
        (f.n_neighbors, str(f.model.kernel), *f.model.lengthscale, f.model.noise_variance)
        for f in model.ensemble_.models
    }
    assert len(members) == len(model.ensemble_.models) > 1
    assert sum(fitted.weight for fitted in model.ensemble_.models) == pytest.approx(1.0)
