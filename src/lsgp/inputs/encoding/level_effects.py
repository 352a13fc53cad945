# SPDX-License-Identifier: BSD-3-Clause
"""Which categories tell something of the targets, and how far their levels are believed.

By the classic analysis of variance of what other columns leave of the targets (`adjustment`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from lsgp.inputs.encoding.adjustment import Adjusted, CodedRows, level_sums
from lsgp.inputs.encoding.categories import Statistics
from lsgp.inputs.encoding.columns import Column
from lsgp.inputs.encoding.folds import N_FOLDS, fold_keys
from lsgp.inputs.encoding.table import Parts, Sums

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: A category is left out if its levels would differ as much by chance with a larger probability.
LARGEST_P = 0.01
#: Shrinkage, in rows: between a level that is believed at once, and one that is never.
LEAST_SHRINKAGE, MOST_SHRINKAGE = 1e-3, 1e6
#: Numbers that a level has at most, where there are more targets or classes.
MOST_STATISTICS = 8
#: The uncertainty of a level's statistic, 1 of a level never seen in training, is an input where
#: it differs by this much among rows.
LEAST_SPREAD_OF_UNCERTAINTY = 0.05


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
    """Of each category."""
    levels = [np.flatnonzero(counts > 0) for counts in adjusted.counts]
    counts = [own[used] for own, used in zip(adjusted.counts, levels, strict=True)]
    totals = parts.total(_level_sums, adjusted).values
    sums = [own[used] for own, used in zip(totals, levels, strict=True)]
    means = [own.sum(axis=0) / n.sum() for own, n in zip(sums, counts, strict=True)]
    squares = parts.total(_squares, adjusted, means).values
    each = zip(levels, counts, sums, means, squares, strict=True)
    return [
        Deviations(used, n, own - mean * n[:, None], mean, square)
        for used, n, own, mean, square in each
    ]


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
    with np.errstate(divide="ignore", invalid="ignore"):
        shrinkage = np.where(
            variances.among > 0, variances.within / variances.among, MOST_SHRINKAGE
        )
    shrinkage = np.clip(shrinkage, LEAST_SHRINKAGE, MOST_SHRINKAGE)[chosen]
    uncertainty = (shrinkage / (found.counts[:, None] + shrinkage)).mean(axis=1)
    usual = float(level_rows @ uncertainty / n_rows)
    spread = float(np.sqrt(level_rows @ (uncertainty - usual) ** 2 / n_rows))
    return Statistics(
        levels=tuple(column.levels[k] for k in found.levels),
        counts=found.counts,
        sums=np.ascontiguousarray(found.sums[:, chosen]),
        means=found.means[chosen],
        shrinkage=shrinkage,
        targets=tuple(int(k) for k in chosen),
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


def encode_training(
    parts: Parts[CodedRows], adjusted: Adjusted, chosen: Sequence[Encoded], last_group: int
) -> Parts[Array]:
    """The inputs (n, e) of training rows, with those of the chosen categories, where they lie."""
    folds = parts.total(_fold_sums, adjusted, chosen, last_group).values
    return parts.map(_insert, chosen, folds, last_group)


# -- what is asked of some rows --------------------------------------------------------------------


def _partial(rows: CodedRows, adjusted: Adjusted, residual: Array, j: int) -> Array:
    """What other columns than category j leave of the targets, (n, t)."""
    return np.asarray(residual + adjusted.effects[j][rows.codes[j]])


def _level_sums(rows: CodedRows, adjusted: Adjusted) -> Sums:
    residual, weight = adjusted.residual(rows), rows.weight[:, None]
    return Sums(
        tuple(
            level_sums(codes, weight * _partial(rows, adjusted, residual, j), len(effect))
            for j, (codes, effect) in enumerate(zip(rows.codes, adjusted.effects, strict=True))
        )
    )


def _squares(rows: CodedRows, adjusted: Adjusted, means: Sequence[Array]) -> Sums:
    residual = adjusted.residual(rows)
    return Sums(
        tuple(
            rows.weight @ (_partial(rows, adjusted, residual, j) - mean) ** 2
            for j, mean in enumerate(means)
        )
    )


def _keys(rows: CodedRows, own: Encoded, last_group: int) -> Codes:
    """The fold that each row is in, among those of all levels."""
    before = np.zeros(len(own.level_rows), np.int64)
    known = own.places >= 0
    before[own.places[known]] = rows.before[own.number][known]
    codes = own.places[rows.codes[own.number]]
    return fold_keys(codes, own.level_rows, rows.groups, last_group, before)


def _fold_sums(
    rows: CodedRows, adjusted: Adjusted, chosen: Sequence[Encoded], last_group: int
) -> Sums:
    """Weights, and sums of targets, of each fold of each level."""
    residual, found = adjusted.residual(rows), []
    for own in chosen:
        partial = _partial(rows, adjusted, residual, own.number)
        values = own.statistics.summands(partial, rows.weight)
        n_keys = len(own.level_rows) * N_FOLDS
        found.append(level_sums(_keys(rows, own, last_group), values, n_keys))
    return Sums(tuple(found))


def _insert(
    rows: CodedRows, chosen: Sequence[Encoded], folds: Sequence[Array], last_group: int
) -> Array:
    """The inputs with those that categories become, each row without its own fold."""
    inputs = rows.inputs
    # From the last column on, so that places before it stay.
    for own, sums in reversed(list(zip(chosen, folds, strict=True))):
        keys = _keys(rows, own, last_group)
        made = own.statistics.without_folds(keys // N_FOLDS, sums[keys, 0], sums[keys, 1:])
        parts = [inputs[:, : own.start], made, inputs[:, own.start :]]
        inputs = np.concatenate(parts, axis=1)
    return np.ascontiguousarray(inputs)
