# SPDX-License-Identifier: BSD-3-Clause
"""The settings of classifiers: those of all estimators, less what labels leave no choice in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from lsgp.estimators.settings import EstimatorSettings
from lsgp.inputs.given import (
    Columns,
    GivenAnisotropy,
    GivenKernel,
    GivenTransform,
    GivenTrend,
    RandomState,
)
from lsgp.inputs.settings import specify
from lsgp.tuning.objective import OBJECTIVES, Objective

CLASS_OBJECTIVES = ("auto", "log_loss")


class ClassifierSettings(EstimatorSettings):
    """What a classifier can be told."""

    def __init__(
        self,
        *,
        kernel: GivenKernel = "auto",
        localizer: str = "smooth",
        n_neighbors: int | str = "auto",
        neighbors: str = "exact",
        bandwidth: float | str = "adaptive",
        trend: GivenTrend = "linear",
        scale: str = "auto",
        objective: str | None = "auto",
        lengthscale: ArrayLike | None = None,
        signal_variance: float | None = None,
        noise_variance: float | None = None,
        localizer_decay: float | None = None,
        scale_dof: float | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
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
        normalize_localizer: bool = False,
        backend: str = "auto",
        dtype: str = "float64",
        n_jobs: int | None = None,
        memory_budget: int | str = "1GB",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            kernel=kernel,
            localizer=localizer,
            n_neighbors=n_neighbors,
            neighbors=neighbors,
            bandwidth=bandwidth,
            trend=trend,
            scale=scale,
            objective=objective,
            lengthscale=lengthscale,
            signal_variance=signal_variance,
            noise_variance=noise_variance,
            localizer_decay=localizer_decay,
            scale_dof=scale_dof,
            effort=effort,
            n_tuning_points=n_tuning_points,
            n_models=n_models,
            max_tuning_time=max_tuning_time,
            warm_start=warm_start,
            input_transform=input_transform,
            categorical_features=categorical_features,
            sphere=sphere,
            anisotropy=anisotropy,
            anisotropic_features=anisotropic_features,
            normalize_localizer=normalize_localizer,
            backend=backend,
            dtype=dtype,
            n_jobs=n_jobs,
            memory_budget=memory_budget,
            random_state=random_state,
            verbose=verbose,
        )
        # One-hot columns are always scaled, and links calibrated: not settings of a classifier.
        del self.normalize_y, self.prior_mean, self.calibrate, self.boosting
        self.class_weight = class_weight

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.objective is not None and self.objective not in CLASS_OBJECTIVES:
            listed = ", ".join(map(repr, CLASS_OBJECTIVES))
            raise ValueError(f"objective={self.objective!r} is not one of {listed}, or None.")

    def check_settings(self, n_inputs: int) -> None:
        """Refuse settings that `fit` would refuse, before there are rows.

        Examples
        --------
        >>> from lsgp import LSGPClassifier
        >>> LSGPClassifier(kernel="cubic").check_settings(2)
        Traceback (most recent call last):
        ...
        ValueError: kernel='cubic' is not one of ...
        """
        self._check_settings()
        specify(self._settings(), n_inputs)

    def _settings(self) -> dict[str, Any]:
        objective = None if self.objective is None else "squared_error"
        return {
            **super()._settings(),
            "normalize_y": True,
            "calibrate": True,
            "boosting": False,
            "objective": objective,
            "localizer_metric": "scaled",
            "reach": 1.0,
        }

    def _objective(self, has_queries: bool) -> Objective:
        return OBJECTIVES["log_loss"]
