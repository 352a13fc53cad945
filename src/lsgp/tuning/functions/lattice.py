# SPDX-License-Identifier: BSD-3-Clause
"""Rows on a lattice: inputs of few levels, between which nothing is known.

Those of a factorial design or of a lookup table are. A row that is left out, or a fold of rows at
random, has others at each of its levels, and says nothing of what lies between these. Whole levels
do: all rows that have one value of one input are held out. Not the first and the last, from outside
of which predictions are extrapolated.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.tuning.functions.plan import (
    FEWEST_BENT_LEVELS,
    FEWEST_HELD_OUT_OF,
    FEWEST_LEVELS_HELD_OUT,
    FEWEST_OF_LEVEL,
    LEAST_COMPLETE,
    MOST_LEVELS_HELD_OUT,
    N_NOISELESS_ROWS,
    SHORTEST_OF_FEW_LEVELS,
)

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


class Lattice(NamedTuple):
    """The levels of inputs, of which each has several rows."""

    number: NDArray[np.intp]  # (n, d) of the level of each row
    n_levels: tuple[int, ...]  # of each input; 0: it has others than levels
    is_complete: bool  # whether most of what can be combined is there

    @classmethod
    def of(cls, X: Array) -> Lattice | None:
        """None if there is no level to hold out."""
        n, d = X.shape
        number, n_levels = np.zeros((n, d), dtype=np.intp), []
        for j in range(d):
            values, number[:, j] = np.unique(X[:, j], return_inverse=True)
            n_levels.append(len(values) if n >= FEWEST_OF_LEVEL * len(values) else 0)
        if max(n_levels, default=0) < 3:
            return None
        n_rows = len(np.unique(number, axis=0))
        n_combined = math.prod(n_levels)
        is_complete = 0 < LEAST_COMPLETE * n_combined <= n_rows
        return cls(number, tuple(n_levels), is_complete)

    @property
    def has_few_levels(self) -> bool:
        """Whether an input has so few that none of them can be held out."""
        return any(0 < k < FEWEST_HELD_OUT_OF for k in self.n_levels)

    @property
    def is_bendable(self) -> NDArray[np.bool_]:
        """Of each input, whether it has so many levels that a bend can be learnt."""
        n_levels = np.array(self.n_levels)
        return (n_levels == 0) | (n_levels >= FEWEST_BENT_LEVELS)

    def folds(self) -> list[Rows]:
        """The rows of levels that are held out, as many of each input as there may be.

        None of three levels, of which the other two would tell next to nothing.
        """
        inner = [
            (j, np.arange(1, k - 1)) for j, k in enumerate(self.n_levels) if k >= FEWEST_HELD_OUT_OF
        ]
        share = min(1.0, N_NOISELESS_ROWS / len(self.number)) ** 2
        wanted = max(FEWEST_LEVELS_HELD_OUT, round(share * MOST_LEVELS_HELD_OUT))
        most = max(1, wanted // max(1, len(inner)))
        found = []
        for j, levels in inner:
            n = min(most, len(levels))
            at = (len(levels) * (np.arange(n) + 0.5) / n).astype(int)
            found += [np.flatnonzero(self.number[:, j] == level) for level in levels[at]]
        return found

    def shortest(self, X: Array) -> Array:
        """Of each input of transformed rows (n, d), the shortest lengthscale; 0: any.

        That is the median distance of levels next to each other, and more of few.
        """
        found = np.zeros(X.shape[1])
        for j, k in enumerate(self.n_levels):
            if k > 1:
                spacing = np.median(np.diff(np.unique(X[:, j])))
                found[j] = spacing * max(1.0, SHORTEST_OF_FEW_LEVELS / (k - 1))
        return found
