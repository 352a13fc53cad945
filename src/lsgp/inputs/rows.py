# SPDX-License-Identifier: BSD-3-Clause
"""The rows that a model is fitted on, checked: weights, known noise and groups beside X and y."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_X_y

Array = NDArray[np.float64]

#: Of the noise of a row to the mean of all, and of sample weights.
LARGEST_RATIO = 1e100


class Groups(NamedTuple):
    """Which rows belong together.

    Examples
    --------
    >>> number_groups(["b", "a", "b"], 3).extend(number_groups(["c", "a"], 2)).numbers
    array([1, 0, 1, 2, 0], dtype=int32)
    """

    numbers: NDArray[np.int32]  # (n,) place among the labels, -1 for no group
    labels: tuple[object, ...]  # texts and numbers, each once

    @classmethod
    def none(cls, n: int) -> Groups:
        return cls(np.full(n, -1, np.int32), ())

    def extend(self, others: Groups) -> Groups:
        """With other rows behind these; equal labels are one group."""
        place = {label: number for number, label in enumerate(self.labels)}
        numbers = [place.setdefault(label, len(place)) for label in others.labels]
        renumbered = np.array([*numbers, -1], dtype=np.int32)[others.numbers]
        return Groups(np.concatenate([self.numbers, renumbered]), tuple(place))

    def keep(self, kept: NDArray[Any]) -> Groups:
        """Of some rows, by their numbers or where ``kept`` (n,) is true."""
        return self._replace(numbers=np.ascontiguousarray(self.numbers[kept]))


class TrainingRows(NamedTuple):
    """Clean arrays of equal length; rows of weight 0 are gone."""

    X: Array  # (n, d)
    y: Array  # (n, t)
    weight: Array | None  # (n,) how many observations a row stands for
    noise: Array  # (n,) noise variance relative to the mean over the rows, v in [E2]
    mean_noise_variance: float | None  # in the units of y², where noise_variance was given
    groups: Groups | None

    def keep(self, rows: NDArray[Any]) -> TrainingRows:
        weight = None if self.weight is None else self.weight[rows]
        groups = None if self.groups is None else self.groups.keep(rows)
        X, y, noise = self.X[rows], self.y[rows], self.noise[rows]
        return TrainingRows(X, y, weight, noise, self.mean_noise_variance, groups)

    @property
    def group_numbers(self) -> NDArray[np.int32] | None:
        return None if self.groups is None else self.groups.numbers


def check_training_rows(
    X: Array,
    y: Array,
    sample_weight: ArrayLike | None,
    noise_variance: ArrayLike | None,
    groups: ArrayLike | None,
) -> TrainingRows:
    """Check what came with X and y, and drop the rows of weight 0."""
    n = len(X)
    noise = np.ones(n) if noise_variance is None else check_noise(noise_variance, n)
    weight = None if sample_weight is None else check_weights(sample_weight, n)
    numbered = None if groups is None else number_groups(groups, n)
    rows = TrainingRows(X, y, weight, noise, None, numbered)
    if weight is not None:
        kept = weight > 0
        if not kept.any():
            raise ValueError("sample_weight is zero in every row. Give at least one row a weight.")
        if not kept.all():
            rows = rows.keep(kept)
        if (weight[kept] == 1.0).all():
            rows = rows._replace(weight=None)  # is one for each, to the bit
    noise = rows.noise
    if noise_variance is not None:
        largest = float(noise.max())
        mean = largest * float(np.mean(noise / largest))  # which cannot overflow
        noise = noise / mean
        require_alike("noise_variance", noise, "Check the units of the rows that stand out.")
        rows = rows._replace(mean_noise_variance=mean)
    if rows.weight is not None:
        require_alike("sample_weight", rows.weight, "Give rows that do not count the weight 0.")
        noise = noise / rows.weight
    return rows._replace(noise=noise)


def check_noise(noise_variance: ArrayLike, n: int) -> Array:
    noise = _row_values("noise_variance", noise_variance, n)
    if (noise <= 0).any():
        raise ValueError(
            f"noise_variance has {np.count_nonzero(noise <= 0)} values that are not positive. "
            "Give the variance of each observation's error, in the units of y²."
        )
    return noise


def check_weights(sample_weight: ArrayLike, n: int) -> Array:
    weight = _row_values("sample_weight", sample_weight, n)
    if (weight < 0).any():
        raise ValueError(
            f"sample_weight has {np.count_nonzero(weight < 0)} negative values. A weight says "
            "how many observations a row stands for."
        )
    return weight


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


def require_alike(name: str, values: Array, remedy: str) -> None:
    """Refuse numbers whose products would be no finite, positive numbers."""
    low, high = float(values.min()), float(values.max())
    if low < 1.0 / LARGEST_RATIO or high > LARGEST_RATIO:
        raise ValueError(
            f"{name} goes from {low:g} to {high:g}, beyond {1.0 / LARGEST_RATIO:g} to "
            f"{LARGEST_RATIO:g}. {remedy}"
        )


def number_groups(groups: ArrayLike, n: int) -> Groups:
    labels: NDArray[Any] = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(
            f"groups has shape {labels.shape}, but X has {n} rows. Give one label per row."
        )
    distinct, numbers = np.unique(labels, return_inverse=True)
    # What a file can hold: others, such as dates, by their text.
    names = tuple(
        label if isinstance(label, str | int | float) else str(label) for label in distinct.tolist()
    )
    return Groups(numbers.astype(np.int32), names)


# -- targets ---------------------------------------------------------------------------------------


def refuse_what_is_no_number(y: Any, estimator: str) -> None:
    """Refuse texts among targets, and say which rows of them are NaN."""
    values = np.asarray(y)
    if values.dtype.kind in "OU":
        text = next((each for each in values.ravel().tolist() if _is_word(each)), None)
        if text is not None:
            raise ValueError(
                f"y holds text, such as {text!r}, and {estimator} predicts numbers. Use "
                "LSGPClassifier for labels, or give numbers."
            )
    elif values.dtype.kind == "f" and values.ndim in (1, 2):
        hole = np.isnan(values)
        rows = np.flatnonzero(hole if values.ndim == 1 else hole.any(axis=1))
        if len(rows):
            listed = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
            raise ValueError(
                f"Input y contains NaN in {len(rows)} of {len(values)} rows: {listed}. Remove "
                "these rows, or complete them."
            )


def _is_word(value: object) -> bool:
    """Whether it is a text, and none of a number."""
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def check_targets(y: object, n: int, multi_output: bool) -> NDArray[Any]:
    """Targets of a table of n rows, as scikit-learn checks them beside numbers."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    stand_in = np.zeros((n, 1))
    _, checked = check_X_y(stand_in, y, multi_output=multi_output, y_numeric=multi_output)
    return np.asarray(checked)


def names_of_targets(y: object) -> list[str] | None:
    """Names of the columns of a data frame, or of a series; None if they are not texts."""
    names: list[Any] = list(y.columns) if hasattr(y, "columns") else [getattr(y, "name", None)]
    return names if names and all(isinstance(name, str) and name for name in names) else None
