# SPDX-License-Identifier: BSD-3-Clause
"""Exact search by codes: many queries at once find what each finds alone.

A block of queries that scan many leaves is searched by the codes of points first (see
`_core/nearest.h`); a single query never is.
"""

import numpy as np
import pytest
from naive_search import draw_exclusions, naive_search, pad

from lsgp.search.contract import Exclusions, SearchRequest
from lsgp.search.index import build_index

N, Q, K = 8000, 100, 48


def flat(rng, n, d):
    """All rows are equal but for the last digits of one input."""
    X = np.ones((n, d))
    X[:, 3] += 1e-15 * rng.integers(0, 5, size=n)
    return X


def one_outlier(rng, n, d):
    X = rng.normal(size=(n, d))
    X[7] = 1e200
    return X


def normal(rng, n, d):
    return rng.normal(size=(n, d))


POINTS = {
    "normal": normal,
    "lattice": lambda rng, n, d: rng.integers(0, 3, size=(n, d)).astype(float),
    "heavy tails": lambda rng, n, d: rng.standard_cauchy(size=(n, d)) ** 3,
    "far from the origin": lambda rng, n, d: 1e9 + rng.uniform(size=(n, d)),
    "tiny": lambda rng, n, d: 1e-160 * rng.normal(size=(n, d)),
    "huge": lambda rng, n, d: 1e150 * rng.normal(size=(n, d)),
    "flat": flat,
    "one outlier": one_outlier,
}
#: Lengthscales of d inputs.
METRICS = {
    "all matter": lambda d: np.geomspace(0.5, 1.5, d),
    "few matter": lambda d: np.where(np.arange(d) % 7 == 3, 1.0, 12.0),
    "ever less": lambda d: np.geomspace(1.0, 100.0, d)[::-1].copy(),
}


def assert_same_alone(index, queries, lengthscale):
    request = SearchRequest(queries, lengthscale, K)
    together = index.measure(request)
    for i in range(len(queries)):
        own = index.measure(request.block(i, i + 1))
        np.testing.assert_array_equal(together.neighbors[i], own.neighbors[0])
        np.testing.assert_array_equal(together.squares[i], own.squares[0])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("points", POINTS)
@pytest.mark.usefixtures("instruction_set")
def test_many_queries_find_what_each_finds_alone(points, metric):
    rng, d = np.random.default_rng(0), 40
    X, lengthscale = POINTS[points](rng, N, d), METRICS[metric](d)
    queries = np.concatenate([X[: Q // 2], POINTS[points](rng, Q - Q // 2, d)])
    for unit in (lengthscale, np.ones(d)):
        assert_same_alone(build_index(X, unit), queries, lengthscale)


@pytest.mark.parametrize("d", [8, 17, 40])
@pytest.mark.parametrize("k", [1, K, N + 1])
def test_many_queries_find_the_nearest(d, k):
    rng = np.random.default_rng(1)
    X, queries = normal(rng, N, d), normal(rng, 40, d)
    lengthscale = METRICS["few matter"](d)
    expected = naive_search(X, lengthscale, queries, k)
    found = build_index(X, lengthscale).measure(SearchRequest(queries, lengthscale, k))
    np.testing.assert_array_equal(found.neighbors, pad(expected, k))
    np.testing.assert_array_equal(found.squares, pad(expected, k, 1, np.inf))


@pytest.mark.parametrize("points", ["normal", "lattice"])
def test_what_is_excluded_by_rows_radii_and_groups_is_not_found(points):
    rng, d = np.random.default_rng(2), 24
    X, lengthscale = POINTS[points](rng, N, d), METRICS["few matter"](d)
    queries = X[:60].copy()
    index, drawn = build_index(X, np.ones(d)), draw_exclusions(X, queries)
    # In 24 inputs most points are farther than the radii that are drawn.
    drawn = drawn._replace(rows=np.arange(60, dtype=np.int32), radius=5.0 * drawn.radius)
    for e in (
        Exclusions(rows=drawn.rows),
        Exclusions(radius=drawn.radius),
        Exclusions(groups=drawn.groups, query_groups=drawn.query_groups),
        drawn,
    ):
        expected = naive_search(X, lengthscale, queries, K, e=e, unit=np.ones(d))
        np.testing.assert_array_equal(
            index.search(SearchRequest(queries, lengthscale, K, e)), pad(expected, K)
        )


def test_rows_that_left_and_too_few_that_stay_are_no_obstacle():
    rng, d = np.random.default_rng(3), 20
    X = normal(rng, N, d)
    queries, kept = normal(rng, Q, d), rng.uniform(size=N) < 0.8
    index = build_index(X, np.ones(d)).keep_rows(kept)
    fresh = build_index(X[kept], np.ones(d))
    np.testing.assert_array_equal(
        index.search(SearchRequest(queries, np.ones(d), K)),
        fresh.search(SearchRequest(queries, np.ones(d), K)),
    )
    groups = (np.arange(N) >= 10).astype(np.int32)
    nearly_all = Exclusions(groups=groups, query_groups=np.ones(Q, np.int32))
    found = build_index(X, np.ones(d)).search(SearchRequest(queries, np.ones(d), K, nearly_all))
    np.testing.assert_array_equal(np.sort(found[:, :10], axis=1), np.tile(np.arange(10), (Q, 1)))
    np.testing.assert_array_equal(found[:, 10:], -1)


def test_queries_far_outside_find_the_nearest():
    rng, d = np.random.default_rng(4), 12
    X = normal(rng, N, d)
    for distance in (1e3, 1e12, 1e30, 1e140):
        assert_same_alone(build_index(X, np.ones(d)), distance * normal(rng, 40, d), np.ones(d))
