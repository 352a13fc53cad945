# SPDX-License-Identifier: BSD-3-Clause
"""Factors of all rows in single precision, on this machine: half the time, and half the memory.

Where the noise is far above the rounding of a correlation, that is enough for variances, and as a
first guess of solutions, whose digits come from the correlations themselves: these stay above the
diagonal of the matrix whose lower triangle becomes the factor. It is not inverted. Queries are
solved by substitution, at the same price, and leaving rows out takes the columns of these alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from lsgp.compute import blas
from lsgp.method.contract import LocalModel

Array = NDArray[np.float64]
Singles = NDArray[np.float32]

#: Columns are solved in tiles of at most this size: the factor, which is larger than any cache, is
#: read once for each.
TILE = 256
#: Fewer are rounded up to a multiple of this.
STEP = 64
#: Columns beside them on both sides, which BLAS sums in another order than those in the middle: so
#: none depends on its place, and on how many others are solved with it.
MARGIN = 8
#: Rows that substitution takes at a time, by the inverse of their triangle.
BLOCK = 256
#: Columns of the inverse that are solved from one row on.
COLUMNS = 1024
#: Rows of correlations that are computed at a time: they stay in the cache.
HEIGHT = 512
#: Steps by which a solution in single precision comes to the digits of the correlations.
N_REFINEMENTS = 2
#: Squared distances are differences of products, as digits allow: of rows not so far from the mean.
LARGEST_SQUARE = 1e6
#: Beyond, nothing is correlated, and formulas would overflow.
FARTHEST_SQUARE = 1e30
#: Correlations below have no say, and their products would be denormal numbers,
_TINY = 1e-10
#: as would those of elements of the factor below this.
_TINIER = 1e-15


@dataclass(frozen=True)
class SingleFactor:
    """As `InverseFactor`, to about seven digits; `solve` to those of the correlations."""

    model: LocalModel
    z: Array  # (n, d)
    diagonal_of_all: Array  # (n,) of the correlations with noise
    matrix: Singles  # (n, n): the factor, and above its diagonal the correlations
    triangles: list[Singles]  # the inverses of the blocks on the diagonal
    known: Array  # (n,) of the diagonal of C, as far as it was asked for; others are NaN

    def half(self, columns: Array) -> Array:
        wide = columns.reshape(len(columns), -1).astype(np.float32)
        return self._substitute(wide).astype(float).reshape(columns.shape)

    def solve(self, columns: Array) -> Array:
        wide = columns.reshape(len(columns), -1)
        solved = self._guess(wide)
        for _ in range(N_REFINEMENTS):
            solved += self._guess(wide - self._multiply(solved))
        return solved.reshape(columns.shape)

    def columns(self, rows: NDArray[np.integer]) -> Array:
        return self.half(self._units(rows))

    def inverse_columns(self, rows: NDArray[np.integer]) -> Array:
        return self.solve(self._units(rows))

    def _units(self, rows: NDArray[np.integer]) -> Array:
        units = np.zeros((len(self.z), len(rows)))
        units[rows, np.arange(len(rows))] = 1.0
        return units

    def diagonal(self, rows: NDArray[np.integer]) -> Array:
        asked = np.unique(rows)
        asked = asked[np.isnan(self.known[asked])]
        for first in np.unique(asked // COLUMNS * COLUMNS).tolist():
            own = asked[(asked >= first) & (asked < first + COLUMNS)]
            for some, width, places in _tiles(len(own)):
                units = np.zeros((len(self.z) - first, width), np.float32)
                units[own[some] - first, np.arange(width)[places]] = 1.0
                self.known[own[some]] = _squares(self._substitute(units, first))[places]
        return self.known[rows]

    def correlate(self, z: Array) -> Array:
        parts = [k[:, places].T for _, places, k in self._correlated(z)]
        return np.concatenate([np.empty((0, len(self.z))), *parts], dtype=float)

    def products(self, z: Array, right: Array, mean_only: bool) -> tuple[Array, Array]:
        squares, products = np.zeros(len(z)), np.empty((len(z), right.shape[1]))
        for some, places, k in self._correlated(z):
            products[some] = (k.T.astype(float) @ right)[places]
            if not mean_only:
                squares[some] = _squares(self._substitute(k))[places]
        return squares, products

    def _correlated(self, z: Array) -> Iterator[tuple[slice, slice, Singles]]:
        """Points of a tile, their places in it, and correlations of the rows with it (n, c)."""
        for some, width, places in _tiles(len(z)):
            tile = np.zeros((width, z.shape[1]))
            tile[places] = z[some]
            yield some, places, _correlate(self.model, self.z, tile)

    def extended(self, z: Array, noise: Array) -> SingleFactor | None:
        """By bordering."""
        before, n = len(self.z), len(self.z) + len(z)
        matrix, new = np.zeros((n, n), np.float32), slice(before, n)
        matrix[:before, :before] = self.matrix
        across, own = _correlate(self.model, self.z, z), _correlate(self.model, z, z)
        matrix[:before, new] = across
        solved = self._substitute(across)
        rest = own - solved.T @ solved
        own_noise = self.model.noise_variance * noise
        rest[np.diag_indices(len(rest))] += own_noise.astype(np.float32)
        if not _factor(rest, own_noise):
            return None
        matrix[new, :before] = solved.T
        matrix[new, new] = np.tril(rest) + np.triu(own, 1)
        diagonal = np.concatenate([self.diagonal_of_all, 1.0 + own_noise])
        return _of_matrix(self.model, np.concatenate([self.z, z]), diagonal, matrix)

    def to_host(self) -> Array:
        return self.half(np.eye(len(self.z)))

    def _substitute(self, columns: Singles, first: int = 0) -> Singles:
        """L⁻¹ times columns (n - first, c), in place: of the rows from a block's first on.

        By products: BLAS's own substitution sums in an order that depends on a column's place.
        """
        for rows, triangle in zip(_blocks(len(self.z)), self.triangles, strict=True):
            if rows.start >= first:
                own = slice(rows.start - first, rows.stop - first)
                left = columns[own] - self.matrix[rows, first : rows.start] @ columns[: own.start]
                columns[own] = triangle @ left
        return columns

    def _guess(self, columns: Array) -> Array:
        """C times columns (n, c), to a few digits."""
        half = self._substitute(columns.astype(np.float32))
        blocks = list(zip(_blocks(len(self.z)), self.triangles, strict=True))
        for rows, triangle in reversed(blocks):
            half[rows] -= self.matrix[rows.stop :, rows].T @ half[rows.stop :]
            half[rows] = triangle.T @ half[rows]
        return half.astype(float)

    def _multiply(self, columns: Array) -> Array:
        """The correlations with noise times columns (n, c)."""
        products = self.diagonal_of_all[:, None] * columns
        for rows in _blocks(len(self.z)):
            above = np.triu(self.matrix[rows, rows], 1).astype(float)
            products[rows] += above @ columns[rows] + above.T @ columns[rows]
            # On the right of the block itself, each pair once.
            beyond = slice(rows.stop, None)
            above = self.matrix[rows, beyond].astype(float)
            products[rows] += above @ columns[beyond]
            products[beyond] += above.T @ columns[rows]
        return products


def factor_in_single(model: LocalModel, z: Array, noise: Array) -> SingleFactor | None:
    """Of rows z (n, d) with noise (n,) [E2]; None if digits do not suffice."""
    n = len(z)
    matrix = np.empty((n, n), np.float32)
    for rows in _blocks(n):
        block = _correlate(model, z[: rows.stop], z[rows])
        matrix[: rows.stop, rows] = block
        matrix[rows, : rows.stop] = block.T
    matrix[np.diag_indices(n)] = 1.0 + noise
    return _of_matrix(model, z, 1.0 + noise, matrix) if _factor(matrix, noise) else None


def _of_matrix(model: LocalModel, z: Array, diagonal: Array, matrix: Singles) -> SingleFactor:
    """Of one that is factored."""
    triangles = []
    for rows in _blocks(len(z)):
        triangle = np.tril(matrix[rows, rows]).astype(float)
        blas.invert_factor(triangle)
        triangles.append(triangle.astype(np.float32))
    return SingleFactor(model, z, diagonal, matrix, triangles, np.full(len(z), np.nan))


def _factor(matrix: Singles, noise: Array) -> bool:
    """The Cholesky factor in place of the lower triangle; False if noise was lost in rounding."""
    if not blas.factor(matrix) or (np.diag(matrix) ** 2 <= 0.5 * noise.min()).any():
        return False
    for rows in _blocks(len(matrix)):
        part = matrix[rows, : rows.start]
        part *= np.abs(part) >= _TINIER
    return True


def _correlate(model: LocalModel, left: Array, right: Array) -> Singles:
    formula = model.correlation.formula
    assert formula is not None, "an exact system is one of correlations of the scaled distance"
    rho = np.empty((len(left), len(right)), np.float32)
    squares = np.einsum("ij,ij->i", left, left)[:, None]
    squares_of_right, doubled = np.einsum("ij,ij->i", right, right), -2.0 * right.T
    is_near = squares.max(initial=0.0) <= LARGEST_SQUARE
    for start in range(0, len(left), HEIGHT):
        part = slice(start, min(start + HEIGHT, len(left)))
        if is_near:
            r2 = left[part] @ doubled
            r2 += squares[part]
            r2 += squares_of_right
        else:
            r2 = cdist(left[part], right, "sqeuclidean")
        np.clip(r2, 0.0, FARTHEST_SQUARE, out=r2)
        own = formula(r2.astype(np.float32))[0]
        np.multiply(own, own >= _TINY, out=rho[part])
    return rho


def _tiles(n: int) -> Iterator[tuple[slice, int, slice]]:
    """Some of n columns, the width of the tile that they are solved in, and their places in it."""
    step = STEP if _is_alike_of_any_width() else TILE
    for start in range(0, n, TILE):
        count = min(TILE, n - start)
        width = -(-count // step) * step + 2 * MARGIN
        yield slice(start, start + count), width, slice(MARGIN, MARGIN + count)


@cache
def _is_alike_of_any_width() -> bool:
    """Whether a column's product is the same, to the last bit, among few others and among many.

    Of blocks of any height: BLAS may have another way with small ones.
    """
    rng = np.random.default_rng(0)
    for height in (1, 5, BLOCK):
        for depth in (BLOCK, 700):
            left = rng.normal(size=(height, depth)).astype(np.float32)
            column = rng.normal(size=(depth, 1)).astype(np.float32)
            found = [
                (left @ np.repeat(column, 2 * MARGIN + width, axis=1))[:, MARGIN:-MARGIN]
                for width in range(STEP, TILE + 1, STEP)
            ]
            if not all((part == found[-1][:, :1]).all() for part in found):
                return False
    return True


def _squares(columns: Singles) -> Array:
    """Sums of the squares of columns (n, c), (c,)."""
    total = np.zeros(columns.shape[1])
    for rows in _blocks(len(columns)):
        total += np.einsum("ij,ij->j", columns[rows], columns[rows])
    return total


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, BLOCK):
        yield slice(start, min(start + BLOCK, n))
