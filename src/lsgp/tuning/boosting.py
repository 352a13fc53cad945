# SPDX-License-Identifier: BSD-3-Clause
"""Gradient boosting by scikit-learn, fold by fold, and its trees as arrays of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import sklearn
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lsgp.backends.leaves import Nodes
from lsgp.compute.threads import INTERRUPT_POLL
from lsgp.solvers.boosted import UNSEEN, BoostedTrees
from lsgp.tuning.clock import Clock
from lsgp.tuning.linear import folds_of
from lsgp.tuning.plan import (
    CELLS_PER_THREAD,
    MOST_BOOSTED_ROWS,
    N_WATCHED,
    Boosting,
    plan_boosting,
)

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

Array = NDArray[np.float64]

#: Rows on which trees as arrays are compared with the fit that they are of.
N_CHECKED = 64


class UnknownTreesError(RuntimeError):
    """What scikit-learn keeps its trees in is not what we know."""


@dataclass(frozen=True, eq=False)
class FoldFit:
    """Trees of all rows but a fold, one fit for each target."""

    of_targets: tuple[HistGradientBoostingRegressor, ...]
    held_out: NDArray[np.intp]  # rows of the fold
    error_by_length: Array  # (n_trees,) mean square of the held-out errors, of so many trees
    n_threads: int

    def predict(self, X: Array, n_trees: int) -> Array:
        """(q, t), of the first trees."""
        with threads_of_openmp(self.n_threads):
            stages = [
                islice(fit.staged_predict(X), n_trees - 1, n_trees) for fit in self.of_targets
            ]
            return np.column_stack([next(stage) for stage in stages])


def threads_of_openmp(n_threads: int) -> AbstractContextManager[object]:
    """So many, whatever scikit-learn's trees are asked for.

    A tree of few rows takes microseconds: threads of OpenMP that wait for each other would take
    ten times as much (yacht on a busy machine: 3.6 instead of .4 s). The setting is one for each
    thread of ours.
    """
    limits: AbstractContextManager[object] = threadpool_limits(n_threads, user_api="openmp")
    return limits


@dataclass(frozen=True, eq=False)
class BoostingProblem:
    """Rows in the inputs as they are, in scaled targets, and how they are dealt into folds."""

    X: Array
    y: Array  # (n, t)
    weight: Array | None  # (n,); None: all alike
    folds: NDArray[np.int64]  # (n,); those of `UNSEEN` are in none
    plan: Boosting
    n_threads: int

    @classmethod
    def build(
        cls,
        X: Array,
        y: Array,
        noise: Array,
        groups: NDArray[np.integer] | None,
        seed: np.random.Generator,
        n_threads: int,
    ) -> BoostingProblem:
        n = len(X)
        plan = plan_boosting(min(n, MOST_BOOSTED_ROWS))
        folds = folds_of(n, groups, plan.n_folds)
        if n > MOST_BOOSTED_ROWS:
            folds[seed.permutation(n)[MOST_BOOSTED_ROWS:]] = UNSEEN
        is_alike = bool((noise == noise[0]).all())
        weight = None if is_alike else _relative(1.0 / np.maximum(noise, np.finfo(float).tiny))
        return cls(X, y, weight, folds, plan, _n_useful(min(n, MOST_BOOSTED_ROWS), X, n_threads))

    def fit_without(self, fold: int) -> FoldFit:
        """Trees of all rows but those of a fold."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        seen = np.flatnonzero((self.folds != fold) & (self.folds != UNSEEN))
        held_out = np.flatnonzero(self.folds == fold)
        fits = []
        with threads_of_openmp(self.n_threads):
            for j in range(self.y.shape[1]):
                booster = HistGradientBoostingRegressor(
                    max_iter=self.plan.n_trees,
                    learning_rate=self.plan.learning_rate,
                    max_leaf_nodes=self.plan.n_leaves,
                    min_samples_leaf=self.plan.n_rows_of_leaf,
                    l2_regularization=1.0,
                    early_stopping=False,
                    random_state=0,
                )
                weight = None if self.weight is None else self.weight[seen]
                fits.append(booster.fit(self.X[seen], self.y[seen, j], sample_weight=weight))
            watched = held_out[:N_WATCHED]
            errors = [
                [np.mean((said - self.y[watched, j]) ** 2) for said in fit.staged_predict(own)]
                for j, fit in enumerate(fits)
                for own in [self.X[watched]]
            ]
        return FoldFit(tuple(fits), held_out, np.mean(errors, axis=0), self.n_threads)

    def assemble(self, fits: Sequence[FoldFit]) -> BoostedTrees:
        """All folds' trees as arrays, as many as suit the rows that each has not seen."""
        error = np.mean([fit.error_by_length for fit in fits], axis=0)
        n_trees = int(np.argmin(error)) + 1
        boosters = [booster for fit in fits for booster in fit.of_targets]
        nodes = nodes_of(boosters, n_trees)
        baseline = np.array([float(np.ravel(b._baseline_prediction)[0]) for b in boosters])
        trees = BoostedTrees(
            nodes,
            baseline.reshape(len(fits), -1),
            0.0,
            self.folds.astype(np.int32),
            np.empty_like(self.y),
        )
        self._check(trees, fits, n_trees)
        for start in range(0, len(self.X), N_WATCHED):
            rows = np.arange(start, min(start + N_WATCHED, len(self.X)))
            trees.held_out[rows] = trees.locate_without(self.X[rows], rows)
        return trees

    def _check(self, trees: BoostedTrees, fits: Sequence[FoldFit], n_trees: int) -> None:
        rows = self.X[:N_CHECKED]
        own = trees.by_fold(rows)
        said = np.stack([fit.predict(rows, n_trees) for fit in fits], axis=1)
        if not np.allclose(own, said, rtol=1e-6, atol=1e-9):
            raise UnknownTreesError(
                f"scikit-learn {sklearn.__version__} evaluates its boosted trees in another way "
                "than lsgp knows."
            )


class Folds:
    """Fits of all folds, each made when it is asked for."""

    def __init__(self, boosting: BoostingProblem, clock: Clock) -> None:
        self.boosting, self.clock = boosting, clock

    def fit(self, fold: int) -> FoldFit:
        self.clock.check()
        return self.boosting.fit_without(fold)

    def close(self) -> None:
        """They are not asked for any more."""


class FoldsBeside(Folds):
    """The same, made one after another by a thread of their own, whatever else goes on."""

    def __init__(self, boosting: BoostingProblem, clock: Clock) -> None:
        super().__init__(boosting, clock)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lsgp-trees")
        fit = super().fit
        self._made = [self._thread.submit(fit, k) for k in range(boosting.plan.n_folds)]

    def fit(self, fold: int) -> FoldFit:
        while True:
            # With a timeout, because a wait without one ignores Ctrl-C on Windows.
            wait([self._made[fold]], timeout=INTERRUPT_POLL)
            if self._made[fold].done():
                return self._made[fold].result()

    def close(self) -> None:
        """The one that is being made ends by itself; nobody waits for it."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _n_useful(n: int, X: Array, n_threads: int) -> int:
    """Threads of OpenMP that trees of n rows are faster with."""
    return max(1, min(n_threads, n * X.shape[1] // CELLS_PER_THREAD))


def _relative(weight: Array) -> Array:
    return np.asarray(weight / weight.max())


def nodes_of(boosters: Sequence[HistGradientBoostingRegressor], n_trees: int) -> Nodes:
    """The first trees of each fit as arrays; scikit-learn does not say how it keeps them."""
    try:
        parts = list(_nodes_by_tree(boosters, n_trees))
        sizes = np.array([len(part) for part in parts], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        offset = np.repeat(starts, sizes)
        nodes = np.concatenate(parts)
        is_leaf = nodes["is_leaf"].astype(bool)
        own = np.arange(len(nodes))
        return Nodes(
            feature=np.where(is_leaf, -1, nodes["feature_idx"]).astype(np.int32),
            threshold=np.where(is_leaf, 0.0, nodes["num_threshold"]).astype(float),
            left=np.where(is_leaf, own, nodes["left"] + offset).astype(np.int32),
            right=np.where(is_leaf, own, nodes["right"] + offset).astype(np.int32),
            value=nodes["value"].astype(float),
            roots=starts.astype(np.int32),
            ends=n_trees * np.arange(1, len(boosters) + 1, dtype=np.int64),
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise UnknownTreesError(
            f"scikit-learn {sklearn.__version__} keeps its boosted trees in another way than lsgp "
            f"knows ({error})."
        ) from error


def _nodes_by_tree(
    boosters: Sequence[HistGradientBoostingRegressor], n_trees: int
) -> Iterator[NDArray[np.void]]:
    for booster in boosters:
        for (predictor,) in booster._predictors[:n_trees]:
            yield predictor.nodes
