# SPDX-License-Identifier: BSD-3-Clause
"""What queries and targets may be: the same rules whether or not a table is encoded."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from small_data import make_data
from small_regression import raises

from lsgp import LSGPClassifier, LSGPRegressor

INPUTS, Y = make_data(60, 2)
NUMBERS = pd.DataFrame(INPUTS, columns=["size", "age"])
TABLES = {"numbers": NUMBERS, "encoded": NUMBERS.assign(kind=["a", "b", "b"] * 20)}
each_frame = pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas], ids=["pd", "pl"])


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param]


@pytest.fixture(params=[LSGPRegressor, LSGPClassifier])
def fit(request):
    y = Y if request.param is LSGPRegressor else Y > 0
    return lambda table: request.param(objective=None).fit(table, y)


@each_frame
def test_columns_are_taken_by_name_in_any_order(fit, table, frame):
    model, turned = fit(table), frame(table[table.columns[::-1]])
    np.testing.assert_array_equal(model.predict(turned), model.predict(frame(table)))
    labels = Y[:3] > 0 if isinstance(model, LSGPClassifier) else Y[:3]
    grown = [fit(table).partial_fit(part[:3], labels) for part in (frame(table), turned)]
    np.testing.assert_array_equal(*(own.predict(frame(table)) for own in grown))


@each_frame
def test_columns_that_are_too_many_are_ignored_with_one_warning(fit, table, frame):
    model = fit(table)
    message = (
        "X has columns that the model was not fitted with, which are ignored: 'other', 'another'."
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        found = model.predict(frame(table.assign(other=1.0, another="x")))
    assert len(caught) == 1
    np.testing.assert_array_equal(found, model.predict(frame(table)))


def test_columns_that_are_too_few_are_named(fit, table):
    with pytest.raises(ValueError, match="X has no column 'age' that the model was fitted with"):
        fit(table).predict(table.drop(columns="age"))
    message = "queries: X has no column 'age' that the model was fitted with. It has "
    with raises(ValueError, message + ", ".join(table.columns.drop("age")) + "."):
        LSGPRegressor(effort="fast").fit(table, Y, queries=table.drop(columns="age"))


def test_arrays_are_taken_by_place_with_a_warning(fit, table):
    model, no_names = fit(table), "X does not have valid feature names"
    with pytest.warns(UserWarning, match=no_names):
        found = model.predict(table.to_numpy())
    np.testing.assert_array_equal(found, model.predict(table))
    with (
        pytest.warns(UserWarning, match=no_names),
        pytest.raises(ValueError, match=r"X has 5 features, but LSGP\w+ is expecting"),
    ):
        model.predict(np.ones((3, 5)))


def test_values_are_missing_where_they_were_in_training_and_nowhere_else(fit, table):
    holes = table.copy()
    holes.loc[[1, 4], "size"] = np.nan
    with raises(
        ValueError,
        "Input X contains NaN: column 'size' misses 2 of 60 cells, and missed none when the "
        "model was fitted. Complete the queries, or fit on rows of which some miss the same.",
    ):
        fit(table).predict(holes)
    model = fit(holes)
    ask = model.predict_proba if isinstance(model, LSGPClassifier) else model.predict
    assert np.isfinite(ask(holes)).all()


# -- targets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [["up", "down"] * 30, np.array(["up", "down"] * 30, object)])
def test_texts_are_labels(table, y):
    with raises(
        ValueError,
        "y holds text, such as 'up', and LSGPRegressor predicts numbers. Use LSGPClassifier for "
        "labels, or give numbers.",
    ):
        LSGPRegressor().fit(table, y)


def test_rows_whose_target_is_missing_are_named(table):
    y = np.column_stack([Y, Y])
    y[[3, 17], [0, 1]] = np.nan
    model = LSGPRegressor(objective=None).fit(table, Y)
    for use, rows in (
        (lambda: LSGPRegressor().fit(table, y), "2 of 60 rows: 3, 17"),
        (lambda: LSGPRegressor().fit(table, y[:, 0]), "1 of 60 rows: 3"),
        (lambda: model.partial_fit(table[:2], [np.nan, 1.0]), "1 of 2 rows: 0"),
    ):
        message = f"Input y contains NaN in {rows}. Remove these rows, or complete them."
        with raises(ValueError, message):
            use()
