# SPDX-License-Identifier: BSD-3-Clause
"""Growing boosted trees for each fold of the rows, so that every row has trees without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.grow import Bins, Grown, Growth, Numbers, Watched, grow, grow_log_odds, join
from lsgp.compute.threads import run_blocks
from lsgp.solvers.boosted import UNSEEN, BoostedTrees

Array = NDArray[np.float64]

#: Numbers of leaves that are tried, and the least and largest number of rows per leaf.
LEAVES, ROWS_PER_LEAF = (8, 31, 127), (50, 1000)
#: Least number of rows in a leaf.
FEWEST_IN_LEAF = 4
#: Growing stops after so many trees without a better prediction of the held-out fold; step size.
PATIENCE, LEARNING_RATE = 50, 0.1
#: Largest number of classes, because each class has trees of its own.
MOST_CLASSES = 10
#: Number of held-out rows of a fold by which the number of trees is chosen.
N_WATCHED = 4096


class FoldFit(NamedTuple):
    """Trees fitted to all rows outside a fold."""

    by_target: tuple[Grown, ...]
    errors: Array  # (n_trees,) held-out mean squared error, or log loss, by the number of trees


class _Rows(NamedTuple):
    """The rows that belong to folds, with binned inputs; bins do not depend on targets."""

    y: Array  # (k, t)
    weight: Array | None  # (k,)
    folds: NDArray[np.int64]  # (k,)
    bins: Bins
    numbers: Numbers  # (k, d)
    has_labels: bool


def grow_folds(
    X: Array,
    y: Array,
    weight: Array | None,
    folds: NDArray[np.int64],
    n_trees: int,
    check: Callable[[], None],
    n_threads: int = 1,
    has_labels: bool = False,
) -> BoostedTrees:
    """Fit trees to targets (n, t) without each fold; ``check`` is called regularly to interrupt.

    With ``has_labels``, targets are 0 or 1, and the trees predict log odds.
    """
    in_folds = np.flatnonzero(folds != UNSEEN)
    bins = Bins.of(X[in_folds], LEAVES[-1])
    weight = None if weight is None else weight[in_folds]
    binned = bins.number(X[in_folds])
    rows = _Rows(y[in_folds], weight, folds[in_folds], bins, binned, has_labels)
    numbers = np.unique(rows.folds).tolist()
    # The number of leaves is chosen on the first fold.
    sizes = [_growth(n_trees, n) for n in leaves_of(len(in_folds))]
    tried = [_fit_without(rows, numbers[0], growth, check) for growth in sizes]
    best = int(np.argmin([fit.errors.min() for fit in tried]))

    def fit_others(start: int, stop: int) -> list[FoldFit]:
        block = numbers[1 + start : 1 + stop]
        return [_fit_without(rows, fold, sizes[best], check) for fold in block]

    others = run_blocks(fit_others, len(numbers) - 1, 1, n_threads)
    fits = [tried[best], *(fit for part in others for fit in part)]
    return _assemble(X, y, folds, fits)


def leaves_of(n: int) -> list[int]:
    """Return the numbers of leaves that are tried for n rows."""
    least, most = ROWS_PER_LEAF
    if n > most * LEAVES[-1]:
        return [LEAVES[-1]]
    return [leaves for leaves in LEAVES if least * leaves <= n <= most * leaves] or [LEAVES[0]]


def _growth(n_trees: int, n_leaves: int) -> Growth:
    return Growth(n_trees, n_leaves, FEWEST_IN_LEAF, LEARNING_RATE, patience=PATIENCE)


def _fit_without(rows: _Rows, fold: int, growth: Growth, check: Callable[[], None]) -> FoldFit:
    is_seen = rows.folds != fold
    held_out = np.flatnonzero(~is_seen)
    # Evenly spaced, because files may be sorted.
    some = np.linspace(0, len(held_out) - 1, min(len(held_out), N_WATCHED)).astype(np.intp)
    watched = held_out[np.unique(some)]
    weight = None if rows.weight is None else rows.weight[is_seen]
    if rows.has_labels:
        known = Watched(rows.numbers[watched], rows.y[watched])
        weight = np.ones(int(is_seen.sum())) if weight is None else weight
        numbers, y = rows.numbers[is_seen], rows.y[is_seen]
        by_target = grow_log_odds(growth, rows.bins, numbers, y, weight, known, check)
        return FoldFit(by_target, by_target[0].errors)
    fits = tuple(
        grow(
            growth,
            rows.bins,
            rows.numbers[is_seen],
            y[is_seen],
            weight,
            Watched(rows.numbers[watched], y[watched]),
            check,
        )
        for y in rows.y.T
    )
    return FoldFit(fits, _mean_errors([fit.errors for fit in fits]))


def _assemble(
    X: Array, y: Array, folds: NDArray[np.int64], fits: Sequence[FoldFit]
) -> BoostedTrees:
    """Join the fits of all folds, cut to the number of trees with the least held-out error."""
    n_trees = int(np.argmin(_mean_errors([fit.errors for fit in fits]))) + 1
    grown = [each for fit in fits for each in fit.by_target]
    trees = BoostedTrees(
        nodes=join([each.nodes.first(n_trees) for each in grown]),
        baseline=np.array([each.baseline for each in grown]).reshape(len(fits), -1),
        share=0.0,
        folds=folds.astype(np.int32),
        held_out=np.empty_like(y),
    )
    for start in range(0, len(X), N_WATCHED):
        part = slice(start, start + N_WATCHED)
        rows = np.arange(len(X))[part]
        trees.held_out[part] = trees.locate_without(X[part], rows)
    return trees


def _mean_errors(errors: Sequence[Array]) -> Array:
    """Mean errors of several fits, for each number of trees that all of them have."""
    shortest = min(map(len, errors))
    return np.asarray(np.mean([error[:shortest] for error in errors], axis=0))
