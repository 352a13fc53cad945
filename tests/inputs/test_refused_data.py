# SPDX-License-Identifier: BSD-3-Clause
"""Data that cannot be used are refused by one error that says what to do."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from small_regression import QUERIES, X, Y, raises, regressor, with_value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.nan, "contains NaN."),
        (np.inf, "contains infinity or a value too large for dtype('float64')."),
        (-np.inf, "contains infinity or a value too large for dtype('float64')."),
    ],
)
def test_values_that_are_not_finite_are_refused(value, text):
    if np.isinf(value):  # NaN is missing, where there is some to learn from
        with pytest.raises(ValueError, match="^" + re.escape(f"Input X {text}")):
            regressor().fit(with_value(X, value), Y)
    is_missing = np.isnan(value)  # which is told with rows and columns
    text = text.rstrip(".") if is_missing else text
    with pytest.raises(ValueError, match="^" + re.escape(f"Input y {text}")):
        regressor().fit(X, with_value(Y, value))
    with pytest.raises(ValueError, match="^" + re.escape(f"Input X {text}")):
        regressor().fit(X, Y).predict(with_value(QUERIES, value))


@pytest.mark.parametrize(
    ("bad_X", "bad_y", "error", "text"),
    [
        (
            np.full((120, 2), "a", object),
            Y,
            ValueError,
            "No column of X is of use: 'x0' is",
        ),
        (X, np.full(120, "a", object), ValueError, "Use LSGPClassifier for labels"),
        (X[:, 0], Y, ValueError, "Expected 2D array, got 1D array instead"),
        (X[None], Y, ValueError, "Found array with dim 3"),
        (X[:0], Y[:0], ValueError, "Found array with 0 sample(s) (shape=(0, 2))"),
        (X[:, :0], Y, ValueError, "0 feature(s) (shape=(120, 0)) while a minimum of 1"),
        (X, Y[:7], ValueError, "inconsistent numbers of samples: [120, 7]"),
        (X, np.zeros((120, 2, 2)), ValueError, "Found array with dim 3"),
        (X, None, ValueError, "requires y to be passed, but the target y is None"),
        (X + 1j, Y, ValueError, "Complex data not supported"),
        (sparse.csr_array(X), Y, TypeError, "Sparse data was passed for X, but dense data is"),
    ],
    ids=[
        "text",
        "text y",
        "1d",
        "3d",
        "no rows",
        "no columns",
        "lengths",
        "3d y",
        "no y",
        "complex",
        "sparse",
    ],
)
def test_training_data_of_the_wrong_kind_are_refused(bad_X, bad_y, error, text):
    with pytest.raises(error, match=re.escape(text)):
        regressor().fit(bad_X, bad_y)


@pytest.mark.parametrize(
    ("queries", "error", "text"),
    [
        (QUERIES[:, :1], ValueError, "X has 1 features, but LSGPRegressor is expecting 2 features"),
        (QUERIES[0], ValueError, "Expected 2D array, got 1D array instead"),
        (np.full((3, 2), "a", object), ValueError, "could not convert string to float: 'a'"),
        (sparse.csr_array(QUERIES), TypeError, "Sparse data was passed for X, but dense data is"),
    ],
    ids=["width", "1d", "text", "sparse"],
)
def test_queries_of_the_wrong_kind_are_refused(queries, error, text):
    with pytest.raises(error, match=re.escape(text)):
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
    message = "This LSGPRegressor instance is not fitted yet. Call 'fit'"
    for use in (
        lambda model: model.predict(QUERIES),
        lambda model: model.predict(QUERIES, return_std=True),
        lambda model: model.predict_distribution(QUERIES),
        lambda model: model.predict_interval(QUERIES),
        lambda model: model.sample_prior([0.0, 0.0], QUERIES),
        lambda model: model.model_,
        lambda model: model.n_neighbors_,
    ):
        with pytest.raises(NotFittedError, match=re.escape(message)):
            use(regressor())


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        (
            "sample_weight",
            with_value(np.ones(120), -1.0),
            ValueError,
            "sample_weight has 1 negative values. A weight says how many observations a row stands "
            "for.",
        ),
        (
            "sample_weight",
            with_value(np.ones(120), np.nan),
            ValueError,
            "sample_weight has 1 values that are NaN or infinite. Remove those rows.",
        ),
        (
            "sample_weight",
            np.zeros(120),
            ValueError,
            "sample_weight is zero in every row. Give at least one row a weight.",
        ),
        (
            "sample_weight",
            np.ones(7),
            ValueError,
            "sample_weight has shape (7,), but X has 120 rows. Give one number per row.",
        ),
        (
            "sample_weight",
            ["a"] * 120,
            TypeError,
            "sample_weight is not an array of numbers: could not convert string to float: 'a'.",
        ),
        (
            "noise_variance",
            with_value(np.ones(120), 0.0),
            ValueError,
            "noise_variance has 1 values that are not positive. Give the variance of each "
            "observation's error, in the units of y².",
        ),
        (
            "noise_variance",
            with_value(np.ones(120), np.inf),
            ValueError,
            "noise_variance has 1 values that are NaN or infinite. Remove those rows.",
        ),
        (
            "groups",
            np.zeros(7),
            ValueError,
            "groups has shape (7,), but X has 120 rows. Give one label per row.",
        ),
    ],
)
def test_what_comes_with_the_rows_is_checked(name, value, error, message):
    with raises(error, message):
        regressor().fit(X, Y, **{name: value})
