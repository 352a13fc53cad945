# SPDX-License-Identifier: BSD-3-Clause
"""How the models of an ensemble, which predict one-hot columns, become probabilities of classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.transforms import InputTransform
from lsgp.method.link import LinearLogits, Link
from lsgp.solvers.laplace import LaplaceGP

Array = NDArray[np.float64]


#: Rows up to which GP classification follows those that come: 22 members of 300 take .6 s.
MOST_TO_FOLLOW = 300


@dataclass(frozen=True, eq=False)
class LinearMember:
    """Logistic regression that is pooled with the models."""

    transform: InputTransform
    logits: LinearLogits
    ridge: float
    weight: float  # in the pool

    def log_proba(self, X: Array) -> Array:
        return self.logits.log_proba(np.asarray(self.transform.transform(X), dtype=float))


@dataclass(frozen=True, eq=False)
class LaplaceMember:
    """GP classification of the rows that were fitted, which is pooled with the models."""

    transform: InputTransform
    center: Array  # (d,) of the transformed inputs
    gp: LaplaceGP
    weight: float  # in the pool

    def log_proba(self, X: Array) -> Array:
        return self.gp.log_proba(self._centered(X))

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
class Classification:
    """What a classifier has beside its models, whose weights and those of the others sum to 1.

    Attributes
    ----------
    classes : array of shape (C,)
        The labels, sorted.
    links : tuple of Link
        One for each model, in their order.
    linear : tuple of LinearMember
    laplace : tuple of LaplaceMember
    label_name : str or None
        Name of the column of labels.
    """

    classes: NDArray[Any]
    links: tuple[Link, ...]
    linear: tuple[LinearMember, ...] = ()
    laplace: tuple[LaplaceMember, ...] = ()
    label_name: str | None = None

    @property
    def others(self) -> tuple[LinearMember | LaplaceMember, ...]:
        """Members of the pool that are no models of the ensemble."""
        return (*self.linear, *self.laplace)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def class_names(self) -> list[str]:
        return [str(label) for label in self.classes.tolist()]

    @property
    def prior(self) -> Array:
        """Shares of the classes (C,)."""
        return self.links[0].prior

    @property
    def laplace_share(self) -> float:
        """Of GP classification in the pool."""
        return sum(member.weight for member in self.laplace)

    def with_rows(
        self, X: Array, codes: NDArray[np.int64], weight: Array, n: int
    ) -> Classification:
        """With rows behind the n that there are.

        Where they are too many for GP classification, it stays what it is, with as much less of a
        share as it has fewer of the rows; the models' share is what is left.
        """
        after = n + len(X)
        if not self.laplace:
            return self
        if after <= MOST_TO_FOLLOW:
            followed = tuple(member.with_rows(X, codes, weight) for member in self.laplace)
            return replace(self, laplace=followed)
        before = self.laplace_share
        share = before * n / after
        grown = (1.0 - share) / (1.0 - before)
        return replace(
            self,
            linear=tuple(replace(one, weight=grown * one.weight) for one in self.linear),
            laplace=tuple(replace(one, weight=n / after * one.weight) for one in self.laplace),
        )

    def keep_rows(self, kept: NDArray[np.bool_]) -> Classification:
        """Without the rows that are not kept."""
        return replace(self, laplace=tuple(member.keep_rows(kept) for member in self.laplace))
