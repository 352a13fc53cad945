# SPDX-License-Identifier: BSD-3-Clause
"""Boosted trees for each fold of the rows: every row has trees that have not seen it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.grow import Bins, Grown, Growth, Numbers, Watched, grow, grow_log_odds
from lsgp.backends.leaves import join
from lsgp.compute.threads import run_blocks
from lsgp.solvers.boosted import UNSEEN, BoostedTrees

Array = NDArray[np.float64]

#: Leaves of a tree that are tried, and between how many rows there are for each of them.
LEAVES, ROWS_PER_LEAF = (8, 31, 127), (50, 1000)
#: Rows in a leaf, at least.
FEWEST_IN_LEAF = 4
#: Trees that may be grown since a fold that they do not see was predicted best, and their step.
PATIENCE, LEARNING_RATE = 50, 0.1
#: Classes of labels, at most: each has trees of its own.
MOST_CLASSES = 10
#: Held-out rows of a fold by which the number of trees is chosen.
N_WATCHED = 4096


class FoldFit(NamedTuple):
    """Trees of all rows but those of a fold."""

    of_targets: tuple[Grown, ...]
    errors: Array  # (n_trees,) mean square of the held-out errors, or log loss, of so many trees


class _Rows(NamedTuple):
    """The rows that are in a fold, binned: where inputs are parted says nothing of targets."""

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
    """Trees of targets (n, t), without each fold; ``check`` is called now and then.

    Of labels, targets are 0 or 1, and trees are of their log odds.
    """
    dealt = np.flatnonzero(folds != UNSEEN)
    bins = Bins.of(X[dealt], LEAVES[-1])
    own = None if weight is None else weight[dealt]
    rows = _Rows(y[dealt], own, folds[dealt], bins, bins.number(X[dealt]), has_labels)
    numbers = np.unique(rows.folds).tolist()
    # The first fold says how large trees are.
    sizes = [_growth(n_trees, n) for n in leaves_of(len(dealt))]
    tried = [_fit_without(rows, numbers[0], growth, check) for growth in sizes]
    best = int(np.argmin([fit.errors.min() for fit in tried]))

    def fit_others(start: int, stop: int) -> list[FoldFit]:
        own = numbers[1 + start : 1 + stop]
        return [_fit_without(rows, fold, sizes[best], check) for fold in own]

    others = run_blocks(fit_others, len(numbers) - 1, 1, n_threads)
    fits = [tried[best], *(fit for part in others for fit in part)]
    return _assemble(X, y, folds, fits)


def leaves_of(n: int) -> list[int]:
    """Leaves of a tree that are tried for so many rows."""
    least, most = ROWS_PER_LEAF
    if n > most * LEAVES[-1]:
        return [LEAVES[-1]]
    return [leaves for leaves in LEAVES if least * leaves <= n <= most * leaves] or [LEAVES[0]]


def _growth(n_trees: int, n_leaves: int) -> Growth:
    return Growth(n_trees, n_leaves, FEWEST_IN_LEAF, LEARNING_RATE, patience=PATIENCE)


def _fit_without(rows: _Rows, fold: int, growth: Growth, check: Callable[[], None]) -> FoldFit:
    is_seen = rows.folds != fold
    held_out = np.flatnonzero(~is_seen)
    # Far from each other: files may be sorted.
    some = np.linspace(0, len(held_out) - 1, min(len(held_out), N_WATCHED)).astype(np.intp)
    watched = held_out[np.unique(some)]
    weight = None if rows.weight is None else rows.weight[is_seen]
    if rows.has_labels:
        known = Watched(rows.numbers[watched], rows.y[watched])
        own = np.ones(int(is_seen.sum())) if weight is None else weight
        y = rows.y[is_seen]
        of_columns = grow_log_odds(growth, rows.bins, rows.numbers[is_seen], y, own, known, check)
        return FoldFit(of_columns, of_columns[0].errors)
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
    """The trees of all folds as one, as many as suit the rows that each has not seen."""
    n_trees = int(np.argmin(_mean_errors([fit.errors for fit in fits]))) + 1
    grown = [each for fit in fits for each in fit.of_targets]
    trees = BoostedTrees(
        nodes=join([each.nodes.first(n_trees) for each in grown]),
        baseline=np.array([each.baseline for each in grown]).reshape(len(fits), -1),
        share=0.0,
        folds=folds.astype(np.int32),
        held_out=np.empty_like(y),
    )
    for start in range(0, len(X), N_WATCHED):
        own = slice(start, start + N_WATCHED)
        rows = np.arange(len(X))[own]
        trees.held_out[own] = trees.locate_without(X[own], rows)
    return trees


def _mean_errors(errors: Sequence[Array]) -> Array:
    """Of fits with as many trees as the shortest of them has."""
    shortest = min(map(len, errors))
    return np.asarray(np.mean([error[:shortest] for error in errors], axis=0))
