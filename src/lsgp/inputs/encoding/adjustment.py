# SPDX-License-Identifier: BSD-3-Clause
"""What is left of targets when other columns are accounted for: an additive model, roughly fitted.

The mean target of a level mixes its own effect with that of whatever else comes with it: clear
diamonds are small, and cheaper than others. So levels are given the statistics of partial residuals
of y ≈ polynomials of the numbers + an effect of each category, fitted by turns (backfitting). With
12,000 rows of diamonds, 3 numbers made so did better than 20 inputs of zeros and ones (RMSE .1352
against .1382 standard deviations), where mean targets did worse (.257).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Rounds of backfitting, and rows at a time.
N_ROUNDS, BLOCK_ROWS = 6, 16384
#: Of the ridge, in rows; and of the effects of levels while they are fitted.
RIDGE, SHRINKAGE = 10.0, 5.0
#: Standard deviations from the mean beyond which polynomials go no further.
FARTHEST = 4.0
#: Inputs up to which there are squares and cubes of them.
MOST_CUBED = 60


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Polynomials of the inputs that are no statistics, for each target."""

    center: Array  # (e,)
    scale: Array  # (e,)
    coefficients: Array  # (p, t), the first of which is the intercept

    def predict(self, X: Array) -> Array:
        """What the inputs (n, e) account for, (n, t)."""
        blocks = range(0, len(X), BLOCK_ROWS)
        parts = [self._features(X[b : b + BLOCK_ROWS]) @ self.coefficients for b in blocks]
        return np.concatenate(parts) if parts else np.empty((0, self.coefficients.shape[1]))

    def _features(self, X: Array) -> Array:
        Z = np.clip((X - self.center) / self.scale, -FARTHEST, FARTHEST)
        ones = np.ones((len(X), 1))
        if Z.shape[1] > MOST_CUBED:
            return np.column_stack([ones, Z])
        return np.column_stack([ones, Z, Z**2 - 1.0, Z**3])


class Adjusted(NamedTuple):
    """The fitted model, and for each category the targets without what all others account for."""

    adjustment: Adjustment
    partial: list[Array]  # (n, t) each


def adjust(X: Array, y: Array, weight: Array, categories: Sequence[Codes]) -> Adjusted:
    """Account for inputs X (n, e) and the levels of categories, by turns."""
    e, t = X.shape[1], y.shape[1]
    center, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    p = 1 + (e if e > MOST_CUBED else 3 * e)
    own = Adjustment(center, scale, np.zeros((p, t)))
    blocks = [slice(b, b + BLOCK_ROWS) for b in range(0, len(X), BLOCK_ROWS)]
    gram = RIDGE * np.eye(p)
    gram[0, 0] = 1e-9
    for block in blocks:
        features = own._features(X[block])
        gram += features.T @ (features * weight[block, None])
    counts = [np.bincount(codes, weight) for codes in categories]
    effects = [np.zeros((len(count), t)) for count in counts]
    explained = np.zeros_like(y)
    for _ in range(N_ROUNDS):
        rest = y - sum(
            (effect[codes] for effect, codes in zip(effects, categories, strict=True)),
            np.zeros_like(y),
        )
        moments = np.zeros((p, t))
        for block in blocks:
            features = own._features(X[block])
            moments += features.T @ (rest[block] * weight[block, None])
        own.coefficients[:] = np.linalg.solve(gram, moments)
        explained = own.predict(X)
        residual = rest - explained
        for codes, count, effect in zip(categories, counts, effects, strict=True):
            residual += effect[codes]
            weighted = residual * weight[:, None]
            sums = np.column_stack([np.bincount(codes, part, len(count)) for part in weighted.T])
            effect[:] = sums / (count[:, None] + SHRINKAGE)
            residual -= effect[codes]
    partial = [residual + effect[codes] for effect, codes in zip(effects, categories, strict=True)]
    return Adjusted(own, partial)
