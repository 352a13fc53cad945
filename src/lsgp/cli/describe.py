# SPDX-License-Identifier: BSD-3-Clause
"""What was fitted, for people and for programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from lsgp.cli.saved import Estimator
from lsgp.ensemble.describe import describe_integrated, describe_laplace, describe_pooled_trees
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.view import input_names, target_names
from lsgp.inputs.projections import Kinds


def describe_model(model: Estimator) -> dict[str, Any]:
    """Names, sizes, hyperparameters and tuning of a fitted estimator."""
    tuning, known = model.tuning_, model.ensemble_.georeference
    return {
        **_describe_targets(model),
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


def _describe_targets(model: Estimator) -> dict[str, Any]:
    own = model.ensemble_.classification
    if own is None:
        return {"targets": target_names(model.ensemble_)}
    return {"targets": [own.label_name or "y"], "classes": own.class_names}


def describe_models(model: Estimator) -> list[tuple[str, str]]:
    """Lines about the models that are combined, heaviest first; one for those integrated over."""
    ensemble = model.ensemble_
    weighted = []
    for fitted in ensemble.chosen:
        description = _describe(fitted)
        size = fitted.solver.describe_source()
        text = (
            f"{description['kernel']}, {size}, {description['input_transform']} inputs, "
            f"{description['scale']} scale"
        )
        weighted.append((fitted.weight, text))
    if ensemble.integrated:
        share = sum(fitted.weight for fitted in ensemble.integrated)
        weighted.append((share, describe_integrated(ensemble)))
    own = ensemble.classification
    if own is not None:
        for member in own.linear:
            kinds = _describe_kinds(member.transform.input_kinds)
            text = f"logistic regression, all rows, {kinds} inputs, ridge {member.ridge:g}"
            weighted.append((member.weight, text))
        if own.laplace:
            share = sum(member.weight for member in own.laplace)
            weighted.append((share, describe_laplace(own.laplace)))
        weighted += [(member.weight, describe_pooled_trees(member)) for member in own.trees]
    weighted.sort(key=lambda one: -one[0])
    if len(weighted) == 1:
        return [("Kernel", weighted[0][1])]
    return [
        ("" if k else "Models", f"{text}, weight {weight:.2f}")
        for k, (weight, text) in enumerate(weighted)
    ]


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
