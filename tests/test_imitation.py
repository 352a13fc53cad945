# SPDX-License-Identifier: BSD-3-Clause
"""Tuning for the queries: targets that look like them."""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.stats import ks_2samp
from tuned import regressor

from lsgp import LSGPRegressor
from lsgp.search.index import build_index
from lsgp.tuning.beyond.imitation import FEWEST_TARGETS, imitate_queries


def grid(side=50):
    axis = np.arange(side, dtype=float)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


@pytest.fixture(scope="module")
def map_with_a_hole():
    """A grid of unit steps without a square of 16 by 16, and the points of the square."""
    points = grid()
    is_inside = ((points >= 17) & (points < 33)).all(axis=1)
    return points[~is_inside], points[is_inside]


def imitate(X, queries, seed=0):
    index = build_index(X, np.ones(X.shape[1]))
    return imitate_queries(X, index, queries, np.random.default_rng(seed))


def test_radii_follow_the_distances_of_the_queries(map_with_a_hole):
    X, queries = map_with_a_hole
    imitation = imitate(X, queries)
    distances = cKDTree(X).query(queries)[0]
    assert imitation.radius.shape == (len(X),)
    assert set(np.round(imitation.radius / 0.999, 9)) <= set(np.round(distances, 9))
    assert ks_2samp(imitation.radius, 0.999 * distances).statistic < 0.05
    assert imitation.radius.max() < distances.max()


def test_queries_in_a_hole_are_noticed_and_its_width_too(map_with_a_hole):
    X, queries = map_with_a_hole
    # 16 missing columns leave data 17 steps apart.
    assert imitate(X, queries).gap_width == pytest.approx(17.0, rel=0.15)


@pytest.mark.parametrize("seed", range(3))
def test_queries_among_the_data_are_in_no_gap(seed):
    rng = np.random.default_rng(seed)
    assert imitate(grid(), rng.uniform(0.0, 49.0, (500, 2))).gap_width == 0.0
    points = rng.normal(size=(3000, 3))
    assert imitate(points[:2000], points[2000:]).gap_width == 0.0


def test_queries_that_are_training_points_exclude_nothing():
    X = grid(20)
    imitation = imitate(X, X)
    assert (imitation.radius == 0.0).all()
    assert imitation.gap_width == 0.0


def test_targets_are_the_points_beside_queries_and_as_many_from_anywhere(map_with_a_hole):
    X, queries = map_with_a_hole
    targets = imitate(X, queries).targets
    beside = np.unique(cKDTree(X).query(queries)[1])
    assert targets.dtype == np.int32
    assert np.array_equal(targets, np.unique(targets))
    assert targets.min() >= 0
    assert targets.max() < len(X)
    # Where several are equally near, either may be the nearest.
    rim = np.abs(X - 24.5).max(axis=1) < 9.0
    assert rim[beside].all()
    assert rim[targets].sum() >= len(beside)
    assert len(targets) >= FEWEST_TARGETS
    assert len(targets) <= FEWEST_TARGETS + rim.sum()


def test_of_few_rows_all_may_be_targets():
    X = grid(5)
    assert np.array_equal(imitate(X, X[:2] + 0.3).targets, np.arange(25))


def test_a_single_row_and_a_single_query_suffice():
    imitation = imitate(np.zeros((1, 2)), np.array([[3.0, 4.0]]))
    np.testing.assert_allclose(imitation.radius, 0.999 * 5.0)
    assert imitation.targets.tolist() == [0]
    assert np.isfinite(imitation.gap_width)


def test_duplicate_rows_do_no_harm():
    X = np.repeat(grid(10), 5, axis=0)
    imitation = imitate(X, grid(10)[:-1] + 0.5)
    assert np.isfinite(imitation.radius).all()
    assert (imitation.radius > 0).all()


def test_the_same_generator_gives_the_same_imitation(map_with_a_hole):
    first, second, other = (imitate(*map_with_a_hole, seed) for seed in (0, 0, 1))
    assert np.array_equal(first.radius, second.radius)
    assert np.array_equal(first.targets, second.targets)
    assert not np.array_equal(first.radius, other.radius)


def test_queries_far_outside_get_a_warning_and_tuning_keeps_its_neighbors():
    X = grid(20)
    imitation = imitate(X, X + 1000.0)
    with pytest.warns(UserWarning, match="100% of the queries are farther from all training rows"):
        imitation.warn_if_far()
    diagonal = 19.0 * np.sqrt(2.0)
    assert imitation.radius.max() < diagonal / 2.0
    assert imitation.gap_width <= diagonal


def test_model_for_queries_far_outside_still_predicts_inside():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (400, 2))
    y = np.sin(4.0 * X[:, 0]) + 0.05 * rng.normal(size=400)
    with pytest.warns(UserWarning, match="than half of the diagonal of the training inputs"):
        model = regressor().fit(X[:300], y[:300], queries=X + 50.0)
    assert np.sqrt(np.mean((model.predict(X[300:]) - y[300:]) ** 2)) < 0.5 * y.std()


def test_that_queries_are_far_is_said_once_whatever_transforms_are_tried():
    rng = np.random.default_rng(0)
    X, queries = rng.uniform(size=(40, 2)) ** 3, rng.uniform((1.5, 0.0), (2.5, 1.0), (50, 2))
    y = np.sin(4.0 * X[:, 0]) + 0.05 * rng.normal(size=40)
    model = LSGPRegressor(random_state=0, effort="fast", n_tuning_points=20)
    with pytest.warns(UserWarning, match="of the queries are farther") as warned:
        model.fit(X, y, queries=queries)
    assert sum("of the queries" in str(one.message) for one in warned) == 1
