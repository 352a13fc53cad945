# SPDX-License-Identifier: BSD-3-Clause
"""A model of rows on a cluster as a folder: a file for each partition, and one for what they share.

Files are safetensors files like those of other models. A folder appears under its name when it is
complete: before, its files lie in one beside it, which nobody loads.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import choose_backend
from lsgp.distributed.carriage import AnyPath, estimator_class
from lsgp.distributed.head import Head, PartModel, empty_model
from lsgp.distributed.parts import Numbers
from lsgp.distributed.regions import Boxes, Cut, Regions
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.transforms import InputTransform
from lsgp.method.contract import LocalModel
from lsgp.storage.estimator import (
    contradictions_explained,
    estimator_texts,
    read_ensemble,
    read_settings,
)
from lsgp.storage.model_file import (
    Contents,
    ModelFileError,
    read_model_file,
    write_model_file,
)
from lsgp.storage.models import read_model, write_model
from lsgp.storage.records import ArrayStore, Reader, write_record
from lsgp.storage.rules import require

MANIFEST = "manifest.lsgp"
WHOLE = "whole.lsgp"
#: Of the layout of the folder; raised when an older library could not read it.
LAYOUT = 1


def part_name(number: int) -> str:
    return f"partition-{number:05d}.lsgp"


@contextlib.contextmanager
def new_folder(target: AnyPath) -> Iterator[Path]:
    """A folder beside the target, which takes its place if the block succeeds."""
    path = Path(os.path.realpath(os.fsdecode(target)))
    if path.exists() and not path.is_dir():
        raise ModelFileError(f"{target!s} is a file. Give the path of a folder to save to.")
    if path.is_dir() and any(path.iterdir()) and not (path / MANIFEST).exists():
        raise ModelFileError(
            f"{target!s} is a folder that holds something else. Give the path of a new folder, or "
            "of one that holds a model."
        )
    mark = secrets.token_hex(4)
    made = path.with_name(f".{path.name}.{mark}.tmp")
    old = path.with_name(f".{path.name}.{mark}.old")
    made.mkdir(parents=True)
    try:
        yield made
        if path.exists():
            path.rename(old)
        made.rename(path)
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    finally:
        for rest in (made, old):
            shutil.rmtree(rest, ignore_errors=True)


# -- partitions --------------------------------------------------------------------------------


def write_part(part: PartModel, folder: str, number: int) -> str:
    """Write a partition, wherever it lies."""
    store = ArrayStore()
    models = [write_model(fitted, f"models.{k}", store) for k, fitted in enumerate(part.models)]
    numbers = store.add("numbers", part.numbers)
    state = {"partition": number, "numbers": numbers, "models": models}
    path = os.path.join(folder, part_name(number))
    write_model_file(path, Contents({"partition": json.dumps(state)}, store.arrays))
    return path


def read_part(path: str, backend: str) -> OpenPart:
    """A partition, memory-mapped."""
    contents = read_model_file(path, check_arrays=False)
    with contradictions_explained(path):
        state, reader = json.loads(contents.texts["partition"]), Reader(contents.arrays)
        models = tuple(
            read_model(reader, stored, f"models.{k}", backend, False)
            for k, stored in enumerate(state["models"])
        )
        return OpenPart(contents.arrays[state["numbers"]], models, path, backend)


class OpenPart(PartModel):
    """A partition of a file: other processes open it themselves."""

    path: str
    backend: str

    def __new__(
        cls, numbers: Numbers, models: tuple[FittedModel, ...], path: str, backend: str
    ) -> OpenPart:
        part = super().__new__(cls, numbers, models)
        part.path, part.backend = path, backend
        return part

    def __reduce__(self) -> tuple[Any, ...]:
        return read_part, (self.path, self.backend)


# -- what they share ---------------------------------------------------------------------------


class HeadModel(NamedTuple):
    """A model without rows, as the file of what partitions share keeps it."""

    transform: InputTransform
    model: LocalModel
    unit: NDArray[np.float64]  # (d,) of its indexes
    n_neighbors: int | None
    weight: float


def write_head(head: Head, folder: Path) -> None:
    """The last file, without which a folder is no model."""
    store = ArrayStore()
    estimator = head.estimator
    models = [
        write_record(
            HeadModel(fitted.transform, fitted.model, unit, fitted.n_neighbors, fitted.weight),
            f"models.{k}",
            store,
        )
        for k, (fitted, unit) in enumerate(zip(head.models, head.units, strict=True))
    ]
    cuts = head.regions.cuts
    regions = np.array([cut[:1] + cut[2:] for cut in cuts], np.int64).reshape(-1, 3)
    layout = {
        "layout": LAYOUT,
        "n_targets": estimator.ensemble_.n_targets,
        "dtype": estimator.ensemble_.dtype.name,
        "n_regions": head.regions.n_regions,
        "arrays": {
            name: store.add(f"layout.{name}", array)
            for name, array in {
                "cuts": regions,
                "thresholds": np.array([cut.threshold for cut in cuts]),
                "part_of_region": head.part_of_region,
                "low": head.boxes.low,
                "high": head.boxes.high,
                "sizes": np.array(head.sizes, np.int64),
            }.items()
        },
    }
    settings = estimator.get_params(deep=False)
    own = estimator_texts(type(estimator).__name__, settings, estimator.ensemble_, models, store)
    texts = {**own, "cluster": json.dumps(layout)}
    write_model_file(folder / MANIFEST, Contents(texts, store.arrays))


def read_head(folder: AnyPath) -> Head:
    """What the partitions of a folder share."""
    path = Path(os.path.realpath(os.fsdecode(folder)))
    if not (path / MANIFEST).exists():
        raise ModelFileError(
            f"{folder!s} holds no {MANIFEST}. Give the path of a folder that `save` of a "
            "DistributedModel has written."
        )
    contents = read_model_file(path / MANIFEST)
    with contradictions_explained(path / MANIFEST):
        state = json.loads(contents.texts["estimator"])
        layout = json.loads(contents.texts["cluster"])
        require(layout["layout"] == LAYOUT, f"layout {layout['layout']!r}")
        return _head_of(state, layout, contents.arrays)


def _head_of(state: dict[str, Any], layout: dict[str, Any], arrays: dict[str, Any]) -> Head:
    settings = read_settings(state)
    n_targets, dtype = layout["n_targets"], np.dtype(layout["dtype"])
    reader = Reader(arrays, {"t": n_targets})
    stored = [
        reader.read(HeadModel, record, f"models.{k}") for k, record in enumerate(state["models"])
    ]
    models = []
    for one in stored:
        require(one.weight >= 0.0, f"the weight of a model is {one.weight!r}")
        backend = choose_backend(settings["backend"], one.model).name
        models.append(
            empty_model(
                one.transform, one.model, one.n_neighbors, one.weight, backend, n_targets, dtype
            )
        )
    estimator = estimator_class(state["class"])()
    for name, value in settings.items():
        setattr(estimator, name, value)
    ensemble = read_ensemble(reader, state, models)
    estimator.n_features_in_ = ensemble.n_columns
    if ensemble.input_names is not None:
        estimator.feature_names_in_ = np.array(ensemble.input_names, dtype=object)
    estimator.ensemble_ = ensemble
    own = {name: np.array(arrays[stored]) for name, stored in layout["arrays"].items()}
    cuts = tuple(
        Cut(int(column), float(threshold), int(below), int(above))
        for (column, below, above), threshold in zip(own["cuts"], own["thresholds"], strict=True)
    )
    sizes = tuple(int(size) for size in own["sizes"])
    require(len(sizes) == len(own["low"]) == len(own["high"]), "boxes of other partitions")
    return Head(
        estimator,
        tuple(np.array(one.unit) for one in stored),
        Regions(cuts, layout["n_regions"]),
        own["part_of_region"],
        Boxes(own["low"], own["high"]),
        sizes,
    )
