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
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.facts import CenterScale
from lsgp.inputs.encoding.table import Parts, total
from lsgp.inputs.transforms.exact_products import (
    BLOCK_ROWS,
    power_above,
    product_sums,
    rounded_products,
    row_products,
)
from lsgp.inputs.transforms.exact_sums import Whole, add_exactly, level_sums, rounded_levels

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Rounds of backfitting.
N_ROUNDS = 6
#: Of the ridge, in rows; and of the effects of levels while they are fitted.
RIDGE, SHRINKAGE = 10.0, 5.0
#: Standard deviations from the mean beyond which polynomials go no further.
FARTHEST = 4.0
#: What features are at most, all of them.
LARGEST_FEATURE = FARTHEST**3
#: Inputs up to which there are squares and cubes of them.
MOST_CUBED = 60


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Polynomials of the inputs that are no statistics, for each target."""

    center: Array  # (e,)
    scale: Array  # (e,)
    coefficients: Array  # (p, t), the first of which is the intercept

    def predict(self, X: Array) -> Array:
        """What the inputs (n, e) account for, (n, t); each row by itself."""
        blocks = range(0, len(X), BLOCK_ROWS)
        parts = [
            row_products(self.features(X[b : b + BLOCK_ROWS]), self.coefficients, LARGEST_FEATURE)
            for b in blocks
        ]
        return np.concatenate(parts) if parts else np.empty((0, self.coefficients.shape[1]))

    def features(self, X: Array) -> Array:
        Z = np.clip((X - self.center) / self.scale, -FARTHEST, FARTHEST)
        ones = np.ones((len(X), 1))
        if Z.shape[1] > MOST_CUBED:
            return np.column_stack([ones, Z])
        return np.column_stack([ones, Z, Z**2 - 1.0, Z**3])


class Plain(NamedTuple):
    """Some rows: inputs that are not of categories, and the levels of those that are."""

    X: Array  # (n, e)
    y: Array  # (n, t)
    weight: Array  # (n,)
    codes: tuple[Codes, ...]  # (n,) of each category

    @property
    def n_targets(self) -> int:
        return self.y.shape[1]


class Scales(NamedTuple):
    """Of which size numbers are: what sums are exact in units of."""

    weight: float  # the largest
    target: float  # a power of two, no less than any target


class LevelSums(NamedTuple):
    """Exact sums over the rows of each level."""

    values: Whole  # (2, k, t)

    def join(self, other: LevelSums) -> LevelSums:
        return LevelSums(add_exactly(self.values, other.values))

    def rounded(self, unit: float) -> Array:
        return unit * rounded_levels(self.values)


class ProductSums(NamedTuple):
    """Exact sums of products over rows."""

    values: Whole  # (3, p, t)

    def join(self, other: ProductSums) -> ProductSums:
        return ProductSums(add_exactly(self.values, other.values))


class Adjusted(NamedTuple):
    """The fitted model, with the effects of the levels of each category."""

    adjustment: Adjustment
    effects: list[Array]  # (k, t) of each category
    counts: list[Array]  # (k,) weight of the rows of each level
    residual: Parts[Array]  # (n, t) what neither explains
    unit: float  # a power of two, no less than twice any residual with any effect


def adjust(
    parts: Parts[Plain], standard: CenterScale, n_levels: Sequence[int], t: int, scales: Scales
) -> Adjusted:
    """Account for inputs and the levels of categories, by turns; ``standard`` is of the inputs."""
    e = len(standard.center)
    p = 1 + (e if e > MOST_CUBED else 3 * e)
    own = Adjustment(standard.center, standard.scale, np.zeros((p, t)))
    gram = RIDGE * np.eye(p)
    gram[0, 0] = 1e-9
    squares = total(parts, _gram, own, scales).values
    gram += rounded_products(squares, LARGEST_FEATURE**2 * scales.weight)
    counts = [
        total(parts, level_weights, j, k, scales).rounded(scales.weight)[:, 0]
        for j, k in enumerate(n_levels)
    ]
    effects = [np.zeros((k, t)) for k in n_levels]
    residual: Parts[Array] | None = None
    for _ in range(N_ROUNDS):
        unit = _unit(own, effects, scales)
        moments = total(parts, _moments, own, effects, unit, scales).values
        right = rounded_products(moments, LARGEST_FEATURE * unit * scales.weight)
        own = replace(own, coefficients=np.asarray(np.linalg.solve(gram, right), dtype=np.float64))
        residual = parts.map(_residual, own, effects)
        for j, count in enumerate(counts):
            unit = _unit(own, effects, scales)
            sums = total(residual, _effect_sums, parts, j, effects[j], unit, scales)
            new = sums.rounded(unit * scales.weight) / (count[:, None] + SHRINKAGE)
            residual = residual.map(_moved, parts, j, effects[j], new)
            effects[j] = new
    assert residual is not None
    return Adjusted(own, effects, counts, residual, 2.0 * _unit(own, effects, scales))


def _unit(own: Adjustment, effects: Sequence[Array], scales: Scales) -> float:
    """A power of two, no less than any target without what may have been accounted for."""
    most = np.abs(own.coefficients).sum(axis=0).max(initial=0.0) * LARGEST_FEATURE
    most += sum(np.abs(effect).max(initial=0.0) for effect in effects)
    # Targets again: what is computed from them is rounded.
    return power_above(2.0 * scales.target + float(most))


# -- what is asked of some rows --------------------------------------------------------------------


def _gram(rows: Plain, own: Adjustment, scales: Scales) -> ProductSums:
    p = len(own.coefficients)
    sums = np.zeros((3, p, p), np.int64)
    for start in range(0, len(rows.X), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        features = own.features(rows.X[block])
        weighted = features * (rows.weight[block, None] / scales.weight)
        sums += product_sums(features, weighted, LARGEST_FEATURE, LARGEST_FEATURE)
    return ProductSums(sums)


def level_weights(rows: Plain, j: int, n_levels: int, scales: Scales) -> LevelSums:
    """Of each level of a category."""
    return LevelSums(level_sums(rows.codes[j], counted(rows.weight, scales), n_levels))


def counted(weight: Array, scales: Scales) -> Array:
    """Weights (n, 1) in units of the largest, none of which is lost in exact sums."""
    return np.maximum(weight / scales.weight, 2.0**-62)[:, None]


def _rest(rows: Plain, effects: Sequence[Array]) -> Array:
    """Targets without the effects of levels."""
    rest = rows.y.copy()
    for codes, effect in zip(rows.codes, effects, strict=True):
        rest -= effect[codes]
    return rest


def _moments(
    rows: Plain, own: Adjustment, effects: Sequence[Array], unit: float, scales: Scales
) -> ProductSums:
    rest = _rest(rows, effects) * (rows.weight / scales.weight)[:, None]
    sums = np.zeros((3, *own.coefficients.shape), np.int64)
    for start in range(0, len(rows.X), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        sums += product_sums(own.features(rows.X[block]), rest[block], LARGEST_FEATURE, unit)
    return ProductSums(sums)


def _residual(rows: Plain, own: Adjustment, effects: Sequence[Array]) -> Array:
    return _rest(rows, effects) - own.predict(rows.X)


def _effect_sums(
    residual: Array, rows: Plain, j: int, effect: Array, unit: float, scales: Scales
) -> LevelSums:
    share = (rows.weight / scales.weight)[:, None]
    partial = (residual + effect[rows.codes[j]]) * share / unit
    return LevelSums(level_sums(rows.codes[j], partial, len(effect)))


def _moved(residual: Array, rows: Plain, j: int, old: Array, new: Array) -> Array:
    codes = rows.codes[j]
    return (residual + old[codes]) - new[codes]
