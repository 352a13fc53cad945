# SPDX-License-Identifier: BSD-3-Clause
"""Boosted trees beside the local models: where targets jump, steps fit better than any kernel.

They say where an observation lies, not how far from there it may be: they move the location of a
prediction a share of the way to theirs (`lsgp.method.combination.lean`), and its scale stays that
of the models, wider where both disagree.

There is one fit for each fold of the rows, of all others, so that every row has a prediction by
trees that have not seen it. Queries have the mean of all fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.leaves import Nodes

Array = NDArray[np.float64]

#: The fold of rows that no fit has seen.
UNSEEN = -1


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """Fits of all rows but a fold each, in the inputs as they are and in scaled targets."""

    nodes: Nodes
    baseline: Array  # (folds, t): what the trees of a fit are added to
    share: float  # of them in the location of a prediction
    folds: NDArray[np.int32]  # (n,) of the rows of models
    held_out: Array  # (n, t): what the fit without a row's fold says of it

    @property
    def n_trees(self) -> int:
        return len(self.nodes.roots)

    def by_fold(self, X: Array) -> Array:
        """What each fit says of queries, (q, folds, t)."""
        return self.nodes.sums(X).reshape(len(X), *self.baseline.shape) + self.baseline

    def locate(self, X: Array) -> Array:
        """Of queries, (q, t)."""
        return np.asarray(self.by_fold(X).mean(axis=1))

    def locate_without(self, X: Array, rows: NDArray[np.integer]) -> Array:
        """Of queries, (q, t), each by fits that have not seen one row of ``rows`` (q,); -1: all."""
        folds = np.where(rows < 0, UNSEEN, self.folds[rows])
        located = np.empty((len(X), self.baseline.shape[1]))
        for fold in np.unique(folds).tolist():
            own = np.flatnonzero(folds == fold)
            located[own] = self.locate(X[own]) if fold == UNSEEN else self._by_one(fold, X[own])
        return located

    def _by_one(self, fold: int, X: Array) -> Array:
        """What the fit without a fold says of queries, (q, t)."""
        t = self.baseline.shape[1]
        return self.nodes.only(t * fold, t * (fold + 1)).sums(X) + self.baseline[fold]

    def with_rows(self, X: Array) -> BoostedTrees:
        """With more rows, which no fit has seen."""
        unseen = np.full(len(X), UNSEEN, dtype=np.int32)
        return replace(
            self,
            folds=np.concatenate([self.folds, unseen]),
            held_out=np.concatenate([self.held_out, self.locate(X)]),
        )

    def keep_rows(self, kept: NDArray[np.bool_]) -> BoostedTrees:
        """Without the other rows; the trees stay as they are."""
        return replace(self, folds=self.folds[kept], held_out=self.held_out[kept])
