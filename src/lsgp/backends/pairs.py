# SPDX-License-Identifier: BSD-3-Clause
"""All pairs of rows, by the native core: covariances of exact GPs, and sums over their adjoints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp import _core
from lsgp.backends.dense import AdjointSums
from lsgp.method.contract import LocalModel
from lsgp.method.kernels import KERNELS

Array = NDArray[np.float64]

_KERNEL_CODES = {name: code for code, name in enumerate(KERNELS)}


def correlate_pairs(z: Array, model: LocalModel) -> tuple[Array, Array]:
    """[E1] of rows z (n, d), with the trend in it unless that is large, and derivatives by r².

    Lower triangles (n, n): above the diagonals is anything.
    """
    n = len(z)
    A, by_r2 = np.empty((n, n)), np.empty((n, n))
    trend = (0.0, 0.0)
    if not model.has_large_trend:
        trend = float(model.constant_variance), float(model.slope_variance)
    _core.core.correlate_pairs(_KERNEL_CODES[model.kernel], z, *trend, A, by_r2)
    return A, by_r2


def sum_pairs(
    inverse: Array, by_r2: Array, left: Array, right: Array, z: Array, has_trend: bool
) -> AdjointSums:
    """Of G = ½ (inverse - left rightᵀ), whose lower triangle is that of the inverse."""
    n, d = z.shape
    diagonal, pairs, pairs_by_z = np.empty(n), np.zeros(n), np.zeros((n, d))
    by_z = np.zeros((0 if has_trend else n, d))
    thin = (np.ascontiguousarray(side) for side in (left, right))
    total = _core.core.sum_pairs(inverse, by_r2, *thin, z, diagonal, by_z, pairs, pairs_by_z)
    return AdjointSums(diagonal, total, by_z, pairs, pairs_by_z)
