# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of all rows in the memory of this machine: factored and inverted by LAPACK."""

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

from lsgp.backends.dense import (
    ROWS_AT_A_TIME,
    AdjointSums,
    Dense,
    Inverted,
    matrix_bytes,
)
from lsgp.backends.dense_single import factor_in_single
from lsgp.backends.local_system import SMALLEST_PIVOT
from lsgp.backends.pairs import (
    correlate_pairs,
    correlate_sums,
    sum_of_two,
    sum_pairs,
)
from lsgp.compute import blas
from lsgp.method import contract
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.kernels import SumKernel

Array = NDArray[np.float64]

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


def are_finite(z: Array) -> NDArray[np.bool_]:
    """Whether squared distances of points are, (q,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.isfinite((z * z).sum(axis=1))


def correlate(model: LocalModel, left: Array, right: Array) -> Array:
    kernel = model.correlation
    assert kernel.is_stationary, "an exact system is one of differences of scaled inputs"
    rho = np.asarray(kernel.cross(left, left, right, right), dtype=float)
    return _drop_below(_TINY, rho)


#: Weights of rows (q, n, t) to the sums (q, t, d) of derivatives of their correlations with
#: scaled queries, in these.
Slopes = Callable[[Array], Array]


def correlate_with_slopes(model: LocalModel, z: Array, rows: Array) -> tuple[Array, Slopes]:
    """Correlations (q, n) of scaled queries and rows, and sums of their derivatives."""
    kernel = model.correlation
    if isinstance(kernel, SumKernel):
        return correlate(model, z, rows), partial(_sum_slopes, kernel, z, rows)
    formula = kernel.formula
    assert formula is not None, "an exact system is one of differences of scaled inputs"
    found = formula(cdist(z, rows, "sqeuclidean"))
    rho, by_r2 = (_drop_below(_TINY, np.asarray(part, dtype=float)) for part in found)

    def sum_slopes(weights: Array) -> Array:
        weighted = (weights * by_r2[:, :, None]).transpose(0, 2, 1)
        offsets = weighted @ rows - weighted.sum(axis=2)[:, :, None] * z[:, None, :]
        return np.asarray(-2.0 * offsets)

    return rho, sum_slopes


def _sum_slopes(kernel: SumKernel, z: Array, rows: Array, weights: Array) -> Array:
    return np.asarray(kernel.sum_slopes(z, rows, weights), dtype=float)


def clean(matrix: Array) -> Array:
    for start in range(0, len(matrix), ROWS_AT_A_TIME):
        _drop_below(_TINIER, matrix[start : start + ROWS_AT_A_TIME])
    return matrix


def _clear_above(matrix: Array) -> None:
    """Zeros above the diagonal, where LAPACK has left what was there."""
    for i in range(len(matrix)):
        matrix[i, i + 1 :] = 0.0


def _drop_below(least: float, values: Array) -> Array:
    """Zeros, in place, for what is smaller, of which products would be denormal numbers.

    Many processors take a hundred times as long for these.
    """
    values[np.abs(values) < least] = 0.0
    return values


def invert_positive(matrix: Array) -> Array | None:
    """Inverse Cholesky factor, in place of the lower triangle; None if there is no such factor."""
    matrix = np.ascontiguousarray(matrix)
    if not blas.factor(matrix) or (np.diag(matrix) ** 2 <= SMALLEST_PIVOT).any():
        return None
    _clear_above(matrix)
    blas.invert_factor(clean(matrix))
    return clean(matrix)


@dataclass(frozen=True)
class HostFactor:
    """As `InverseFactor`."""

    model: LocalModel
    z: Array  # (n, d)
    values: Array  # (n, n), lower triangular

    def half(self, columns: Array) -> Array:
        return np.asarray(self.values @ columns)

    def solve(self, columns: Array) -> Array:
        return np.asarray(self.values.T @ (self.values @ columns))

    def columns(self, rows: NDArray[np.integer]) -> Array:
        return self.values[:, rows]

    def inverse_columns(self, rows: NDArray[np.integer]) -> Array:
        return np.asarray(self.values.T @ self.values[:, rows])

    def diagonal(self, rows: NDArray[np.integer]) -> Array:
        return self._diagonal[rows]

    @cached_property
    def _diagonal(self) -> Array:
        return np.asarray(np.einsum("ij,ij->j", self.values, self.values))

    def correlate(self, z: Array) -> Array:
        return correlate(self.model, z, self.z)

    def products(self, z: Array, right: Array, mean_only: bool) -> tuple[Array, Array]:
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

    def extended(self, z: Array, noise: Array) -> HostFactor | None:
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
        values[new, :before] = clean(-inverse @ (solved.T @ self.values))
        values[new, new] = inverse
        return HostFactor(self.model, np.concatenate([self.z, z]), values)

    def to_host(self) -> Array:
        return self.values


@dataclass(frozen=True)
class HostCovariance:
    """As `Covariance`."""

    factor: Array  # (n, n) in the lower triangle; above it is anything
    #: Of the inverse less a product (left, right), and whether the trend is in the product.
    sum_up: Callable[[Array, Array, Array, bool], AdjointSums]

    @property
    def half_log_determinant(self) -> float:
        return float(np.log(np.diag(self.factor)).sum())

    def solve(self, columns: NDArray[np.floating]) -> Array:
        return np.asarray(cho_solve((self.factor, True), columns, check_finite=False))

    def adjoint_sums(
        self, alpha: Array, unit: float, trend: tuple[Array, Array] | None
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

    def invert(self, z: Array, problem: LocalProblem, jitter: float = 0.0) -> Inverted:
        n, model = len(z), problem.model
        if not are_finite(z).all():
            return _no_factor(model, z, contract.STATUS_NOT_FINITE)
        noise = model.noise_variance * problem.noise.astype(float)
        if model.is_single:
            single = factor_in_single(model, z, noise)
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
        return _no_factor(model, z, contract.STATUS_NOT_POSITIVE_DEFINITE)

    def covariance(
        self, z: Array, model: LocalModel, noise: NDArray[np.floating]
    ) -> HostCovariance | None:
        z, kernel = np.ascontiguousarray(z), model.correlation
        sum_up: Callable[[Array, Array, Array, bool], AdjointSums]
        if isinstance(kernel, SumKernel):
            A, parts = correlate_sums(z, model, kernel)
            sum_up = partial(sum_of_two, z, kernel, parts)
        else:
            A, by_r2 = correlate_pairs(z, model)
            sum_up = partial(sum_pairs, z, by_r2)
        A[np.diag_indices(len(z))] += model.noise_variance * noise
        return HostCovariance(A, sum_up) if blas.factor(A) else None


def _no_factor(model: LocalModel, z: Array, status: int) -> Inverted:
    return Inverted(HostFactor(model, z, np.full((len(z), len(z)), np.nan)), status, 0.0)


#: The one that there is.
HOST = HostDense()


def dense_for(model: LocalModel, dense: Dense) -> Dense:
    """Where the matrices of a model are made: devices know correlations of the distance alone."""
    return dense if model.correlation.formula is not None else HOST
