# SPDX-License-Identifier: BSD-3-Clause
"""What was fitted, for people and for programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from lsgp import LSGPRegressor
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.view import input_names, target_names


def describe_model(model: LSGPRegressor) -> dict[str, Any]:
    """Names, sizes, hyperparameters and tuning of a fitted estimator."""
    tuning = model.tuning_
    n_train, n_inputs = model.fitted_[0].problem.X.shape
    return {
        "targets": target_names(model.ensemble_),
        "features": input_names(model.ensemble_),
        "n_train": n_train,
        "n_inputs": n_inputs,
        "models": [_describe(fitted) for fitted in model.fitted_],
        "scale_factor": model.scale_factor_,
        "tuning": None
        if tuning is None
        else {
            "objective": tuning.objective,
            "loss": tuning.loss,
            "n_candidates": len(tuning.candidates),
            "n_compared": tuning.n_compared,
            "seconds": tuning.seconds,
            "is_complete": tuning.is_complete,
        },
    }


def describe_models(model: LSGPRegressor) -> list[tuple[str, str]]:
    """Lines about the models that are combined, heaviest first."""
    lines = []
    for k, fitted in enumerate(model.fitted_):
        description = _describe(fitted)
        size = fitted.solver.describe_source()
        weight = f", weight {fitted.weight:.2f}" if len(model.fitted_) > 1 else ""
        lines.append(
            (
                "" if k else "Models" if len(model.fitted_) > 1 else "Kernel",
                f"{description['kernel']}, {size}, {description['input_transform']} inputs, "
                f"{description['scale']} scale{weight}",
            )
        )
    return lines


def _describe(fitted: FittedModel) -> dict[str, Any]:
    model = fitted.model
    kinds = fitted.transform.kinds
    transform = kinds[0] if len(set(kinds)) == 1 else list(kinds)
    return {
        "weight": fitted.weight,
        "kernel": str(model.kernel),
        "localizer": model.localizer,
        "n_neighbors": fitted.n_neighbors,
        "bandwidth": model.bandwidth,
        "input_transform": transform or "untransformed",
        "scale": "local" if np.isfinite(model.scale_dof) else "global",
        "lengthscale": np.asarray(model.lengthscale),
        "signal_variance": model.signal_variance,
        "noise_variance": model.noise_variance,
        "constant_variance": model.constant_variance,
        "slope_variance": model.slope_variance,
        "localizer_decay": model.localizer_decay,
        "scale_dof": model.scale_dof,
    }
