# SPDX-License-Identifier: BSD-3-Clause
"""The settings of estimators, stored as they are given, and checked when they are used."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from lsgp.backends.contract import Resources
from lsgp.compute.memory import parse_memory_budget
from lsgp.compute.threads import resolve_n_jobs
from lsgp.inputs.given import (
    Columns,
    GivenAnisotropy,
    GivenKernel,
    GivenTransform,
    GivenTrend,
    RandomState,
)
from lsgp.tuning.effort_levels import LEVELS, Level
from lsgp.tuning.objective import Objective, objective_of

DTYPES = ("float64", "float32")


class EstimatorSettings(BaseEstimator):
    """What all estimators can be told."""

    def __init__(
        self,
        *,
        kernel: GivenKernel = "auto",
        localizer: str = "smooth",
        n_neighbors: int | str = "auto",
        neighbors: str = "exact",
        bandwidth: float | str = "adaptive",
        reach: float | str = "auto",
        trend: GivenTrend = "linear",
        scale: str = "auto",
        objective: str | None = "auto",
        lengthscale: ArrayLike | None = None,
        signal_variance: float | None = None,
        noise_variance: float | None = None,
        localizer_decay: float | None = None,
        scale_dof: float | None = None,
        effort: str = "balanced",
        n_tuning_points: int | None = None,
        n_models: int | None = None,
        max_tuning_time: float | None = None,
        warm_start: bool = False,
        input_transform: GivenTransform = "auto",
        categorical_features: Columns | Sequence[bool] | None = None,
        sphere: Columns | None = None,
        anisotropy: GivenAnisotropy = None,
        anisotropic_features: Columns | None = None,
        normalize_y: bool = True,
        prior_mean: float | None = None,
        normalize_localizer: bool | str = False,
        localizer_metric: str = "scaled",
        calibrate: bool = True,
        boosting: bool = True,
        backend: str = "auto",
        dtype: str = "float64",
        n_jobs: int | None = None,
        memory_budget: int | str = "1GB",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.localizer = localizer
        self.n_neighbors = n_neighbors
        self.neighbors = neighbors
        self.bandwidth = bandwidth
        self.reach = reach
        self.trend = trend
        self.scale = scale
        self.objective = objective
        self.lengthscale = lengthscale
        self.signal_variance = signal_variance
        self.noise_variance = noise_variance
        self.localizer_decay = localizer_decay
        self.scale_dof = scale_dof
        self.effort = effort
        self.n_tuning_points = n_tuning_points
        self.n_models = n_models
        self.max_tuning_time = max_tuning_time
        self.warm_start = warm_start
        self.input_transform = input_transform
        self.categorical_features = categorical_features
        self.sphere = sphere
        self.anisotropy = anisotropy
        self.anisotropic_features = anisotropic_features
        self.normalize_y = normalize_y
        self.prior_mean = prior_mean
        self.normalize_localizer = normalize_localizer
        self.localizer_metric = localizer_metric
        self.calibrate = calibrate
        self.boosting = boosting
        self.backend = backend
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.verbose = verbose

    def _check_settings(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype={self.dtype!r} is not one of {', '.join(map(repr, DTYPES))}.")
        if self.effort not in tuple(LEVELS):
            listed = ", ".join(map(repr, LEVELS))
            raise ValueError(f"effort={self.effort!r} is not one of {listed}.")
        for name in ("n_tuning_points", "n_models"):
            if getattr(self, name) is not None:
                self._require_whole(name, 1, ", or None")
        self._require_whole("verbose", 0)
        limit = self.max_tuning_time
        known = getattr(self, "prior_mean", None)
        if known is not None and (self._settings()["normalize_y"] or not np.isfinite(known)):
            raise ValueError(
                f"prior_mean={known!r} is the mean of y as it is, finite. Give normalize_y=False "
                "with it, or leave it out: the mean is then that of the rows."
            )
        if limit is not None and not (isinstance(limit, Real) and limit >= 0):
            raise ValueError(
                f"max_tuning_time={limit!r} must be a number of seconds, not negative, or None."
            )

    def _require_whole(self, name: str, least: int, more: str = "") -> None:
        value = getattr(self, name)
        if not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name}={value!r} must be a whole number of at least {least}{more}.")

    def _level(self) -> Level:
        """What the effort comes to, with what is given by hand in its place."""
        level = LEVELS[self.effort]
        if self.n_tuning_points is not None:
            level = level._replace(n_tuning_points=int(self.n_tuning_points))
        if self.n_models is not None:
            level = level._replace(n_models=int(self.n_models))
        return level

    def _settings(self) -> dict[str, Any]:
        """The settings that say what a local model is."""
        settings: dict[str, object] = self.get_params(deep=False)
        return settings

    def _objective(self, has_queries: bool) -> Objective:
        return objective_of(str(self.objective), has_queries)

    def _resources(self) -> Resources:
        return Resources(
            n_threads=resolve_n_jobs(self.n_jobs),
            memory_budget=parse_memory_budget(self.memory_budget),
            verbose=int(self.verbose),
        )
