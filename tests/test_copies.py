# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are exact copies of others count once."""

import re
import warnings

import numpy as np
import pytest
from tuned import make_data, regressor

from lsgp.inputs.copies import find_copies
from lsgp.inputs.rows import check_training_rows


def rows_of(X, y, **given):
    values = {"sample_weight": None, "noise_variance": None, "groups": None} | given
    return check_training_rows(X, y.reshape(len(X), -1), *values.values())


def test_a_table_three_times_is_fitted_as_once():
    X, y = make_data(80)
    three = np.tile(np.arange(80), 3)
    queries = make_data(50, seed=5)[0]
    once = regressor().fit(X, y)
    with pytest.warns(
        UserWarning,
        match=re.escape(
            "160 of 240 rows are copies of others, with the same inputs and targets: each counts "
            "once, and leave-one-out leaves it out with its copies. If they are observations of "
            "their own, give sample_weight=numpy.ones(len(y))."
        ),
    ):
        thrice = regressor().fit(X[three], y[three])
    for one, other in zip(
        once.predict(queries, return_std=True),
        thrice.predict(queries, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    assert thrice.tuning_.n_copies == 160
    assert once.tuning_.n_copies == 0
    left_out = thrice.loo()
    np.testing.assert_array_equal(left_out.rows, np.arange(240))
    np.testing.assert_allclose(left_out.observed, y[three], rtol=1e-12)
    np.testing.assert_array_equal(left_out.predicted.mean, once.loo().predicted.mean[three])


def copied(n=60, **settings):
    """A model of a table with every third row again, and that table."""
    X, y = make_data(n)
    again = np.concatenate([np.arange(n), np.arange(0, n, 3)])
    with pytest.warns(UserWarning, match="20 of 80 rows are copies"):
        return regressor(**settings).fit(X[again], y[again]), X[again], y[again]


def test_users_see_the_rows_that_they_gave(tmp_path):
    model, X, y = copied()
    model.save(tmp_path / "m.lsgp")
    for own in (model, type(model).load(tmp_path / "m.lsgp")):
        assert own.ensemble_.n_rows == 80
        assert "of 80 rows" in own.describe()
        sampled = own.loo(n_points=30, random_state=1)
        np.testing.assert_allclose(sampled.observed, y[sampled.rows], rtol=1e-12)
        found = own.explain(X[70:], exclude=np.arange(70, 80))
        for q, row in enumerate(range(70, 80)):
            seen = found.rows[q][found.rows[q] >= 0]
            assert not np.any((X[seen] == X[row]).all(axis=1))
            np.testing.assert_allclose(found.observed[q, : len(seen)], y[seen], rtol=1e-9)
        left_out = own.loo()
        expected = [found.predicted.mean, left_out.predicted.mean[70:]]
        np.testing.assert_allclose(*expected, rtol=1e-9, atol=1e-9)


def test_the_last_copy_takes_the_row_with_it():
    model, X, y = copied()
    before = model.predict(X[:5])
    model.forget(np.arange(60, 80))  # all the second ones
    assert model.ensemble_.n_rows == 60
    np.testing.assert_array_equal(model.predict(X[:5]), before)
    np.testing.assert_allclose(model.loo().observed, y[:60], rtol=1e-12)

    model, _, _ = copied()
    model.forget([0, 60])  # both of one row
    assert len(model.fitted_[0].problem.X) == 59
    np.testing.assert_allclose(model.loo().observed, np.delete(y, [0, 60]), rtol=1e-12)


def test_rows_that_come_later_follow():
    model, _, y = copied()
    more, labels = make_data(7, seed=3)
    model.partial_fit(more, labels)
    assert model.ensemble_.n_rows == 87
    np.testing.assert_allclose(model.loo().observed, np.append(y, labels), rtol=1e-9)


def test_weights_say_that_copies_count():
    X, y = make_data(60)
    twice = np.repeat(np.arange(60), 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = regressor().fit(X[twice], y[twice], sample_weight=np.ones(120))
    assert model.ensemble_.n_rows == 120


def test_nothing_is_left_out_where_nothing_is_tuned():
    X, y = make_data(60)
    twice = np.repeat(np.arange(60), 2)
    assert regressor(objective=None).fit(X[twice], y[twice]).ensemble_.n_rows == 120


def test_the_first_of_each_stays_in_its_place():
    X = np.array([[3.0], [1.0], [3.0], [2.0], [1.0]])
    y = np.array([0.3, 0.1, 0.3, 0.2, 0.5])
    given = rows_of(X, y)
    copies = find_copies(given)
    assert copies.n_copies == 1
    rows = copies.of_models(given)
    np.testing.assert_array_equal(rows.X[:, 0], [3.0, 1.0, 2.0, 1.0])
    np.testing.assert_array_equal(rows.y[:, 0], [0.3, 0.1, 0.2, 0.5])
    np.testing.assert_array_equal(rows.X[copies.own], given.X)


@pytest.mark.parametrize(
    "given",
    [
        {"noise_variance": [1.0, 2.0, 1.0, 2.0]},
        {"groups": [0, 1, 2, 3]},
        {"sample_weight": [1.0, 1.0, 1.0, 1.0]},
    ],
    ids=lambda given: next(iter(given)),
)
def test_rows_that_differ_in_what_was_given_are_no_copies(given):
    X, y = np.array([[0.0], [0.0], [1.0], [2.0]]), np.array([0.5, 0.5, 0.7, 0.9])
    assert find_copies(rows_of(X, y, **given)) is None
    assert find_copies(rows_of(X, y)).n_copies == 1


def test_counts_may_agree_by_chance():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (200, 1)).astype(float), rng.integers(0, 3, 200).astype(float)
    assert find_copies(rows_of(X, y)) is None


def test_zeros_of_both_signs_are_one_number():
    X, y = np.array([[0.0], [-0.0], [1.0]]), np.array([0.5, 0.5, 0.1])
    assert find_copies(rows_of(X, y)).n_copies == 1
