# SPDX-License-Identifier: BSD-3-Clause
"""Folds of rows, each of which is predicted by fits that have not seen it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def folds_of(n: int, groups: NDArray[np.integer] | None, n_folds: int) -> NDArray[np.int64]:
    """A fold for each row (n,), the same for all of a group, and the same every time."""
    units = np.arange(n)
    if groups is not None:
        # Rows of no group are groups of one, behind the others.
        n_groups = int(np.max(groups)) + 1
        units = np.where(groups < 0, n_groups + units, groups)
    n_units = int(units.max()) + 1
    return np.random.default_rng(0).permutation(n_units)[units] % n_folds
