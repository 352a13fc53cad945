# SPDX-License-Identifier: BSD-3-Clause
"""What is left of targets when other columns are accounted for: an additive model, roughly fitted.

The mean target of a level mixes its own effect with that of whatever else comes with it: clear
diamonds are small, and cheaper than others. So levels are given the statistics of partial residuals
of y ≈ polynomials of the numbers + an effect of each category, fitted by turns (backfitting). With
12,000 rows of diamonds, 3 numbers made so did better than 20 inputs of zeros and ones (RMSE .1352
against .1382 standard deviations), where mean targets did worse (.257).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.table import Parts, Sums
from lsgp.inputs.transforms.column_statistics import ColumnStatistics

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Rounds of backfitting.
N_ROUNDS = 6
#: Of the ridge, in rows; and of the effects of levels while they are fitted.
RIDGE, SHRINKAGE = 10.0, 5.0
#: Standard deviations from the mean beyond which polynomials go no further.
FARTHEST = 4.0
#: Inputs up to which there are squares and cubes of them.
MOST_CUBED = 60
#: Rows whose features are in memory at a time.
BLOCK_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Polynomials of the inputs that are no statistics, for each target."""

    center: Array  # (e,)
    scale: Array  # (e,)
    coefficients: Array  # (p, t), the first of which is the intercept

    def predict(self, X: Array) -> Array:
        """What the inputs (n, e) account for, (n, t)."""
        found = np.empty((len(X), self.coefficients.shape[1]))
        for block in _blocks(X):
            found[block] = self.features(X[block]) @ self.coefficients
        return found

    def features(self, X: Array) -> Array:
        Z = np.clip((X - self.center) / self.scale, -FARTHEST, FARTHEST)
        ones = np.ones((len(X), 1))
        if Z.shape[1] > MOST_CUBED:
            return np.column_stack([ones, Z])
        return np.column_stack([ones, Z, Z**2 - 1.0, Z**3])


class CodedRows(NamedTuple):
    """Some rows, with the levels of those categories that targets are adjusted for."""

    inputs: Array  # (n, e) of all columns that are encoded so far
    X: Array  # (n, q) inputs that do not come from categories
    y: Array  # (n, t)
    weight: Array  # (n,)
    codes: tuple[Codes, ...]  # (n,) of each category
    groups: NDArray[np.int32] | None
    before: tuple[Codes, ...]  # (k,) rows of each level in the parts before this one


class Adjusted(NamedTuple):
    """The fitted model: inputs, and the levels of each category."""

    adjustment: Adjustment
    effects: list[Array]  # (k, t) of each category
    counts: list[Array]  # (k,) weight of the rows of each level

    def residual(self, rows: CodedRows) -> Array:
        """What is left of the targets, (n, t)."""
        return _without_effects(rows, self.effects) - self.adjustment.predict(rows.X)


def adjust(
    parts: Parts[CodedRows], statistics: ColumnStatistics, n_levels: Sequence[int], t: int
) -> Adjusted:
    """Account for inputs and the levels of categories, by turns; ``statistics`` are of inputs."""
    e = len(statistics.center)
    p = 1 + (e if e > MOST_CUBED else 3 * e)
    own = Adjustment(statistics.center, statistics.unit, np.zeros((p, t)))
    gram = RIDGE * np.eye(p)
    gram[0, 0] = 1e-9
    gram += parts.total(_gram, own).values[0]
    counts = [count[:, 0] for count in parts.total(_level_weights, n_levels).values]
    effects = [np.zeros((k, t)) for k in n_levels]
    for _ in range(N_ROUNDS):
        (moments,) = parts.total(_moments, own, effects).values
        own = replace(own, coefficients=np.asarray(np.linalg.solve(gram, moments), dtype=float))
        explained = parts.total(_explained, own, n_levels).values
        for j, count in enumerate(counts):
            others = [effect if i != j else None for i, effect in enumerate(effects)]
            (left,) = parts.total(_left, others, j, n_levels[j]).values
            effects[j] = (left - explained[j]) / (count[:, None] + SHRINKAGE)
    return Adjusted(own, effects, counts)


# -- what is asked of some rows --------------------------------------------------------------------


def level_sums(codes: Codes, values: Array, n_levels: int) -> Array:
    """Sums of values (n, t) over the rows of each level, (n_levels, t).

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.encoding.adjustment import level_sums
    >>> level_sums(np.array([0, 1, 0]), np.array([[0.5], [0.25], [1.0]]), 2)
    array([[1.5 ],
           [0.25]])
    """
    return np.column_stack([np.bincount(codes, own, n_levels) for own in values.T])


def _blocks(X: Array) -> Iterator[slice]:
    return (slice(start, start + BLOCK_ROWS) for start in range(0, len(X), BLOCK_ROWS))


def _gram(rows: CodedRows, own: Adjustment) -> Sums:
    found = np.zeros((len(own.coefficients), len(own.coefficients)))
    for block in _blocks(rows.X):
        features = own.features(rows.X[block])
        found += features.T @ (features * rows.weight[block, None])
    return Sums((found,))


def _level_weights(rows: CodedRows, n_levels: Sequence[int]) -> Sums:
    pairs = zip(rows.codes, n_levels, strict=True)
    return Sums(tuple(level_sums(codes, rows.weight[:, None], k) for codes, k in pairs))


def _without_effects(rows: CodedRows, effects: Sequence[Array | None]) -> Array:
    """Targets without the effects of levels; a category of None keeps its own."""
    rest = rows.y.copy()
    for codes, effect in zip(rows.codes, effects, strict=True):
        if effect is not None:
            rest -= effect[codes]
    return rest


def _moments(rows: CodedRows, own: Adjustment, effects: Sequence[Array]) -> Sums:
    rest = _without_effects(rows, effects) * rows.weight[:, None]
    found = np.zeros(own.coefficients.shape)
    for block in _blocks(rows.X):
        found += own.features(rows.X[block]).T @ rest[block]
    return Sums((found,))


def _explained(rows: CodedRows, own: Adjustment, n_levels: Sequence[int]) -> Sums:
    """Of each level of each category, the sum of what inputs account for."""
    explained = own.predict(rows.X) * rows.weight[:, None]
    pairs = zip(rows.codes, n_levels, strict=True)
    return Sums(tuple(level_sums(codes, explained, k) for codes, k in pairs))


def _left(rows: CodedRows, others: Sequence[Array | None], j: int, n_levels: int) -> Sums:
    """Of each level of category j, the sum of what other categories leave of the targets."""
    left = _without_effects(rows, others) * rows.weight[:, None]
    return Sums((level_sums(rows.codes[j], left, n_levels),))
