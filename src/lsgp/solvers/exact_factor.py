# SPDX-License-Identifier: BSD-3-Clause
"""The factor of an exact system: correlations of all rows with noise, factored and inverted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from lsgp.backends.local_system import SMALLEST_PIVOT
from lsgp.compute import lapack
from lsgp.method import contract
from lsgp.method.contract import LocalModel, LocalProblem

Array = NDArray[np.float64]

#: Rows of the covariance that are computed at a time: they stay in the cache.
ROWS_AT_A_TIME = 32
#: Far below the rounding of a correlation of 1.
_TINY = 1e-20
#: Products of factors' elements above this are no denormal numbers.
_TINIER = 1e-150


def are_finite(z: Array) -> NDArray[np.bool_]:
    """Whether squared distances of points are, (q,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.isfinite((z * z).sum(axis=1))


def correlate(model: LocalModel, left: Array, right: Array) -> Array:
    formula = model.correlation.formula
    assert formula is not None, "an exact system is one of correlations of the scaled distance"
    rho = np.asarray(formula(cdist(left, right, "sqeuclidean"))[0], dtype=float)
    return _drop_below(_TINY, rho)


def correlate_with_derivative(model: LocalModel, left: Array, right: Array) -> tuple[Array, Array]:
    """Correlations, and their derivatives in the squared distance."""
    formula = model.correlation.formula
    assert formula is not None, "an exact system is one of correlations of the scaled distance"
    found = formula(cdist(left, right, "sqeuclidean"))
    rho, by_r2 = (_drop_below(_TINY, np.asarray(part, dtype=float)) for part in found)
    return rho, by_r2


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


def invert_factor(z: Array, problem: LocalProblem) -> tuple[Array, int, float]:
    """Inverse of the Cholesky factor of [E2] without trend, its status, and its jitter."""
    n, model = len(z), problem.model
    if not are_finite(z).all():
        return np.full((n, n), np.nan), contract.STATUS_NOT_FINITE, 0.0
    noise = model.noise_variance * problem.noise.astype(float)
    covariance = np.empty((n, n))
    for jitter in contract.jitters():
        for start in range(0, n, ROWS_AT_A_TIME):
            rows = slice(start, min(start + ROWS_AT_A_TIME, n))
            # The lower triangle alone: LAPACK reads no other.
            covariance[rows, : rows.stop] = correlate(model, z[rows], z[: rows.stop])
        covariance[np.diag_indices(n)] = 1.0 + noise + jitter
        inverse = invert_positive(covariance)
        if inverse is not None:
            status = contract.STATUS_JITTERED if jitter else contract.STATUS_OK
            return inverse, status, jitter
    return np.full((n, n), np.nan), contract.STATUS_NOT_POSITIVE_DEFINITE, 0.0


def invert_positive(matrix: Array) -> Array | None:
    """Inverse Cholesky factor, in place of the lower triangle; None if there is no such factor."""
    matrix = np.ascontiguousarray(matrix)
    if not lapack.factor(matrix) or (np.diag(matrix) ** 2 <= SMALLEST_PIVOT).any():
        return None
    _clear_above(matrix)
    lapack.invert_factor(clean(matrix))
    return clean(matrix)
