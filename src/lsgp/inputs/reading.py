# SPDX-License-Identifier: BSD-3-Clause
"""What users give to an estimator, as arrays and tables that are checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from lsgp.inputs.containers import refuse_device_arrays, refuse_geometries
from lsgp.inputs.encoding import Encoder, ReadTable, needs_encoding, read_table
from lsgp.inputs.encoding.cells import columns_by_name, is_frame
from lsgp.inputs.encoding.encoder import refuse_missing
from lsgp.inputs.rows import check_targets, refuse_what_is_no_number

Array = NDArray[np.float64]

#: How scikit-learn begins what it says of missing values.
NAN_ERROR = "Input X contains NaN."


def read_training(
    estimator: BaseEstimator, X: object, y: object, categories: Any, is_regression: bool
) -> tuple[ReadTable | None, Array, NDArray[Any]]:
    """What `fit` is given: the table, if it is to be encoded, inputs and targets.

    ``categories`` are columns that are said to be categories, or None. Of a table, the inputs are
    so far the numbers of its rows, (n, 1).
    """
    _refuse(estimator, X, y, is_regression)
    refuse_geometries(X)
    if categories is not None or needs_encoding(X):
        table = read_table(X, categories)
        validate_data(estimator, X, skip_check_array=True)  # names and number of the columns
        targets = check_targets(y, table.n_rows, multi_output=is_regression)
        return table, np.arange(table.n_rows, dtype=float)[:, None], targets
    return None, *_numbers(estimator, X, y, is_regression)


def read_more(
    estimator: BaseEstimator, X: Any, y: object, encoder: Encoder | None, is_regression: bool
) -> tuple[Array | None, Any, NDArray[Any]]:
    """What `partial_fit` is given: inputs, or None and the table to be encoded, and targets."""
    _refuse(estimator, X, y, is_regression)
    X = _by_name(estimator, X, encoder)
    if encoder is not None:
        n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
        return None, X, check_targets(y, n, multi_output=is_regression)
    inputs, targets = _numbers(estimator, X, y, is_regression, reset=False)
    return inputs, X, targets


def _refuse(estimator: BaseEstimator, X: object, y: object, is_regression: bool) -> None:
    refuse_device_arrays(X)
    if is_regression and y is not None:
        refuse_what_is_no_number(y, type(estimator).__name__)


def _numbers(
    estimator: BaseEstimator, X: object, y: object, is_regression: bool, reset: bool = True
) -> tuple[Array, NDArray[Any]]:
    """Inputs and targets without texts and holes, as scikit-learn checks them."""
    checks = {"multi_output": is_regression, "y_numeric": is_regression}
    inputs, targets = validate_data(
        estimator, X, y, dtype=np.float64, order="C", reset=reset, **checks
    )
    return inputs, targets


def read_queries(estimator: BaseEstimator, X: object, encoder: Encoder | None) -> Array:
    """Inputs of queries: frames by the names of their columns, others by place."""
    named = _by_name(estimator, X, encoder)
    return check_numbers(estimator, named) if encoder is None else encoder.encode(named)


def read_places(estimator: BaseEstimator, X: object, encoder: Encoder | None) -> Array | None:
    """Where `fit` is told that predictions will be made, as inputs; None if that is not said."""
    if X is None:
        return None
    try:
        checked = read_queries(estimator, X, encoder)
        if not len(checked):
            raise ValueError("Found array with 0 sample(s). Give places, or leave it out.")
    except ValueError as error:
        # What is said of inputs says "X", which is another argument of `fit`.
        raise ValueError(f"queries: {error}") from error
    return checked


def _by_name(estimator: BaseEstimator, X: object, encoder: Encoder | None) -> object:
    """A data frame with the columns of the fit, in their order; others as they are, checked.

    Encoders find their columns themselves.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if is_frame(X) and names is not None:
        return X if encoder is not None else columns_by_name(X, list(map(str, names)), set())
    if encoder is not None:
        validate_data(estimator, X, reset=False, skip_check_array=True)  # number and names
    return X


def check_numbers(estimator: BaseEstimator, X: object) -> Array:
    """Queries without texts and holes, of the inputs that were named."""
    try:
        checked: Array = validate_data(
            estimator, X, dtype=np.float64, reset=False, ensure_min_samples=0
        )
    except ValueError as error:
        if str(error).startswith(NAN_ERROR):
            columns = np.asarray(X, dtype=np.float64).T
            for name, column in zip(column_names(estimator, len(columns)), columns, strict=True):
                refuse_missing(name, column)
        raise
    return checked


def column_names(estimator: BaseEstimator, n_columns: int) -> list[str]:
    """Names of the columns of the fit, or x0, x1, and so on."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(n_columns)] if names is None else list(map(str, names))
