# SPDX-License-Identifier: BSD-3-Clause
"""Which categories tell something of the targets, and how far their levels are believed.

The mean target of a level mixes its own effect with that of whatever else comes with it: clear
diamonds are small, and cheaper than others. So levels are given the statistics of partial residuals
of y ≈ polynomials of the numbers + an effect of each category, fitted by turns (backfitting). With
12,000 rows of diamonds, 3 numbers made so did better than 20 inputs of zeros and ones (RMSE .1352
against .1382 standard deviations), where mean targets did worse (.257).

Whether levels differ in these is a classic analysis of variance. Functions that start with an
underscore and take `CodedRows` are asked of each part of the rows, wherever it lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from lsgp.inputs.encoding.categories import N_FOLDS, Statistics, fold_keys, level_sums
from lsgp.inputs.encoding.columns import Column
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
#: A category is left out if its levels would differ as much by chance with a larger probability.
LARGEST_P = 0.01
#: Shrinkage, in rows: between a level that is believed at once, and one that is never.
LEAST_SHRINKAGE, MOST_SHRINKAGE = 1e-3, 1e6
#: Numbers that a level has at most, where there are more targets or classes.
MOST_STATISTICS = 8
#: The uncertainty of a level's statistic, 1 of a level never seen in training, is an input where
#: it differs by this much among rows.
LEAST_SPREAD_OF_UNCERTAINTY = 0.05


class CodedRows(NamedTuple):
    """Some rows, with the levels of those categories that targets are adjusted for."""

    inputs: Array  # (n, e) of all columns that are encoded so far
    X: Array  # (n, q) inputs that do not come from categories
    y: Array  # (n, t)
    weight: Array  # (n,)
    codes: tuple[Codes, ...]  # (n,) of each category
    groups: NDArray[np.int32] | None
    before: tuple[Codes, ...]  # (k,) rows of each level in the parts before this one


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


class Adjusted(NamedTuple):
    """The fitted model: inputs, and the levels of each category."""

    adjustment: Adjustment
    effects: list[Array]  # (k, t) of each category
    counts: list[Array]  # (k,) weight of the rows of each level

    def partial(self, rows: CodedRows) -> list[Array]:
        """What other columns than each category leave of the targets, (n, t)."""
        rest = _without_effects(rows, self.effects) - self.adjustment.predict(rows.X)
        pairs = zip(self.effects, rows.codes, strict=True)
        return [np.asarray(rest + effect[codes]) for effect, codes in pairs]


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
    counts = [count[:, 0] for count in parts.total(_weights, None, n_levels).values]
    effects = [np.zeros((k, t)) for k in n_levels]
    for _ in range(N_ROUNDS):
        (moments,) = parts.total(_moments, own, effects).values
        own = replace(own, coefficients=np.asarray(np.linalg.solve(gram, moments), dtype=float))
        explained = parts.total(_weights, own, n_levels).values
        for j, count in enumerate(counts):
            others = [effect if i != j else None for i, effect in enumerate(effects)]
            (left,) = parts.total(_left, others, j, n_levels[j]).values
            effects[j] = (left - explained[j]) / (count[:, None] + SHRINKAGE)
    return Adjusted(own, effects, counts)


def _blocks(X: Array) -> Iterator[slice]:
    return (slice(start, start + BLOCK_ROWS) for start in range(0, len(X), BLOCK_ROWS))


def _without_effects(rows: CodedRows, effects: Sequence[Array | None]) -> Array:
    """Targets without the effects of levels; a category of None keeps its own."""
    rest = rows.y.copy()
    for codes, effect in zip(rows.codes, effects, strict=True):
        if effect is not None:
            rest -= effect[codes]
    return rest


def _gram(rows: CodedRows, own: Adjustment) -> Sums:
    found = np.zeros((len(own.coefficients), len(own.coefficients)))
    for block in _blocks(rows.X):
        features = own.features(rows.X[block])
        found += features.T @ (features * rows.weight[block, None])
    return Sums((found,))


def _moments(rows: CodedRows, own: Adjustment, effects: Sequence[Array]) -> Sums:
    rest = _without_effects(rows, effects) * rows.weight[:, None]
    found = np.zeros(own.coefficients.shape)
    for block in _blocks(rows.X):
        found += own.features(rows.X[block]).T @ rest[block]
    return Sums((found,))


def _weights(rows: CodedRows, own: Adjustment | None, n_levels: Sequence[int]) -> Sums:
    """Of each level of each category, the sum of weights, or of what inputs account for."""
    values = rows.weight[:, None]
    if own is not None:
        values = own.predict(rows.X) * values
    pairs = zip(rows.codes, n_levels, strict=True)
    return Sums(tuple(level_sums(codes, values, k) for codes, k in pairs))


def _left(rows: CodedRows, others: Sequence[Array | None], j: int, n_levels: int) -> Sums:
    """Of each level of category j, the sum of what other categories leave of the targets."""
    left = _without_effects(rows, others) * rows.weight[:, None]
    return Sums((level_sums(rows.codes[j], left, n_levels),))


# -- analysis of variance --------------------------------------------------------------------------


class Deviations(NamedTuple):
    """What other columns leave of the targets, less its mean, over all rows."""

    levels: Codes  # (k,) levels that occur in the rows
    counts: Array  # (k,) weight of the rows of each
    sums: Array  # (k, t) of each
    means: Array  # (t,)
    squares: Array  # (t,)


class Variances(NamedTuple):
    """One-way analysis of variance, for each of t targets."""

    among: Array  # (t,) variance of the effects of levels, beyond what chance makes
    within: Array  # (t,)
    ratio: Array  # (t,) F
    p_value: Array  # (t,)


def deviations(parts: Parts[CodedRows], adjusted: Adjusted) -> list[Deviations]:
    """The deviations of each category."""
    totals = parts.total(_partial_sums, adjusted).values
    # Levels that no row has count nothing.
    means = [own.sum(axis=0) / n.sum() for own, n in zip(totals, adjusted.counts, strict=True)]
    squares = parts.total(_squares, adjusted, means).values
    found = []
    for n, own, mean, square in zip(adjusted.counts, totals, means, squares, strict=True):
        levels = np.flatnonzero(n > 0)
        centered = own[levels] - mean * n[levels, None]
        found.append(Deviations(levels, n[levels], centered, mean, square))
    return found


def _partial_sums(rows: CodedRows, adjusted: Adjusted) -> Sums:
    each = zip(rows.codes, adjusted.partial(rows), adjusted.effects, strict=True)
    weight = rows.weight[:, None]
    return Sums(tuple(level_sums(codes, weight * own, len(k)) for codes, own, k in each))


def _squares(rows: CodedRows, adjusted: Adjusted, means: Sequence[Array]) -> Sums:
    pairs = zip(adjusted.partial(rows), means, strict=True)
    return Sums(tuple(rows.weight @ (own - mean) ** 2 for own, mean in pairs))


def analyze(found: Deviations, n_rows: int) -> Variances | None:
    """How far levels differ; None if there is nothing to tell it from."""
    counts, n_levels = found.counts, len(found.levels)
    if n_levels < 2 or n_rows <= n_levels:
        return None
    weight = counts.sum()
    between = (found.sums**2 / counts[:, None]).sum(axis=0)
    mean_between = between / (n_levels - 1)
    within = np.maximum(found.squares - between, 0.0) / (n_rows - n_levels)
    ratio = np.where(within > 0, mean_between / np.maximum(within, 1e-300), np.inf)
    size = (weight - (counts**2).sum() / weight) / (n_levels - 1)
    return Variances(
        among=np.maximum((mean_between - within) / size, 0.0),
        within=within,
        ratio=np.where(mean_between > 0, ratio, 0.0),
        p_value=f_distribution.sf(ratio, n_levels - 1, n_rows - n_levels),
    )


def fit_statistics(
    column: Column, found: Deviations, level_rows: Codes, n_rows: int
) -> Statistics | None:
    """Statistics of the targets that levels differ in; None if they differ in none.

    ``level_rows`` (k,) says how many rows each of the levels has.
    """
    variances = analyze(found, n_rows)
    if variances is None:
        return None
    chosen = np.flatnonzero((variances.p_value <= LARGEST_P) & (variances.ratio > 0))
    if not len(chosen):
        return None
    by_ratio = np.argsort(-variances.ratio[chosen], kind="stable")
    chosen = np.sort(chosen[by_ratio][:MOST_STATISTICS])
    # How far a level of few rows is believed.
    among, within = variances.among[chosen], variances.within[chosen]
    shrinkage = np.full(len(chosen), MOST_SHRINKAGE)
    np.divide(within, among, out=shrinkage, where=among > 0)
    shrinkage = np.clip(shrinkage, LEAST_SHRINKAGE, MOST_SHRINKAGE)
    uncertainty = (shrinkage / (found.counts[:, None] + shrinkage)).mean(axis=1)
    usual = float(level_rows @ uncertainty / n_rows)
    spread = float(np.sqrt(level_rows @ (uncertainty - usual) ** 2 / n_rows))
    return Statistics(
        levels=tuple(column.levels[k] for k in found.levels),
        counts=found.counts,
        sums=np.ascontiguousarray(found.sums[:, chosen]),
        means=found.means[chosen],
        shrinkage=shrinkage,
        targets=tuple(chosen.tolist()),
        has_uncertainty=spread > LEAST_SPREAD_OF_UNCERTAINTY,
        usual_uncertainty=usual,
        variance=variances.among,
    )


# -- training rows, each without its own fold ------------------------------------------------------


class Encoded(NamedTuple):
    """A category that is encoded by statistics of targets."""

    number: int  # among the categories
    statistics: Statistics
    places: Codes  # (k,) of each level among those that have statistics
    level_rows: Codes  # rows of each of those
    start: int  # its first input

    def keys(self, rows: CodedRows, last_group: int) -> Codes:
        """The fold that each row is in, among those of all levels."""
        before = np.zeros(len(self.level_rows), np.int64)
        known = self.places >= 0
        before[self.places[known]] = rows.before[self.number][known]
        codes = self.places[rows.codes[self.number]]
        return fold_keys(codes, self.level_rows, rows.groups, last_group, before)


def encode_training(
    parts: Parts[CodedRows], adjusted: Adjusted, chosen: Sequence[Encoded], last_group: int
) -> Parts[Array]:
    """The inputs (n, e) of training rows, with those of the chosen categories, where they lie."""
    folds = parts.total(_fold_sums, adjusted, chosen, last_group).values
    return parts.map(_insert, chosen, folds, last_group)


def _fold_sums(
    rows: CodedRows, adjusted: Adjusted, chosen: Sequence[Encoded], last_group: int
) -> Sums:
    """Weights, and sums of targets, of each fold of each level."""
    partial, found = adjusted.partial(rows), []
    for own in chosen:
        values = own.statistics.summands(partial[own.number], rows.weight)
        n_keys = len(own.level_rows) * N_FOLDS
        found.append(level_sums(own.keys(rows, last_group), values, n_keys))
    return Sums(tuple(found))


def _insert(
    rows: CodedRows, chosen: Sequence[Encoded], folds: Sequence[Array], last_group: int
) -> Array:
    """The inputs with those that categories become, each row without its own fold."""
    inputs = rows.inputs
    # From the last column on, so that places before it stay.
    for own, sums in reversed(list(zip(chosen, folds, strict=True))):
        keys = own.keys(rows, last_group)
        made = own.statistics.without_folds(keys // N_FOLDS, sums[keys])
        parts = [inputs[:, : own.start], made, inputs[:, own.start :]]
        inputs = np.concatenate(parts, axis=1)
    return np.ascontiguousarray(inputs)
