# SPDX-License-Identifier: BSD-3-Clause
"""A common scale for inputs that are coordinates of one place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

#: A place on a surface has two coordinates: a projection takes two inputs, and its outputs, however
#: many, vary in two directions.
N_PROJECTED = 2


def scale_together(scale: Float, is_linked: NDArray[np.bool_]) -> Float:
    """Replace the standard deviations (e,) of linked columns by a common one.

    The common one is that of each of two directions with the same total variance. It is infinite,
    as for a constant column, where all linked columns are constant.
    """
    if not is_linked.any():
        return scale
    deviations = np.where(np.isinf(scale), 0.0, scale)[is_linked]
    largest = float(deviations.max())
    common = np.inf
    if largest > 0:
        # Relative to the largest, so that no square overflows or underflows.
        common = largest * float(np.sqrt(((deviations / largest) ** 2).sum() / N_PROJECTED))
    return np.where(is_linked, common, scale)
