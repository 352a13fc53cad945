# SPDX-License-Identifier: BSD-3-Clause
"""What exact GPs ask of a machine: factors of all rows, and sums over all pairs of them.

A backend has a `Dense`, as it has local solves: the host's, or a device's. What goes in and comes
out are arrays of the host of n rows; matrices of n by n stay where they were made.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lsgp.method.contract import LocalModel, LocalProblem

Array = NDArray[np.float64]


class InverseFactor(Protocol):
    """L⁻¹ of the Cholesky factor L of the correlations of n rows with noise; C is L⁻ᵀL⁻¹."""

    def half(self, columns: Array) -> Array:
        """L⁻¹ times a column (n,), or several (n, c)."""

    def solve(self, columns: Array) -> Array:
        """C times a column (n,), or several (n, c)."""

    def columns(self, rows: NDArray[np.integer]) -> Array:
        """Columns of L⁻¹, (n, r)."""

    def inverse_columns(self, rows: NDArray[np.integer]) -> Array:
        """Columns of C, (n, r)."""

    def diagonal(self, rows: NDArray[np.integer]) -> Array:
        """Of C, of these rows (r,)."""

    def correlate(self, z: Array) -> Array:
        """Correlations (q, n) of points z (q, d) with the rows, with the digits of `products`."""

    def products(self, z: Array, right: Array, mean_only: bool) -> tuple[Array, Array]:
        """Of the correlations k of points z (q, d) with the rows: kᵀC k (q,), and k right (q, c).

        With ``mean_only`` the first are zeros. None of them depends on the others.
        """

    def extended(self, z: Array, noise: Array) -> InverseFactor | None:
        """With rows z (r, d) of this noise behind; None if it has to be made anew."""

    def to_host(self) -> Array:
        """All of it, (n, n)."""


class Inverted(NamedTuple):
    """What came of inverting a factor."""

    factor: InverseFactor
    status: int
    jitter: float  # on the diagonal


class AdjointSums(NamedTuple):
    """Sums of the adjoint G of the covariance, and of its products with derivatives."""

    diagonal: Array  # (n,) of G
    total: float  # of all of G
    by_z: Array  # (n, d) G z
    by_logarithms: Array  # (k,) of the correlations in the kernel's, its lengthscales first
    by_rows: Array  # (n, d) of the correlations in z


def through_distances(z: Array, pairs: Array, pairs_by_z: Array) -> tuple[Array, Array]:
    """Products by r² (n,), and times z (n, d), as those in log lengthscales (d,) and z (n, d)."""
    by_lengthscale = -4.0 * (pairs @ (z * z) - np.einsum("ij,ij->j", z, pairs_by_z))
    return by_lengthscale, 4.0 * (pairs[:, None] * z - pairs_by_z)


class Covariance(Protocol):
    """A covariance of all rows, factored, for the evidence."""

    @property
    def half_log_determinant(self) -> float: ...

    def solve(self, columns: NDArray[np.floating]) -> Array:
        """Its inverse times columns (n, c)."""

    def adjoint_sums(
        self, alpha: Array, unit: float, trend: tuple[Array, Array] | None
    ) -> AdjointSums:
        """Of G = ½ (inverse - left rightᵀ - alpha alphaᵀ / unit), with the trend (left, right).

        The factor is gone afterwards. With a trend apart, nobody asks for ``total`` and ``by_z``.
        """


class Dense(Protocol):
    """Where matrices of all rows are."""

    @property
    def is_fast(self) -> bool:
        """Whether n³ is cheap, so that more rows are worth it."""

    @property
    def block_size(self) -> int:
        """Queries that are predicted at a time."""

    def room(self, memory_budget: int, n: int) -> int:
        """Bytes that there are for matrices of n rows, if the settings allow for these here."""

    def host_bytes(self, n: int) -> int:
        """Bytes of the host that the factor of n rows takes."""

    def evidence_bytes(self, n: int) -> int:
        """Bytes that the evidence and its gradient take at a time."""

    def alone(self) -> AbstractContextManager[object]:
        """While one matrix is worked with, if others would have no room beside it."""

    def invert(self, z: Array, problem: LocalProblem, jitter: float = 0.0) -> Inverted:
        """Of rows z (n, d), scaled, with the problem's noise [E2]; with more jitter if need be."""

    def covariance(
        self, z: Array, model: LocalModel, noise: NDArray[np.floating]
    ) -> Covariance | None:
        """[E2] of rows z (n, d), with the trend in it unless that is large; None: not positive."""


def matrix_bytes(n: int) -> int:
    """Memory of the inverse factor of n rows, and of what it takes to make it."""
    return 8 * n * (n + 4 * ROWS_AT_A_TIME)


#: Rows of the covariance that the host computes at a time: they stay in the cache.
ROWS_AT_A_TIME = 32
