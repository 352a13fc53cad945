# SPDX-License-Identifier: BSD-3-Clause
"""Neighbor search against a search that cannot be wrong."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_search import draw, draw_exclusions, lattice, naive_search, pad, within

from lsgp import _core
from lsgp.search.contract import NO_EXCLUSIONS, Exclusions, SearchRequest
from lsgp.search.index import LEAF_SIZE, build_index, suits
from lsgp.search.patterns import MOST_WITHIN, radii_of

#: An index in the model's own metric, and one in units that have nothing to do with it.
each_unit = pytest.mark.parametrize("unit_of", [np.copy, lambda x: 1.7 / x**3])


@pytest.mark.parametrize("d", [1, 2, 9, 20])
@pytest.mark.parametrize("n", [1, 5, LEAF_SIZE, LEAF_SIZE + 1, 1000])
@pytest.mark.parametrize("k", [1, 7, 64, 1001])
@each_unit
@pytest.mark.usefixtures("instruction_set")
def test_nearest_are_those_of_the_naive_search(n, d, k, unit_of):
    X, lengthscale, queries = draw(n, d)
    unit = unit_of(lengthscale)
    expected = naive_search(X, lengthscale, queries, k, unit=unit)
    result = build_index(X, unit).measure(SearchRequest(queries, lengthscale, k))
    np.testing.assert_array_equal(result.neighbors, pad(expected, k))
    np.testing.assert_array_equal(result.distances, np.sqrt(pad(expected, k, 1, np.inf)))


@pytest.mark.parametrize("d", [1, 2, 9, 20])
@each_unit
@pytest.mark.usefixtures("instruction_set")
def test_exclusions_are_those_of_the_naive_search(d, unit_of):
    X, lengthscale, queries = draw(700, d, q=40)
    unit = unit_of(lengthscale)
    index, exclusions = build_index(X, unit), draw_exclusions(X, queries)
    rows, radius, groups, query_groups = exclusions
    for e in [
        Exclusions(rows=rows),
        Exclusions(radius=radius),
        Exclusions(groups=groups, query_groups=query_groups),
        exclusions,
    ]:
        for k in (3, 64):
            expected = pad(naive_search(X, lengthscale, queries, k, e=e, unit=unit), k)
            result = index.search(SearchRequest(queries, lengthscale, k, e))
            np.testing.assert_array_equal(result, expected)
        reached = naive_search(X, lengthscale, queries, radius=np.sqrt(d), e=e, unit=unit)
        width = max(len(rows) for rows, _ in reached)
        result = index.search(within(queries, lengthscale, np.sqrt(d), len(X), exclusions=e))
        np.testing.assert_array_equal(result, pad(reached, width))


def test_exclusions_of_blocks_are_those_of_all_queries():
    X, lengthscale, queries = draw(700, 2, q=40)
    index, exclusions = build_index(X, lengthscale), draw_exclusions(X, queries)
    for e in (exclusions, exclusions._replace(rows=None, radius=None), NO_EXCLUSIONS):
        request = SearchRequest(queries, lengthscale, 9, e)
        parts = [index.search(request.block(i, i + 7)) for i in range(0, len(queries), 7)]
        np.testing.assert_array_equal(np.concatenate(parts), index.search(request))


@pytest.mark.parametrize("n", [1, 5, 1000])
@pytest.mark.parametrize("d", [1, 2, 9, 20])
@pytest.mark.parametrize("radius", [0.0, 0.1, 1.5, 100.0])
@each_unit
def test_within_are_those_of_the_naive_search(n, d, radius, unit_of):
    X, lengthscale, queries = draw(n, d)
    unit = unit_of(lengthscale)
    expected = naive_search(X, lengthscale, queries, radius=radius, unit=unit)
    result = build_index(X, unit).search(within(queries, lengthscale, radius, n))
    np.testing.assert_array_equal(result, pad(expected, max(len(rows) for rows, _ in expected)))


def test_within_the_longest_radius_no_query_has_too_many():
    rng = np.random.default_rng(0)
    X = np.concatenate([0.1 * rng.normal(size=(1500, 2)), 10.0 * rng.normal(size=(500, 2))])
    index, unit = build_index(X, np.ones(2)), np.ones(2)
    queries = np.ascontiguousarray(X[::20])
    usual, longest = radii_of(index, queries, unit, 30, len(X), NO_EXCLUSIONS)
    assert 0.0 < usual < longest
    counts = index.count(within(queries, unit, longest, len(X)))
    assert MOST_WITHIN - 1 <= counts.max() <= MOST_WITHIN
    assert np.mean(index.count(within(queries, unit, usual, len(X))) >= 30) > 0.45


def test_within_includes_points_at_the_radius_itself():
    X = lattice(2, 21)
    found = build_index(X, np.ones(2)).search(within(X[[220]], np.ones(2), 5.0, 200))
    assert set(found[0]) == set(np.flatnonzero(((X - X[220]) ** 2).sum(1) <= 25))


@pytest.mark.usefixtures("instruction_set")
def test_equal_rows_are_taken_in_order():
    X = np.full((10_000, 3), 0.7)
    index = build_index(X, np.array([0.3, 1.0, 7.0]))
    queries = np.array([[0.7, 0.7, 0.7], [0.1, 0.2, 0.3]])
    exclusions = Exclusions(rows=np.array([3, -1], np.int32))
    for lengthscale in (index.unit, np.ones(3)):
        found = index.search(SearchRequest(queries, lengthscale, 6, exclusions))
        np.testing.assert_array_equal(found, [[0, 1, 2, 4, 5, 6], [0, 1, 2, 3, 4, 5]])


@pytest.mark.parametrize("spacing", [1.0, 0.1])
@pytest.mark.parametrize(("d", "side"), [(1, 999), (2, 40), (4, 7), (9, 2)])
@pytest.mark.usefixtures("instruction_set")
def test_ties_are_decided_by_row(d, side, spacing):
    rng = np.random.default_rng(0)
    X = spacing * rng.permutation(lattice(d, side))
    queries = np.concatenate([X[:20], X[:20] + spacing / 2])
    unit = np.ones(d)
    index = build_index(X, unit)
    for lengthscale in (unit, np.full(d, 0.3), np.geomspace(0.1, 10.0, d)):
        for k in (1, 7, 64, 300):
            expected = pad(naive_search(X, lengthscale, queries, k, unit=unit), k)
            np.testing.assert_array_equal(
                index.search(SearchRequest(queries, lengthscale, k)), expected
            )


def test_nearest_without_itself_is_leave_one_out():
    X, lengthscale, _ = draw(300, 2)
    everyone = np.arange(300, dtype=np.int32)
    index = build_index(X, lengthscale)
    with_itself = index.search(SearchRequest(X, lengthscale, 8))
    np.testing.assert_array_equal(with_itself[:, 0], everyone)
    without = index.search(SearchRequest(X, lengthscale, 7, Exclusions(rows=everyone)))
    np.testing.assert_array_equal(without, with_itself[:, 1:])


@pytest.mark.parametrize("d", [2, 12])
@each_unit
def test_neighborhoods_do_not_depend_on_block_order_or_threads(d, unit_of):
    X, lengthscale, queries = draw(20_000, d, q=600)
    index = build_index(X, unit_of(lengthscale))
    request = SearchRequest(queries, lengthscale, 20)
    whole, near = index.measure(request), index.search(within(queries, lengthscale, 0.5, 20_000))
    with ThreadPoolExecutor(4) as pool:
        blocks = [request.block(i, i + 37) for i in range(0, len(queries), 37)]
        parts = list(pool.map(index.measure, blocks))
    for k, expected in enumerate(whole):
        np.testing.assert_array_equal(np.concatenate([part[k] for part in parts]), expected)
    shuffled = np.random.default_rng(1).permutation(len(queries))
    again = index.search(SearchRequest(queries[shuffled], lengthscale, 20))
    np.testing.assert_array_equal(again, whole.neighbors[shuffled])
    again = index.search(within(queries[shuffled], lengthscale, 0.5, 20_000))
    np.testing.assert_array_equal(again, near[shuffled])


@pytest.mark.parametrize("d", [2, 12])
def test_neighborhoods_do_not_depend_on_the_order_of_the_training_points(d):
    X, lengthscale, queries = draw(5000, d, q=100)
    shuffled = np.random.default_rng(2).permutation(len(X))
    found = build_index(X, lengthscale).search(SearchRequest(queries, lengthscale, 20))
    again = build_index(X[shuffled], lengthscale).search(SearchRequest(queries, lengthscale, 20))
    np.testing.assert_array_equal(shuffled[again], found)


@pytest.mark.parametrize("n", [1, 64, 65, 1000, 20_000])
def test_tree_does_not_depend_on_the_number_of_threads(n):
    X = np.round(draw(n, 3)[0], 1)
    alone = build_index(X, np.ones(3))
    for n_threads in (2, 3, 8, 1000):
        index = build_index(X, np.ones(3), n_threads)
        for part, expected in zip(vars(index).values(), vars(alone).values(), strict=True):
            np.testing.assert_array_equal(part, expected)


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e150])
@each_unit
def test_far_from_the_origin_and_at_any_scale_the_search_is_exact(offset, scale, unit_of):
    X, lengthscale, queries = draw(500, 3)
    unit = unit_of(lengthscale)
    X, queries = (X + offset) * scale, (queries + offset) * scale
    expected = pad(naive_search(X, lengthscale, queries, 30, unit=unit), 30)
    found = build_index(X, unit).search(SearchRequest(queries, lengthscale, 30))
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_nearest_and_within_are_those_of_the_naive_search_on_coarse_data(data):
    n, d = data.draw(st.integers(1, 200)), data.draw(st.integers(1, 5))
    k, q = data.draw(st.integers(1, 40)), data.draw(st.integers(0, 20))
    steps = data.draw(st.integers(1, 9))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    X, queries = rng.integers(0, steps, (n, d)) / 3, rng.integers(0, 2 * steps, (q, d)) / 6
    lengthscale, unit = rng.choice([0.1, 1.0, 3.0], (2, d))
    e = draw_exclusions(X, queries, rng) if data.draw(st.booleans()) else NO_EXCLUSIONS
    index = build_index(X, unit)
    expected = pad(naive_search(X, lengthscale, queries, k, e=e, unit=unit), k)
    np.testing.assert_array_equal(index.search(SearchRequest(queries, lengthscale, k, e)), expected)
    radius = data.draw(st.sampled_from([0.0, 1 / 3, 1.0, 10.0]))
    reached = naive_search(X, lengthscale, queries, radius=radius, e=e, unit=unit)
    width = max((len(rows) for rows, _ in reached), default=0)
    result = index.search(within(queries, lengthscale, radius, n, exclusions=e))
    np.testing.assert_array_equal(result, pad(reached, width))


def test_index_says_that_it_is_exact_and_works_from_read_only_arrays():
    X, lengthscale, queries = draw(100, 3)
    index = build_index(X, lengthscale)
    assert index.recall == 1.0
    assert index.describe() == (
        "exact search (recall 1.0) among 100 points of 3 inputs, bounding-box tree with 2 leaves"
    )
    for array in (*index.arrays, index.unit):
        array.flags.writeable = False
    expected = pad(naive_search(X, lengthscale, queries, 5), 5)
    np.testing.assert_array_equal(index.search(SearchRequest(queries, lengthscale, 5)), expected)


def test_too_many_within_is_one_error_with_the_remedy():
    X = np.zeros((500, 2))
    X[:100] = 5.0
    index, lengthscale = build_index(X, np.ones(2)), np.array([0.5, 2.0])
    queries = np.array([[5.0, 5.0], [0.0, 0.0], [0.1, 0.0]])
    message = (
        "bandwidth=0.25 reaches 400 training points at query 41, more than the 399 that a local "
        "system may have. Reduce the bandwidth, or use bandwidth='adaptive'."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        index.search(within(queries, lengthscale, 0.25, 399, first_query=40))
    assert index.search(within(queries, lengthscale, 0.25, 400)).shape == (3, 400)


ROWS = np.zeros(4, np.int32)
WRONG = [
    ({"queries": np.zeros((4, 2), np.float32)}, "queries must be a C-contiguous"),
    ({"queries": np.zeros((2, 4)).T}, "queries must be a C-contiguous"),
    ({"queries": [[0.0, 0.0]]}, "queries must be a C-contiguous"),
    ({"queries": np.zeros((4, 3))}, "queries has shape (4, 3), expected (any, 2)"),
    ({"queries": np.zeros(2)}, "queries has shape (2,), expected (any, 2)"),
    ({"queries": np.full((4, 2), np.nan)}, "not finite"),
    ({"n_neighbors": 0}, "n_neighbors=0 is not positive"),
    ({"lengthscale": [1.0, 1.0]}, "lengthscale must be a C-contiguous"),
    ({"lengthscale": np.ones(3)}, "lengthscale has shape (3,), expected (2,)"),
    ({"lengthscale": np.array([1.0, 0.0])}, "is not positive and finite"),
    ({"lengthscale": np.array([1.0, np.nan])}, "is not positive and finite"),
    ({"lengthscale": np.array([1.0, 5e-324])}, "is too far from unit=[1. 1.]"),
    ({"exclusions": Exclusions(rows=np.zeros(4))}, "rows must be a C-contiguous"),
    ({"exclusions": Exclusions(rows=ROWS[:3])}, "rows has shape (3,), expected (4,)"),
    ({"exclusions": Exclusions(radius=-np.ones(4))}, "radius of an exclusion is negative"),
    ({"exclusions": Exclusions(groups=np.zeros(9, np.int32))}, "Give both, or none"),
    ({"exclusions": Exclusions(None, None, ROWS, ROWS)}, "groups has shape (4,), expected (9,)"),
]


def test_wrong_arguments_are_refused():
    index = build_index(np.zeros((9, 2)), np.ones(2))
    for change, message in WRONG:
        given = {"queries": np.zeros((4, 2)), "lengthscale": np.ones(2), "n_neighbors": 2} | change
        error = TypeError if "C-contiguous" in message else ValueError
        with pytest.raises(error, match=re.escape(message)):
            index.search(SearchRequest(**given))


def test_data_that_cannot_be_searched_is_refused():
    with pytest.raises(TypeError):
        build_index(np.zeros((3, 2), np.float32), np.ones(2))
    for X, unit in (
        (np.zeros((0, 2)), np.ones(2)),
        (np.zeros((3, 0)), np.ones(0)),
        (np.zeros((3, 2)), np.ones(3)),
        (np.zeros((3, 2)), np.array([1.0, 0.0])),
        (np.array([[0.0], [np.nan]]), np.ones(1)),
        (np.array([[0.0], [-np.inf]]), np.ones(1)),
        (np.array([[1e300]]), np.array([1e-300])),
    ):
        with pytest.raises(ValueError, match=r"."):
            build_index(X, unit)


@pytest.mark.usefixtures("instruction_set")
def test_native_functions_refuse_arrays_that_do_not_fit():
    X, lengthscale, queries = draw(130, 2)
    index = build_index(X, lengthscale)
    q, k = len(queries), 3
    excluded = [np.zeros(q, np.int32), np.zeros(q), lengthscale, np.zeros(130, np.int32)]
    excluded.append(np.zeros(q, np.int32))
    outputs = np.empty((q, k), np.int32), np.empty((q, k))
    for function, limits, written in (
        (_core.core.find_nearest, (), outputs),
        (_core.core.find_within, (1.0, 9), (np.empty(q, np.int64),)),
    ):
        arrays = [*index.arrays, queries, np.ones(2), *excluded, *written]

        def ask(given, function=function, limits=limits):
            function(tuple(given[:3]), *given[3:5], *limits, tuple(given[5:10]), *given[10:])

        ask(arrays)
        for place, array in enumerate(arrays):
            wrong = [array[None], array.astype(np.float32), np.repeat(array, 2, -1)[..., ::2]]
            # The tree knows only how many rows it has places for.
            wrong.append(np.zeros(193, np.int32) if place == 8 else array[:-1])
            if array.ndim > 1:
                wrong.append(np.ascontiguousarray(array[..., :-1]))
            for value in wrong:
                with pytest.raises((TypeError, ValueError)):
                    ask([*arrays[:place], value, *arrays[place + 1 :]])
    points, new_order = np.zeros((192, 2)), np.empty((3, 64), np.int32)
    new_boxes = np.empty((5, 2, 2))
    _core.core.build_tree(points, 130, new_order, new_boxes, 1)
    for wrong_call in [
        (points, 193, new_order, new_boxes),
        (points, 128, new_order, new_boxes),
        (points[:128], 128, new_order, new_boxes),
        (points, 130, new_order[:2], new_boxes),
        (points, 130, np.empty((6, 32), np.int32), np.empty((11, 2, 2))),
        (points, 130, new_order, new_boxes[:4]),
        (points.astype(np.float32), 130, new_order, new_boxes),
        (points, 130, new_order.astype(np.int64), new_boxes),
    ]:
        with pytest.raises((TypeError, ValueError)):
            _core.core.build_tree(*wrong_call, 1)


@pytest.mark.parametrize("d", [1, 4, 5, 20])
def test_index_suits_metrics_of_similar_proportions_and_all_of_few_inputs(d):
    X = draw(100, d)[0]
    unit = np.geomspace(0.1, 30.0, d)
    index = build_index(X, unit)
    assert suits(index, 7.0 * unit)
    assert suits(index, unit * np.geomspace(1.0, 2.9, d))
    assert suits(index, unit * np.geomspace(1.0, 3.1, d)) == (d <= 4)
    assert suits(index.add_rows(X[:5]), np.ones(d)) == (d <= 4)
