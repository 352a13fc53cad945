# SPDX-License-Identifier: BSD-3-Clause
"""Boosted trees beside the local models: where targets jump, steps fit better than any kernel.

Trees predict a location without a scale. A prediction of the models moves a share of the way to it,
and becomes wider where both disagree (`lsgp.method.combination.blend_location`).

There is one fit for each fold of the rows, to all rows outside the fold. So every row is predicted
by trees that have not seen it. Queries are predicted by the mean of all fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.grow import Bins, Grown, Growth, Nodes, Watched, grow, grow_log_odds, join
from lsgp.compute.threads import run_blocks

Array = NDArray[np.float64]

#: The fold number of rows that no fit has seen.
UNSEEN = -1
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


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """One fit per fold, to the rows outside it, with unscaled inputs and scaled targets."""

    nodes: Nodes
    baseline: Array  # (folds, t) constant of each fit, to which its trees are added
    share: float  # of the trees in the location of a prediction
    folds: NDArray[np.int32]  # (n,) fold of each row
    held_out: Array  # (n, t) prediction of each row by the fit without its fold

    @property
    def n_trees(self) -> int:
        return len(self.nodes.roots)

    def by_fold(self, X: Array) -> Array:
        """Predictions of queries by each fit, (q, folds, t)."""
        return self.nodes.sums(X).reshape(len(X), *self.baseline.shape) + self.baseline

    def locate(self, X: Array) -> Array:
        """Predictions of queries by the mean of all fits, (q, t)."""
        return np.asarray(self.by_fold(X).mean(axis=1))

    def locate_without(self, X: Array, rows: NDArray[np.integer]) -> Array:
        """Predictions of queries (q, t), each by fits that have not seen the row ``rows`` (q,).

        A row of -1 stands for none: all fits predict.
        """
        folds = np.where(rows < 0, UNSEEN, self.folds[rows])
        t = self.baseline.shape[1]
        located = np.empty((len(X), t))
        for fold in np.unique(folds).tolist():
            queries = np.flatnonzero(folds == fold)
            if fold == UNSEEN:
                located[queries] = self.locate(X[queries])
            else:
                trees = self.nodes.only(t * fold, t * (fold + 1))
                located[queries] = trees.sums(X[queries]) + self.baseline[fold]
        return located

    def with_rows(self, X: Array) -> BoostedTrees:
        """The same trees for more rows, which no fit has seen."""
        unseen = np.full(len(X), UNSEEN, dtype=np.int32)
        return replace(
            self,
            folds=np.concatenate([self.folds, unseen]),
            held_out=np.concatenate([self.held_out, self.locate(X)]),
        )

    def keep_rows(self, kept: NDArray[np.bool_]) -> BoostedTrees:
        """The same trees for some of the rows, given by a mask (n,)."""
        return replace(self, folds=self.folds[kept], held_out=self.held_out[kept])


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
    rows, targets, own_folds = X[in_folds], y[in_folds], folds[in_folds]
    weights = None if weight is None else weight[in_folds]
    bins = Bins.of(rows, LEAVES[-1])  # they do not depend on targets
    binned = bins.number(rows)

    def fit_without(fold: int, n_leaves: int) -> tuple[Grown, ...]:
        """Trees of each target, fitted to all rows outside a fold."""
        growth = Growth(n_trees, n_leaves, FEWEST_IN_LEAF, LEARNING_RATE, patience=PATIENCE)
        is_seen = own_folds != fold
        held_out = np.flatnonzero(~is_seen)
        # Evenly spaced, because files may be sorted.
        some = np.linspace(0, len(held_out) - 1, min(len(held_out), N_WATCHED)).astype(np.intp)
        watched = held_out[np.unique(some)]
        weight = None if weights is None else weights[is_seen]
        if has_labels:
            known = Watched(binned[watched], targets[watched])
            weight = np.ones(int(is_seen.sum())) if weight is None else weight
            seen = binned[is_seen], targets[is_seen]
            return grow_log_odds(growth, bins, *seen, weight, known, check)
        return tuple(
            grow(
                growth,
                bins,
                binned[is_seen],
                column[is_seen],
                weight,
                Watched(binned[watched], column[watched]),
                check,
            )
            for column in targets.T
        )

    numbers = np.unique(own_folds).tolist()
    # The number of leaves is chosen on the first fold.
    sizes = leaves_of(len(in_folds))
    tried = [fit_without(numbers[0], n_leaves) for n_leaves in sizes]
    best = int(np.argmin([_mean_errors(fit).min() for fit in tried]))

    def fit_others(start: int, stop: int) -> list[tuple[Grown, ...]]:
        return [fit_without(fold, sizes[best]) for fold in numbers[1 + start : 1 + stop]]

    others = run_blocks(fit_others, len(numbers) - 1, 1, n_threads)
    fits = [tried[best], *(fit for part in others for fit in part)]
    return _join(X, y, folds, fits)


def leaves_of(n: int) -> list[int]:
    """Return the numbers of leaves that are tried for n rows."""
    least, most = ROWS_PER_LEAF
    if n > most * LEAVES[-1]:
        return [LEAVES[-1]]
    return [leaves for leaves in LEAVES if least * leaves <= n <= most * leaves] or [LEAVES[0]]


def _join(
    X: Array, y: Array, folds: NDArray[np.int64], fits: Sequence[tuple[Grown, ...]]
) -> BoostedTrees:
    """Join the fits of all folds, cut to the number of trees with the least held-out error."""
    errors = [_mean_errors(fit) for fit in fits]
    shortest = min(map(len, errors))
    n_trees = int(np.argmin(np.mean([error[:shortest] for error in errors], axis=0))) + 1
    grown = [each for fit in fits for each in fit]
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


def _mean_errors(fit: Sequence[Grown]) -> Array:
    """Held-out errors of a fit's targets by the number of trees, as far as all of them have it."""
    shortest = min(len(grown.errors) for grown in fit)
    return np.asarray(np.mean([grown.errors[:shortest] for grown in fit], axis=0))
