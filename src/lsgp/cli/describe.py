# SPDX-License-Identifier: BSD-3-Clause
"""What was fitted, for people and for programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from lsgp.cli.saved import Estimator, names_of_targets
from lsgp.ensemble.describe import COLUMNS, model_rows
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.view import input_names
from lsgp.inputs.projections import Kinds


def describe_model(model: Estimator) -> dict[str, Any]:
    """Names, sizes, hyperparameters and tuning of a fitted estimator."""
    tuning, known = model.tuning_, model.ensemble_.georeference
    own = model.ensemble_.classification
    return {
        "targets": names_of_targets(model),
        **({} if own is None else {"classes": own.class_names}),
        "features": input_names(model.ensemble_),
        "n_train": model.ensemble_.n_rows,
        "n_inputs": model.n_features_in_,
        "encoding": model.encoding_,
        "crs": None if known is None else known.crs,
        "models": [_describe(fitted) for fitted in model.fitted_],
        "scale_factor": model.scale_factor_,
        "tail": model.ensemble_.shape.tail,
        "contrast": model.ensemble_.shape.contrast,
        "is_noisy": model.ensemble_.shape.is_noisy,
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


def describe_models(model: Estimator) -> list[tuple[str, str]]:
    """Lines with the table of the models that are combined, heaviest first."""
    table = [COLUMNS, *model_rows(model.ensemble_)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    return [("" if k else "Models", line) for k, line in enumerate(lines)]


def _describe_kinds(kinds: Kinds) -> Any:
    return (kinds[0] if len(set(kinds)) == 1 else list(kinds)) or "untransformed"


def _describe(fitted: FittedModel) -> dict[str, Any]:
    model = fitted.model
    return {
        "weight": fitted.weight,
        "kernel": str(model.kernel),
        "localizer": model.localizer,
        "n_neighbors": fitted.n_neighbors,
        "bandwidth": model.bandwidth,
        "reach": model.reach,
        "input_transform": _describe_kinds(fitted.transform.input_kinds),
        "scale": "local" if np.isfinite(model.scale_dof) else "global",
        "lengthscale": fitted.lengthscale_of_inputs,
        "signal_variance": model.signal_variance,
        "noise_variance": model.noise_variance,
        "constant_variance": model.constant_variance,
        "slope_variance": model.slope_variance,
        "localizer_decay": model.localizer_decay,
        "scale_dof": model.scale_dof,
    }
