# SPDX-License-Identifier: BSD-3-Clause
"""Approximate search: what it may miss, and what it must not."""

from dataclasses import replace

import numpy as np
import pytest

import lsgp.distributed.fitting as cluster_fitting
from lsgp import LSGPClassifier, LSGPRegressor, _core
from lsgp.search.approximate import CHOSEN_RECALL, approximate
from lsgp.search.contract import NO_EXCLUSIONS, Exclusions, SearchRequest
from lsgp.search.index import build_index

N, D, K = 20_000, 8, 64


def points_of(kind, n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        return rng.uniform(size=(n, d))
    if kind == "shifted":  # far from the origin: single precision has no digits for it
        return 1e9 + rng.uniform(size=(n, d))
    centers = rng.normal(size=(20, d))
    return centers[rng.integers(20, size=n)] + 0.3 * rng.normal(size=(n, d))


def nearest(queries, k=K, exclusions=NO_EXCLUSIONS):
    return SearchRequest(np.ascontiguousarray(queries), np.ones(D), k, exclusions)


def share_found(found, true):
    return np.mean([np.isin(a, b).mean() for a, b in zip(true, found, strict=True)])


@pytest.fixture(scope="module")
def uniform():
    X = points_of("uniform")
    index = build_index(X, np.ones(D))
    return X, index, approximate(index, np.ones(D), K)


@pytest.mark.parametrize("kind", ["uniform", "clusters", "shifted"])
def test_new_queries_have_the_recall_that_is_reported(kind):
    X, unit = points_of(kind, N + 500), np.geomspace(0.5, 2.0, D)
    index = build_index(X[:N].copy(), unit)
    queries, lengthscale = X[N:].copy(), unit[::-1].copy()
    near = approximate(index, lengthscale, K)
    found = near.search(SearchRequest(queries, lengthscale, K))
    true = index.search(SearchRequest(queries, lengthscale, K))
    assert 0.985 < near.recall < 1
    assert share_found(found, true) == pytest.approx(near.recall, abs=0.006)


def test_the_reach_is_the_least_that_suffices(uniform):
    X, index, near = uniform
    true = index.search(nearest(X[:500]))
    shares = [
        share_found(replace(near, reach=reach).search(nearest(X[:500])), true)
        for reach in (near.reach - 0.1, near.reach, 1.0)
    ]
    assert shares[0] < CHOSEN_RECALL - 0.005 < shares[1] < shares[2]
    assert shares[2] > 0.9999  # codes alone miss nothing


def test_neighborhoods_do_not_depend_on_other_queries(uniform):
    X, _, near = uniform
    queries = X[:300] + 0.01
    together = near.measure(nearest(queries))
    order = np.random.default_rng(1).permutation(300)
    shuffled = near.measure(nearest(queries[order]))
    np.testing.assert_array_equal(shuffled.neighbors, together.neighbors[order])
    np.testing.assert_array_equal(shuffled.distances, together.distances[order])
    alone = np.concatenate([near.search(nearest(q[None])) for q in queries[:20]])
    np.testing.assert_array_equal(alone, together.neighbors[:20])


def test_distances_are_those_of_the_exact_search_and_in_order(uniform):
    X, index, near = uniform
    lengthscale = np.geomspace(0.5, 2.0, D)
    found = near.measure(SearchRequest(X[:200].copy(), lengthscale, K))
    all_of_them = index.measure(SearchRequest(X[:200].copy(), lengthscale, 1000))
    for rows, squares, known, exact in zip(*found, *all_of_them, strict=True):
        by_row = dict(zip(known, exact, strict=True))
        assert [by_row[row] for row in rows] == list(squares)
        assert np.all(np.diff(squares) >= 0)


def test_equal_distances_are_ordered_by_row():
    X = np.random.default_rng(0).integers(0, 3, size=(12_000, D)).astype(float)
    near = build_index(X, np.ones(D)).encoded(reach=1.0, recall=1.0)
    found = near.measure(nearest(X[:50], 40))
    same = np.diff(found.distances, axis=1) == 0
    assert same.any()
    assert np.all(np.diff(found.neighbors, axis=1)[same] > 0)


def many_points_of(kind, n, d):
    rng = np.random.default_rng(3)
    if kind == "normal":
        return rng.normal(size=(n, d))
    if kind == "heavy tails":
        return rng.standard_t(3, size=(n, d))
    if kind == "lattice":  # limits of 0, and many equal distances
        return rng.integers(0, 2, size=(n, d)) * np.where(np.arange(d) < 10, 1.0, 0.0)
    return 1e-150 * (1.0 + rng.normal(size=(n, 4)) @ rng.normal(size=(4, d)))  # a tiny plane


@pytest.mark.parametrize("matter", ["all", "few"])
@pytest.mark.parametrize("kind", ["normal", "heavy tails", "lattice", "plane"])
@pytest.mark.usefixtures("instruction_set")
def test_half_codes_lose_hardly_any_neighbor(kind, matter):
    """At full reach nothing else does: in any metric, of however many inputs."""
    n, k = 5000, 30
    for d in (9, 16, 40):
        X = many_points_of(kind, n, d)
        lengthscale = np.where(np.arange(d) % 7 == 3, 1.0, 12.0 if matter == "few" else 1.5)
        queries = np.concatenate([X[:20], X[20:40] + 0.1 * X.std(), 3.0 * X[40:50]])
        for unit in (lengthscale, np.ones(d)):
            index = build_index(X, unit)
            near = index.encoded(reach=1.0, recall=1.0)
            true = index.measure(SearchRequest(queries, lengthscale, k))
            found = near.measure(SearchRequest(queries, lengthscale, k))
            # Of equally distant ones, up to rounding, any counts. Tails alone make codes coarse.
            is_near = found.distances <= true.distances[:, -1:] * (1 + 1e-12)
            assert np.mean(is_near) > (0.98 if kind == "heavy tails" else 0.999)


@pytest.mark.parametrize(("n_values", "d"), [(2, 200), (3, 300)])
@pytest.mark.usefixtures("instruction_set")
def test_many_inputs_of_few_values_lose_hardly_any_neighbor(n_values, d):
    # Their differences are the same number in each input: rounded alike, they were lost together.
    X = np.random.default_rng(4).integers(0, n_values, size=(12_000, d)).astype(float)
    index = build_index(X, np.ones(d))
    near = index.encoded(reach=1.0, recall=1.0)
    for k in (16, 256):
        true = index.measure(SearchRequest(X[:10] + 0.05, np.ones(d), k))
        found = near.measure(SearchRequest(X[:10] + 0.05, np.ones(d), k))
        assert np.mean(found.distances <= true.distances[:, -1:] * (1 + 1e-12)) > 0.99


def exclusions_of(kind, rows, n):
    rng = np.random.default_rng(2)
    if kind == "rows":
        return Exclusions(rows)
    if kind == "radius":
        return Exclusions(rows, radius=np.full(len(rows), 0.45))
    groups = rng.integers(0, 5, size=n).astype(np.int32)
    return Exclusions.of_rows(rows, groups)


@pytest.mark.parametrize("kind", ["rows", "radius", "groups"])
def test_what_is_excluded_is_not_found_and_the_rest_is(uniform, kind):
    X, index, near = uniform
    rows = np.arange(0, N, 100, dtype=np.int32)
    exclusions = exclusions_of(kind, rows, N)
    found = near.measure(nearest(X[rows], K, exclusions))
    true = index.measure(nearest(X[rows], K, exclusions))
    assert share_found(found.neighbors, true.neighbors) > 0.975
    assert not np.any(found.neighbors == rows[:, None])
    if kind == "radius":
        assert found.distances.min() >= 0.45
    if kind == "groups":
        assert not np.any(exclusions.groups[found.neighbors] == exclusions.query_groups[:, None])


def test_what_too_few_rows_are_left_for_is_searched_exactly():
    X = points_of("uniform", 10_000)
    index = build_index(X, np.ones(D))
    near = index.encoded(reach=0.02, recall=0.5)
    groups = np.where(np.arange(10_000) < 30, 0, 1).astype(np.int32)
    exclusions = Exclusions(None, None, groups, np.ones(4, np.int32))
    found = near.measure(nearest(X[:4], 64, exclusions))
    true = index.measure(nearest(X[:4], 64, exclusions))
    np.testing.assert_array_equal(found.neighbors, true.neighbors)
    np.testing.assert_array_equal(found.distances, true.distances)
    assert np.all(np.count_nonzero(found.neighbors >= 0, axis=1) == 30)


@pytest.mark.parametrize("n", [1, 65, 700, 1100, 10_000])
def test_trees_of_any_size_are_searched_without_gaps(n):
    X = points_of("clusters", n)
    index = build_index(X, np.ones(D))
    near = index.encoded(reach=1.0, recall=1.0)
    k = min(n, 20)
    true = index.search(nearest(X[:50], k))
    assert share_found(near.search(nearest(X[:50], k)), true) > 0.999
    np.testing.assert_array_equal(near.search(nearest(X[:1], n + 3))[:, n:], -1)


def test_rows_come_and_go(uniform):
    X, _, near = uniform
    grown = near.add_rows(X[:10] + 1e-6)
    found = grown.search(nearest(X[:10], 2))
    np.testing.assert_array_equal(found, np.c_[np.arange(10), N + np.arange(10)])
    assert grown.recall == near.recall
    assert grown.compact().codes is not None
    fewer = near.keep_rows(np.arange(N) >= 5)
    np.testing.assert_array_equal(fewer.search(nearest(X[5:10], 1))[:, 0], range(5))


def test_few_inputs_few_rows_and_radii_are_searched_exactly():
    for n, d, k in ((N, 7, K), (9_999, 8, K), (N, 8, None)):
        index = build_index(points_of("uniform", n, d), np.ones(d))
        assert approximate(index, np.ones(d), k) is index
    index = build_index(points_of("uniform"), np.ones(D))
    near = index.encoded(0.1, 0.5)
    request = SearchRequest(index.points()[:5].copy(), np.ones(D), None, radius=0.3)
    np.testing.assert_array_equal(near.search(request), index.search(request))


def test_codes_that_are_too_coarse_are_not_used():
    X = points_of("uniform", 10_000)
    X[0] = 1e30  # in 255ths of this, all other points are one
    index = build_index(X, np.ones(D))
    found = approximate(index, np.ones(D), K).search(nearest(X[1:20]))
    assert share_found(found, index.search(nearest(X[1:20]))) > 0.98


def test_of_many_inputs_the_exact_search_is_exact_whichever_matter():
    """Beyond 16 inputs, points are dropped by the inputs that differ most."""
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(3000, 40)), rng.normal(size=(40, 40))
    for lengthscale in (np.where(np.arange(40) % 9 == 4, 0.3, 20.0), np.ones(40)):
        index = build_index(X, np.ones(40))
        squares = (((queries[:, None] - X) / lengthscale) ** 2).sum(axis=2)
        true = np.argsort(squares, axis=1)[:, :30]
        np.testing.assert_array_equal(index.search(SearchRequest(queries, lengthscale, 30)), true)
        radius = np.sqrt(np.sort(squares)[0, 10]) + 1e-9
        within = index.search(SearchRequest(queries, lengthscale, None, radius=radius))
        assert np.count_nonzero(within[0] >= 0) == 11


def test_the_core_refuses_codes_of_another_tree(uniform):
    _, index, near = uniform
    for name, array in near.codes._asdict().items():
        wrong = near.codes._replace(**{name: array[1:].copy()})
        with pytest.raises(ValueError, match=f"{name} must have shape"):
            _core.core.encode_tree(index.arrays, *wrong)
        with pytest.raises(ValueError, match=f"{name} must have shape"):
            replace(near, codes=wrong).search(SearchRequest(np.zeros((1, D)), np.ones(D), 1))
    with pytest.raises(ValueError, match=r"reach must be in \(0, 1\]"):
        replace(near, reach=0.0).search(SearchRequest(np.zeros((1, D)), np.ones(D), 1))


# -- estimators --------------------------------------------------------------------------------

SETTINGS = {
    "objective": None,
    "n_neighbors": 20,
    "input_transform": None,
    "hyperparameters__lengthscale": 2.0,
}


@pytest.fixture(scope="module")
def rows():
    X = points_of("clusters", 12_000)
    return X, np.sin(X[:, 0]) + X[:, 1]


def test_predictions_with_approximate_neighbors_are_near_the_exact_ones(rows, tmp_path):
    X, y = rows
    exact = LSGPRegressor().set_params(**SETTINGS).fit(X, y)
    near = LSGPRegressor().set_params(**SETTINGS, search="approximate").fit(X, y)
    assert exact.recall_ == 1.0
    assert 0.98 < near.recall_ < 1
    queries = X[:400] + 0.05
    mean = near.predict(queries)
    assert 0 < np.abs(mean - exact.predict(queries)).max() < 0.05
    near.set_params(n_jobs=2, memory_budget="3MB")
    np.testing.assert_array_equal(near.predict(queries), mean)
    near.save(tmp_path / "model.lsgp")
    loaded = LSGPRegressor.load(tmp_path / "model.lsgp")
    assert (loaded.recall_, loaded.search) == (near.recall_, "approximate")
    np.testing.assert_array_equal(loaded.predict(queries), mean)
    near.partial_fit(queries[:3], np.full(3, 9.0))
    assert near.predict(queries[:1])[0] > mean[0] + 1
    near.save(tmp_path / "grown.lsgp")
    again = LSGPRegressor.load(tmp_path / "grown.lsgp")
    assert again.predict(queries[:1])[0] == pytest.approx(near.predict(queries[:1])[0], abs=0.05)


def test_tuning_and_leave_one_out_take_approximate_neighbors(rows):
    X, y = rows
    settings = {"kernel": "matern32", "effort__n_models": 1, "effort__n_points": 100}
    settings |= {"input_transform": "standardize", "hyperparameters__scale": "global"}
    settings |= {"n_neighbors": 20, "random_state": 0}
    model = LSGPRegressor().set_params(**settings, search="approximate", max_time=2).fit(X, y)
    assert 0.98 < model.recall_ < 1
    assert model.loo(n_points=200, random_state=0).calibration.rmse < 0.1


def test_a_classifier_takes_approximate_neighbors(rows):
    X, y = rows
    model = LSGPClassifier().set_params(**SETTINGS, search="approximate")
    model.fit(X[:11_000], y[:11_000] > 0)
    assert model.recall_ < 1
    assert np.mean(model.predict(X[11_000:]) == (y[11_000:] > 0)) > 0.9


def test_unknown_searches_are_refused():
    with pytest.raises(ValueError, match="search='some' is not one of 'exact', 'approximate'"):
        LSGPRegressor(search="some").fit([[0.0], [1.0]], [0.0, 1.0])


def test_rows_on_a_cluster_are_refused(monkeypatch):
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(cluster_fitting, "MOST_GATHERED", 10)
    X = da.from_array(np.random.default_rng(0).uniform(size=(100, 2)), chunks=(50, 2))
    model = LSGPRegressor(objective=None, search="approximate")
    with (
        distributed.Client(processes=False, dashboard_address=None, n_workers=1) as client,
        pytest.raises(ValueError, match="search='approximate' is for rows in the memory"),
    ):
        cluster_fitting.fit(model, X, X.sum(axis=1), client=client)
