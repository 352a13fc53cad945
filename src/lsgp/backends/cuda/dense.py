# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of all rows on the device: by cuSOLVER and cuBLAS, through CuPy.

One matrix of n by n at a time, in place: the covariance becomes its Cholesky factor, and that its
inverse. Everything else is done in blocks of rows, of which only the part up to the diagonal is
read. The first three functions are what a device has beside a library of arrays.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import AdjointSums, Array, Covariance, Inverted, Matrix
from lsgp.backends.cuda.device import cupy, free_memory
from lsgp.backends.cuda.modules import NOTHING, kernel_of
from lsgp.backends.cuda.residence import DeviceArray
from lsgp.backends.dense_host import (
    HOST,
    are_finite,
    correlate,
    matrix_bytes,
    through_distances,
)
from lsgp.backends.local_system import SMALLEST_PIVOT
from lsgp.method import contract
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.kernels import KERNELS

#: Rows of a block: products of blocks fill the device, and their copies take little of its memory.
BLOCK_ROWS = 2048
#: Triangles of so many rows are inverted by substitution, larger ones by products of their parts.
SMALL_TRIANGLE = 1024
#: Fewer rows are the host's. The evidence with its gradient takes an H200 1.9 ms of 400 rows, most
#: of which is launching, 2.0 of 500 and 2.8 of 1,000; a core of its host 1.6 ms of 200 rows, 3.9 of
#: 300, 6.5 of 400, 11 of 500 and 48 of 1,000. Four threads of the host share what they evaluate.
FEWEST_ROWS = 400
#: Queries are solved in tiles of this size, as on the host.
TILE = 1024
#: Queries that a solver is asked for at a time.
BLOCK_SIZE = 8 * TILE
#: Of the free memory of the device, what matrices of exact GPs may take.
SHARE_FOR_FACTORS = 0.6
#: Matrices that the evidence takes at a time, copies of blocks included.
N_MATRICES = 2
#: Threads of a block, and blocks, each of which takes many pairs.
THREADS, MOST_BLOCKS = 256, 1 << 16


def correlate_there(
    kernel: str,
    left: DeviceArray,
    right: DeviceArray,
    rho: DeviceArray | None,
    by_r2: DeviceArray | None,
) -> None:
    """Correlations (p, r), and their derivatives, into arrays whose rows are contiguous."""
    wanted = [array for array in (rho, by_r2) if array is not None]
    stride = wanted[0].strides[0] // wanted[0].itemsize
    n_pairs = len(left) * len(right)
    if n_pairs == 0:
        return
    n_blocks = min(MOST_BLOCKS, -(-n_pairs // THREADS))
    arguments = (
        cupy().ascontiguousarray(left),
        cupy().ascontiguousarray(right),
        np.int64(len(left)),
        np.int64(len(right)),
        np.int32(left.shape[1]),
        np.int32(list(KERNELS).index(kernel)),
        NOTHING if rho is None else rho,
        NOTHING if by_r2 is None else by_r2,
        np.int64(stride),
    )
    kernel_of("dense", "correlate")((n_blocks,), (THREADS,), arguments)


def factor_in_place(matrix: DeviceArray) -> bool:
    """The Cholesky factor in place of the lower triangle; False if there is none.

    To cuSOLVER, which counts by columns, this is the upper triangle.
    """
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas, cusolver

    n, library = len(matrix), cupy()
    if n == 0:
        return True
    handle, upper = device.get_cusolver_handle(), cublas.CUBLAS_FILL_MODE_UPPER
    size = cusolver.dpotrf_bufferSize(handle, upper, n, matrix.data.ptr, n)
    workspace = library.empty(size)
    status = library.empty(1, dtype=np.int32)
    cusolver.dpotrf(handle, upper, n, matrix.data.ptr, n, workspace.data.ptr, size, status.data.ptr)
    return int(status[0]) == 0


def invert_small(block: DeviceArray) -> DeviceArray:
    """The inverse of a small lower triangular matrix, of which no more is read."""
    from cupyx.scipy.linalg import solve_triangular

    unit = cupy().eye(len(block))
    return cupy().tril(solve_triangular(block, unit, lower=True, check_finite=False))


def invert_triangle(block: DeviceArray) -> DeviceArray:
    """The inverse of a lower triangular matrix, of which no more is read."""
    n = len(block)
    if n <= SMALL_TRIANGLE:
        return invert_small(block)
    half = n // 2
    inverse = cupy().zeros((n, n))
    above, below = (
        cupy().ascontiguousarray(invert_triangle(block[part, part]))
        for part in (slice(half), slice(half, n))
    )
    inverse[:half, :half], inverse[half:, half:] = above, below
    inverse[half:, :half] = -(below @ (block[half:, :half] @ above))
    return inverse


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, BLOCK_ROWS):
        yield slice(start, min(start + BLOCK_ROWS, n))


def invert_in_place(matrix: DeviceArray) -> None:
    """A Cholesky factor by its inverse; zeros above the diagonal in its blocks there.

    With block columns J from the last to the first, and what is below already inverted,
    (L⁻¹)_J = -(L⁻¹)_below L_J (L_JJ)⁻¹, each block of rows from what is above it: so from below.
    """
    blocks = list(_blocks(len(matrix)))
    for number in reversed(range(len(blocks))):
        own = blocks[number]
        inverse = invert_triangle(matrix[own, own])
        for rows in reversed(blocks[number + 1 :]):
            product = matrix[rows, own.stop : rows.stop] @ matrix[own.stop : rows.stop, own]
            matrix[rows, own] = -(product @ inverse)
        matrix[own, own] = inverse


def fill(matrix: DeviceArray, z: DeviceArray, model: LocalModel, diagonal: DeviceArray) -> None:
    """Correlations of the rows into the lower triangle, and what is added to its diagonal."""
    for rows in _blocks(len(z)):
        part = matrix[rows, : rows.stop]
        correlate_there(model.kernel_name, z[rows], z[: rows.stop], part, None)
    matrix.ravel()[:: len(z) + 1] += diagonal


@dataclass(frozen=True)
class DeviceFactor:
    """As `InverseFactor`."""

    model: LocalModel
    z: DeviceArray  # (n, d)
    values: DeviceArray  # (n, n), of which blocks up to the diagonal are read
    place: Callable[[], AbstractContextManager[object]]

    def half(self, columns: Matrix) -> Matrix:
        with self.place():
            return cupy().asnumpy(self._half(cupy().asarray(columns)))

    def solve(self, columns: Matrix) -> Matrix:
        with self.place():
            half = self._half(cupy().asarray(columns))
            return cupy().asnumpy(self._transposed(half))

    def columns(self, rows: NDArray[np.integer]) -> Matrix:
        with self.place():
            return cupy().asnumpy(self._columns(rows))

    def inverse_columns(self, rows: NDArray[np.integer]) -> Matrix:
        with self.place():
            return cupy().asnumpy(self._transposed(self._columns(rows)))

    def diagonal(self, rows: NDArray[np.integer]) -> Matrix:
        return self._diagonal[rows]

    @cached_property
    def _diagonal(self) -> Matrix:
        with self.place():
            total = cupy().zeros(len(self.z))
            for rows in _blocks(len(self.z)):
                total[: rows.stop] += (self.values[rows, : rows.stop] ** 2).sum(axis=0)
            return cupy().asnumpy(total)

    def correlate(self, z: Matrix) -> Matrix:
        with self.place():
            return correlate(self.model, z, cupy().asnumpy(self.z))

    def products(self, z: Matrix, right: Matrix, mean_only: bool) -> tuple[Matrix, Matrix]:
        q, n = len(z), len(self.z)
        with self.place():
            library, to_host = cupy(), cupy().asnumpy
            squares, products = np.zeros(q), np.empty((q, right.shape[1]))
            on_device = library.asarray(right)
            k = library.empty((TILE, n))
            for start in range(0, q, TILE):
                size = min(TILE, q - start)
                tile = np.zeros((TILE, z.shape[1]))
                tile[:size] = z[start : start + size]
                points = library.asarray(tile)
                correlate_there(self.model.kernel_name, points, self.z, k, None)
                products[start : start + size] = to_host(k @ on_device)[:size]
                if not mean_only:
                    total = library.zeros(TILE)
                    for rows in _blocks(n):
                        part = self.values[rows, : rows.stop] @ k[:, : rows.stop].T
                        total += (part * part).sum(axis=0)
                    squares[start : start + size] = to_host(total)[:size]
            return squares, products

    def extended(self, z: Matrix, noise: Matrix) -> DeviceFactor | None:
        return None  # a new one takes seconds, and half of the memory

    def to_host(self) -> Matrix:
        with self.place():
            return np.tril(cupy().asnumpy(self.values))

    def _half(self, columns: DeviceArray) -> DeviceArray:
        result = cupy().empty_like(columns)
        for rows in _blocks(len(self.z)):
            result[rows] = self.values[rows, : rows.stop] @ columns[: rows.stop]
        return result

    def _transposed(self, right: DeviceArray) -> DeviceArray:
        """L⁻ᵀ times a column, or several."""
        result = cupy().zeros_like(right)
        for rows in _blocks(len(self.z)):
            result[: rows.stop] += self.values[rows, : rows.stop].T @ right[rows]
        return result

    def _columns(self, rows: NDArray[np.integer]) -> DeviceArray:
        library = cupy()
        unit = library.zeros((len(self.z), len(rows)))
        unit[library.asarray(rows), library.arange(len(rows))] = 1.0
        return self._half(unit)


@dataclass(frozen=True)
class DeviceCovariance:
    """As `Covariance`: the factor is inverted at once, since all that is asked for needs that."""

    factor: DeviceFactor
    half_log_determinant: float

    def solve(self, columns: Array) -> Matrix:
        return self.factor.solve(np.asarray(columns, dtype=float))

    def adjoint_sums(
        self, alpha: Matrix, unit: float, trend: tuple[Matrix, Matrix] | None
    ) -> AdjointSums:
        """Block by block: of a block left of the diagonal, what is above it is its mirror image."""
        factor = self.factor
        n, d = factor.z.shape
        with factor.place():
            library, to_host = cupy(), cupy().asnumpy
            left, right = alpha / unit, alpha
            if trend is not None:
                left, right = np.column_stack([left, trend[0]]), np.column_stack([right, trend[1]])
            left, right, z = library.asarray(left), library.asarray(right), factor.z
            # Of G and of P: a column of ones, and z, so that one product has all sums.
            basis = library.concatenate([library.ones((n, 1)), z], axis=1)
            sums = [library.zeros((n, 1 + d)), library.zeros((n, 1 + d))]
            diagonal = library.empty(n)
            for rows in _blocks(n):
                below = factor.values[rows.start :]
                # Row i of L⁻¹ has nothing right of i: columns of C begin with their own row.
                own = below[:, rows].T @ below[:, : rows.stop]
                own -= left[rows] @ right[: rows.stop].T
                own *= 0.5
                diagonal[rows] = own[:, rows].diagonal()
                by_r2 = library.empty(own.shape)
                part = z[: rows.stop]
                correlate_there(factor.model.kernel_name, z[rows], part, None, by_r2)
                for total, each in zip(sums, (own, own * by_r2), strict=True):
                    total[rows] += each @ basis[: rows.stop]
                    total[: rows.start] += each[:, : rows.start].T @ basis[rows]
            by_adjoint, by_pairs = (to_host(total) for total in sums)
            return AdjointSums(
                to_host(diagonal),
                float(by_adjoint[:, 0].sum()),
                by_adjoint[:, 1:],
                *through_distances(to_host(z), by_pairs[:, 0], by_pairs[:, 1:]),
            )


class DeviceDense:
    """As `Dense`; ``place`` is entered by whoever uses the device."""

    is_fast = True
    block_size = BLOCK_SIZE

    def __init__(self, place: Callable[[], AbstractContextManager[object]]) -> None:
        self.place = place
        self._lock = threading.Lock()

    def room(self, memory_budget: int, n: int) -> int:
        """The budget is for the host, which holds none of many rows."""
        if n < FEWEST_ROWS:
            return HOST.room(memory_budget, n)
        with self.place():
            return int(SHARE_FOR_FACTORS * free_memory())

    def host_bytes(self, n: int) -> int:
        return HOST.host_bytes(n) if n < FEWEST_ROWS else 0

    def evidence_bytes(self, n: int) -> int:
        return HOST.evidence_bytes(n) if n < FEWEST_ROWS else N_MATRICES * matrix_bytes(n)

    def alone(self) -> AbstractContextManager[object]:
        return self._lock

    def invert(self, z: Matrix, problem: LocalProblem, jitter: float = 0.0) -> Inverted:
        model = problem.model
        if len(z) < FEWEST_ROWS or not are_finite(z).all():
            return HOST.invert(z, problem, jitter)
        noise = model.noise_variance * problem.noise.astype(float)
        with self.place():
            library = cupy()
            on_device, matrix = library.asarray(z), library.empty((len(z), len(z)))
            factor = DeviceFactor(model, on_device, matrix, self.place)
            for added in contract.jitters(jitter):
                fill(matrix, on_device, model, library.asarray(noise + added))
                is_factor, to_host = factor_in_place(matrix), cupy().asnumpy
                if is_factor and (to_host(matrix.diagonal()) ** 2 > SMALLEST_PIVOT).all():
                    invert_in_place(matrix)
                    status = contract.STATUS_JITTERED if added else contract.STATUS_OK
                    return Inverted(factor, status, added)
            matrix.fill(np.nan)
            return Inverted(factor, contract.STATUS_NOT_POSITIVE_DEFINITE, 0.0)

    def covariance(self, z: Matrix, model: LocalModel, noise: Array) -> Covariance | None:
        if len(z) < FEWEST_ROWS:
            return HOST.covariance(z, model, noise)
        with self.place():
            library = cupy()
            on_device, matrix = library.asarray(z), library.empty((len(z), len(z)))
            diagonal = library.asarray(model.noise_variance * np.asarray(noise, dtype=float))
            fill(matrix, on_device, model, diagonal)
            if not model.has_large_trend:
                for rows in _blocks(len(z)):
                    part = on_device[: rows.stop]
                    trend = model.slope_variance * (on_device[rows] @ part.T)
                    matrix[rows, : rows.stop] += trend + model.constant_variance
            if not factor_in_place(matrix):
                return None
            half = float(cupy().asnumpy(library.log(matrix.diagonal()).sum()))
            invert_in_place(matrix)
            factor = DeviceFactor(model, on_device, matrix, self.place)
            return DeviceCovariance(factor, half)
