# SPDX-License-Identifier: BSD-3-Clause
"""Gradient boosting fold by fold: each fit has trees of all rows but those of a fold."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.grow import Bins, Grown, Growth, Numbers, Watched, grow
from lsgp.backends.leaves import join
from lsgp.compute.interrupts import ThreadPool, result_of
from lsgp.compute.threads import run_blocks
from lsgp.solvers.boosted import UNSEEN, BoostedTrees
from lsgp.tuning.clock import Clock
from lsgp.tuning.folds import folds_of
from lsgp.tuning.trees.plan import MOST_BOOSTED_ROWS, N_WATCHED, Boosting, plan_boosting

Array = NDArray[np.float64]


class WarmTrees(NamedTuple):
    """What a previous fit has found of trees: how many a fit has, and of how many leaves."""

    n_trees: int
    n_leaves: int

    @classmethod
    def of(cls, trees: BoostedTrees) -> WarmTrees:
        return cls(trees.n_trees // trees.baseline.size, trees.nodes.n_leaves)

    def plan(self, plan: Boosting, more: float = 1.0) -> Boosting:
        """All of as many trees, or of so many times as many, rather than as many as pay."""
        n_trees = math.ceil(more * self.n_trees)
        return plan._replace(n_trees=n_trees, n_leaves=(self.n_leaves,), patience=n_trees)


@dataclass(frozen=True, eq=False)
class FoldFit:
    """Trees of all rows but a fold, for each target."""

    of_targets: tuple[Grown, ...]
    n_leaves: int
    held_out: NDArray[np.intp]  # rows of the fold
    error_by_length: Array  # (n_trees,) mean square of the held-out errors, of so many trees

    def predict(self, X: Array, n_trees: int) -> Array:
        """(q, t), of the first trees."""
        return np.column_stack([grown.predict(X, n_trees) for grown in self.of_targets])


def mean_error(errors: Sequence[Array]) -> Array:
    """Of fits with as many trees as the shortest of them has."""
    shortest = min(map(len, errors))
    return np.asarray(np.mean([error[:shortest] for error in errors], axis=0))


@dataclass(frozen=True, eq=False)
class BoostingProblem:
    """Rows in the inputs as they are, in scaled targets, and how they are dealt into folds."""

    X: Array
    y: Array  # (n, t)
    weight: Array | None  # (n,); None: all alike
    folds: NDArray[np.int64]  # (n,); those of `UNSEEN` are in none
    plan: Boosting
    dealt: NDArray[np.intp]  # (k,) rows that are in a fold
    bins: Bins  # of these: where inputs are parted says nothing of targets
    numbers: Numbers  # (k, d)

    @classmethod
    def build(
        cls,
        X: Array,
        y: Array,
        noise: Array,
        groups: NDArray[np.integer] | None,
        seed: np.random.Generator,
    ) -> BoostingProblem:
        n = len(X)
        plan = plan_boosting(min(n, MOST_BOOSTED_ROWS))
        folds = folds_of(n, groups, plan.n_folds)
        if n > MOST_BOOSTED_ROWS:
            folds[seed.permutation(n)[MOST_BOOSTED_ROWS:]] = UNSEEN
        is_alike = bool((noise == noise[0]).all())
        weight = None if is_alike else 1.0 / np.maximum(noise, np.finfo(float).tiny)
        dealt = np.flatnonzero(folds != UNSEEN)
        bins = Bins.of(X[dealt], max(plan.n_leaves))
        return cls(X, y, weight, folds, plan, dealt, bins, bins.number(X[dealt]))

    @property
    def is_possible(self) -> bool:
        """Whether every fold leaves rows to learn from; not if all are of one group."""
        own = self.folds[self.dealt]
        return bool((own != own[0]).any())

    def fit_without(self, fold: int, n_leaves: int, check: Callable[[], None]) -> FoldFit:
        """Trees of all rows but those of a fold; ``check`` may raise."""
        is_seen = self.folds[self.dealt] != fold
        seen, held_out = self.dealt[is_seen], self.dealt[~is_seen]
        numbers, watched = self.numbers[is_seen], _some(len(held_out))
        watched_numbers, plan = self.numbers[~is_seen][watched], self.plan
        growth = Growth(
            plan.n_trees,
            n_leaves,
            plan.n_rows_of_leaf,
            plan.learning_rate,
            patience=plan.patience,
        )
        weight = None if self.weight is None else self.weight[seen]
        fits = tuple(
            grow(
                growth,
                self.bins,
                numbers,
                self.y[seen, j],
                weight,
                Watched(watched_numbers, self.y[held_out[watched], j]),
                check,
            )
            for j in range(self.y.shape[1])
        )
        return FoldFit(fits, n_leaves, held_out, mean_error([fit.errors for fit in fits]))

    def assemble(
        self, fits: Sequence[FoldFit], check: Callable[[], None], n_threads: int = 1
    ) -> BoostedTrees:
        """All folds' trees as one, as many as suit the rows that each has not seen."""
        n_trees = int(np.argmin(mean_error([fit.error_by_length for fit in fits]))) + 1
        grown = [each for fit in fits for each in fit.of_targets]
        trees = BoostedTrees(
            join([each.nodes.first(n_trees) for each in grown]),
            np.array([each.baseline for each in grown]).reshape(len(fits), -1),
            0.0,
            self.folds.astype(np.int32),
            np.empty_like(self.y),
        )

        def locate(start: int, stop: int) -> None:
            check()
            own = slice(start, stop)
            trees.held_out[own] = trees.locate_without(self.X[own], np.arange(start, stop))

        for _ in run_blocks(locate, len(self.X), N_WATCHED, n_threads):
            pass
        return trees


def _some(n: int) -> NDArray[np.intp]:
    """Up to `N_WATCHED` numbers below n, far from each other: files may be sorted."""
    return np.unique(np.linspace(0, n - 1, min(n, N_WATCHED)).astype(np.intp))


class Folds:
    """Fits of all folds, each made when it is asked for.

    The first must be asked for before the others: their trees have as many leaves as suit it.
    """

    def __init__(self, boosting: BoostingProblem, clock: Clock) -> None:
        self.boosting, self.clock = boosting, clock
        self._n_leaves = boosting.plan.n_leaves

    def fit(self, fold: int) -> FoldFit:
        fits = [self.boosting.fit_without(fold, n, self.check) for n in self._n_leaves]
        best = min(fits, key=lambda fit: float(fit.error_by_length.min()))
        self._n_leaves = (best.n_leaves,)
        return best

    def check(self) -> None:
        self.clock.check()

    def close(self) -> None:
        """They are not asked for any more."""


class FoldsBeside(Folds):
    """The same, made by threads of their own, whatever else goes on."""

    def __init__(self, boosting: BoostingProblem, clock: Clock, n_threads: int) -> None:
        super().__init__(boosting, clock)
        self._threads = ThreadPool(n_threads, thread_name_prefix="lsgp-trees")
        self._is_closed = False
        self._made = [self._threads.submit(super().fit, 0)]
        others = range(1, boosting.plan.n_folds)
        self._made += [self._threads.submit(self._fit_after_first, k) for k in others]

    def _fit_after_first(self, fold: int) -> FoldFit:
        if len(self.boosting.plan.n_leaves) > 1:  # which of them, the first says
            result_of(self._made[0])
        return super().fit(fold)

    def check(self) -> None:
        if self._is_closed:
            raise InterruptedError("Nobody waits for these trees any more.")
        super().check()

    def fit(self, fold: int) -> FoldFit:
        return result_of(self._made[fold])

    def close(self) -> None:
        """What is being made ends after a few trees; nobody waits for it."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
