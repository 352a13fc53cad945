# SPDX-License-Identifier: BSD-3-Clause
"""Regions of rows that are held out, to judge models for queries beyond the rows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import cKDTree
from sklearn.gaussian_process.kernels import Matern
from tuned import regressor

import lsgp.tuning.beyond.competition
from lsgp import LSGPRegressor
from lsgp.backends.grow import Bins, Growth, Watched, grow
from lsgp.method.contract import LocalProblem
from lsgp.search.index import build_index
from lsgp.solvers.exact_system import ExactSystem
from lsgp.tuning import search
from lsgp.tuning.beyond.competition import choose_beyond
from lsgp.tuning.beyond.regions import (
    Layer,
    Regions,
    hold_out_regions,
    leave_regions_out,
    locate_queries,
)
from lsgp.tuning.evidence import make_exact
from lsgp.tuning.stages.stage import Found
from lsgp.tuning.trees.plan import plan_boosting


def points(n=1500, d=2, seed=0):
    return np.random.default_rng(seed).uniform(size=(n, d))


def regions_of(X, queries, groups=None, seed=0):
    index, rng = build_index(X, np.ones(X.shape[1])), np.random.default_rng(seed)
    where = locate_queries(X, index, queries, groups, rng)
    return hold_out_regions(X, index, where, groups, rng) if where.are_beyond else None


def members_of(regions):
    """Rows of each region, and its targets."""
    for number, targets in regions.layers:
        for k in range(number.max() + 1):
            yield np.flatnonzero(number == k), targets[number[targets] == k]


def in_disk(X):
    return np.hypot(*(X - 0.5).T) < 0.2


def at_end(X):
    return X[:, 0] > 0.7


@pytest.mark.parametrize("where", [in_disk, at_end])
def test_rows_of_regions_are_as_far_from_the_rest_as_the_queries(where):
    everywhere = points()
    X, queries = everywhere[~where(everywhere)], everywhere[where(everywhere)]
    regions = regions_of(X, queries)
    wanted = np.quantile(cKDTree(X).query(queries)[0], [0.25, 0.5, 0.75])
    distances = []
    for members, targets in members_of(regions):
        assert np.isin(targets, members).all()
        rest = np.delete(X, members, axis=0)
        distances.append(cKDTree(rest).query(X[targets])[0])
    found = np.quantile(np.concatenate(distances), [0.25, 0.5, 0.75])
    assert (np.abs(np.log(found / wanted)) < 0.5).all()
    assert regions.n_regions == len(distances) > 4


def test_an_end_is_imitated_by_ends_and_a_hole_by_holes():
    """Seen from a region, how much of the circle around it has rows."""

    def openness(where):
        everywhere = points()
        X, queries = everywhere[~where(everywhere)], everywhere[where(everywhere)]
        found = []
        for members, _ in members_of(regions_of(X, queries)):
            away = np.delete(X, members, axis=0) - X[members].mean(axis=0)
            away /= np.linalg.norm(away, axis=1, keepdims=True)
            found.append(np.linalg.norm(away.mean(axis=0)))
        return np.mean(found)

    assert openness(at_end) > openness(in_disk) + 0.1


def test_queries_among_the_rows_need_no_regions():
    X = points()
    assert regions_of(X, points(seed=1)) is None
    assert regions_of(X, X) is None
    assert regions_of(np.zeros((200, 2)), X) is not None
    assert regions_of(X[:20], X + 5.0) is None  # nor do few rows make any


def test_rows_of_a_group_are_held_out_together():
    X = points(600)
    groups = (np.arange(600) // 3).astype(np.int32)
    groups[:30] = -1
    for members, _ in members_of(regions_of(X, X + 0.5, groups)):
        held = np.isin(np.arange(600), members)
        for group in np.unique(groups[members]):
            assert group < 0 or held[groups == group].all()


@pytest.mark.parametrize("n_of_group", [3, 10, 80])
def test_regions_with_all_rows_of_their_groups_leave_others_to_predict_them_from(n_of_group):
    X = points(150, 3)
    groups = (np.arange(150) // n_of_group).astype(np.int32)
    regions = regions_of(X, points(100, 3, seed=1) + 0.5, groups)
    if n_of_group == 80:
        assert regions is None  # of two groups, none leaves half of the rows
    elif regions is not None:
        assert max(len(members) for members, _ in members_of(regions)) <= 75


def test_groups_of_many_rows_may_be_fitted_for_queries_beyond_them():
    X = points(150, 3)
    settings = {"n_neighbors": 20, "kernel": "matern32", "n_tuning_points": 30}
    model = regressor(**settings)
    model.fit(X, X.sum(axis=1), groups=np.arange(150) // 10, queries=points(100, 3, seed=1) + 0.5)
    assert np.isfinite(model.predict(X + 0.5)).all()


@pytest.mark.parametrize("n", [25, 40])
def test_rows_that_are_too_few_for_regions_are_fitted_as_without_queries(n):
    # Nothing would say whether what is tuned for the queries is any better.
    X = points(n)
    y = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2
    queries = points(50, seed=1) + np.array([0.5, 0.0])
    settings = {"n_tuning_points": 30, "kernel": "matern32", "input_transform": "standardize"}
    fits = [
        LSGPRegressor(random_state=0, **settings).fit(X, y, queries=where)
        for where in (None, queries)
    ]
    plain, informed = (model.predict_distribution(queries) for model in fits)
    assert np.array_equal(plain.mean, informed.mean)
    assert np.array_equal(plain.scale, informed.scale)


def test_an_exact_system_predicts_a_region_as_one_without_its_rows():
    X = points(200)
    y = np.sin(5.0 * X[:, :1]) + X[:, 1:]
    model = make_exact(LSGPRegressor(objective=None).fit(X, y[:, 0]).model_)
    problem = LocalProblem(X, y, np.ones(200), model)
    regions = regions_of(X, X + 0.4)
    found = leave_regions_out(ExactSystem.solve(problem), regions)
    assert len(found.mean) == len(regions.targets)
    start = 0
    for members, targets in members_of(regions):
        kept = np.delete(np.arange(200), members)
        rest = LocalProblem(X[kept], y[kept], np.ones(len(kept)), model)
        expected = ExactSystem.solve(rest).predict(X[targets])
        part = slice(start, start + len(targets))
        np.testing.assert_allclose(found.mean[part], expected.mean, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found.variance[part], expected.variance, rtol=1e-6)
        start += len(targets)


def rough_field(seed=0):
    """A field of short range on the unit square, of which the right third is not observed."""
    X = points(700, seed=seed)
    covariance = Matern(0.08, nu=0.5)(X) + 1e-3 * np.eye(len(X))
    y = np.linalg.cholesky(covariance) @ np.random.default_rng(seed).normal(size=len(X))
    return X, y, X[:, 0] > 0.67


def test_knowing_the_queries_does_no_harm_where_nothing_reaches_them():
    # A rule that lengthscales are as long as the gap is wide would carry lines far outward.
    X, y, beyond = rough_field()
    settings = {"n_neighbors": 40, "kernel": "matern12", "n_tuning_points": 80}
    fits = [
        regressor(**settings).fit(X[~beyond], y[~beyond], queries=queries)
        for queries in (None, X[beyond])
    ]
    plain, informed = (model.calibration(X[beyond], y[beyond]) for model in fits)
    assert informed.crps < 1.05 * plain.crps
    assert informed.coverage_at(0.95) > 0.84


def test_fits_for_queries_beyond_do_not_depend_on_threads():
    X, y, beyond = rough_field(1)
    settings = {"n_neighbors": 30, "n_tuning_points": 40}
    means = [
        regressor(n_jobs=n_jobs, **settings)
        .fit(X[~beyond], y[~beyond], queries=X[beyond])
        .predict(X[beyond])
        for n_jobs in (1, 3)
    ]
    assert np.array_equal(*means)


def steps(n=200, seed=0):
    """Jumps along two of three inputs, of which one end is not observed."""
    X = points(n, 3, seed)
    y = 3.0 * (X[:, 1] > 0.37) + 2.0 * (X[:, 2] > 0.61) + X[:, 0]
    y += 0.1 * np.random.default_rng(seed).normal(size=n)
    return X, y, X[:, 0] > 0.75


#: No other transforms, and no exact GPs: they take the time of a fit.
STEPS = {"random_state": 0, "n_tuning_points": 30, "n_models": 3}
STEPS |= {"input_transform": "standardize", "scale": "local"}


def test_regions_with_common_rows_say_less_than_others():
    apart = np.full(12, -1, dtype=np.int32)
    apart[:4], apart[4:8], apart[8:] = 0, 1, 2
    targets = np.arange(12, dtype=np.int32)
    one = Layer(apart, targets)
    assert Regions((one,)).n_independent == pytest.approx(3.0)
    # The same regions again say nothing new, and half of one something.
    assert Regions((one, one)).n_independent == pytest.approx(3.0)
    half = np.full(14, -1, dtype=np.int32)
    half[10:] = 0
    longer = Layer(np.append(apart, [-1, -1]).astype(np.int32), targets)
    assert 3.0 < Regions((longer, Layer(half, targets))).n_independent < 4.0


@pytest.fixture(scope="module")
def beyond_of_steps():
    """What regions have to choose from, of a fit for the end of it."""
    X, y, beyond = steps()
    asked = {}

    def choose(problem, comparison, plain, found):
        asked.update(problem=problem, comparison=comparison, plain=plain, found=found)
        return choose_beyond(problem, comparison, plain, found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "choose_beyond", choose)
        patch.setattr(lsgp.tuning.beyond.competition, "CLEARLY", np.inf)
        asked["model"] = LSGPRegressor(**STEPS).fit(X[~beyond], y[~beyond], queries=X[beyond])
    return asked


def test_the_fit_without_queries_has_half_of_the_weight_unless_regions_are_clear(beyond_of_steps):
    X, y, beyond = steps()
    plain = LSGPRegressor(**STEPS).fit(X[~beyond], y[~beyond])
    model = beyond_of_steps["model"]
    n_plain = len(plain.ensemble_.models)
    own = np.sort([f.weight for f in plain.ensemble_.models])
    found = [f.weight for f in model.ensemble_.models]
    assert len(found) > n_plain
    assert all(np.isclose(found, 0.5 * weight).any() for weight in own)
    assert sum(found) == pytest.approx(1.0)
    assert model.ensemble_.boosted.share > 0


@pytest.mark.parametrize("is_worse", [False, True])
def test_the_fit_without_queries_is_kept_where_regions_are_clear(beyond_of_steps, is_worse):
    problem, comparison = beyond_of_steps["problem"], beyond_of_steps["comparison"]
    plain = beyond_of_steps["plain"]
    first = plain.contenders[0]
    predicted = first.candidate.predicted
    share = -3.0 if is_worse else -0.001
    misled = replace(predicted, mean=predicted.mean + share * (comparison.y - predicted.mean))
    found = Found(varied=[first._replace(candidate=replace(first.candidate, predicted=misled))])
    _, choice = choose_beyond(problem, comparison, plain, found)
    assert (choice.weights[-1] == 0.0) == is_worse
    if is_worse:
        assert np.array_equal(choice.weights[:-1], plain.weights)
        assert choice.calibration == plain.calibration


def test_trees_have_not_seen_the_regions_that_they_are_judged_by(beyond_of_steps):
    problem, regions = beyond_of_steps["problem"], beyond_of_steps["comparison"].regions
    said = beyond_of_steps["found"].boosted_regions
    trees = beyond_of_steps["model"].ensemble_.boosted
    plan = plan_boosting(len(problem.y))
    members, targets = next(members_of(regions))
    rest = np.delete(np.arange(len(problem.y)), members)
    X, y = problem.rows.X, problem.y[:, 0]
    bins = Bins.of(X, max(plan.n_leaves))
    n_trees = trees.n_trees // plan.n_folds
    growth = Growth(n_trees, trees.nodes.n_leaves, plan.n_rows_of_leaf, plan.learning_rate)
    watched = Watched(bins.number(X[targets]), y[targets])
    grown = grow(growth, bins, bins.number(X[rest]), y[rest], None, watched, lambda: None)
    expected = grown.predict(X[targets], n_trees)
    np.testing.assert_allclose(said[regions.of_targets == 0, 0], expected, rtol=1e-6)
    assert len(said) == len(regions.targets)


@pytest.mark.parametrize("has_gained", [False, True])
def test_what_is_better_in_every_region_replaces_the_fit_without_queries(
    beyond_of_steps, has_gained
):
    comparison, plain = beyond_of_steps["comparison"], beyond_of_steps["plain"]
    first = plain.contenders[0]
    plain = plain._replace(contenders=[first], weights=np.ones(1))
    # As if it had been told most of the truth, in all regions or in one.
    region, predicted = comparison.regions.of_targets, first.candidate.predicted
    share = 0.9 if has_gained else np.where(region == 0, 0.2, 0.0)[:, None]
    informed = replace(predicted, mean=predicted.mean + share * (comparison.y - predicted.mean))
    candidate = replace(first.candidate, predicted=informed, loss=first.loss - 0.1)
    found = Found(varied=[first._replace(candidate=candidate)])
    contenders, choice = choose_beyond(beyond_of_steps["problem"], comparison, plain, found)
    assert len(contenders) == 2
    assert choice.weights[-1] == (1.0 if has_gained else 0.5)


@pytest.mark.parametrize("are_judged", [False, True])
def test_trees_that_no_region_has_judged_say_nothing_beyond_the_rows(beyond_of_steps, are_judged):
    comparison, plain = beyond_of_steps["comparison"], beyond_of_steps["plain"]
    found = Found(
        boosted_regions=beyond_of_steps["found"].boosted_regions if are_judged else None,
    )
    _, choice = choose_beyond(beyond_of_steps["problem"], comparison, plain, found)
    assert plain.boosted_share > 0.0
    assert (choice.boosted_share > 0.0) == are_judged


def test_an_exact_gp_is_judged_by_the_scale_that_it_predicts_with(beyond_of_steps):
    problem = beyond_of_steps["problem"].plain
    start = problem.starts[0]
    model = problem.make_exact(start.model).replace(signal_variance=1e-4)
    start = start._replace(model=model, n_neighbors=len(problem.y))
    exact = problem.evaluate_exact(start, problem.comparison())
    assert exact.model.signal_variance > 2e-4  # leave-one-out has calibrated it
    again = problem.judge_exact(exact.start, exact.system, problem.comparison(), False, 0.0)
    np.testing.assert_allclose(again.candidate.predicted.scale, exact.candidate.predicted.scale)
    assert again.loss == pytest.approx(exact.loss)
