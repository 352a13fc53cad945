# SPDX-License-Identifier: BSD-3-Clause
"""Rows on a lattice: inputs of few values, of which most combinations occur."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int32]

#: An input has levels if it has at least this many rows for each of its values.
ROWS_PER_LEVEL = 3
#: Share of all combinations of levels that a complete lattice has at least.
LEAST_COMPLETE = 0.5
#: Levels of an input at least where one is held out: without one of three, two are left.
FEWEST_LEVELS = 3
#: Lengthscales of functions without noise are no shorter than this many spacings of levels, over
#: one less than the number of levels, and than one spacing.
SPACINGS_OF_FEW_LEVELS = 6.0


def inner_levels(X: Array) -> list[Rows]:
    """The number (n,) of each row's level, for each input of a complete lattice.

    Rows of the first and the last level have -1, and inputs without others are left out. Empty if
    the rows are not on a lattice.
    """
    n, d = X.shape
    number, n_levels = np.zeros((n, d), dtype=np.int32), []
    for j in range(d):
        values, number[:, j] = np.unique(X[:, j], return_inverse=True)
        if ROWS_PER_LEVEL * len(values) > n:
            return []
        n_levels.append(len(values))
    if len(np.unique(number, axis=0)) < LEAST_COMPLETE * math.prod(n_levels):
        return []
    blocks = []
    for j, count in enumerate(n_levels):
        if count >= FEWEST_LEVELS:
            is_inner = (number[:, j] > 0) & (number[:, j] < count - 1)
            blocks.append(np.where(is_inner, number[:, j], -1).astype(np.int32))
    return blocks


def shortest_on_levels(X: Array) -> Array:
    """The shortest lengthscale (d,) of a function that rows can show; 0 for inputs without levels.

    Where an input has few values, all shorter ones are equally likely, and disagree between the
    values.
    """
    shortest = np.zeros(X.shape[1])
    for j, column in enumerate(X.T):
        values = np.unique(column)
        if 1 < len(values) <= len(column) / ROWS_PER_LEVEL:
            spacing = float(np.median(np.diff(values)))
            shortest[j] = spacing * max(1.0, SPACINGS_OF_FEW_LEVELS / (len(values) - 1))
    return shortest
