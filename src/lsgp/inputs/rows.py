# SPDX-License-Identifier: BSD-3-Clause
"""The rows that a model is fitted on, checked: weights, known noise and groups beside X and y."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class TrainingRows(NamedTuple):
    """Clean arrays of equal length; rows of weight 0 are gone."""

    X: Array  # (n, d)
    y: Array  # (n, t)
    weight: Array | None  # (n,) how many observations a row stands for
    noise: Array  # (n,) noise variance relative to the mean over the rows, v in [E2]
    mean_noise_variance: float | None  # in the units of y², where noise_variance was given
    groups: NDArray[np.int32] | None  # (n,)


def check_training_rows(
    X: Array,
    y: Array,
    sample_weight: ArrayLike | None,
    noise_variance: ArrayLike | None,
    groups: ArrayLike | None,
) -> TrainingRows:
    """Check what came with X and y, and drop the rows of weight 0."""
    n = len(X)
    noise, weight, mean_noise_variance = np.ones(n), None, None
    if noise_variance is not None:
        noise = _row_values("noise_variance", noise_variance, n)
        if (noise <= 0).any():
            raise ValueError(
                f"noise_variance has {np.count_nonzero(noise <= 0)} values that are not positive. "
                "Give the variance of each observation's error, in the units of y²."
            )
    numbered = None if groups is None else _number_groups(groups, n)
    if sample_weight is not None:
        weight = _row_values("sample_weight", sample_weight, n)
        if (weight < 0).any():
            raise ValueError(
                f"sample_weight has {np.count_nonzero(weight < 0)} negative values. A weight says "
                "how many observations a row stands for."
            )
        kept = weight > 0
        if not kept.any():
            raise ValueError("sample_weight is zero in every row. Give at least one row a weight.")
        X, y, noise, weight = X[kept], y[kept], noise[kept], weight[kept]
        numbered = None if numbered is None else numbered[kept]
    if noise_variance is not None:
        mean_noise_variance = float(noise.mean())
        noise = noise / mean_noise_variance
    if weight is not None:
        noise = noise / weight
    return TrainingRows(X, y, weight, noise, mean_noise_variance, numbered)


def names_of_targets(y: Any) -> list[str] | None:
    """Names of the columns of a data frame, or of a series; None if they are not texts.

    Examples
    --------
    >>> import polars as pl
    >>> from lsgp.inputs.rows import names_of_targets
    >>> names_of_targets(pl.DataFrame({"depth": [1.0]})), names_of_targets([1.0])
    (['depth'], None)
    """
    names: list[Any] = list(y.columns) if hasattr(y, "columns") else [getattr(y, "name", None)]
    return names if names and all(isinstance(name, str) and name for name in names) else None


def _row_values(name: str, values: ArrayLike, n: int) -> Array:
    """One finite number per row; a single number stands for all rows."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} is not an array of numbers: {error}.") from None
    if numbers.ndim == 0:
        numbers = np.full(n, numbers)
    if numbers.shape != (n,):
        raise ValueError(
            f"{name} has shape {numbers.shape}, but X has {n} rows. Give one number per row."
        )
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"{name} has {np.count_nonzero(~np.isfinite(numbers))} values that are NaN or "
            "infinite. Remove those rows."
        )
    return numbers


def _number_groups(groups: ArrayLike, n: int) -> NDArray[np.int32]:
    labels: Any = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(
            f"groups has shape {labels.shape}, but X has {n} rows. Give one label per row."
        )
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)
