# SPDX-License-Identifier: BSD-3-Clause
"""Boosted trees beside the local models: where targets jump, steps fit better than any kernel.

Trees predict a location without a scale. A prediction of the models moves a share of the way to it,
and becomes wider where both disagree (`lsgp.method.combination.blend_location`).

There is one fit for each fold of the rows, to all rows outside the fold. So every row is predicted
by trees that have not seen it. Queries are predicted by the mean of all fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.grow import Nodes

Array = NDArray[np.float64]

#: The fold number of rows that no fit has seen.
UNSEEN = -1


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
