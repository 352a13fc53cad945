# SPDX-License-Identifier: BSD-3-Clause
"""Regions of rows that are held out, to judge models for queries beyond the rows."""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from sklearn.gaussian_process.kernels import Matern
from tuned import assert_same_predictions, regressor

from lsgp import Effort, LSGPRegressor
from lsgp.method.contract import LocalProblem
from lsgp.search.index import build_index
from lsgp.search.regions import hold_out_regions, locate_queries
from lsgp.solvers.evidence import make_exact
from lsgp.solvers.exact_system import ExactSystem
from lsgp.tuning import outcome, search
from lsgp.tuning.exact import leave_out
from lsgp.tuning.hold_out import HoldOut, Layer
from lsgp.tuning.regions import _layered, _n_independent, like_queries


def points(n=1500, d=2, seed=0):
    return np.random.default_rng(seed).uniform(size=(n, d))


def regions_of(X, queries, groups=None, seed=0):
    """Rows of each region; None of queries that are where rows are."""
    index, rng = build_index(X, np.ones(X.shape[1])), np.random.default_rng(seed)
    where = locate_queries(X, index, queries, groups, rng)
    return hold_out_regions(X, index, where, groups, rng) if where.are_beyond else None


def layers_of(X, regions, seed=0):
    """A hold-out of regions."""
    layers, members = _layered(len(X), regions, np.random.default_rng(seed))
    everything = np.arange(len(X), dtype=np.int32)
    return HoldOut(layers, Layer(everything), _n_independent(members))


def blocks_of(hold_out):
    """Rows of each region, and its targets."""
    for targets, block, _ in hold_out.layers:
        for k in range(block.max() + 1):
            yield np.flatnonzero(block == k), targets[block[targets] == k]


def in_disk(X):
    return np.hypot(*(X - 0.5).T) < 0.2


def at_end(X):
    return X[:, 0] > 0.7


@pytest.mark.parametrize("where", [in_disk, at_end])
def test_rows_of_regions_are_as_far_from_the_rest_as_the_queries(where):
    everywhere = points()
    X, queries = everywhere[~where(everywhere)], everywhere[where(everywhere)]
    hold_out = layers_of(X, regions_of(X, queries))
    wanted = np.quantile(cKDTree(X).query(queries)[0], [0.25, 0.5, 0.75])
    distances = []
    for members, targets in blocks_of(hold_out):
        assert np.isin(targets, members).all()
        rest = np.delete(X, members, axis=0)
        distances.append(cKDTree(rest).query(X[targets])[0])
    found = np.quantile(np.concatenate(distances), [0.25, 0.5, 0.75])
    assert (np.abs(np.log(found / wanted)) < 0.5).all()
    assert len(distances) > 4


def test_an_end_is_imitated_by_ends_and_a_hole_by_holes():
    """Seen from a region, how much of the circle around it has rows."""

    def openness(where):
        everywhere = points()
        X, queries = everywhere[~where(everywhere)], everywhere[where(everywhere)]
        found = []
        for members in regions_of(X, queries):
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


def test_rows_of_a_group_are_held_out_together():
    X = points(600)
    groups = (np.arange(600) // 3).astype(np.int32)
    groups[:30] = -1
    for members in regions_of(X, X + 0.5, groups):
        held = np.isin(np.arange(600), members)
        for group in np.unique(groups[members]):
            assert group < 0 or held[groups == group].all()


@pytest.mark.parametrize("n_of_group", [3, 10, 80])
def test_regions_with_all_rows_of_their_groups_leave_others_to_predict_them_from(n_of_group):
    X = points(150, 3)
    groups = (np.arange(150) // n_of_group).astype(np.int32)
    regions = regions_of(X, points(100, 3, seed=1) + 0.5, groups)
    if n_of_group == 80:
        assert regions == []  # of two groups, none leaves half of the rows
    else:
        assert all(len(members) <= 75 for members in regions)


def test_groups_of_many_rows_may_be_fitted_for_queries_beyond_them():
    X = points(150, 3)
    settings = {"n_neighbors": 20, "kernel": "matern32", "effort__n_points": 30}
    beyond, groups = points(100, 3, seed=1) + 0.5, np.arange(150) // 10
    model = regressor(**settings).fit(X, X.sum(axis=1), groups=groups, queries=beyond)
    assert np.isfinite(model.predict(X + 0.5)).all()


@pytest.mark.parametrize("n", [25, 40])
def test_rows_that_are_too_few_for_regions_are_fitted_as_without_queries(n):
    # Nothing would say whether what is tuned for the queries is any better.
    X = points(n)
    y = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2
    queries = points(50, seed=1) + np.array([0.5, 0.0])
    settings = {"effort__n_points": 30, "kernel": "matern32", "input_transform": "standardize"}
    fits = [
        LSGPRegressor().set_params(random_state=0, **settings).fit(X, y, queries=where)
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
    hold_out = layers_of(X, regions_of(X, X + 0.4))
    found = leave_out(ExactSystem.solve(problem), hold_out)
    assert len(found.mean) == len(hold_out.targets)
    start = 0
    for targets, block, _ in hold_out.layers:
        for i, target in enumerate(targets):
            kept = np.flatnonzero(block != block[target])
            rest = LocalProblem(X[kept], y[kept], np.ones(len(kept)), model)
            if i % 10 == 0:
                expected = ExactSystem.solve(rest).predict(X[[target]])
                at = start + i
                np.testing.assert_allclose(found.mean[at], expected.mean[0], rtol=1e-6, atol=1e-9)
                np.testing.assert_allclose(found.variance[at], expected.variance[0], rtol=1e-6)
        start += len(targets)


def rough_field(seed=0):
    """A field of short range on the unit square, of which the right third is not observed."""
    X = points(700, seed=seed)
    covariance = Matern(0.08, nu=0.5)(X) + 1e-3 * np.eye(len(X))
    y = np.linalg.cholesky(covariance) @ np.random.default_rng(seed).normal(size=len(X))
    return X, y, X[:, 0] > 0.67


def fit_beyond(X, y, beyond, **settings):
    return regressor(**settings).fit(X[~beyond], y[~beyond], queries=X[beyond])


def test_knowing_the_queries_does_no_harm_where_nothing_reaches_them():
    # A rule that lengthscales are as long as the gap is wide would carry lines far outward.
    X, y, beyond = rough_field()
    settings = {"n_neighbors": 40, "kernel": "matern12", "effort__n_points": 80}
    plain = regressor(**settings).fit(X[~beyond], y[~beyond])
    informed = fit_beyond(X, y, beyond, **settings)
    plain, informed = (model.calibration(X[beyond], y[beyond]) for model in (plain, informed))
    assert informed.crps < 1.05 * plain.crps
    assert informed.coverage_at(0.95) > 0.84


def test_fits_for_queries_beyond_do_not_depend_on_threads_and_are_saved(tmp_path):
    X, y, beyond = rough_field(1)
    settings = {"n_neighbors": 30, "effort__n_points": 40}
    fits = [fit_beyond(X, y, beyond, n_jobs=n_jobs, **settings) for n_jobs in (1, 3)]
    fits[0].save(tmp_path / "model.lsgp")
    for other in (fits[1], LSGPRegressor.load(tmp_path / "model.lsgp")):
        assert_same_predictions(fits[0], other, X[beyond])


def test_regions_with_common_rows_say_less_than_others():
    def n_independent(*regions):
        members = np.zeros((len(regions), 14))
        for k, rows in enumerate(regions):
            members[k, rows] = 1.0
        return _n_independent(members)

    apart = [range(4), range(4, 8), range(8, 12)]
    assert n_independent(*apart) == pytest.approx(3.0)
    # The same regions again say nothing new, and half of one something.
    assert n_independent(*apart, *apart) == pytest.approx(3.0)
    assert 3.0 < n_independent(*apart, range(10, 14)) < 4.0


def test_targets_are_tuned_without_rows_nearer_than_rows_are_to_queries():
    X, y, beyond = rough_field()
    seen = []

    def watch(data, queries, spaces):
        seen.append((data, like_queries(data, queries, spaces)))
        return seen[-1][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "like_queries", watch)
        fit_beyond(X, y, beyond, effort__n_points=20, n_neighbors=20)
    ((data, regions),) = seen
    ((kinds, radius),) = regions.tuned.radius.items()
    own = data.space(kinds)
    to_rows = cKDTree(own.X).query(own.transform.transform(X[beyond]))[0]
    np.testing.assert_allclose(
        np.quantile(radius, [0.25, 0.5, 0.75]), np.quantile(to_rows, [0.25, 0.5, 0.75]), rtol=0.2
    )


def test_queries_like_the_rows_give_the_model_without_them():
    X, y, _ = rough_field()
    settings = {"n_neighbors": 30, "effort__n_points": 40}
    plain = regressor(**settings).fit(X[:400], y[:400])
    informed = regressor(**settings).fit(X[:400], y[:400], queries=X[400:])
    assert_same_predictions(plain, informed, X)


def test_the_fit_without_queries_is_one_candidate_and_regions_only_widen_it(monkeypatch):
    X, y, beyond = rough_field()
    settings = {"n_neighbors": 30, "effort__n_points": 40}
    plain = regressor(**settings).fit(X[~beyond], y[~beyond])
    asked = []

    def watch(data, contenders, *known):
        asked.append((contenders, outcome.weigh_beyond(data, contenders, *known)))
        return asked[-1][1]

    monkeypatch.setattr(search, "weigh_beyond", watch)
    informed = fit_beyond(X, y, beyond, **settings)
    ((contenders, weighed),) = asked
    own = [f.weight for f in plain.ensemble_.models]
    assert len(contenders) == len(own)
    shares = weighed.weights[: len(own)]
    np.testing.assert_allclose(shares, shares.sum() * np.array(own))
    assert weighed.weights.sum() == pytest.approx(1.0)
    assert informed.ensemble_.scale_factor >= plain.ensemble_.scale_factor
    for name in ("tail", "contrast"):
        shapes = informed.ensemble_.shape, plain.ensemble_.shape
        assert getattr(shapes[0], name) == getattr(shapes[1], name)


# -- queries far away ------------------------------------------------------------------------


def test_a_model_for_queries_far_outside_still_predicts_inside():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (400, 2))
    y = np.sin(4.0 * X[:, 0]) + 0.05 * rng.normal(size=400)
    with pytest.warns(UserWarning, match="than half of the diagonal of the training inputs"):
        model = regressor().fit(X[:300], y[:300], queries=X + 50.0)
    assert np.sqrt(np.mean((model.predict(X[300:]) - y[300:]) ** 2)) < 0.5 * y.std()


def test_that_queries_are_far_is_said_once_whatever_transforms_are_tried():
    rng = np.random.default_rng(0)
    X, queries = rng.uniform(size=(70, 2)) ** 3, rng.uniform((1.5, 0.0), (2.5, 1.0), (50, 2))
    y = np.sin(4.0 * X[:, 0]) + 0.05 * rng.normal(size=70)
    model = LSGPRegressor(random_state=0, effort=Effort("fast", n_points=20))
    with pytest.warns(UserWarning, match="of the queries are farther") as warned:
        model.fit(X, y, queries=queries)
    assert sum("of the queries" in str(one.message) for one in warned) == 1


def test_copies_of_one_row_and_queries_at_it_do_no_harm():
    X = np.repeat(points(40), 4, axis=0)
    y = X[:, 0] + 0.1 * np.random.default_rng(0).normal(size=160)
    model = regressor().fit(X, y, queries=X + np.array([0.5, 0.0]))
    assert np.isfinite(model.predict(X + np.array([0.5, 0.0]), return_std=True)).all()
