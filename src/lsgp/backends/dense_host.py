# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of all rows in the memory of this machine: factored and inverted by LAPACK.

For the evidence, the native core makes covariances of all pairs of rows, and sums over their
adjoints.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.spatial.distance import cdist

from lsgp import _core
from lsgp.backends.contract import AdjointSums, Array, Dense, Inverted
from lsgp.backends.contract import Matrix as Matrix
from lsgp.backends.dense_single import factor_in_single
from lsgp.backends.local_system import SMALLEST_PIVOT
from lsgp.compute import blas
from lsgp.method import contract
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.kernels import KERNELS, SumKernel

#: Rows of the covariance that the host computes at a time: they stay in the cache.
ROWS_AT_A_TIME = 32
#: Queries are solved in tiles of this size, the last one padded, so that a prediction does not
#: depend on how many others are made with it.
TILE = 64
#: Queries at a time that the system of all rows is asked for.
BLOCK = 256
#: Parts of the inverse factor, each multiplied without most of the zeros above the diagonal.
_N_PARTS = 8
#: Matrices of all rows that the evidence and its gradient take at a time.
N_MATRICES = 8
#: Far below the rounding of a correlation of 1.
_TINY = 1e-20
#: Products of factors' elements above this are no denormal numbers.
_TINIER = 1e-150

_KERNEL_CODES = {name: code for code, name in enumerate(KERNELS)}
#: Weights of rows (q, n, t) to the sums (q, t, d) of derivatives of their correlations with
#: scaled queries, in these.
Slopes = Callable[[Matrix], Matrix]


def matrix_bytes(n: int) -> int:
    """Memory of the inverse factor of n rows, and of what it takes to make it."""
    return 8 * n * (n + 4 * ROWS_AT_A_TIME)


def are_finite(z: Matrix) -> NDArray[np.bool_]:
    """Whether squared distances of points are, (q,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.isfinite((z * z).sum(axis=1))


def correlate(model: LocalModel, left: Matrix, right: Matrix) -> Matrix:
    kernel = model.correlation
    assert kernel.is_stationary, "an exact system is one of differences of scaled inputs"
    return _drop_below(_TINY, np.asarray(kernel.cross(left, left, right, right), dtype=float))


def correlate_with_slopes(model: LocalModel, z: Matrix, rows: Matrix) -> tuple[Matrix, Slopes]:
    """Correlations (q, n) of scaled queries and rows, and sums of their derivatives."""
    kernel = model.correlation
    if isinstance(kernel, SumKernel):

        def sum_of_composite(weights: Matrix) -> Matrix:
            return np.asarray(kernel.sum_slopes(z, rows, weights), dtype=float)

        return correlate(model, z, rows), sum_of_composite
    formula = kernel.formula
    assert formula is not None, "an exact system is one of differences of scaled inputs"
    found = formula(cdist(z, rows, "sqeuclidean"))
    rho, by_r2 = (_drop_below(_TINY, np.asarray(part, dtype=float)) for part in found)

    def sum_slopes(weights: Matrix) -> Matrix:
        weighted = (weights * by_r2[:, :, None]).transpose(0, 2, 1)
        offsets = weighted @ rows - weighted.sum(axis=2)[:, :, None] * z[:, None, :]
        return np.asarray(-2.0 * offsets)

    return rho, sum_slopes


def _drop_below(least: float, values: Matrix) -> Matrix:
    """Zeros, in place, for what is smaller, of which products would be denormal numbers.

    Many processors take a hundred times as long for these.
    """
    values[np.abs(values) < least] = 0.0
    return values


def _clean(matrix: Matrix) -> Matrix:
    for start in range(0, len(matrix), ROWS_AT_A_TIME):
        _drop_below(_TINIER, matrix[start : start + ROWS_AT_A_TIME])
    return matrix


def invert_positive(matrix: Matrix) -> Matrix | None:
    """Inverse Cholesky factor, in place of the lower triangle; None if there is no such factor."""
    matrix = np.ascontiguousarray(matrix)
    if not blas.factor(matrix) or (np.diag(matrix) ** 2 <= SMALLEST_PIVOT).any():
        return None
    for i in range(len(matrix)):  # LAPACK has left there what was there
        matrix[i, i + 1 :] = 0.0
    blas.invert_factor(_clean(matrix))
    return _clean(matrix)


@dataclass(frozen=True)
class HostFactor:
    """As `InverseFactor`."""

    model: LocalModel
    z: Matrix  # (n, d)
    values: Matrix  # (n, n), lower triangular

    def half(self, columns: Matrix) -> Matrix:
        return np.asarray(self.values @ columns)

    def solve(self, columns: Matrix) -> Matrix:
        return np.asarray(self.values.T @ (self.values @ columns))

    def columns(self, rows: NDArray[np.integer]) -> Matrix:
        return self.values[:, rows]

    def inverse_columns(self, rows: NDArray[np.integer]) -> Matrix:
        return np.asarray(self.values.T @ self.values[:, rows])

    def diagonal(self, rows: NDArray[np.integer]) -> Matrix:
        return self._diagonal[rows]

    @cached_property
    def _diagonal(self) -> Matrix:
        return np.asarray(np.einsum("ij,ij->j", self.values, self.values))

    def correlate(self, z: Matrix) -> Matrix:
        return correlate(self.model, z, self.z)

    def products(self, z: Matrix, right: Matrix, mean_only: bool) -> tuple[Matrix, Matrix]:
        n, q = len(self.z), len(z)
        squares, products = np.empty(q), np.empty((q, right.shape[1]))
        edges = [] if mean_only else np.linspace(0, n, min(_N_PARTS, n) + 1).astype(int).tolist()
        for start in range(0, q, TILE):
            tile = np.zeros((TILE, z.shape[1]))
            size = min(TILE, q - start)
            tile[:size] = z[start : start + size]
            k = correlate(self.model, tile, self.z)
            total = np.zeros(TILE)
            for low, high in pairwise(edges):
                part = self.values[low:high, :high] @ k[:, :high].T
                total += np.einsum("ij,ij->j", part, part)
            squares[start : start + size] = total[:size]
            products[start : start + size] = (k @ right)[:size]
        return squares, products

    def extended(self, z: Matrix, noise: Matrix) -> HostFactor | None:
        """By bordering."""
        before, n = len(self.z), len(self.z) + len(z)
        solved = self.values @ correlate(self.model, z, self.z).T
        rest = correlate(self.model, z, z) - solved.T @ solved
        rest[np.diag_indices(len(rest))] += self.model.noise_variance * noise
        inverse = invert_positive(rest)
        if inverse is None:
            return None
        values, new = np.zeros((n, n)), slice(before, n)
        values[:before, :before] = self.values
        values[new, :before] = _clean(-inverse @ (solved.T @ self.values))
        values[new, new] = inverse
        return HostFactor(self.model, np.concatenate([self.z, z]), values)

    def to_host(self) -> Matrix:
        return self.values


@dataclass(frozen=True)
class HostCovariance:
    """As `Covariance`."""

    factor: Matrix  # (n, n) in the lower triangle; above it is anything
    #: Of the inverse less a product (left, right), and whether the trend is in the product.
    sum_up: Callable[[Matrix, Matrix, Matrix, bool], AdjointSums]

    @property
    def half_log_determinant(self) -> float:
        return float(np.log(np.diag(self.factor)).sum())

    def solve(self, columns: Array) -> Matrix:
        return np.asarray(cho_solve((self.factor, True), columns, check_finite=False))

    def adjoint_sums(
        self, alpha: Matrix, unit: float, trend: tuple[Matrix, Matrix] | None
    ) -> AdjointSums:
        """The inverse takes the place of the factor."""
        blas.invert_from_factor(self.factor)
        left = right = alpha / math.sqrt(unit)
        if trend is not None:
            left, right = (np.column_stack([left, own]) for own in trend)
        return self.sum_up(self.factor, left, right, trend is not None)


class HostDense:
    """As `Dense`."""

    is_fast = False
    block_size = BLOCK

    def room(self, memory_budget: int, n: int) -> int:
        return memory_budget

    def host_bytes(self, n: int) -> int:
        return matrix_bytes(n)

    def evidence_bytes(self, n: int) -> int:
        return N_MATRICES * matrix_bytes(n)

    def alone(self) -> AbstractContextManager[object]:
        return nullcontext()

    def invert(self, z: Matrix, problem: LocalProblem, jitter: float = 0.0) -> Inverted:
        n, model = len(z), problem.model
        status = contract.STATUS_NOT_FINITE
        if are_finite(z).all():
            noise = model.noise_variance * problem.noise.astype(float)
            single = factor_in_single(model, z, noise) if model.is_single else None
            if single is not None:
                return Inverted(single, contract.STATUS_OK, 0.0)
            covariance = np.empty((n, n))
            for added in contract.jitters(jitter):
                for start in range(0, n, ROWS_AT_A_TIME):
                    rows = slice(start, min(start + ROWS_AT_A_TIME, n))
                    # The lower triangle alone: LAPACK reads no other.
                    covariance[rows, : rows.stop] = correlate(model, z[rows], z[: rows.stop])
                covariance[np.diag_indices(n)] = 1.0 + noise + added
                inverse = invert_positive(covariance)
                if inverse is not None:
                    status = contract.STATUS_JITTERED if added else contract.STATUS_OK
                    return Inverted(HostFactor(model, z, inverse), status, added)
            status = contract.STATUS_NOT_POSITIVE_DEFINITE
        return Inverted(HostFactor(model, z, np.full((n, n), np.nan)), status, 0.0)

    def covariance(self, z: Matrix, model: LocalModel, noise: Array) -> HostCovariance | None:
        z, kernel = np.ascontiguousarray(z), model.correlation
        c, b = float(model.constant_variance), float(model.slope_variance)
        trend = (0.0, 0.0) if model.has_large_trend else (c, b)
        sum_up: Callable[[Matrix, Matrix, Matrix, bool], AdjointSums]
        if isinstance(kernel, SumKernel):
            A, by_r2, difference = correlate_sums(z, kernel, *trend)
            sum_up = partial(sum_of_two, z, kernel, by_r2, difference)
        else:
            A, own_by_r2 = correlate_pairs(model.kernel_name, z, *trend)
            sum_up = partial(sum_pairs, z, own_by_r2)
        A[np.diag_indices(len(z))] += model.noise_variance * noise
        return HostCovariance(A, sum_up) if blas.factor(A) else None


#: The one that there is.
HOST = HostDense()


def dense_for(model: LocalModel, dense: Dense) -> Dense:
    """Where the matrices of a model are made: devices know correlations of the distance alone."""
    return dense if model.correlation.formula is not None else HOST


def correlate_pairs(
    kernel_name: str, z: Matrix, constant: float = 0.0, slope: float = 0.0
) -> tuple[Matrix, Matrix]:
    """[E1] of rows z (n, d) with a trend of these variances, and derivatives by r².

    Lower triangles (n, n): above the diagonals is anything.
    """
    n = len(z)
    A, by_r2 = np.empty((n, n)), np.empty((n, n))
    _core.core.correlate_pairs(_KERNEL_CODES[kernel_name], z, constant, slope, A, by_r2)
    return A, by_r2


def sum_pairs(
    z: Matrix, by_r2: Matrix, inverse: Matrix, left: Matrix, right: Matrix, has_trend: bool
) -> AdjointSums:
    """Of G = ½ (inverse - left rightᵀ), whose lower triangle is that of the inverse."""
    n, d = z.shape
    diagonal, pairs, pairs_by_z = np.empty(n), np.zeros(n), np.zeros((n, d))
    by_z = np.zeros((0 if has_trend else n, d))
    thin = (np.ascontiguousarray(side) for side in (left, right))
    total = _core.core.sum_pairs(inverse, by_r2, *thin, z, diagonal, by_z, pairs, pairs_by_z)
    return AdjointSums(diagonal, total, by_z, *through_distances(z, pairs, pairs_by_z))


def through_distances(z: Matrix, pairs: Matrix, pairs_by_z: Matrix) -> tuple[Matrix, Matrix]:
    """Products by r² (n,), and times z (n, d), as those in log lengthscales (d,) and z (n, d)."""
    by_lengthscale = -4.0 * (pairs @ (z * z) - np.einsum("ij,ij->j", z, pairs_by_z))
    return by_lengthscale, 4.0 * (pairs[:, None] * z - pairs_by_z)


def correlate_sums(
    z: Matrix, kernel: SumKernel, constant: float, slope: float
) -> tuple[Matrix, tuple[Matrix, Matrix], Matrix]:
    """As `correlate_pairs`, of a sum, with the derivatives of both parts.

    Third is the second part's correlation less the first's, with zeros above the diagonal.
    """
    names, scaled = kernel.names, z / np.array(kernel.ratios)
    one, by_one = correlate_pairs(names[0], z)
    other, by_other = correlate_pairs(names[1], scaled)
    # Above the diagonals is whatever was in memory: infinities too.
    one = np.tril(one)
    difference = np.tril(other) - one
    one += kernel.share * difference
    if constant > 0 or slope > 0:
        one += slope * (z @ z.T) + constant
    return one, (by_one, by_other), difference


def sum_of_two(
    z: Matrix,
    kernel: SumKernel,
    by_r2: tuple[Matrix, Matrix],
    difference: Matrix,
    inverse: Matrix,
    left: Matrix,
    right: Matrix,
    has_trend: bool,
) -> AdjointSums:
    """As `sum_pairs`, of a sum."""
    s, ratios = kernel.share, np.array(kernel.ratios)
    first = sum_pairs(z, by_r2[0], inverse, left, right, has_trend)
    second = sum_pairs(z / ratios, by_r2[1], inverse, left, right, True)
    by_lengthscale, by_ratio = first.by_logarithms, second.by_logarithms
    # Twice the lower triangle of G: the difference has nothing on the diagonal.
    lower = float((np.tril(inverse) * difference).sum())
    by_share = lower - float((left * (difference @ right)).sum())
    own = [[s * (1.0 - s) * by_share], s * by_ratio]
    by_logarithms = np.concatenate([(1.0 - s) * by_lengthscale + s * by_ratio, *own])
    by_rows = (1.0 - s) * first.by_rows + s * second.by_rows / ratios
    return first._replace(by_logarithms=by_logarithms, by_rows=by_rows)
