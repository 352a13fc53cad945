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


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param]


@pytest.fixture(params=[LSGPRegressor, LSGPClassifier])
def model(request, table):
    y = Y if request.param is LSGPRegressor else Y > 0
    return request.param(objective=None).fit(table, y)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_columns_are_taken_by_name_in_any_order(model, table, frame):
    expected = model.predict(frame(table))
    turned = frame(table[table.columns[::-1]])
    np.testing.assert_array_equal(model.predict(turned), expected)
    labels = Y[:3] > 0 if isinstance(model, LSGPClassifier) else Y[:3]
    grown = [
        clone_of(model, table).partial_fit(part[:3], labels) for part in (frame(table), turned)
    ]
    np.testing.assert_array_equal(*(own.predict(frame(table)) for own in grown))


def clone_of(model, table):
    y = Y > 0 if isinstance(model, LSGPClassifier) else Y
    return type(model)(objective=None).fit(table, y)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_columns_that_are_too_many_are_ignored_with_one_warning(model, table, frame):
    wide = frame(table.assign(other=1.0, another="x"))
    message = (
        "X has columns that the model was not fitted with, which are ignored: 'other', 'another'."
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        found = model.predict(wide)
    assert len(caught) == 1
    np.testing.assert_array_equal(found, model.predict(frame(table)))


def test_columns_that_are_too_few_are_named(model, table):
    with pytest.raises(ValueError, match="X has no column 'age' that the model was fitted with"):
        model.predict(table.drop(columns="age"))


def test_arrays_are_taken_by_place_with_a_warning(model, table):
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        found = model.predict(table.to_numpy())
    np.testing.assert_array_equal(found, model.predict(table))
    with (
        pytest.warns(UserWarning, match="X does not have valid feature names"),
        pytest.raises(ValueError, match=r"X has 5 features, but LSGP\w+ is expecting"),
    ):
        model.predict(np.ones((3, 5)))


def test_values_are_missing_where_they_were_in_training_and_nowhere_else(model, table):
    holes = table.copy()
    holes.loc[[1, 4], "size"] = np.nan
    with raises(
        ValueError,
        "Input X contains NaN: column 'size' misses 2 of 60 cells, and missed none when the "
        "model was fitted. Complete the queries, or fit on rows of which some miss the same.",
    ):
        model.predict(holes)
    fitted = clone_of(model, holes)
    assert np.isfinite(fitted.predict_proba(holes) if hasattr(fitted, "classes_") else
                       fitted.predict(holes)).all()  # fmt: skip


def test_queries_of_fit_follow_the_same_rules(table):
    model = LSGPRegressor(effort="fast", random_state=0)
    with raises(ValueError, "queries: X has no column 'age' that the model was fitted with. It "
                "has " + ", ".join(table.columns.drop("age")) + "."):  # fmt: skip
        model.fit(table, Y, queries=table.drop(columns="age"))


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
    for targets, rows in ((y, "2 of 60 rows: 3, 17"), (y[:, 0], "1 of 60 rows: 3")):
        message = f"Input y contains NaN in {rows}. Remove these rows, or complete them."
        with raises(ValueError, message):
            LSGPRegressor().fit(table, targets)
    model = LSGPRegressor(objective=None).fit(table, Y)
    with raises(ValueError, "Input y contains NaN in 1 of 2 rows: 0. Remove these rows, or "
                "complete them."):  # fmt: skip
        model.partial_fit(table[:2], [np.nan, 1.0])
