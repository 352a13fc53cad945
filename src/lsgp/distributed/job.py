# SPDX-License-Identifier: BSD-3-Clause
"""One fit on a cluster: what all of its steps are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from lsgp.backends.contract import Resources
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.table import Table
from lsgp.distributed.transfer import Estimator
from lsgp.ensemble.ensemble import Ensemble
from lsgp.inputs.coordinates import Rotated, Sphere
from lsgp.inputs.encoding import Plan, Rows
from lsgp.solvers.objective import Objective
from lsgp.tuning.budget import Budget

Array = NDArray[np.float64]


class Fittable(Estimator, Protocol):
    """What is asked of an estimator that is fitted here: what `fit` of it asks itself for."""

    objective: str | None
    coordinates: Rotated | Sphere | None
    backend: str
    dtype: str
    random_state: int | RandomState | None
    input_transform: object
    prior_mean: float | str
    max_time: float | None
    warm_start: bool
    ensemble_: Ensemble

    def fit(self, X: object, y: object, **beside: object) -> Self: ...
    def _check_settings(self) -> None: ...
    def _settings(self) -> dict[str, Any]: ...
    def _flat(self) -> dict[str, Any]: ...
    def _listed_categories(self) -> Sequence[int | str] | None: ...
    def _objective(self, has_queries: bool) -> Objective: ...
    def _resources(self) -> Resources: ...
    def _budget(self) -> Budget: ...
    def _choose_plan(self, rows: Rows) -> Plan: ...


class Classifier(Fittable, Protocol):
    """What is asked beside of one that predicts labels."""

    class_weight: Mapping[Any, float] | str | None


@dataclass(frozen=True)
class Job:
    """What is to be fitted, to what, and where."""

    estimator: Fittable
    classifier: Classifier | None  # the estimator, if it predicts labels
    table: Table
    cluster: Cluster

    @property
    def is_of_labels(self) -> bool:
        return self.classifier is not None
