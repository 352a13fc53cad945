# SPDX-License-Identifier: BSD-3-Clause
"""Mean, standard deviation and range of columns, for values of any size; targets scaled by them.

They are computed in blocks of rows, and joined; parts of the rows on other machines are joined in
the same way. Nothing is squared in its own units: data of 1e150 or 1e-150 are as good as any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.method.arrays import beside, floats

Float = NDArray[np.float64]

#: Values worked on at a time, small enough for the cache.
BLOCK_VALUES = 1 << 16


def subsample(n: int, size: int) -> NDArray[np.int64] | None:
    """Sorted random rows, the same every time; None for all.

    Not every k-th row: gridded data would alias.
    """
    if n <= size:
        return None
    return np.unique(np.random.default_rng(0).integers(n, size=size))


class ColumnStatistics(NamedTuple):
    """Statistics of d columns of some rows, without the values that are NaN."""

    center: Float  # (d,) mean
    std: Float  # (d,)
    low: Float  # (d,) infinite if there is nothing
    high: Float  # (d,)
    weight: Float  # (d,) of the rows: their number, unless they have weights

    @property
    def scale(self) -> Float:
        """Standard deviations, infinite for constant columns."""
        return np.where(self.std > 0, self.std, np.inf)

    @property
    def unit(self) -> Float:
        """Standard deviations, 1 for constant columns."""
        return np.where(self.std > 0, self.std, 1.0)

    @staticmethod
    def joined(parts: Sequence[ColumnStatistics]) -> ColumnStatistics:
        """The statistics of all rows, from those of their parts."""
        if len(parts) == 1:
            return parts[0]
        return _pool(*(np.array(own) for own in zip(*parts, strict=True)))

    def join(self, other: ColumnStatistics) -> ColumnStatistics:
        return self.joined([self, other])


def column_statistics(X: NDArray[Any], weight: Float | None = None) -> ColumnStatistics:
    """The statistics of the columns of (n, d), where rows may have weights (n,)."""
    n_rows = max(1, BLOCK_VALUES // max(1, X.shape[1]))
    found = []
    for start in range(0, max(1, len(X)), n_rows):
        own = slice(start, start + n_rows)
        x = X[own].astype(np.float64)
        hole = np.isnan(x)
        weights = np.where(hole, 0.0, 1.0 if weight is None else weight[own, None])
        low, high = np.where(hole, np.inf, x), np.where(hole, -np.inf, x)
        # Each row is a part, of one value.
        found.append(_pool(np.where(hole, 0.0, x), np.zeros(1), low, high, weights))
    return ColumnStatistics.joined(found)


def _pool(center: Float, std: Float, low: Float, high: Float, weight: Float) -> ColumnStatistics:
    """The statistics of all of p parts, from those of each, (p, d)."""
    low, high = low.min(axis=0, initial=np.inf), high.max(axis=0, initial=-np.inf)
    total = weight.sum(axis=0)
    share = weight / np.where(total > 0, total, 1.0)
    # In units of half the range around its middle, values are within [-1, 1].
    least, most = (np.where(low <= high, end, 0.0) for end in (low, high))
    middle, half = 0.5 * least + 0.5 * most, 0.5 * most - 0.5 * least
    half = np.where(half > 0, half, 1.0)
    u = np.where(weight > 0, (center - middle) / half, 0.0)
    mean = (share * u).sum(axis=0)
    square = (share * ((std / half) ** 2 + (u - mean) ** 2)).sum(axis=0)
    # A constant is its own mean, without rounding.
    varies = low < high
    center = np.where(varies, middle + half * mean, middle)
    return ColumnStatistics(center, np.where(varies, half * np.sqrt(square), 0.0), low, high, total)


@dataclass(frozen=True, eq=False)
class TargetScaler:
    """Scales each target to mean 0 and standard deviation 1, and predictions back."""

    mean: Float  # (t,), or () for targets of shape (n,)
    std: Float  # of the same shape, 1 for a constant target

    @classmethod
    def fit(cls, y: ArrayLike, sample_weight: ArrayLike | None = None) -> TargetScaler:
        """Fit to targets of shape (n,) or (n, t); rows of weight 0 do not count."""
        y = np.asarray(y)
        weight = None
        if sample_weight is not None:
            weight = np.asarray(sample_weight, dtype=np.float64)
            if not np.any(weight > 0):
                raise ValueError("sample_weight has no positive value. Give some rows weight.")
            y, weight = y[weight > 0], weight[weight > 0] / weight.max()
        fitted = column_statistics(y.reshape(len(y), -1), weight)
        return cls(*(part.reshape(y.shape[1:]) for part in (fitted.center, fitted.unit)))

    @property
    def is_identity_but_for_mean(self) -> bool:
        return bool((self.std == 1.0).all())

    def transform(self, y: ArrayLike) -> Float:
        return (np.asarray(y, dtype=np.float64) - self.mean) / self.std

    def inverse_mean(self, mean: ArrayLike) -> Float:
        """Location of a prediction, in the units of the targets."""
        return self.inverse_scale(mean) + beside(self.mean, floats(mean))

    def inverse_scale(self, scale: ArrayLike) -> Float:
        """Scale (a standard deviation, not a variance) in the units of the targets."""
        values = floats(scale)
        return values * beside(self.std, values)
