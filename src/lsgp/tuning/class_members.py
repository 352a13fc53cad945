# SPDX-License-Identifier: BSD-3-Clause
"""What is pooled with the models of labels: logistic regression, GP classification, and trees.

Each is fitted to all rows, and says what fits without a fold make of its rows.
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


@dataclass(frozen=True, eq=False)
class LinearMember:
    """Logistic regression of all rows."""

    transform: InputTransform
    logits: LinearLogits
    ridge: float
    weight: float = 1.0  # in the pool

    def log_proba(self, X: Array) -> Array:
        return self.logits.log_proba(np.asarray(self.transform.transform(X), dtype=float))

    def held_out(self, X: Array, known: ClassRows, rows: Rows, folds: NDArray[np.int64]) -> Array:
        """Log probabilities of some rows, (k, C), each by a fit without the rows of its fold."""
        Z = np.asarray(self.transform.transform(X), dtype=float)
        return logistic_held_out(Z, known, self.ridge, rows, folds)


@dataclass(frozen=True, eq=False)
class LaplaceMember:
    """GP classification of all rows by Laplace's approximation."""

    transform: InputTransform
    center: Array  # (d,) that is subtracted from the transformed inputs
    gp: LaplaceGP
    weight: float = 1.0  # in the pool

    def log_proba(self, X: Array) -> Array:
        return self.gp.log_proba(self._centered(X))

    def held_out(self, X: Array, known: ClassRows, rows: Rows, folds: NDArray[np.int64]) -> Array:
        """Log probabilities of some rows, (k, C), each by a fit without the rows of its fold."""
        return laplace_held_out(self.gp, self._centered(X), known, rows, folds)

    def with_rows(self, X: Array, codes: NDArray[np.int64], weight: Array) -> LaplaceMember:
        gp = self.gp
        Z = np.concatenate([gp.Z, self._centered(X)])
        known = (np.concatenate([gp.codes, codes]), np.concatenate([gp.weight, weight]))
        fitted = LaplaceGP.fit(gp.covariance, Z, *known, gp.prior, gp.prior_share)
        return replace(self, gp=fitted)

    def keep_rows(self, kept: NDArray[np.bool_]) -> LaplaceMember:
        gp = self.gp
        own = kept[: len(gp.Z)]  # of rows that came later it knows nothing
        if own.all():
            return self
        known = (gp.Z[own], gp.codes[own], gp.weight[own], gp.prior, gp.prior_share)
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
        """Log probabilities of some rows, (k, C), by trees that have not seen their own fold."""
        return log_proba_of_odds(self.trees.held_out[rows])

    def with_rows(self, X: Array) -> TreesMember:
        return replace(self, trees=self.trees.with_rows(X))

    def keep_rows(self, kept: NDArray[np.bool_]) -> TreesMember:
        return replace(self, trees=self.trees.keep_rows(kept))


Member: TypeAlias = LinearMember | LaplaceMember | TreesMember
