# SPDX-License-Identifier: BSD-3-Clause
"""Mean, standard deviation and range of columns, in blocks, for values of any size.

Nothing is squared in its own units: data of 1e150 or 1e-150 are as good as any. Sums are exact, so
that statistics of rows in parts, on other machines, are those of all rows to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.transforms.exact_sums import (
    BLOCK_VALUES,
    Whole,
    exact_sums,
    rounded,
    sums_of_shares,
)

Float = NDArray[np.float64]


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


class Range(NamedTuple):
    """Smallest and largest values of the columns of some rows, and of their weights."""

    low: Float  # (d,)
    high: Float  # (d,)
    largest_weight: float = 1.0

    @classmethod
    def of(cls, X: NDArray[Any], weight: Float | None = None) -> Range:
        blocks = list(_blocks(X))
        return cls(
            np.min([X[block].min(axis=0) for block in blocks], axis=0).astype(np.float64),
            np.max([X[block].max(axis=0) for block in blocks], axis=0).astype(np.float64),
            1.0 if weight is None else float(weight.max()),
        )

    def join(self, other: Range) -> Range:
        """Of the rows of both."""
        return Range(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            max(self.largest_weight, other.largest_weight),
        )

    def in_units(self, X: NDArray[Any]) -> Float:
        """From the middle of the range and in units of half of it: values within [-1, 1].

        So neither a large offset nor extreme units cost digits.
        """
        middle, half = 0.5 * self.low + 0.5 * self.high, 0.5 * self.high - 0.5 * self.low
        found: Float = (X - middle) / np.where(half == 0.0, 1.0, half)
        return found


def column_statistics(X: NDArray[Any], weight: Float | None = None) -> ColumnStatistics:
    """Mean, standard deviation and range of the columns of (n, d), in blocks of rows."""
    extent = Range.of(X, weight)
    total = total_weight(len(X), weight, extent)
    mean = rounded(first_moments(X, weight, extent)) / rounded(total)
    second = rounded(second_moments(X, weight, extent, mean)) / rounded(total)
    return statistics_of(extent, mean, second)


# -- its steps, each of which can be taken for rows in parts and added up -----------------------


def total_weight(n: int, weight: Float | None, extent: Range) -> Whole:
    """The sum of the weights in units of the largest, (2, 1); the number of rows without."""
    if weight is None:
        return exact_sums(np.ones((1, 1))) * n
    return sums_of_shares(weight, extent.largest_weight)


def first_moments(X: NDArray[Any], weight: Float | None, extent: Range) -> Whole:
    """Sums of the values in the units of their range, (2, d)."""
    sums = np.zeros((2, X.shape[1]), np.int64)
    for block in _blocks(X):
        u = extent.in_units(X[block])
        sums += exact_sums(_weighted(u, weight, block, extent))
    return sums


def second_moments(X: NDArray[Any], weight: Float | None, extent: Range, mean: Float) -> Whole:
    """Sums of their squared differences from the mean in these units, (2, d)."""
    sums = np.zeros((2, X.shape[1]), np.int64)
    for block in _blocks(X):
        u = extent.in_units(X[block]) - mean
        u *= u
        sums += exact_sums(_weighted(u, weight, block, extent))
    return sums


def statistics_of(extent: Range, mean: Float, second: Float) -> ColumnStatistics:
    """From the mean and the mean square in the units of the range, (d,) each."""
    low, high = extent.low, extent.high
    middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    scale = half * np.sqrt(second)
    center = np.where(half == 0.0, low, middle + half * mean)
    return ColumnStatistics(center, np.where(scale > 0, scale, np.inf), low, high)


def _blocks(X: NDArray[Any]) -> Iterator[slice]:
    n_rows = max(1, BLOCK_VALUES // max(1, X.shape[1]))
    return (slice(start, start + n_rows) for start in range(0, len(X), n_rows))


def _weighted(u: Float, weight: Float | None, block: slice, extent: Range) -> Float:
    return u if weight is None else u * (weight[block] / extent.largest_weight)[:, None]
