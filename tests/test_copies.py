# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are exact copies of others count once."""

import re
import warnings

import numpy as np
import pytest
from tuned import make_data, regressor

from lsgp.inputs.copies import without_copies
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
            "once, and rows are numbered from 0 to 79 without them. If they are observations of "
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
    assert len(thrice.loo().rows) == 80


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
    rows, n_copies = without_copies(rows_of(X, y))
    assert n_copies == 1
    np.testing.assert_array_equal(rows.X[:, 0], [3.0, 1.0, 2.0, 1.0])
    np.testing.assert_array_equal(rows.y[:, 0], [0.3, 0.1, 0.2, 0.5])


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
    assert without_copies(rows_of(X, y, **given)).n_copies == 0
    assert without_copies(rows_of(X, y)).n_copies == 1


def test_counts_may_agree_by_chance():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (200, 1)).astype(float), rng.integers(0, 3, 200).astype(float)
    rows, n_copies = without_copies(rows_of(X, y))
    assert n_copies == 0
    assert len(rows.X) == 200


def test_zeros_of_both_signs_are_one_number():
    X, y = np.array([[0.0], [-0.0], [1.0]]), np.array([0.5, 0.5, 0.1])
    assert without_copies(rows_of(X, y)).n_copies == 1
