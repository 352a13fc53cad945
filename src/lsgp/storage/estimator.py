# SPDX-License-Identifier: BSD-3-Clause
"""What `save` and `load` of the estimators write and read: settings and an ensemble."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.transforms import TargetScaler
from lsgp.storage import boosted, classes, encoding, georeference, records
from lsgp.storage.model_file import (
    Contents,
    ModelFileError,
    Path,
    damaged,
    read_model_file,
    write_model_file,
)
from lsgp.storage.projections import projection_record, read_projection
from lsgp.storage.shape import read_shape, shape_record
from lsgp.storage.values import decode, encode


def save_estimator(
    path: Path, class_name: str, settings: dict[str, object], ensemble: Ensemble
) -> None:
    """Write an estimator to one file."""
    store = records.ArrayStore()

    def models() -> list[dict[str, Any]]:
        return [
            records.fitted_model_record(fitted, f"models.{k}.", store)
            for k, fitted in enumerate(ensemble.models)
        ]

    state = estimator_state(class_name, settings, ensemble, models, store)
    write_model_file(path, Contents(estimator_texts(state), store.arrays))


def estimator_texts(state: dict[str, object]) -> dict[str, str]:
    """The texts of a file that holds such a state."""
    return {"library_version": _library_version(), "estimator": json.dumps(state)}


def estimator_state(
    class_name: str,
    settings: dict[str, object],
    ensemble: Ensemble,
    models: Callable[[], list[dict[str, object]]],
    store: records.ArrayStore,
) -> dict[str, Any]:
    """All that is known of an estimator, with its arrays in the store, in a fixed order.

    ``models`` makes the records of the models when it is their turn.
    """
    scaler, tuning = ensemble.target_scaler, ensemble.tuning
    return {
        "class": class_name,
        "parameters": {name: encode(value, name) for name, value in settings.items()},
        "n_features": ensemble.n_inputs,
        "feature_names": ensemble.input_names,
        "target_names": ensemble.target_names,
        "target_shape": [int(size) for size in ensemble.target_shape],
        "target_scaler": {
            "mean": store.add("target.mean", scaler.mean),
            "std": store.add("target.std", scaler.std),
        },
        "scale_factor": encode(ensemble.scale_factor, "scale_factor_"),
        "shape": shape_record(ensemble.shape),
        "mean_noise_variance": encode(ensemble.mean_noise_variance, "mean_noise_variance_"),
        "models": models(),
        "tuning": None if tuning is None else records.tuning_record(tuning, store),
        "groups": None
        if ensemble.groups is None
        else records.groups_record(ensemble.groups, store),
        "classification": classes.classification_record(ensemble.classification, store),
        "encoder": encoding.encoder_record(ensemble.encoder, store),
        "georeference": georeference.georeference_record(ensemble.georeference),
        "projection": projection_record(ensemble.projection),
        "boosted": boosted.boosted_record(ensemble.boosted, store),
    }


def saved_class(path: Path) -> str:
    """Name of the class of the estimator that a file holds."""
    contents = read_model_file(path, check_arrays=False)
    try:
        return str(json.loads(contents.texts["estimator"])["class"])
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, f"its contents contradict each other ({error!r})") from error


def load_estimator(
    path: Path, class_name: str, known: set[str], check_arrays: bool
) -> tuple[dict[str, Any], Ensemble]:
    """Settings and ensemble of a file; ``known`` are the settings that the class has."""
    contents = read_model_file(path, check_arrays)
    try:
        state = json.loads(contents.texts["estimator"])
        if state["class"] != class_name:
            raise ModelFileError(
                f"{path} holds a model of {state['class']}, not of {class_name}. Load it "
                f"with {state['class']}.load."
            )
        unknown = sorted(set(state["parameters"]) - known)
        if unknown:
            raise ModelFileError(
                f"{path} has the parameter {unknown[0]!r}, which this lsgp ({_library_version()}) "
                f"does not know. Update lsgp to {contents.texts.get('library_version')}, which "
                "saved it."
            )
        settings = read_settings(state)
        n_inputs = state["n_features"]
        projection = read_projection(state["projection"], n_inputs)
        n_inputs += 0 if projection is None else projection.n_added
        models = tuple(
            records.read_fitted_model(
                record, contents.arrays, n_inputs, settings["backend"], check_arrays, projection
            )
            for record in state["models"]
        )
        return settings, read_ensemble(state, contents.arrays, models)
    except ModelFileError:
        raise
    except Exception as error:
        # Whatever does not fit: a record of the wrong type, a missing name.
        fact = str(error) if isinstance(error, records.InvalidRecord) else repr(error)
        raise damaged(path, f"its contents contradict each other ({fact})") from error


def read_settings(state: dict[str, Any]) -> dict[str, Any]:
    """The settings of an estimator."""
    settings = {name: decode(value) for name, value in state["parameters"].items()}
    settings["backend"] = records.known_backend(settings["backend"])
    return settings


def read_ensemble(
    state: dict[str, Any], arrays: dict[str, Any], models: tuple[FittedModel, ...]
) -> Ensemble:
    """The ensemble of these models, checked."""
    n_inputs, input_names = state["n_features"], state["feature_names"]
    records.require(type(n_inputs) is int and n_inputs >= 1, f"{n_inputs!r} inputs")
    records.require(models, "no model")
    shapes = {(*fitted.problem.X.shape, *fitted.problem.y.shape) for fitted in models}
    records.require(len(shapes) == 1, f"models of different shapes {sorted(shapes)}")
    n_targets = models[0].problem.y.shape[1]
    shape = tuple(state["target_shape"])
    records.require(shape in ((), (n_targets,)), f"{n_targets} targets of shape {shape}")
    records.require(shape != () or n_targets == 1, f"{n_targets} targets of shape {shape}")
    encoder = encoding.read_encoder(state["encoder"], arrays, n_inputs, n_targets)
    if input_names is not None:
        n_named = n_inputs if encoder is None else encoder.n_columns
        _require_names(input_names, n_named, "inputs")
    target_names = state["target_names"]
    if target_names is not None:
        _require_names(target_names, n_targets, "targets")
    mean, std = (arrays[state["target_scaler"][name]] for name in ("mean", "std"))
    for array in (mean, std):
        records.require(array.shape == (n_targets,), f"target scale of shape {array.shape}")
        records.require(array.dtype == np.float64, f"target scale of {array.dtype}")
        records.require_finite("the scale of targets", array)
    records.require((std > 0).all(), "the scale of a target is not positive")
    scale_factor = decode(state["scale_factor"])
    records.require(isinstance(scale_factor, float), "scale_factor is no number")
    records.require(0 < scale_factor < math.inf, f"scale_factor is {scale_factor!r}")
    mean_noise = decode(state["mean_noise_variance"])
    is_mean = isinstance(mean_noise, float) and 0 < mean_noise < math.inf
    records.require(mean_noise is None or is_mean, "mean_noise_variance is not positive")
    tuning, groups = state["tuning"], state["groups"]
    n_rows, n_columns = models[0].problem.X.shape
    shape_of_predictions = read_shape(state["shape"])
    if tuning is not None:
        tuning = records.read_tuning(tuning, arrays, n_columns)
        tuning = replace(tuning, shape=shape_of_predictions)
    return Ensemble(
        models=models,
        target_scaler=TargetScaler(mean, std),
        scale_factor=scale_factor,
        target_shape=shape,
        input_names=input_names,
        target_names=target_names,
        mean_noise_variance=mean_noise,
        tuning=tuning,
        groups=None if groups is None else records.read_groups(groups, arrays, n_rows),
        classification=classes.read_classification(
            state["classification"],
            arrays,
            n_columns,
            (n_rows, len(models), n_targets),
            models[0].transform.projection,
        ),
        encoder=encoder,
        georeference=georeference.read_georeference(
            state["georeference"],
            n_inputs if encoder is None else encoder.n_columns,
            n_targets,
        ),
        shape=shape_of_predictions,
        boosted=boosted.read_boosted(state["boosted"], arrays, n_rows, n_inputs, n_targets),
    )


def _require_names(names: object, n: int, what: str) -> None:
    records.require(
        isinstance(names, list)
        and len(names) == n
        and all(isinstance(name, str) for name in names),
        f"{names!r} for {n} {what}",
    )


def _library_version() -> str:
    try:
        return version("lsgp")
    except PackageNotFoundError:  # a source tree that was never installed
        return "unknown"
