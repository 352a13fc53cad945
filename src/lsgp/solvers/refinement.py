# SPDX-License-Identifier: BSD-3-Clause
"""Iterative refinement of the solutions of exact GPs whose noise is tiny.

The inverse of the factor has rounding errors relative to its largest elements, which are of the
order of one over the noise's standard deviation. They affect the smooth part of a solution, which
the correlations multiply by up to the number of rows, so that all predictions are off by nearly the
same amount. Leave-one-out predictions do not show this, because they use the solution without such
products. The residuals of the targets at the rows do, and are solved for again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import InverseFactor

Array = NDArray[np.float64]

#: Solutions are refined if the least noise variance of a row, relative to the signal variance, is
#: below this. With more noise, the errors are negligible relative to its standard deviation.
REFINED_BELOW = 1e-7
#: Largest number of refinements. Each must reduce the residual norm of some column to less than
#: WORTHWHILE of it, or it is the last.
MOST_REFINEMENTS, WORTHWHILE = 3, 0.5


def solve_refined(
    factor: InverseFactor, z: Array, diagonal: Array, columns: Array
) -> tuple[Array, Array]:
    """Solve for columns (n, c) with the factor of rows z (n, d) and their diagonal (n,).

    Returns C times the columns, and the residuals due to rounding, which are 0 without refinement.
    """
    solved = factor.solve(columns)
    if diagonal.min(initial=np.inf) >= REFINED_BELOW or not np.isfinite(solved).all():
        return solved, np.zeros_like(columns)

    def residual(solution: Array) -> Array:
        return columns - factor.products(z, solution, True)[1] - diagonal[:, None] * solution

    rest = residual(solved)
    for _ in range(MOST_REFINEMENTS):
        further = solved + factor.solve(rest)
        left = residual(further)
        before, after = np.linalg.norm(rest, axis=0), np.linalg.norm(left, axis=0)
        is_better = after < before  # false for NaN
        solved, rest = np.where(is_better, further, solved), np.where(is_better, left, rest)
        if not (after < WORTHWHILE * before).any():
            break
    return solved, rest
