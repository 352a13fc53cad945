# SPDX-License-Identifier: BSD-3-Clause
"""One scale for inputs that are coordinates of one place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

#: Inputs that a projection is of, and directions in which its outputs vary: a surface has two.
N_PROJECTED = 2


def scale_together(scale: Float, is_linked: NDArray[np.bool_]) -> Float:
    """Standard deviations (e,), of linked columns one for all: that of two directions.

    Infinite, as of constant columns, where all of them are constant.
    """
    if not is_linked.any():
        return scale
    deviations = np.where(np.isinf(scale), 0.0, scale)[is_linked]
    largest = float(deviations.max())
    common = np.inf
    if largest > 0:
        # Nothing is squared in its own units.
        common = largest * float(np.sqrt(((deviations / largest) ** 2).sum() / N_PROJECTED))
    return np.where(is_linked, common, scale)
