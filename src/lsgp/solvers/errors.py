# SPDX-License-Identifier: BSD-3-Clause
"""[J1] Covariances between the errors of local predictions.

The mean of a query is a weighted sum of the targets of its neighbors, so its error at the latent
function f is

    e(x0) = f(x0) - Σ βᵢ (f(xᵢ) + εᵢ) + a (1 - Σ βᵢ) - g·Σ βᵢ zᵢ,

with the noise ε of the rows and the trend's coefficients a and g, of prior variances c and b. Under
the prior of f, the covariance of two errors follows from the kernel alone, whatever the two
neighborhoods are: no joint system is solved. With all rows as neighbors and weights of 1, it is the
covariance of the full GP. The variance of one error is the latent variance [E5] without the noise
that the localizer adds to far neighbors, σ² Σ βᵢ² vᵢ (1/wᵢ - 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lsgp.backends.host import noise_unit
from lsgp.backends.local_system import SMALLEST_VARIANCE
from lsgp.method.contract import Coefficients, LocalModel, LocalProblem

Array = NDArray[np.float64]

#: Entries of a correlation matrix that are computed at a time.
VALUES_AT_A_TIME = 8_000_000


def error_variance(
    problem: LocalProblem, queries: Array, rows: NDArray[np.int32], solved: Coefficients
) -> Array:
    """[J1] Variance of the error of each query, (q,), relative to the scale."""
    is_in = solved.weight > 0
    inverse = np.where(is_in, 1.0 / np.where(is_in, solved.weight, 1.0), 1.0)
    unit = noise_unit(problem, queries, rows)[:, None]
    by_row = solved.beta**2 * problem.noise[rows] * (inverse - unit)
    excess = problem.model.noise_variance * by_row.sum(axis=1)
    return np.asarray(np.maximum(solved.variance - excess, SMALLEST_VARIANCE))


def trend_errors(
    problem: LocalProblem, queries: Array, rows: NDArray[np.int32], beta: Array
) -> Array:
    """Factors of the trend's coefficients in the error [J1], (q, 1 + d): 1 - Σ β and -Σ β z."""
    model = problem.model
    offsets = problem.X[rows].astype(float) - queries[:, None, :]
    along = np.einsum("qm,qmd->qd", beta, offsets) / model.lengthscale
    return np.column_stack([1.0 - beta.sum(axis=1), -along])


def trend_deviations(model: LocalModel) -> Array:
    """Prior standard deviations (1 + d,) of the trend's coefficients.

    0 for coefficients without a prior: predictions are exact for them, so their factors in the
    error are 0 up to rounding.
    """
    variance = np.array([model.constant_variance, *[model.slope_variance] * len(model.lengthscale)])
    return np.sqrt(np.where(np.isinf(variance), 0.0, variance))


def sparse_coefficients(
    rows: NDArray[np.int32], beta: Array
) -> tuple[NDArray[np.int32], csr_array]:
    """Return the distinct neighbors (u,) of all queries, and their coefficients (q, u)."""
    distinct, places = np.unique(rows, return_inverse=True)
    places, is_row = places.reshape(rows.shape), rows >= 0
    n_pads = int(np.searchsorted(distinct, 0))
    ends = np.concatenate([[0], np.cumsum(is_row.sum(axis=1))])
    shape = len(rows), len(distinct) - n_pads
    matrix = csr_array((beta[is_row], places[is_row] - n_pads, ends), shape=shape)
    return distinct[n_pads:], matrix


def error_covariance(
    problem: LocalProblem, queries: Array, rows: NDArray[np.int32], beta: Array
) -> Array:
    """[J1] Covariance of the errors of all pairs of queries, (q, q), relative to the scale."""
    model = problem.model
    distinct, B = sparse_coefficients(rows, beta)
    X = problem.X[distinct].astype(float)
    # Centered to lose fewer digits.
    center = queries.mean(axis=0)
    z_rows, z = (X - center) / model.lengthscale, (queries - center) / model.lengthscale
    correlate = model.correlation.cross
    total = np.asarray(correlate(queries, z, queries, z), dtype=float)
    by_column = B.tocsc()
    size = max(1, VALUES_AT_A_TIME // (len(X) + len(queries)))
    for start in range(0, len(X), size):
        part = slice(start, start + size)
        crossed = correlate(queries, z, X[part], z_rows[part])
        smoothed = B @ correlate(X, z_rows, X[part], z_rows[part])
        half = by_column[:, part] @ (smoothed - 2.0 * crossed).T
        total += 0.5 * (half + half.T)
    unit = np.sqrt(noise_unit(problem, queries, rows))
    noisy = B.multiply(np.sqrt(model.noise_variance * problem.noise[distinct])).tocsr()
    noisy = noisy.multiply(unit[:, None]).tocsr()
    total += (noisy @ noisy.T).toarray()
    by_trend = trend_errors(problem, queries, rows, beta) * trend_deviations(model)
    return total + by_trend @ by_trend.T
