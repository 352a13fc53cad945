# SPDX-License-Identifier: BSD-3-Clause
"""Products of matrices that do not depend on how the rows are cut: as fast as BLAS, to the bit.

BLAS adds in an order that depends on the shapes, so that the product of one row differs, in its
last bits, from that row of the product of many. Here factors are cut into slices of few bits: sums
of their products are whole numbers below 2⁵³, which any order adds without rounding.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Slices of each factor; pairs of them whose product counts are those of the first few orders.
N_SLICES = 3
#: Bits of a slice where rows are added up, and rows at a time: 18 + 18 + 16 bits are exact. Sums
#: of 2²⁷ rows fit 64 bits if all values are as large as may be, and of more if few are.
SUM_BITS, BLOCK_ROWS = 18, 1 << 16


def power_above(value: float) -> float:
    """The smallest power of two that is no less than a value; 1 of zero.

    Examples
    --------
    >>> from lsgp.inputs.transforms.exact_products import power_above
    >>> power_above(5.0), power_above(0.25), power_above(0.0)
    (8.0, 0.25, 1.0)
    """
    if not value > 0.0:
        return 1.0
    mantissa, exponent = math.frexp(value)
    return math.ldexp(1.0, exponent - (mantissa == 0.5))


def _slices(values: Float, unit: float | Float, bits: int) -> list[Float]:
    """Whole numbers of so many bits, the first of which count most, of values within ± unit."""
    rest = values / unit
    found = []
    for _ in range(N_SLICES):
        rest *= float(1 << bits)
        whole = np.rint(rest)
        rest -= whole
        found.append(whole)
    return found


def _by_order(A: list[Float], B: list[Float]) -> list[Float]:
    """Sums of the products of slices whose numbers add up to the same."""
    return [
        sum((A[i] @ B[order - i] for i in range(order + 1)), np.zeros(())) for order in range(3)
    ]


def product_sums(A: Float, B: Float, unit_a: float, unit_b: float) -> Whole:
    """Exact Aᵀ B of rows (n, p) and (n, t) within these units, as (3, p, t); can be added.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.transforms.exact_products import product_sums, rounded_products
    >>> A = np.random.default_rng(0).uniform(-1, 1, size=(1000, 3))
    >>> parts = product_sums(A[:7], A[:7], 1.0, 1.0) + product_sums(A[7:], A[7:], 1.0, 1.0)
    >>> whole = product_sums(A, A, 1.0, 1.0)
    >>> bool((rounded_products(whole, 1.0) == rounded_products(parts, 1.0)).all())
    True
    """
    sums = np.zeros((3, A.shape[1], B.shape[1]), np.int64)
    for start in range(0, len(A), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        own, other = _slices(A[block], unit_a, SUM_BITS), _slices(B[block], unit_b, SUM_BITS)
        sums += np.array(_by_order([each.T for each in own], other)).astype(np.int64)
    return sums


def rounded_products(sums: Whole, unit: float) -> Float:
    """The sums (3, p, t) as numbers (p, t); ``unit`` is the product of both units."""
    whole = sums.astype(object)
    total = (whole[0] << (2 * SUM_BITS)) + (whole[1] << SUM_BITS) + whole[2]
    scale = 1 << (4 * SUM_BITS)
    return unit * np.array([[value / scale for value in row] for row in total]).reshape(
        sums.shape[1:]
    )


def row_products(A: Float, B: Float, unit_a: float) -> Float:
    """A @ B of rows (n, p) within ± the unit: each row as if it were alone.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.transforms.exact_products import row_products
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.uniform(-1, 1, size=(9, 5)), rng.normal(size=(5, 2))
    >>> bool((row_products(A, B, 1.0)[3:4] == row_products(A[3:4], B, 1.0)).all())
    True
    >>> float(abs(row_products(A, B, 1.0) - A @ B).max()) < 1e-15
    True
    """
    bits = (52 - len(B).bit_length()) // 2
    # Of each column for itself: which others there are changes nothing.
    unit_b = np.array([power_above(value) for value in np.abs(B).max(axis=0, initial=0.0)])
    slices = _slices(B, unit_b, bits)
    found = np.empty((len(A), B.shape[1]))
    step = float(1 << bits)
    for start in range(0, len(A), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        first, second, third = _by_order(_slices(A[block], unit_a, bits), slices)
        found[block] = first + (second + third / step) / step
    result: Float = found * (unit_a * unit_b / step**2)
    return result
