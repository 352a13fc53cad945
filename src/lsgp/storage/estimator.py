# SPDX-License-Identifier: BSD-3-Clause
"""What `save` and `load` of the estimators write and read: settings and an ensemble."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lsgp.backends import is_here
from lsgp.compute.text import warn_user
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.storage.model_file import (
    Contents,
    ModelFileError,
    Path,
    damaged,
    read_model_file,
    write_model_file,
)
from lsgp.storage.models import read_model, write_model
from lsgp.storage.records import ArrayStore, Reader, Stored, write_record
from lsgp.storage.rules import InvalidRecord, require
from lsgp.storage.values import decode, encode


def save_estimator(
    path: Path, class_name: str, settings: dict[str, object], ensemble: Ensemble
) -> None:
    """Write an estimator to one file."""
    store = ArrayStore()
    models = [write_model(fitted, f"models.{k}", store) for k, fitted in enumerate(ensemble.models)]
    texts = estimator_texts(class_name, settings, ensemble, models, store)
    write_model_file(path, Contents(texts, store.arrays))


def estimator_texts(
    class_name: str,
    settings: dict[str, object],
    ensemble: Ensemble,
    models: list[Stored],
    store: ArrayStore,
) -> dict[str, str]:
    """The texts of a file of an estimator with these models; its arrays are put in the store."""
    state = {
        "class": class_name,
        "parameters": {name: encode(value, name) for name, value in settings.items()},
        "models": models,
        "ensemble": write_record(ensemble, "", store),
    }
    return {"library_version": _library_version(), "estimator": json.dumps(state)}


def saved_class(path: Path) -> str:
    """Name of the class of the estimator that a file holds."""
    contents = read_model_file(path, check_arrays=False)
    with contradictions_explained(path):
        return str(json.loads(contents.texts["estimator"])["class"])


def load_estimator(
    path: Path, class_name: str, known: set[str], check_arrays: bool
) -> tuple[dict[str, Any], Ensemble]:
    """Settings and ensemble of a file; ``known`` are the settings that the class has."""
    contents = read_model_file(path, check_arrays)
    with contradictions_explained(path):
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
        reader = Reader(contents.arrays)
        models = [
            read_model(reader, stored, f"models.{k}", settings["backend"], check_arrays)
            for k, stored in enumerate(state["models"])
        ]
        return settings, read_ensemble(reader, state, models)


def read_settings(state: dict[str, Any]) -> dict[str, Any]:
    """The settings of an estimator; the backend is "auto" where there is no such backend here."""
    settings = {name: decode(value) for name, value in state["parameters"].items()}
    backend = settings["backend"]
    if backend != "auto" and not is_here(backend):
        warn_user(
            f"The model was saved on the backend {backend!r}, which is not here: it runs on "
            "another one."
        )
        settings["backend"] = "auto"
    return settings


def read_ensemble(reader: Reader, state: dict[str, Any], models: Sequence[FittedModel]) -> Ensemble:
    """The ensemble of these models, checked."""
    require(models, "no model")
    return reader.read(Ensemble, state["ensemble"], models=tuple(models))


@contextmanager
def contradictions_explained(path: Path) -> Iterator[None]:
    """Turn whatever does not fit in a file, whichever exception it raised, into one error."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception as error:
        fact = str(error) if isinstance(error, InvalidRecord) else repr(error)
        raise damaged(path, f"its contents contradict each other ({fact})") from error


def _library_version() -> str:
    try:
        return version("lsgp")
    except PackageNotFoundError:  # a source tree that was never installed
        return "unknown"
