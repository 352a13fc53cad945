# SPDX-License-Identifier: BSD-3-Clause
"""Gradient boosting fold by fold: each fit has trees of all rows but those of a fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.grow import Bins, Grown, Growth, Numbers, Watched, grow
from lsgp.backends.leaves import join
from lsgp.compute.threads import INTERRUPT_POLL
from lsgp.solvers.boosted import UNSEEN, BoostedTrees
from lsgp.tuning.clock import Clock
from lsgp.tuning.linear import folds_of
from lsgp.tuning.plan import MOST_BOOSTED_ROWS, N_WATCHED, Boosting, plan_boosting

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FoldFit:
    """Trees of all rows but a fold, for each target."""

    of_targets: tuple[Grown, ...]
    held_out: NDArray[np.intp]  # rows of the fold
    error_by_length: Array  # (n_trees,) mean square of the held-out errors, of so many trees

    def predict(self, X: Array, n_trees: int) -> Array:
        """(q, t), of the first trees."""
        return np.column_stack([grown.predict(X, n_trees) for grown in self.of_targets])


@dataclass(frozen=True, eq=False)
class BoostingProblem:
    """Rows in the inputs as they are, in scaled targets, and how they are dealt into folds."""

    X: Array
    y: Array  # (n, t)
    weight: Array | None  # (n,); None: all alike
    folds: NDArray[np.int64]  # (n,); those of `UNSEEN` are in none
    plan: Boosting
    bins: Bins  # of all rows: where inputs are parted says nothing of targets
    numbers: Numbers  # (n, d)

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
        bins = Bins.of(X[folds != UNSEEN], plan.n_leaves)
        return cls(X, y, weight, folds, plan, bins, bins.number(X))

    def fit_without(self, fold: int, check: Callable[[], None]) -> FoldFit:
        """Trees of all rows but those of a fold; ``check`` may raise."""
        seen = np.flatnonzero((self.folds != fold) & (self.folds != UNSEEN))
        held_out = np.flatnonzero(self.folds == fold)
        watched = held_out[:N_WATCHED]
        plan = self.plan
        growth = Growth(plan.n_trees, plan.n_leaves, plan.n_rows_of_leaf, plan.learning_rate)
        weight = None if self.weight is None else self.weight[seen]
        fits = tuple(
            grow(
                growth,
                self.bins,
                self.numbers[seen],
                self.y[seen, j],
                weight,
                Watched(self.numbers[watched], self.y[watched, j]),
                check,
            )
            for j in range(self.y.shape[1])
        )
        return FoldFit(fits, held_out, np.mean([fit.errors for fit in fits], axis=0))

    def assemble(self, fits: Sequence[FoldFit]) -> BoostedTrees:
        """All folds' trees as one, as many as suit the rows that each has not seen."""
        error = np.mean([fit.error_by_length for fit in fits], axis=0)
        n_trees = int(np.argmin(error)) + 1
        grown = [each for fit in fits for each in fit.of_targets]
        trees = BoostedTrees(
            join([each.nodes.first(n_trees) for each in grown]),
            np.array([each.baseline for each in grown]).reshape(len(fits), -1),
            0.0,
            self.folds.astype(np.int32),
            np.empty_like(self.y),
        )
        for start in range(0, len(self.X), N_WATCHED):
            rows = np.arange(start, min(start + N_WATCHED, len(self.X)))
            trees.held_out[rows] = trees.locate_without(self.X[rows], rows)
        return trees


class Folds:
    """Fits of all folds, each made when it is asked for."""

    def __init__(self, boosting: BoostingProblem, clock: Clock) -> None:
        self.boosting, self.clock = boosting, clock

    def fit(self, fold: int) -> FoldFit:
        return self.boosting.fit_without(fold, self.clock.check)

    def close(self) -> None:
        """They are not asked for any more."""


class FoldsBeside(Folds):
    """The same, made by threads of their own, whatever else goes on."""

    def __init__(self, boosting: BoostingProblem, clock: Clock, n_threads: int) -> None:
        super().__init__(boosting, clock)
        self._threads = ThreadPoolExecutor(n_threads, thread_name_prefix="lsgp-trees")
        self._is_closed = False
        self._made = [self._threads.submit(self._fit, k) for k in range(boosting.plan.n_folds)]

    def _fit(self, fold: int) -> FoldFit:
        return self.boosting.fit_without(fold, self._check)

    def _check(self) -> None:
        if self._is_closed:
            raise InterruptedError("Nobody waits for these trees any more.")
        self.clock.check()

    def fit(self, fold: int) -> FoldFit:
        while True:
            # With a timeout, because a wait without one ignores Ctrl-C on Windows.
            wait([self._made[fold]], timeout=INTERRUPT_POLL)
            if self._made[fold].done():
                return self._made[fold].result()

    def close(self) -> None:
        """What is being made ends after a few trees; nobody waits for it."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
