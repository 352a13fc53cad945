# SPDX-License-Identifier: BSD-3-Clause
"""From the units of an index to the metric of a search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.search.arrays import require_scale


def factor_between(
    unit: NDArray[np.float64], lengthscale: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """What differences in units are multiplied by, (d,); None if that is 1 for every input."""
    require_scale("lengthscale", lengthscale, len(unit))
    with np.errstate(over="ignore", under="ignore"):
        factor = unit / lengthscale
    if not (np.all(np.isfinite(factor)) and np.all(factor > 0)):
        raise ValueError(
            f"lengthscale={lengthscale} is too far from unit={unit} of the index: their ratio is "
            "not a finite, positive number. Check the scale of the inputs."
        )
    return None if np.all(factor == 1.0) else factor
