# SPDX-License-Identifier: BSD-3-Clause
"""How the models of an ensemble, which predict one-hot columns, become probabilities of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.transforms import InputTransform
from lsgp.method.link import LinearLogits, Link
from lsgp.solvers.laplace import LaplaceGP

Array = NDArray[np.float64]


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
        Z = np.asarray(self.transform.transform(X), dtype=float) - self.center
        return self.gp.log_proba(Z)


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
