# SPDX-License-Identifier: BSD-3-Clause
"""Data that cannot be used are refused by one error that says what to do."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from small_regression import QUERIES, X, Y, raises, regressor, with_value

INFINITE = "contains infinity or a value too large for dtype('float64')."
ONES, TEXTS = np.ones(120), np.full((120, 2), "a", object)
#: Inputs and targets, and a part of what is said of them.
BAD_TRAINING = {
    "infinity": (with_value(X, np.inf), Y, f"Input X {INFINITE}"),
    "minus infinity": (with_value(X, -np.inf), Y, f"Input X {INFINITE}"),
    "infinite y": (X, with_value(Y, np.inf), f"Input y {INFINITE}"),
    "missing y": (X, with_value(Y, np.nan), "Input y contains NaN"),
    "text": (TEXTS, Y, "No column of X is of use: 'x0' is"),
    "text y": (X, TEXTS[:, 0], "Use LSGPClassifier for labels"),
    "1d": (X[:, 0], Y, "Expected 2D array, got 1D array instead"),
    "3d": (X[None], Y, "Found array with dim 3"),
    "no rows": (X[:0], Y[:0], "Found array with 0 sample(s) (shape=(0, 2))"),
    "no columns": (X[:, :0], Y, "0 feature(s) (shape=(120, 0)) while a minimum of 1"),
    "lengths": (X, Y[:7], "inconsistent numbers of samples: [120, 7]"),
    "3d y": (X, np.zeros((120, 2, 2)), "Found array with dim 3"),
    "no y": (X, None, "requires y to be passed, but the target y is None"),
    "complex": (X + 1j, Y, "Complex data not supported"),
    "sparse": (sparse.csr_array(X), Y, "Sparse data was passed for X, but dense data is"),
}


@pytest.mark.parametrize("name", BAD_TRAINING)
def test_training_data_of_the_wrong_kind_are_refused(name):
    bad_X, bad_y, text = BAD_TRAINING[name]
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        regressor().fit(bad_X, bad_y)


BAD_QUERIES = {
    "missing": (with_value(QUERIES, np.nan), "Input X contains NaN"),
    "infinity": (with_value(QUERIES, np.inf), f"Input X {INFINITE}"),
    "minus infinity": (with_value(QUERIES, -np.inf), f"Input X {INFINITE}"),
    "width": (QUERIES[:, :1], "X has 1 features, but LSGPRegressor is expecting 2 features"),
    "1d": (QUERIES[0], "Expected 2D array, got 1D array instead"),
    "text": (TEXTS[:3], "could not convert string to float: 'a'"),
    "sparse": (sparse.csr_array(QUERIES), "Sparse data was passed for X, but dense data is"),
}


@pytest.mark.parametrize("name", BAD_QUERIES)
def test_queries_of_the_wrong_kind_are_refused(name):
    queries, text = BAD_QUERIES[name]
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        regressor().fit(X, Y).predict(queries)


@pytest.mark.parametrize(
    ("queries", "text"),
    [
        (np.ones((4, 3)), "queries: X has 3 features"),
        (np.full((4, 2), np.nan), "queries: Input X contains NaN"),
        (np.ones((0, 2)), "queries: Found array with 0 sample"),
    ],
)
def test_bad_queries_of_a_fit_are_not_taken_for_its_rows(queries, text):
    with pytest.raises(ValueError, match=text):
        regressor().fit(X, Y, queries=queries)


def test_model_that_is_not_fitted_says_so():
    for use in (
        lambda model: model.predict(QUERIES),
        lambda model: model.predict(QUERIES, return_std=True),
        lambda model: model.predict_distribution(QUERIES),
        lambda model: model.predict_interval(QUERIES),
        lambda model: model.sample_prior([0.0, 0.0], QUERIES),
        lambda model: model.model_,
        lambda model: model.n_neighbors_,
    ):
        with pytest.raises(NotFittedError, match="This LSGPRegressor instance is not fitted yet"):
            use(regressor())


NOT_FINITE = "has 1 values that are NaN or infinite. Remove those rows."
BAD_ROWS = [
    (
        "sample_weight",
        with_value(ONES, -1.0),
        "has 1 negative values. A weight says how many observations a row stands for.",
    ),
    ("sample_weight", with_value(ONES, np.nan), NOT_FINITE),
    ("sample_weight", 0.0 * ONES, "is zero in every row. Give at least one row a weight."),
    ("sample_weight", ONES[:7], "has shape (7,), but X has 120 rows. Give one number per row."),
    (
        "sample_weight",
        TEXTS[:, 0],
        "is not an array of numbers: could not convert string to float: 'a'.",
    ),
    (
        "noise_variance",
        with_value(ONES, 0.0),
        "has 1 values that are not positive. Give the variance of each observation's error, in the "
        "units of y².",
    ),
    ("noise_variance", with_value(ONES, np.inf), NOT_FINITE),
    ("groups", ONES[:7], "has shape (7,), but X has 120 rows. Give one label per row."),
]


@pytest.mark.parametrize(("name", "value", "said"), BAD_ROWS)
def test_what_comes_with_the_rows_is_checked(name, value, said):
    with raises((ValueError, TypeError), f"{name} {said}"):
        regressor().fit(X, Y, **{name: value})
