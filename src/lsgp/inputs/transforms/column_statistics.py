# SPDX-License-Identifier: BSD-3-Clause
"""Mean, standard deviation and range of columns, for values of any size.

They are computed in blocks of rows, and joined; parts of the rows on other machines are joined in
the same way. Nothing is squared in its own units: data of 1e150 or 1e-150 are as good as any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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

    @classmethod
    def joined(cls, parts: Sequence[ColumnStatistics]) -> ColumnStatistics:
        """The statistics of all rows, from those of their parts."""
        if len(parts) == 1:
            return parts[0]
        centers, stds, lows, highs, weights = (np.array(own) for own in zip(*parts, strict=True))
        low, high, weight = lows.min(axis=0), highs.max(axis=0), weights.sum(axis=0)
        share = weights / np.where(weight > 0, weight, 1.0)
        middle, half = _units(low, high)
        u = np.where(weights > 0, (centers - middle) / half, 0.0)
        mean = (share * u).sum(axis=0)
        square = (share * ((stds / half) ** 2 + (u - mean) ** 2)).sum(axis=0)
        return cls(*_in_own_units(mean, square, low, high), low, high, weight)

    def join(self, other: ColumnStatistics) -> ColumnStatistics:
        """The statistics of the rows of both."""
        return self.joined([self, other])


def column_statistics(X: NDArray[Any], weight: Float | None = None) -> ColumnStatistics:
    """The statistics of the columns of (n, d), where rows may have weights (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.transforms import column_statistics
    >>> found = column_statistics(np.array([[1e150], [3e150], [np.nan]]))
    >>> found.center, found.std
    (array([2.e+150]), array([1.e+150]))
    """
    n_rows = max(1, BLOCK_VALUES // max(1, X.shape[1]))
    blocks = (slice(start, start + n_rows) for start in range(0, max(1, len(X)), n_rows))
    return ColumnStatistics.joined(
        [_of_block(X[own], None if weight is None else weight[own]) for own in blocks]
    )


def _of_block(X: NDArray[Any], weight: Float | None) -> ColumnStatistics:
    X = X.astype(np.float64)
    hole = np.isnan(X)
    low = np.where(hole, np.inf, X).min(axis=0, initial=np.inf)
    high = np.where(hole, -np.inf, X).max(axis=0, initial=-np.inf)
    weights = np.where(hole, 0.0, 1.0 if weight is None else weight[:, None])
    total = weights.sum(axis=0)
    share = weights / np.where(total > 0, total, 1.0)
    middle, half = _units(low, high)
    u = np.where(hole, middle, X)
    u -= middle
    u /= half
    mean = (share * u).sum(axis=0)
    square = (share * (u - mean) ** 2).sum(axis=0)
    return ColumnStatistics(*_in_own_units(mean, square, low, high), low, high, total)


def _units(low: Float, high: Float) -> tuple[Float, Float]:
    """The middle of the range, and half of it, or 1: in these units values are within [-1, 1]."""
    is_known = low <= high
    low, high = np.where(is_known, low, 0.0), np.where(is_known, high, 0.0)
    half = 0.5 * high - 0.5 * low
    return 0.5 * low + 0.5 * high, np.where(half > 0, half, 1.0)


def _in_own_units(mean: Float, square: Float, low: Float, high: Float) -> tuple[Float, Float]:
    """Mean and standard deviation, from a mean and a mean square in units of the range."""
    middle, half = _units(low, high)
    # A constant is its own mean, without rounding.
    std = np.where(low < high, half * np.sqrt(square), 0.0)
    return np.where(low < high, middle + half * mean, middle), std
