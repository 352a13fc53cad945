# SPDX-License-Identifier: BSD-3-Clause
"""Effort: what tuning tries, what predictions may cost, and what a refit starts from."""

import copy
import types
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tuned import assert_same_predictions, make_data, regressor

import lsgp.tuning.evidence
import lsgp.tuning.functions.bending
from lsgp import LSGPClassifier, LSGPRegressor
from lsgp.method.contract import LocalProblem
from lsgp.method.distribution import PredictiveDistribution
from lsgp.tuning.descent import descend_vector, in_fewest_digits
from lsgp.tuning.effort_levels import LEVELS, plan_efforts
from lsgp.tuning.given import Given
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.objective import OBJECTIVES
from lsgp.tuning.plan import effort_of_larger
from lsgp.tuning.prices import affords_several, price_of, price_of_exact
from lsgp.tuning.stages import enlarge, rank
from lsgp.tuning.weights import Toll, choose_weights

#: Of these, 0 is all.
RELAYS = ("n_relayed", "n_relayed_of_few", "n_relayed_of_many_inputs", "relaying")
#: What must be gained for what it takes: the less, the more effort.
WORTHS = ("worth_of_millisecond", "worth_boosting")


def work_of(action):
    """What tuning computes, in multiply-adds of its systems: seconds depend on what else runs."""
    total = [0.0]
    evaluate, evidence = LeaveOneOut.evaluate, lsgp.tuning.evidence.evidence_of

    def counted(self, model, sample, objective):
        n_targets, m = sample.neighbors.shape
        total[0] += n_targets * m**3
        return evaluate(self, model, sample, objective)

    def counted_evidence(problem, *rest):
        total[0] += len(problem.X) ** 3
        return evidence(problem, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LeaveOneOut, "evaluate", counted)
        patch.setattr(lsgp.tuning.evidence, "evidence_of", counted_evidence)
        patch.setattr(lsgp.tuning.functions.bending, "evidence_of", counted_evidence)
        result = action()
    return total[0], result


# ---- the setting ----


def test_an_effort_that_is_none_is_refused_with_those_there_are():
    X, y = make_data(20)
    for wrong in ("quick", None, 2):
        with pytest.raises(ValueError, match="is not one of 'fast', 'balanced', 'best'"):
            LSGPRegressor(effort=wrong).fit(X, y)


def test_what_is_given_by_hand_wins_over_the_effort():
    given = LSGPRegressor(effort="fast", n_tuning_points=123, n_models=5)._level()
    assert (given.n_tuning_points, given.n_models) == (123, 5)
    assert given == LEVELS["fast"]._replace(n_tuning_points=123, n_models=5)
    X, y = make_data(200)
    model = LSGPRegressor(effort="fast", kernel="rbf", n_neighbors=20, random_state=0).fit(X, y)
    assert {(f.model.kernel, f.n_neighbors) for f in model.fitted_} == {("rbf", 20)}


@pytest.mark.parametrize("name", list(LEVELS))
@pytest.mark.parametrize("n", [3, 100, 10_000])
@pytest.mark.parametrize("is_ranked", [False, True])
def test_no_optimization_has_more_targets_than_half_of_the_rows(name, n, is_ranked):
    level = LEVELS[name]
    for is_in_gaps, is_warm in ((False, False), (True, False), (False, True)):
        points = level.n_tuning_points
        efforts = plan_efforts(level, points, n, False, is_in_gaps, is_ranked, is_warm)
        for effort in (efforts.ranking, efforts.relaying, efforts.polishing):
            assert 1 <= effort.n_targets <= max(1, min(n // 2, points))
            assert effort.work > 0


def test_more_effort_is_more_of_everything():
    levels = [LEVELS[name] for name in ("fast", "balanced", "best")]
    for less, more in pairwise(levels):
        assert less.worth_of_millisecond > more.worth_of_millisecond
        assert less.worth_boosting >= more.worth_boosting
        for name in less._fields:
            if name not in (*WORTHS, "in_gaps", "slowly", *RELAYS):
                assert getattr(less, name) <= getattr(more, name), name
    # Of efforts, the tuples would be compared by their first entries alone.
    works = [[lv.ranking.work, lv.polishing.work, lv.in_gaps.polishing.work] for lv in levels]
    assert works[0] < works[1] < works[2]


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


def test_fast_results_do_not_depend_on_threads():
    X, y = make_data(300)
    one, two = (LSGPRegressor(effort="fast", random_state=0, n_jobs=k).fit(X, y) for k in (1, 2))
    assert_same_predictions(one, two, X)
    assert one.tuning_.loss == two.tuning_.loss


# ---- ranking ----


def test_the_worse_half_of_the_starts_has_one_round_with_fewer_neighbors():
    X, y = make_data(200)
    settings = {"scale": "local", "boosting": False, "random_state": 0, "n_models": 2}
    model = LSGPRegressor(input_transform="standardize", **settings).fit(X, y)
    local = [c for c in model.tuning_.candidates if c.n_neighbors in (32, 64)]
    kernels = {c.model.kernel for c in local}
    assert len(kernels) == 4
    small = [c for c in local if c.n_neighbors == 32]
    assert 2 <= len(small) <= 4 < len(local)
    # What is given is what is ranked.
    model = LSGPRegressor(n_neighbors=20, input_transform="standardize", **settings).fit(X, y)
    assert {c.n_neighbors for c in model.tuning_.candidates} <= {20, len(y)}


def test_starts_of_many_rows_are_ranked_on_part_of_the_compared_points(monkeypatch):
    X, y = make_data(2500)
    monkeypatch.setattr(rank, "N_RANKED_ON", 100)
    model = LSGPRegressor(effort="fast", n_neighbors=10, random_state=0).fit(X, y)
    tuned = model.tuning_
    assert tuned.n_compared == 1000
    assert all(len(c.predicted.mean) == 1000 for c in tuned.candidates)
    # The best of the ranking is among them, beside the first and the polished ones.
    assert len(tuned.candidates) >= 4


# ---- prices ----


def test_prices_grow_with_the_rows_and_are_those_of_the_operations():
    prices = [price_of(m, 8) for m in (64, 128, 256, 512)]
    assert all(4.0 * less < more < 8.0 * less for less, more in pairwise(prices))
    # A factor that is there spares the factoring.
    assert price_of_exact(512, False) < 0.01 * prices[-1]
    assert price_of_exact(512, True) < price_of_exact(512, False)


def test_time_of_a_device_is_worth_less_than_that_of_the_host():
    """What a device tries, it must be able to choose: a host takes 50 ms with 36,000 rows."""

    def worth(is_device, is_in_gaps=False):
        backend = types.SimpleNamespace(is_device=is_device)
        given = types.SimpleNamespace(
            backend=backend, is_in_gaps=is_in_gaps, level=LEVELS["balanced"]
        )
        return Given.worth_of_millisecond.fget(given)

    assert worth(False) == LEVELS["balanced"].worth_of_millisecond
    assert 0.0 < 50.0 * worth(True) < 0.01
    assert worth(False, is_in_gaps=True) == 0.0


def at(mean):
    return PredictiveDistribution(np.full((4, 1), mean), np.ones((4, 1)))


def test_what_costs_more_than_it_gains_is_not_combined():
    predicted = [at(1.0), at(-0.9), at(0.04)]

    def loss(combined):
        return float(np.abs(combined.mean).mean())

    free = choose_weights(predicted, loss, 4)
    assert free[2] > 0
    dear = choose_weights(predicted, loss, 4, Toll(np.array([0.0, 0.0, 2.0])))
    assert dear[2] == 0
    # Both of the cheap ones are worth no more than they gain, once each.
    assert np.count_nonzero(dear) == 2
    alone = choose_weights(predicted, loss, 4, Toll(np.full(3, 2.0)))
    assert np.count_nonzero(alone) == 1
    assert np.array_equal(choose_weights(predicted, loss, 4, Toll(np.zeros(3))), free)


def test_what_comes_beyond_the_price_must_gain_several_times_as_much():
    predicted = [at(0.3), at(-0.25)]

    def loss(combined):
        return float(np.abs(combined.mean).mean())

    costs = np.array([0.08, 0.08])
    # The second gains more than the .08 that it costs, but not four times as much.
    assert np.count_nonzero(choose_weights(predicted, loss, 4, Toll(costs, 0.2))) == 2
    assert np.count_nonzero(choose_weights(predicted, loss, 4, Toll(costs, 0.08))) == 1
    assert Toll(costs, 0.12).of(np.array([0, 1])) == pytest.approx(0.16 + 3 * 0.04)


def test_no_model_is_kept_that_the_others_do_better_without():
    # Cheap ones are picked early: once the dear ones are there, they may be of no more use.
    rng = np.random.default_rng(3)

    def loss(combined):
        return float(np.abs(combined.mean).mean())

    for _ in range(10):
        errors = rng.normal(size=(6, 12)) * np.array([1.0, 1.0, 1.4, 1.4, 1.8, 1.8])[:, None]
        toll = Toll(0.05 * np.array([1.0, 1.0, 0.3, 0.3, 0.1, 0.1]), 0.06)

        def priced_by(members, errors=errors, toll=toll):
            predicted = [
                PredictiveDistribution(errors[k][:, None], np.ones((12, 1))) for k in members
            ]
            weights = choose_weights(predicted, loss, 6, Toll(toll.costs[members], toll.most))
            kept = members[np.flatnonzero(weights)]
            mean = weights @ errors[members]
            return float(np.abs(mean).mean()) + toll.of(kept), kept

        value, kept = priced_by(np.arange(6))
        for k in range(len(kept) if len(kept) > 1 else 0):
            assert priced_by(np.delete(kept, k))[0] >= value - 1e-12


def test_more_neighbors_must_gain_what_they_cost():
    crps, density = OBJECTIVES["crps"], OBJECTIVES["log_density"]
    assert crps.is_worthwhile(0.98, 1.0)
    assert crps.is_worthwhile(0.98, 1.0, 0.01)
    assert not crps.is_worthwhile(0.98, 1.0, 0.02)
    assert density.is_worthwhile(-1.02, -1.0, 0.01)
    assert not density.is_worthwhile(-1.02, -1.0, 0.02)


# ---- single precision ----


def priced(level="balanced", worth=None):
    """What the price of neighbors reads of a tuning problem."""
    own = LEVELS[level].worth_of_millisecond if worth is None else worth
    rows = types.SimpleNamespace(X=np.zeros((1, 8)))
    return types.SimpleNamespace(level=LEVELS[level], worth_of_millisecond=own, rows=rows)


def test_two_models_of_the_largest_neighborhoods_are_too_dear_but_for_the_best_and_for_devices():
    sizes = (128, 256, 384, 512)
    assert [affords_several(priced(), m) for m in sizes] == [True, True, False, False]
    assert not affords_several(priced("fast"), 256)
    for problem in (priced("best"), priced(worth=0.01 / 300), priced(worth=0.0)):
        assert all(affords_several(problem, m) for m in sizes)


@pytest.mark.parametrize(
    ("reached", "losses", "expected"),
    [
        ((256, 256), (0.3, 0.2), [256, 384]),  # the better one goes on alone
        ((256, 128), (0.3, 0.2), [256, 128]),  # it was left at the size that is best
        ((256,), (0.3,), [384]),
    ],
)
def test_where_there_is_no_time_for_two_the_best_alone_is_enlarged(
    monkeypatch, reached, losses, expected
):
    made = [
        types.SimpleNamespace(n_neighbors=m, loss=loss)
        for m, loss in zip(reached, losses, strict=True)
    ]

    def larger(_, contender, most, is_alone):
        size = most if is_alone else contender.n_neighbors
        return types.SimpleNamespace(n_neighbors=size, loss=contender.loss)

    numbers = []

    def run(tasks, keep, first_number=0):
        numbers.extend(range(first_number, first_number + len(tasks)))
        return [task(None) for task in tasks]

    monkeypatch.setattr(enlarge, "enlarge", larger)
    runner = types.SimpleNamespace(run=run)
    found = enlarge.enlarge_all(priced(), made, 384, runner, [])
    assert [each.n_neighbors for each in found] == expected
    assert len(set(numbers)) == len(numbers)  # none draws the rows of another


def test_neighborhoods_that_others_start_from_are_tuned_thoroughly():
    efforts = {m: effort_of_larger(m, 2000) for m in (64, 128, 256, 384)}
    assert efforts[256].work > 2 * max(efforts[m].work for m in (128, 384))
    assert effort_of_larger(256, 2000, is_in_gaps=True).work < efforts[128].work
    assert effort_of_larger(256, 300).n_targets == 300


def space_of(model, X, y):
    """The rows of a fitted model as tuning sees them."""
    from lsgp.backends import choose_backend
    from lsgp.backends.contract import Resources
    from lsgp.tuning.leave_one_out import LeaveOneOut

    fitted = model.fitted_[0]
    return LeaveOneOut(
        fitted.transform,
        X,
        y[:, None],
        np.ones(len(X)),
        fitted.index,
        choose_backend("cpu", fitted.model),
        Resources(),
    )


@pytest.mark.parametrize(
    ("apart", "noise", "is_single"),
    [(0.0, 0.1, True), (1e9, 0.1, False), (0.0, 1e-7, False)],
    ids=["usual", "digits are lost", "no noise"],
)
def test_single_precision_is_used_where_it_says_the_same(apart, noise, is_single):
    X, y = make_data(200)
    # Two clusters: around no center have both of them digits.
    X = X + apart * (np.arange(200) % 2)[:, None]
    model = LSGPRegressor(
        objective=None, input_transform=None, noise_variance=noise, lengthscale=0.5
    ).fit(X, y)
    space = space_of(model, X, y)
    sample = space.sample(model.model_, np.arange(100, dtype=np.int32), 30)
    found = in_fewest_digits(space, sample, model.model_, OBJECTIVES["crps"])
    assert found.X.dtype == (np.float32 if is_single else float)
    assert isinstance(found.problem(model.model_), LocalProblem)
    shifted = in_fewest_digits(replace(space, X=X + 1e7), sample, model.model_, OBJECTIVES["crps"])
    # Inputs far from zero are centered first.
    assert shifted.X.dtype == found.X.dtype


# ---- refits ----


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


def test_a_warm_refit_weighs_what_there_was_as_it_was():
    X, y = make_data(150)
    model = regressor(warm_start=True, n_models=4, kernel="auto").fit(X, y)
    before = [f.model.lengthscale for f in model.fitted_ if f.model.localizer == "smooth"]
    model.fit(X, y)
    tried = [c.model.lengthscale for c in model.tuning_.candidates]
    assert before
    for lengthscale in before:
        assert any(np.array_equal(lengthscale, other) for other in tried)


def test_quick_settings_still_begin_warm():
    X, y = make_data(150)
    model = regressor(warm_start=True).fit(X, y)
    first = model.tuning_.loss
    model.fit(X, y)
    assert model.tuning_.loss < 1.05 * first


def test_no_model_of_several_searches_is_there_twice():
    # Exact GPs draw no rows, so that all searches have the same ones: three factors of 7,373 rows
    # were more than the memory budget of the fit.
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(50, 1))
    y = np.sin(6.0 * X[:, 0]) + 0.1 * rng.normal(size=50)
    quick = {"kernel": "matern52", "input_transform": "standardize", "n_tuning_points": 25}
    model = LSGPRegressor(effort="best", boosting=False, random_state=0, **quick).fit(X, y)
    members = [
        (fitted.n_neighbors, *fitted.model.lengthscale, fitted.model.noise_variance)
        for fitted in model.ensemble_.models
    ]
    assert len(set(members)) == len(members) > 1
    assert sum(fitted.weight for fitted in model.ensemble_.models) == pytest.approx(1.0)


def test_a_descent_whose_losses_are_noisy_ends():
    # As of single precision: steps find nothing, and look for it 20 times each.
    rng, n_asked = np.random.default_rng(0), []

    def noisy(vector):
        n_asked.append(1)
        return float(vector @ vector) + 0.1 * rng.normal(), 2.0 * vector

    bounds = [(-5.0, 5.0)] * 4
    descend_vector(noisy, np.full(4, 3.0), bounds, 50, most_evaluations=30)
    # No step but the last one goes beyond.
    assert len(n_asked) <= 30 + 21
