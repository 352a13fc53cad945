# SPDX-License-Identifier: BSD-3-Clause
"""All pairs of rows, by the native core: covariances of exact GPs, and sums over their adjoints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp import _core
from lsgp.backends.dense import AdjointSums, through_distances
from lsgp.method.contract import LocalModel
from lsgp.method.kernels import KERNELS, SumKernel

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
    z: Array, by_r2: Array, inverse: Array, left: Array, right: Array, has_trend: bool
) -> AdjointSums:
    """Of G = ½ (inverse - left rightᵀ), whose lower triangle is that of the inverse."""
    n, d = z.shape
    diagonal, pairs, pairs_by_z = np.empty(n), np.zeros(n), np.zeros((n, d))
    by_z = np.zeros((0 if has_trend else n, d))
    thin = (np.ascontiguousarray(side) for side in (left, right))
    total = _core.core.sum_pairs(inverse, by_r2, *thin, z, diagonal, by_z, pairs, pairs_by_z)
    return AdjointSums(diagonal, total, by_z, *through_distances(z, pairs, pairs_by_z))


class SumParts(NamedTuple):
    """Of both correlations of a sum: lower triangles, as of `correlate_pairs`."""

    by_r2: tuple[Array, Array]
    difference: Array  # (n, n) the second less the first; zeros above the diagonal


def correlate_sums(z: Array, model: LocalModel, kernel: SumKernel) -> tuple[Array, SumParts]:
    """As `correlate_pairs`, of a sum; derivatives are those of both parts."""
    (constant, slope), s = _trend_in(model), kernel.share
    (one, by_one), (other, by_other) = (
        _correlate_bare(name, points)
        for name, points in zip(kernel.names, (z, z / np.array(kernel.ratios)), strict=True)
    )
    # Above the diagonals is whatever was in memory: infinities too.
    one = np.tril(one)
    difference = np.tril(other) - one
    one += s * difference
    if constant > 0 or slope > 0:
        one += slope * (z @ z.T) + constant
    return one, SumParts((by_one, by_other), difference)


def _correlate_bare(name: str, z: Array) -> tuple[Array, Array]:
    """Without a trend."""
    n = len(z)
    rho, by_r2 = np.empty((n, n)), np.empty((n, n))
    _core.core.correlate_pairs(_KERNEL_CODES[name], z, 0.0, 0.0, rho, by_r2)
    return rho, by_r2


def sum_of_two(
    z: Array,
    kernel: SumKernel,
    parts: SumParts,
    inverse: Array,
    left: Array,
    right: Array,
    has_trend: bool,
) -> AdjointSums:
    """As `sum_pairs`, of a sum."""
    s, ratios = kernel.share, np.array(kernel.ratios)
    scaled = z / ratios
    first = sum_pairs(z, parts.by_r2[0], inverse, left, right, has_trend)
    second = sum_pairs(scaled, parts.by_r2[1], inverse, left, right, True)
    by_lengthscale, by_ratio = first.by_logarithms, second.by_logarithms
    # Twice the lower triangle of G: the difference has nothing on the diagonal.
    lower = float((np.tril(inverse) * parts.difference).sum())
    by_share = lower - float((left * (parts.difference @ right)).sum())
    own = [[s * (1.0 - s) * by_share], s * by_ratio]
    by_logarithms = np.concatenate([(1.0 - s) * by_lengthscale + s * by_ratio, *own])
    by_rows = (1.0 - s) * first.by_rows + s * second.by_rows / ratios
    return first._replace(by_logarithms=by_logarithms, by_rows=by_rows)
