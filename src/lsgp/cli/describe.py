# SPDX-License-Identifier: BSD-3-Clause
"""What was fitted, for people and for programs."""

from __future__ import annotations

from typing import Any

from lsgp.cli.estimators import Estimator, names_of_targets
from lsgp.ensemble.describe import COLUMNS, model_rows
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.view import input_names
from lsgp.tuning.result import TuningResult

#: Hyperparameters that are told as they are.
HYPERPARAMETERS = (
    *("localizer", "bandwidth", "reach", "signal_variance", "noise_variance", "constant_variance"),
    *("slope_variance", "localizer_decay", "scale_dof"),
)


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
        "tuning": None if tuning is None else _describe_tuning(tuning),
    }


def _describe_tuning(tuning: TuningResult) -> dict[str, Any]:
    own = ("objective", "loss", "n_compared", "seconds", "is_complete")
    return {
        "n_candidates": len(tuning.candidates),
        **{name: getattr(tuning, name) for name in own},
    }


def describe_models(model: Estimator) -> list[tuple[str, str]]:
    """Lines with the table of the models that are combined, heaviest first."""
    table = [COLUMNS, *model_rows(model.ensemble_)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    return [("" if k else "Models", line) for k, line in enumerate(lines)]


def _describe(fitted: FittedModel) -> dict[str, Any]:
    model = fitted.model
    kinds = fitted.transform.input_kinds
    return {
        "weight": fitted.weight,
        "kernel": str(model.kernel),
        "n_neighbors": fitted.n_neighbors,
        "input_transform": (kinds[0] if len(set(kinds)) == 1 else list(kinds)) or "untransformed",
        "scale": "local" if model.is_local_scale else "global",
        "lengthscale": fitted.lengthscale_of_inputs,
        **{name: getattr(model, name) for name in HYPERPARAMETERS},
    }
