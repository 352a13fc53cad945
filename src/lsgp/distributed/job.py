# SPDX-License-Identifier: BSD-3-Clause
"""One fit on a cluster: what all of its steps are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from lsgp.backends.contract import Resources
from lsgp.distributed.carriage import Estimator
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.table import Table
from lsgp.inputs.encoding import Plan, Rows
from lsgp.inputs.specification import Specification
from lsgp.inputs.transforms import TargetScaler
from lsgp.tuning.classes.labels import Labels
from lsgp.tuning.effort_levels import Level
from lsgp.tuning.objective import Objective
from lsgp.tuning.problem import WarmStart

Array = NDArray[np.float64]


class Fittable(Estimator, Protocol):
    """What is asked of an estimator that is fitted here: what `fit` of it asks itself for."""

    objective: str | None
    sphere: object
    anisotropy: object
    backend: str
    dtype: str
    random_state: int | RandomState | None
    lengthscale: ArrayLike | None
    input_transform: object
    categorical_features: Sequence[int | str] | None
    noise_variance: float | None
    max_tuning_time: float | None

    def fit(self, X: object, y: object, **beside: object) -> Self: ...
    def _check_settings(self) -> None: ...
    def _check_numbers(self, X: object) -> Array: ...
    def _settings(self) -> dict[str, Any]: ...
    def _objective(self, has_queries: bool) -> Objective: ...
    def _resources(self) -> Resources: ...
    def _level(self) -> Level: ...
    def _choose_plan(self, rows: Rows) -> Plan: ...
    def _warn_if_slow(self, specification: Specification) -> None: ...
    def _warn_of_copies(self, n_copies: int, n_rows: int) -> None: ...
    def _check_targets(self, scaler: TargetScaler, y: Array) -> None: ...
    def _known_scaler(self, n_targets: int) -> TargetScaler: ...
    def _warm_starts(self, specification: Specification, X: Array) -> tuple[WarmStart, ...]: ...


class Classifier(Fittable, Protocol):
    """What is asked beside of one that predicts labels."""

    class_weight: Mapping[Any, float] | str | None

    def _link_rows(self, labels: Labels) -> NDArray[np.int64]: ...


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
