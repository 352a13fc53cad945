# SPDX-License-Identifier: BSD-3-Clause
"""The same numbers in any container give the same predictions."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from small_regression import MEAN, QUERIES, STD, X, Y, assert_same_predictions, regressor


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


CONTAINERS = {
    "list": lambda array: array.tolist(),
    "read-only": read_only,
    "fortran": np.asfortranarray,
    "strided": lambda array: np.repeat(array, 2, axis=0)[::2],
    "reversed": lambda array: array[::-1].copy()[::-1],
    "object": lambda array: array.astype(object),
    "big-endian": lambda array: array.astype(">f8"),
    "strings of numbers": lambda array: array.astype(str).astype(object),
}


@pytest.mark.parametrize("convert", CONTAINERS.values(), ids=CONTAINERS)
def test_same_numbers_in_any_container(convert):
    model = regressor().fit(convert(X), convert(Y))
    assert_same_predictions(model, convert(QUERIES), rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, np.bool_])
def test_other_dtypes_are_the_numbers_they_hold(dtype):
    coarse_X, coarse_y, coarse_q = ((10.0 * array).astype(dtype) for array in (X, Y, QUERIES))
    actual = regressor().fit(coarse_X, coarse_y).predict(coarse_q)
    same = (array.astype(float) for array in (coarse_X, coarse_y))
    assert actual.dtype == np.float64
    assert np.array_equal(actual, regressor().fit(*same).predict(coarse_q.astype(float)))


def test_column_vector_of_targets_is_one_target_in_a_column():
    mean, std = regressor().fit(X, Y[:, None]).predict(QUERIES, return_std=True)
    assert np.array_equal(mean, MEAN[:, None])
    assert np.array_equal(std, STD[:, None])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_data_frames_keep_their_column_names(frame):
    training = frame({"east": X[:, 0], "north": X[:, 1]})
    targets = {pd.DataFrame: pd.Series, pl.DataFrame: pl.Series}[frame](Y)
    model = regressor().fit(training, targets)
    assert model.feature_names_in_.tolist() == ["east", "north"]
    assert_same_predictions(model, frame({"east": QUERIES[:, 0], "north": QUERIES[:, 1]}))
    assert_same_predictions(model, frame({"north": QUERIES[:, 1], "east": QUERIES[:, 0]}))


@pytest.mark.parametrize("n_targets", [None, 1, 3])
def test_no_queries_give_no_predictions(n_targets):
    shape = () if n_targets is None else (n_targets,)
    targets = Y if n_targets is None else np.column_stack([Y] * n_targets)
    model = regressor().fit(X, targets)
    nobody = np.empty((0, 2))
    assert model.predict(nobody).shape == (0, *shape)
    for found in (model.predict(nobody, return_std=True), model.predict_interval(nobody)):
        assert [part.shape for part in found] == [(0, *shape)] * 2
