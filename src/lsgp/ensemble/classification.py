# SPDX-License-Identifier: BSD-3-Clause
"""How the models of an ensemble, which predict one-hot columns, become probabilities of classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.method.link import Link
from lsgp.tuning.class_members import LaplaceMember, LinearMember, Member, TreesMember

Array = NDArray[np.float64]


#: Rows up to which GP classification follows those that come: 22 members of 300 take .6 s.
MOST_TO_FOLLOW = 300


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

    def with_rows(
        self, X: Array, codes: NDArray[np.int64], weight: Array, n: int
    ) -> Classification:
        """With rows behind the n that there are.

        Where they are too many for GP classification, it stays what it is, with as much less of a
        share as it has fewer of the rows; the models' share is what is left.
        """
        after = n + len(X)
        follows, before = after <= MOST_TO_FOLLOW, self.laplace_share
        share = before if follows else before * n / after
        rest = (1.0 - share) / (1.0 - before)

        def grown(one: Member) -> Member:
            if isinstance(one, LaplaceMember):
                if follows:
                    return one.with_rows(X, codes, weight)
                return replace(one, weight=n / after * one.weight)
            own = one.with_rows(X) if isinstance(one, TreesMember) else one
            return replace(own, weight=rest * one.weight)

        return replace(self, others=tuple(grown(one) for one in self.others))

    def keep_rows(self, kept: NDArray[np.bool_]) -> Classification:
        """Without the rows that are not kept."""

        def own(one: Member) -> Member:
            return one if isinstance(one, LinearMember) else one.keep_rows(kept)

        return replace(self, others=tuple(own(one) for one in self.others))
