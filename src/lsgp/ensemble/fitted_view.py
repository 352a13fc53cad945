# SPDX-License-Identifier: BSD-3-Clause
"""What pictures and reports show of a fitted estimator: names, and rows in their own units."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

Array = NDArray[np.float64]


class DataRows(NamedTuple):
    """Rows of data in the units that the user gave them in."""

    rows: NDArray[np.int64]  # (k,) row numbers
    X: Array  # (k, d)
    y: Array  # (k, t)
    n_total: int  # rows that these were drawn from


def input_names(model: Any) -> list[str]:
    """Names of the inputs: the columns of the data frame that was fitted, or x0, x1, ..."""
    check_is_fitted(model)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return [str(name) for name in names]
    return ["x"] if model.n_features_in_ == 1 else [f"x{j}" for j in range(model.n_features_in_)]


def target_names(model: Any) -> list[str]:
    """Names of the targets, if the estimator knows them, or y, or y0, y1, ..."""
    check_is_fitted(model)
    names = getattr(model, "target_names_", None)
    if names is not None:
        return [str(name) for name in names]
    n_targets = len(model.target_scaler_.mean)
    return ["y"] if n_targets == 1 else [f"y{k}" for k in range(n_targets)]


def target_number(model: Any, target: int | str) -> int:
    """Column of a target that is given by its number or its name."""
    names = target_names(model)
    if isinstance(target, str) and target in names:
        return names.index(target)
    if isinstance(target, (int, np.integer)) and 0 <= target < len(names):
        return int(target)
    raise ValueError(
        f"target={target!r} is not a target of the model. "
        f"Its targets are {', '.join(names)}: give a name, or a number from 0."
    )


def training_rows(model: Any, n_points: int | None = None, random_state: int = 0) -> DataRows:
    """Training rows in the units of the data, at most ``n_points`` drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.ensemble.fitted_view import training_rows
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
    >>> shown = training_rows(model, n_points=50)
    >>> shown.X.shape, shown.y.shape, shown.n_total
    ((50, 1), (50, 1), 200)
    """
    check_is_fitted(model)
    n = len(model.fitted_[0].problem.X)
    rows = np.arange(n)
    if n_points is not None and n_points < n:
        rows = np.sort(np.random.default_rng(random_state).choice(n, n_points, replace=False))
    return DataRows(rows, inputs_of_rows(model, rows), targets_of_rows(model, rows), n)


def inputs_of_rows(model: Any, rows: ArrayLike) -> Array:
    """Inputs of these training rows, (k, d), in the units of the data."""
    fitted = model.fitted_[0]
    scaled = np.asarray(fitted.problem.X[np.asarray(rows)], dtype=np.float64)
    return np.asarray(fitted.transform.inverse_transform(scaled), dtype=np.float64)


def targets_of_rows(model: Any, rows: ArrayLike) -> Array:
    """Targets of these training rows, (k, t), in the units of the data."""
    scaled = np.asarray(model.fitted_[0].problem.y[np.asarray(rows)], dtype=np.float64)
    return model.target_scaler_.inverse_mean(scaled)


def columns_of(values: ArrayLike) -> Array:
    """Targets, or their predictions, of shape (q,) or (q, t), as (q, t)."""
    array = np.asarray(values, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array


def as_table(model: Any, X: Array) -> Any:
    """Inputs as a table with the names that were fitted, if any, as scikit-learn expects them."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return X
    import polars as pl

    return pl.DataFrame({str(name): X[:, j] for j, name in enumerate(names)})
