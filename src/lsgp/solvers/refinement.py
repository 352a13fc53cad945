# SPDX-License-Identifier: BSD-3-Clause
"""Solutions of systems of all rows whose noise is tiny, with the digits that these need.

A factor's inverse has rounding errors of its largest elements, which are as large as one over the
noise's standard deviation. Of a solution they leave the smooth part wrong, which the correlations
multiply by up to the number of rows: all predictions are off by nearly the same, at the rows as
elsewhere. Leave-one-out does not see it, as it has the solution but not its products. What is left
of the targets at the rows tells, and is solved for again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.dense import InverseFactor

Array = NDArray[np.float64]

#: Where the least noise of a row is below this, relative to the signal's, solutions are refined.
#: Rows of Friedman 3, 2,000 of them with bent inputs, are missed without by 6e-6 of the noise's
#: standard deviation with a variance of 1e-7, by 2e-4 with 1e-8, by .05 with 1e-10 and by 13 with
#: 1e-12; with refinement by 4e-5 and .009 in the last two. Tuned noise has its floor above, but of
#: functions without noise: so other exact GPs are as they were.
REFINED_BELOW = 1e-7
#: Steps at most, each of which must leave less than this share of what there was in one of the
#: columns, or it is the last: the first leaves a hundredth or less, and the second what rounding of
#: the correlations leaves.
MOST_REFINEMENTS, WORTHWHILE = 3, 0.5


def solve_refined(
    factor: InverseFactor, z: Array, diagonal: Array, columns: Array
) -> tuple[Array, Array]:
    """C times columns (n, c), of rows z (n, d) and what is on their diagonal (n,).

    And what rounding leaves of the columns, which is taken for nothing where noise is not tiny.
    """
    solved = factor.solve(columns)
    if diagonal.min(initial=np.inf) >= REFINED_BELOW or not np.isfinite(solved).all():
        return solved, np.zeros_like(columns)

    def left_by(solution: Array) -> Array:
        return columns - factor.products(z, solution, True)[1] - diagonal[:, None] * solution

    rest = left_by(solved)
    for _ in range(MOST_REFINEMENTS):
        further = solved + factor.solve(rest)
        left = left_by(further)
        before, after = np.linalg.norm(rest, axis=0), np.linalg.norm(left, axis=0)
        is_better = after < before  # also no NaN
        solved, rest = np.where(is_better, further, solved), np.where(is_better, left, rest)
        if not (after < WORTHWHILE * before).any():
            break
    return solved, rest
