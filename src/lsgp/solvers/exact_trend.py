# SPDX-License-Identifier: BSD-3-Clause
"""The trend of an exact GP at each query [E10]: many systems of d + 1 unknowns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsgp.method.trend import KNOWN_PIVOT

Array = NDArray[np.float64]


@dataclass(frozen=True)
class QueryTrends:
    """Posterior of the trend's coefficients for each query, with the trend centered there."""

    precision: Array  # (q, a, a)
    mean: Array  # (q, a, t)
    explained: Array  # (q, t) by which the trend reduces the misfit
    by_solver: Callable[[Array, Array], Array]

    def solve(self, right: Array) -> Array:
        """Solutions (q, a, t) of the systems of the precision."""
        return self.by_solver(self.precision, right)

    def variance(self, basis: Array) -> Array:
        """Posterior variance of linear combinations (q, a) of the coefficients, (q,)."""
        return np.asarray((basis * self.solve(basis[:, :, None])[:, :, 0]).sum(axis=1))

    def determines(self, basis: Array) -> NDArray[np.bool_]:
        """Whether the rows or the prior determine linear combinations (q, a) of coefficients."""
        again = (self.precision @ self.solve(basis[:, :, None]))[:, :, 0]
        unit = np.sqrt(np.diagonal(self.precision, axis1=1, axis2=2)) + np.abs(basis)
        return np.asarray((np.abs(again - basis) <= 1e-6 * unit).all(axis=1))


def solve_with_prior(precision: Array, right: Array) -> Array:
    """Solve many small systems; if rounding made one singular, by least squares."""
    try:
        return np.asarray(np.linalg.solve(precision, right), dtype=float)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(precision, hermitian=True) @ right, dtype=float)


def solve_free(precision: Array, right: Array) -> Array:
    """Solve many small systems without a prior, whose rows may determine some coefficients only."""
    diagonal = np.diagonal(precision, axis1=1, axis2=2)
    unit = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = precision * unit[:, :, None] * unit[:, None, :]
    smallest = np.full(len(scaled), KNOWN_PIVOT)
    solved = np.linalg.pinv(scaled, smallest, hermitian=True) @ (right * unit[:, :, None])
    return np.asarray(solved * unit[:, :, None])
