# SPDX-License-Identifier: BSD-3-Clause
"""Which categories tell something of the targets, and how far their levels are believed.

By the classic analysis of variance of what other columns leave of the targets (`adjustment`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from lsgp.inputs.encoding.adjustment import Adjusted, LevelSums, Plain, Scales, counted
from lsgp.inputs.encoding.categories import Statistics
from lsgp.inputs.encoding.columns import Column
from lsgp.inputs.encoding.facts import Facts, Sums
from lsgp.inputs.encoding.folds import N_FOLDS, deal, deal_groups, ranks_in_level
from lsgp.inputs.encoding.table import Given, Parts, total
from lsgp.inputs.transforms.exact_sums import exact_sums, level_sums, rounded

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: A category is left out if its levels would differ as much by chance with a larger probability.
LARGEST_P = 0.01
#: Shrinkage, in rows: between a level that is believed at once, and one that is never.
LEAST_SHRINKAGE, MOST_SHRINKAGE = 1e-3, 1e6
#: Numbers that a level has at most, where there are more targets or classes.
MOST_STATISTICS = 8
#: How sure a statistic is, is an input where that differs by this much among rows (0 is sure, 1 is
#: a level never seen).
LEAST_SPREAD_OF_DOUBT = 0.05
#: Rows at a time whose sums are exact.
BLOCK_ROWS = 1 << 16


class Deviations(NamedTuple):
    """What is left of targets, from its mean, over all rows."""

    means: Array  # (t,)
    sums: Array  # (k, t) of each level
    squares: Array  # (t,)
    counts: Array  # (k,) weight of the rows of each level


class Variances(NamedTuple):
    """One-way analysis of variance, for each of t targets."""

    among: Array  # (t,) variance of the effects of levels, beyond what chance makes
    within: Array  # (t,)
    ratio: Array  # (t,) F
    p_value: Array  # (t,)


def deviations(
    parts: Parts[Plain], adjusted: Adjusted, j: int, scales: Scales
) -> tuple[Parts[Array], Deviations]:
    """Of category j; with what other columns leave of the targets, (n, t), where rows lie."""
    partial = adjusted.residual.map(_partial, parts, j, adjusted.effects[j])
    unit, counts = adjusted.unit, adjusted.counts[j]
    first = total(partial, _first, parts, unit, scales)
    means = unit * scales.weight * rounded(first.values) / counts.sum()
    sums = total(partial, _level_sums, parts, j, len(counts), means, unit, scales)
    squares = total(partial, _squares, parts, means, unit, scales)
    return partial, Deviations(
        means,
        sums.rounded(unit * scales.weight),
        unit * unit * scales.weight * rounded(squares.values),
        counts,
    )


def analyze(found: Deviations, n_rows: int) -> Variances | None:
    """How far levels differ; None if there is nothing to tell it from."""
    counts = found.counts
    used = np.flatnonzero(counts > 0)
    weight, n_levels = counts.sum(), len(used)
    if n_levels < 2 or n_rows <= n_levels:
        return None
    between = (found.sums[used] ** 2 / counts[used, None]).sum(axis=0)
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
    column: Column, found: Deviations, level_rows: Codes, facts: Facts
) -> Statistics | None:
    """Statistics of the targets that levels differ in; None if they differ in none.

    ``level_rows`` (k,) says how many rows each level of the column has.
    """
    variances = analyze(found, facts.n)
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
    used = np.flatnonzero(found.counts > 0)
    counts = found.counts[used]
    doubt = (shrinkage / (counts[:, None] + shrinkage)).mean(axis=1)
    usual = float(level_rows[used] @ doubt / facts.n)
    spread = float(np.sqrt(level_rows[used] @ (doubt - usual) ** 2 / facts.n))
    return Statistics(
        name=column.name,
        levels=tuple(column.levels[k] for k in used),
        counts=counts,
        sums=np.ascontiguousarray(found.sums[np.ix_(used, chosen)]),
        means=found.means[chosen],
        shrinkage=shrinkage,
        targets=tuple(int(k) for k in chosen),
        has_doubt=spread > LEAST_SPREAD_OF_DOUBT,
        usual_doubt=usual,
        variance=variances.among,
        share_missing=0.0,
        n_targets=facts.n_targets,
    )


# -- training rows, each without its own fold ------------------------------------------------------


class FoldSums(NamedTuple):
    """Of each fold of each level."""

    counts: Array  # (k * N_FOLDS,)
    sums: Array  # (k * N_FOLDS, s)


def encode_training(
    rows: Parts[Given],
    parts: Parts[Plain],
    partial: Parts[Array],
    j: int,
    own: Statistics,
    level_rows: Codes,
    adjusted: Adjusted,
    facts: Facts,
    scales: Scales,
) -> Parts[Array]:
    """The inputs of training rows that category j becomes, where they lie."""
    used = np.flatnonzero(adjusted.counts[j] > 0)
    places = np.full(len(level_rows), -1)
    places[used] = np.arange(len(used))
    coded = parts.map(_coded, j, places)
    n_levels, dealt = len(used), level_rows[used]
    before = np.cumsum([np.zeros(n_levels, np.int64), *coded.each(_count, n_levels)], axis=0)
    first = parts.beside(list(before[:-1]))
    keys = coded.map(_keys, first, rows, facts.last_group, dealt)
    k = n_levels * N_FOLDS
    unit = adjusted.unit
    counts = total(keys, _fold_weights, parts, k, scales).rounded(scales.weight)[:, 0]
    arguments = (np.array(own.targets), own.means, k, unit, scales)
    sums = total(keys, _fold_sums, parts, partial, *arguments).rounded(unit * scales.weight)
    return keys.map(_without_folds, own, FoldSums(counts, sums))


# -- what is asked of some rows --------------------------------------------------------------------


def _partial(residual: Array, rows: Plain, j: int, effect: Array) -> Array:
    found: Array = residual + effect[rows.codes[j]]
    return found


def _share(rows: Plain, scales: Scales) -> Array:
    return (rows.weight / scales.weight)[:, None]


def _blocked(values: Array) -> Sums:
    sums = np.zeros((2, values.shape[1]), np.int64)
    for start in range(0, len(values), BLOCK_ROWS):
        sums += exact_sums(values[start : start + BLOCK_ROWS])
    return Sums(sums)


def _first(partial: Array, rows: Plain, unit: float, scales: Scales) -> Sums:
    return _blocked(partial * _share(rows, scales) / unit)


def _level_sums(
    partial: Array, rows: Plain, j: int, k: int, means: Array, unit: float, scales: Scales
) -> LevelSums:
    centered = (partial - means) * _share(rows, scales) / unit
    return LevelSums(level_sums(rows.codes[j], centered, k))


def _squares(partial: Array, rows: Plain, means: Array, unit: float, scales: Scales) -> Sums:
    return _blocked(((partial - means) / unit) ** 2 * _share(rows, scales))


def _coded(rows: Plain, j: int, places: Codes) -> Codes:
    found: Codes = places[rows.codes[j]]
    return found


def _count(codes: Codes, n_levels: int) -> Codes:
    return np.bincount(codes, minlength=n_levels)


def _keys(codes: Codes, before: Codes, rows: Given, last_group: int, level_rows: Codes) -> Codes:
    """Number of the fold that each row is in, among those of all levels."""
    if rows.groups is None:
        ranks = ranks_in_level(codes, len(level_rows)) + before[codes]
        folds = deal(codes, ranks, level_rows)
    else:
        folds = deal_groups(codes, rows.groups, last_group, level_rows)
    return codes * N_FOLDS + folds


def _fold_weights(keys: Codes, rows: Plain, k: int, scales: Scales) -> LevelSums:
    return LevelSums(level_sums(keys, counted(rows.weight, scales), k))


def _fold_sums(
    keys: Codes,
    rows: Plain,
    partial: Array,
    targets: Codes,
    means: Array,
    k: int,
    unit: float,
    scales: Scales,
) -> LevelSums:
    centered = (partial[:, targets] - means) * _share(rows, scales) / unit
    return LevelSums(level_sums(keys, centered, k))


def _without_folds(keys: Codes, own: Statistics, folds: FoldSums) -> Array:
    return own.without_folds(keys // N_FOLDS, folds.counts[keys], folds.sums[keys])
