# SPDX-License-Identifier: BSD-3-Clause
"""Sums that do not depend on how the rows are cut, or on their order.

Rounded sums of parts, added up, are another number than the sum of the whole, in the last bit: and
then all that follows differs between one machine and many. Here values of about 1 are whole
multiples of 2⁻⁶², of which sums are exact; the total is rounded once, at the end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Values in two halves of so many bits each: sums of either are whole numbers below 2⁵³ for blocks
#: of 2¹⁹ values, which floating point adds without rounding, and below 2⁶³ for 2³⁰ rows.
BITS = 31
#: What values may be, at the most.
LARGEST = 4.0
#: Values worked on at a time, small enough for the cache.
BLOCK_VALUES = 1 << 16
#: Rows of levels that are added at a time.
BLOCK_ROWS = 1 << 18


def exact_sums(values: Float) -> Whole:
    """The sums of the columns of a block (k, d) of values within ±4, (2, d): high and low halves.

    Those of several blocks can be added.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.transforms.exact_sums import exact_sums, rounded
    >>> u = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    >>> whole, parts = exact_sums(u), exact_sums(u[::-1][:300]) + exact_sums(u[::-1][300:])
    >>> bool((rounded(whole) == rounded(parts)).all())
    True
    """
    scaled = values * float(1 << BITS)
    high = np.rint(scaled)
    scaled -= high
    scaled *= float(1 << BITS)
    low = np.rint(scaled, out=scaled)
    return np.array([high.sum(axis=0), low.sum(axis=0)]).astype(np.int64)


def rounded(sums: Whole) -> Float:
    """The sums (2, d) as numbers, (d,), rounded once."""
    unit = 1 << (2 * BITS)
    return np.array([((int(h) << BITS) + int(low)) / unit for h, low in sums.T])


def add_exactly(a: Whole, b: Whole) -> Whole:
    """The sum of sums, which may be of more rows than 64 bits can count: then of whole numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.transforms.exact_sums import add_exactly
    >>> most = np.array([2**62])
    >>> add_exactly(most, most).tolist() == [2**63]
    True
    """
    largest = max(int(np.abs(part).max(initial=0)) for part in (a, b))
    return a + b if largest < 1 << 62 else a.astype(object) + b.astype(object)


def level_sums(codes: NDArray[np.integer], values: Float, n_levels: int) -> Whole:
    """The exact sums of values (n, t) within ±4 of the rows of each level, (2, n_levels, t).

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.transforms.exact_sums import level_sums, rounded_levels
    >>> rounded_levels(level_sums(np.array([0, 1, 0]), np.array([[0.5], [0.25], [1.0]]), 2))
    array([[1.5 ],
           [0.25]])
    """
    t = values.shape[1]
    sums = np.zeros((2, n_levels, t), np.int64)
    for start in range(0, len(codes), BLOCK_ROWS):
        own = codes[start : start + BLOCK_ROWS]
        scaled = values[start : start + BLOCK_ROWS] * float(1 << BITS)
        high = np.rint(scaled)
        scaled -= high
        scaled *= float(1 << BITS)
        for half, part in enumerate((high, np.rint(scaled, out=scaled))):
            for k in range(t):
                added = np.bincount(own, np.ascontiguousarray(part[:, k]), n_levels)
                sums[half, :, k] += added.astype(np.int64)
    return sums


def rounded_levels(sums: Whole) -> Float:
    """The sums (2, n_levels, t) as numbers (n_levels, t)."""
    # Quickly: there may be millions of levels.
    high, low = sums[0] + (sums[1] >> BITS), sums[1] & ((1 << BITS) - 1)
    return np.asarray(high * 2.0**-BITS + low * 2.0 ** (-2 * BITS), dtype=np.float64)


def exact_mean(values: Float, largest: float) -> float:
    """The mean of values (n,) from 0 to the largest of them.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.transforms.exact_sums import exact_mean
    >>> exact_mean(np.array([1.0, 2.0, 6.0]), 6.0)
    3.0
    """
    total = rounded(sums_of_shares(values, largest))[0]
    return largest * (float(total) / len(values))


def sums_of_shares(values: Float, largest: float) -> Whole:
    """The exact sum of values (n,) in units of the largest, (2, 1)."""
    sums = np.zeros((2, 1), np.int64)
    for start in range(0, len(values), BLOCK_VALUES):
        sums += exact_sums((values[start : start + BLOCK_VALUES] / largest)[:, None])
    return sums
