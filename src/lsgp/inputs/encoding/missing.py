# SPDX-License-Identifier: BSD-3-Clause
"""Missing numbers, filled in from the other columns of their row.

Each column that has holes is regressed on all others and their squares, by ridge regressions that
take turns: what one filled in, the next ones use. Concrete with a fifth of its cells removed, CRPS
of leave-one-out predictions in standard deviations: .241; without squares .244; the median .257,
each beside a flag that says that the value is missing; without squares and without flags .250. Of
powerplant's four columns, the median does better (.119 against .124), so held-out rows decide
between regressions and the mean; the median itself is not among the choices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.transforms.column_statistics import ColumnStatistics, column_statistics

Array = NDArray[np.float64]

#: Times that the regressions take turns.
N_ROUNDS = 5
#: Of the ridge, per row: correlations of .999 stay stable.
RIDGE = 1e-3
#: Standard deviations from the mean beyond which columns and their squares go no further.
FARTHEST = 4.0
#: Rows that the regressions are fitted on.
MOST_ROWS = 20_000
#: Rows that are filled at a time.
BLOCK_ROWS = 1 << 14
#: Most columns that fill each other's holes: beyond, the mean does.
MOST_COLUMNS = 100


@dataclass(frozen=True, eq=False)
class Imputation:
    """Ridge regressions of each of p columns on the others."""

    center: Array  # (p,)
    scale: Array  # (p,)
    coefficients: Array  # (2p, p) of all columns and their squares, for each

    @classmethod
    def fit(
        cls, X: Array, by_others: bool = True, statistics: ColumnStatistics | None = None
    ) -> Imputation:
        """From training rows (n, p) with NaN; no column is all NaN.

        Unless ``by_others``, the means of columns are what is filled in. Statistics may be of more
        rows, of which these are a sample.
        """
        if statistics is None:
            statistics = column_statistics(X)
        p = X.shape[1]
        center, scale = statistics.center, statistics.unit
        coefficients = np.zeros((2 * p, p))
        if not by_others or not 1 < p <= MOST_COLUMNS:
            return cls(center, scale, coefficients)
        Z = (X - center) / scale
        hole = np.isnan(Z)
        filled = np.where(hole, 0.0, Z)
        with_holes = np.flatnonzero(hole.any(axis=0))
        for number in range(N_ROUNDS):
            # Queries may have holes where training rows have none.
            for j in with_holes if number < N_ROUNDS - 1 else range(p):
                known, others = ~hole[:, j], np.delete(np.arange(2 * p), [j, p + j])
                A = _features(filled[known])[:, others]
                gram = A.T @ A + RIDGE * len(A) * np.eye(len(others))
                coefficients[others, j] = np.linalg.solve(gram, A.T @ filled[known, j])
            filled = np.where(hole, _features(filled) @ coefficients, Z)
        return cls(center, scale, coefficients)

    def fill(self, X: Array) -> Array:
        """The rows (n, p) with their holes filled in; each by itself."""
        holes = np.isnan(X)
        columns = np.flatnonzero(holes.any(axis=0))
        coefficients = np.ascontiguousarray(self.coefficients[:, columns])
        with_holes, out = np.flatnonzero(holes.any(axis=1)), X.copy()
        for start in range(0, len(with_holes), BLOCK_ROWS):
            rows = with_holes[start : start + BLOCK_ROWS]
            hole = holes[rows]
            filled = np.where(hole, 0.0, (X[rows] - self.center) / self.scale)
            for _ in range(N_ROUNDS):
                found = _row_products(_features(filled), coefficients)
                filled[:, columns] = np.where(hole[:, columns], found, filled[:, columns])
            out[rows] = np.where(hole, filled * self.scale + self.center, X[rows])
        return out


def sampled_rows(n: int) -> NDArray[np.int64] | None:
    """The rows that regressions are fitted on, in order; None for all."""
    if n <= MOST_ROWS:
        return None
    return np.sort(np.random.default_rng(0).choice(n, MOST_ROWS, replace=False))


def _features(Z: Array) -> Array:
    """Standardized columns and their squares, (n, 2p): no farther out than the data are."""
    near = np.clip(Z, -FARTHEST, FARTHEST)
    return np.column_stack([near, near**2 - 1.0])


def _row_products(A: Array, B: Array) -> Array:
    """A @ B, each row as if it were alone: BLAS rounds it otherwise among others."""
    found = np.zeros((B.shape[1], len(A)))
    for column, coefficients in zip(np.ascontiguousarray(A.T), B, strict=True):
        found += coefficients[:, None] * column
    return np.ascontiguousarray(found.T)
