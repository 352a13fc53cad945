# SPDX-License-Identifier: BSD-3-Clause
"""Mean, standard deviation and range of columns, in blocks, for values of any size.

Nothing is squared in its own units: data of 1e150 or 1e-150 are as good as any.
"""

from __future__ import annotations

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
    center: Float  # (d,)
    scale: Float  # (d,) standard deviation, infinite if constant
    low: Float  # (d,)
    high: Float  # (d,)


def column_statistics(X: NDArray[Any], weight: Float | None = None) -> ColumnStatistics:
    """Mean, standard deviation and range of the columns of (n, d), in blocks of rows."""
    n_rows = max(1, BLOCK_VALUES // max(1, X.shape[1]))
    blocks = [slice(start, start + n_rows) for start in range(0, len(X), n_rows)]
    low = np.min([X[block].min(axis=0) for block in blocks], axis=0).astype(np.float64)
    high = np.max([X[block].max(axis=0) for block in blocks], axis=0).astype(np.float64)
    # From the middle of the range and in units of half of it: values within [-1, 1], so that
    # neither a large offset nor extreme units cost digits.
    middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    is_constant = half == 0.0
    unit = np.where(is_constant, 1.0, half)
    total = float(len(X) if weight is None else weight.sum())
    first, second = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for block in blocks:
        u = (X[block] - middle) / unit
        first += u.sum(axis=0) if weight is None else weight[block] @ u
    mean = first / total
    for block in blocks:
        u = (X[block] - middle) / unit - mean
        u *= u
        second += u.sum(axis=0) if weight is None else weight[block] @ u
    scale = half * np.sqrt(second / total)
    center = np.where(is_constant, low, middle + half * mean)
    return ColumnStatistics(center, np.where(scale > 0, scale, np.inf), low, high)
