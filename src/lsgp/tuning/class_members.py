# SPDX-License-Identifier: BSD-3-Clause
"""Classifiers that are pooled with models of labels: logistic regression, exact GPs, and trees.

Each is fitted to all rows. `held_out` predicts some rows (k, C), each by a fit without its fold.
`with_rows` and `keep_rows` return a member that follows rows behind the n that there were, and rows
that go, as far as it can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.grow import log_proba_of_odds
from lsgp.inputs.transforms import InputTransform
from lsgp.method.link import ClassRows, LinearLogits
from lsgp.solvers.boosted import BoostedTrees
from lsgp.solvers.laplace import LaplaceGP
from lsgp.solvers.log_odds import laplace_held_out, logistic_held_out

Array = NDArray[np.float64]
Rows = NDArray[np.integer]

#: Rows up to which GP classification follows added rows: more would take seconds.
MOST_TO_FOLLOW = 300


@dataclass(frozen=True, eq=False)
class LinearMember:
    """A logistic regression of all rows."""

    transform: InputTransform
    logits: LinearLogits
    ridge: float
    weight: float = 1.0  # in the pool

    def log_proba(self, X: Array) -> Array:
        return self.logits.log_proba(np.asarray(self.transform.transform(X), dtype=float))

    def held_out(self, X: Array, known: ClassRows, rows: Rows, folds: NDArray[np.int64]) -> Array:
        Z = np.asarray(self.transform.transform(X), dtype=float)
        return logistic_held_out(Z, known, self.ridge, rows, folds)

    def with_rows(self, X: Array, known: ClassRows, n: int) -> LinearMember:
        return self

    def keep_rows(self, kept: NDArray[np.bool_]) -> LinearMember:
        return self


@dataclass(frozen=True, eq=False)
class LaplaceMember:
    """GP classification of all rows by Laplace's approximation."""

    transform: InputTransform
    center: Array  # (d,) subtracted from the transformed inputs
    gp: LaplaceGP
    weight: float = 1.0  # in the pool

    def log_proba(self, X: Array) -> Array:
        return self.gp.log_proba(self._centered(X))

    def held_out(self, X: Array, known: ClassRows, rows: Rows, folds: NDArray[np.int64]) -> Array:
        return laplace_held_out(self.gp, self._centered(X), known, rows, folds)

    def with_rows(self, X: Array, known: ClassRows, n: int) -> LaplaceMember:
        gp, after = self.gp, n + len(X)
        if after > MOST_TO_FOLLOW:  # it stays, with as much less weight as it has fewer of the rows
            return replace(self, weight=n / after * self.weight)
        Z = np.concatenate([gp.Z, self._centered(X)])
        codes = np.concatenate([gp.codes, known.codes])
        weight = np.concatenate([gp.weight, known.weight])
        fitted = LaplaceGP.fit(gp.covariance, Z, codes, weight, gp.prior, gp.prior_share)
        return replace(self, gp=fitted)

    def keep_rows(self, kept: NDArray[np.bool_]) -> LaplaceMember:
        gp = self.gp
        kept = kept[: len(gp.Z)]  # the GP may not have all of the model's rows
        if kept.all():
            return self
        known = (gp.Z[kept], gp.codes[kept], gp.weight[kept], gp.prior, gp.prior_share)
        return replace(self, gp=LaplaceGP.fit(gp.covariance, *known))

    def _centered(self, X: Array) -> Array:
        return np.asarray(self.transform.transform(X), dtype=float) - self.center


@dataclass(frozen=True, eq=False)
class TreesMember:
    """Boosted trees of log odds."""

    trees: BoostedTrees
    weight: float = 1.0  # in the pool

    def log_proba(self, X: Array) -> Array:
        return log_proba_of_odds(self.trees.locate(X))

    def held_out(self, X: Array, known: ClassRows, rows: Rows, folds: NDArray[np.int64]) -> Array:
        return log_proba_of_odds(self.trees.held_out[rows])

    def with_rows(self, X: Array, known: ClassRows, n: int) -> TreesMember:
        return replace(self, trees=self.trees.with_rows(X))

    def keep_rows(self, kept: NDArray[np.bool_]) -> TreesMember:
        return replace(self, trees=self.trees.keep_rows(kept))


Member: TypeAlias = LinearMember | LaplaceMember | TreesMember
