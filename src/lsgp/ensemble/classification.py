# SPDX-License-Identifier: BSD-3-Clause
"""How the models of an ensemble, which predict one-hot columns, become probabilities of classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.method.link import ClassRows, Link
from lsgp.tuning.class_members import LaplaceMember, LinearMember, Member, TreesMember

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Classification:
    """What a classifier has beside its models, whose weights and those of the others sum to 1.

    Attributes
    ----------
    classes : array of shape (C,)
        The labels, sorted.
    links : tuple of Link
        One for each model, in their order.
    others : tuple
        Members of the pool that are no models of the ensemble.
    label_name : str or None
        Name of the column of labels.
    """

    classes: NDArray[Any]
    links: tuple[Link, ...]
    others: tuple[Member, ...] = ()
    label_name: str | None = None

    @property
    def linear(self) -> list[LinearMember]:
        return [one for one in self.others if isinstance(one, LinearMember)]

    @property
    def laplace(self) -> list[LaplaceMember]:
        return [one for one in self.others if isinstance(one, LaplaceMember)]

    @property
    def trees(self) -> list[TreesMember]:
        return [one for one in self.others if isinstance(one, TreesMember)]

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

    def with_rows(self, X: Array, known: ClassRows, n: int) -> Classification:
        """With rows behind the n that there are; what GP classification loses, the others share."""
        before, others = (
            self.laplace_share,
            tuple(one.with_rows(X, known, n) for one in self.others),
        )
        rest = (1.0 - replace(self, others=others).laplace_share) / (1.0 - before)
        weighted = (
            one if isinstance(one, LaplaceMember) else replace(one, weight=rest * one.weight)
            for one in others
        )
        return replace(self, others=tuple(weighted))

    def keep_rows(self, kept: NDArray[np.bool_]) -> Classification:
        """Without the rows that are not kept."""
        return replace(self, others=tuple(one.keep_rows(kept) for one in self.others))
