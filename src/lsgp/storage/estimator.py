# SPDX-License-Identifier: BSD-3-Clause
"""What `save` and `load` of the estimators write and read: settings, models and an ensemble."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lsgp.backends import choose_backend, is_here
from lsgp.compute.text import warn_user
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.transforms import InputTransform
from lsgp.method.contract import LocalProblem
from lsgp.search.index import NeighborIndex
from lsgp.solvers.choose import choose_solver
from lsgp.storage.model_file import (
    Contents,
    ModelFileError,
    Path,
    damaged,
    read_model_file,
    write_model_file,
)
from lsgp.storage.records import ArrayStore, Reader, Stored, write_record
from lsgp.storage.rules import InvalidRecord, Rule, require
from lsgp.storage.trees import check_index
from lsgp.storage.values import decode, encode


@dataclass(frozen=True, eq=False)
class StoredModel:
    """What files keep of a `FittedModel`, without its solver; the rest is made of it."""

    transform: InputTransform
    problem: LocalProblem
    index: NeighborIndex
    n_neighbors: int | None
    weight: float
    is_integrated: bool


def save_estimator(
    path: Path, class_name: str, settings: dict[str, object], ensemble: Ensemble
) -> None:
    """Write an estimator to one file."""
    store = ArrayStore()
    state = {
        "class": class_name,
        "parameters": {name: encode(value, name) for name, value in settings.items()},
        "models": [write_model(own, f"models.{k}", store) for k, own in enumerate(ensemble.models)],
        "ensemble": write_record(ensemble, "", store),
    }
    texts = {"library_version": _library_version(), "estimator": json.dumps(state)}
    write_model_file(path, Contents(texts, store.arrays))


def write_model(fitted: FittedModel, name: str, store: ArrayStore) -> Stored:
    """The model as JSON; its arrays are put in the store."""
    index = fitted.index.compact()  # as live updates have left it, it may be in parts
    if not isinstance(index, NeighborIndex):
        raise TypeError(f"{index.describe()} is not in one tree.")
    n = None if fitted.n_neighbors is None else min(fitted.n_neighbors, index.n)
    own = (fitted.transform, fitted.problem, index, n, fitted.weight, fitted.is_integrated)
    return write_record(StoredModel(*own), name, store)


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
        settings = {name: decode(value) for name, value in state["parameters"].items()}
        backend = settings["backend"]
        if backend != "auto" and not is_here(backend):
            warn_user(
                f"The model was saved on the backend {backend!r}, which is not here: it runs on "
                "another one."
            )
            settings["backend"] = backend = "auto"
        reader = Reader(contents.arrays)
        models = tuple(
            read_model(reader, stored, f"models.{k}", backend, check_arrays)
            for k, stored in enumerate(state["models"])
        )
        require(models, "no model")
        return settings, reader.read(Ensemble, state["ensemble"], models=models)


def read_model(
    reader: Reader, stored: Stored, name: str, backend: str, check_values: bool
) -> FittedModel:
    """The model, checked, for the backend of this name.

    ``check_values`` reads all of the arrays, once: every row must be a number, and be found.
    """
    own = reader.read(StoredModel, stored, name)
    problem, model = own.problem, own.problem.model
    n = len(problem.X)
    if check_values:
        Rule().check(f"{name}.X", problem.X, {})
        Rule().check(f"{name}.y", problem.y, {})
        # Infinite where a sample weight was next to nothing, in single precision.
        Rule(0.0, math.inf).check(f"{name}.noise", problem.noise, {})
    Rule(0.0).check(f"{name}.weight", own.weight, {})
    if model.bandwidth is None:
        is_size = own.n_neighbors is not None and 1 <= own.n_neighbors <= n
        require(is_size, f"n_neighbors is {own.n_neighbors!r} for {n} rows")
    else:
        require(own.n_neighbors is None, "n_neighbors is given beside a bandwidth")
    check_index(own.index, problem.X, check_values)
    solver = choose_solver(problem, own.index, own.n_neighbors, choose_backend(backend, model))
    return FittedModel(own.transform, solver, own.weight, own.is_integrated)


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
