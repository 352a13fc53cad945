# SPDX-License-Identifier: BSD-3-Clause
"""All pairs of rows, by the native core: covariances of exact GPs, and sums over their adjoints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp import _core
from lsgp.backends.dense import AdjointSums, ProductSums
from lsgp.method.contract import LocalModel
from lsgp.method.kernels import KERNELS, ProductKernel

Array = NDArray[np.float64]

_KERNEL_CODES = {name: code for code, name in enumerate(KERNELS)}


def correlate_pairs(z: Array, model: LocalModel) -> tuple[Array, Array]:
    """[E1] of rows z (n, d), with the trend in it unless that is large, and derivatives by r².

    Lower triangles (n, n): above the diagonals is anything.
    """
    n = len(z)
    A, by_r2 = np.empty((n, n)), np.empty((n, n))
    _core.core.correlate_pairs(_KERNEL_CODES[model.kernel_name], z, *_trend_in(model), A, by_r2)
    return A, by_r2


def _trend_in(model: LocalModel) -> tuple[float, float]:
    """The variances of the constant and of the slope that belong in the matrix."""
    if model.has_large_trend:
        return 0.0, 0.0
    return float(model.constant_variance), float(model.slope_variance)


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


def correlate_products(z: Array, model: LocalModel, kernel: ProductKernel) -> Array:
    """As `correlate_pairs`, of a product; its derivatives are those of each input."""
    A, constants = np.empty((len(z), len(z))), np.array(kernel.constants, dtype=float)
    code = _KERNEL_CODES[kernel.name]
    _core.core.correlate_products(code, z, constants, *_trend_in(model), A)
    return A


def sum_products(
    inverse: Array, left: Array, right: Array, z: Array, kernel: ProductKernel, has_trend: bool
) -> ProductSums:
    """As `sum_pairs`, of a product."""
    n, d = z.shape
    diagonal, by_logarithms, by_rows = np.empty(n), np.zeros(2 * d), np.zeros((n, d))
    by_z = np.zeros((0 if has_trend else n, d))
    thin = (np.ascontiguousarray(side) for side in (left, right))
    code, constants = _KERNEL_CODES[kernel.name], np.array(kernel.constants, dtype=float)
    own = diagonal, by_z, by_logarithms, by_rows
    total = _core.core.sum_products(code, inverse, *thin, z, constants, *own)
    return ProductSums(diagonal, total, by_z, by_logarithms, by_rows)
