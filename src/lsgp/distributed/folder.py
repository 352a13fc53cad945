# SPDX-License-Identifier: BSD-3-Clause
"""A model of rows on a cluster as a folder: a file for each partition, and one for what they share.

Each is the file of an estimator, with a few arrays more. A folder appears under its name when it is
complete: before, its files lie in one beside it, which nobody loads.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lsgp.compute.files import AnyPath, replace_folder
from lsgp.distributed.partitioning import Boxes, Cut, Regions
from lsgp.distributed.partitions import Head, Partition, without_rows
from lsgp.distributed.rows import Numbers
from lsgp.distributed.transfer import Estimator, estimator_class, load
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.storage.estimator import contradictions_explained
from lsgp.storage.model_file import (
    Contents,
    ModelFileError,
    damaged,
    read_model_file,
    write_model_file,
)

MANIFEST = "manifest.lsgp"
WHOLE = "whole.lsgp"
#: Of the layout of the folder; raised when an older library could not read it.
LAYOUT = 1


def partition_name(number: int) -> str:
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
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_folder(path) as made:
        yield made


def _save(estimator: Estimator, path: Path, added: dict[str, Any]) -> None:
    """Write an estimator, with more arrays and one text."""
    estimator.save(path)
    saved = read_model_file(path, check_arrays=False)
    arrays = {f"cluster.{n}": own for n, own in added.items() if isinstance(own, np.ndarray)}
    layout = {name: own for name, own in added.items() if not isinstance(own, np.ndarray)}
    texts = {name: saved.texts[name] for name in ("library_version", "estimator")}
    texts["cluster"] = json.dumps({"layout": LAYOUT, **layout})
    write_model_file(path, Contents(texts, {**saved.arrays, **arrays}))


def _load(path: Path, check_arrays: bool) -> tuple[Estimator, dict[str, Any]]:
    """The estimator, memory-mapped, and its added arrays and texts."""
    estimator = load(path, check_arrays=False)
    contents = read_model_file(path, check_arrays)
    with contradictions_explained(path):
        added: dict[str, Any] = json.loads(contents.texts["cluster"])
    if added["layout"] != LAYOUT:
        raise damaged(path, f"its layout is {added['layout']!r}")
    arrays = contents.arrays.items()
    added.update({n.removeprefix("cluster."): own for n, own in arrays if n.startswith("cluster.")})
    return estimator, added


def write_partition(part: Partition, head: Head, folder: str, number: int) -> None:
    """Write a partition, wherever it lies, as a regressor of its rows."""
    shared = head.estimator.ensemble_
    estimator = estimator_class("LSGPRegressor")()
    estimator.backend = head.estimator.backend
    estimator.ensemble_ = Ensemble(part.models, shared.target_scaler, 1.0, (shared.n_targets,))
    _save(estimator, Path(folder) / partition_name(number), {"numbers": part.numbers})


def read_partition(path: str) -> OpenPartition:
    """A partition, memory-mapped."""
    estimator, added = _load(Path(path), check_arrays=False)
    return OpenPartition(added["numbers"], estimator.ensemble_.models, path)


class OpenPartition(Partition):
    """A partition of a file: other processes open it themselves."""

    path: str

    def __new__(cls, numbers: Numbers, models: tuple[FittedModel, ...], path: str) -> OpenPartition:
        part = super().__new__(cls, numbers, models)
        part.path = path
        return part

    def __reduce__(self) -> tuple[Any, ...]:
        return read_partition, (self.path,)


def write_head(head: Head, folder: Path) -> None:
    """The last file, without which a folder is no model."""
    cuts = head.regions.cuts
    added = {
        "n_neighbors": [fitted.n_neighbors for fitted in head.models],
        "n_regions": head.regions.n_regions,
        "cuts": np.array([cut[:1] + cut[2:] for cut in cuts], np.int64).reshape(-1, 3),
        "thresholds": np.array([cut.threshold for cut in cuts]),
        "part_of_region": head.part_of_region,
        "low": head.boxes.low,
        "high": head.boxes.high,
        "sizes": np.array(head.sizes, np.int64),
    }
    _save(head.estimator, folder / MANIFEST, added)


def read_head(folder: AnyPath) -> Head:
    """What the partitions of a folder share."""
    path = Path(os.path.realpath(os.fsdecode(folder))) / MANIFEST
    if not path.exists():
        raise ModelFileError(
            f"{folder!s} holds no {MANIFEST}. Give the path of a folder that `save` of a "
            "DistributedModel has written."
        )
    estimator, added = _load(path, check_arrays=True)
    with contradictions_explained(path):
        own = {n: np.array(each) for n, each in added.items() if isinstance(each, np.ndarray)}
        ends = zip(own["cuts"].tolist(), own["thresholds"].tolist(), strict=True)
        cuts = tuple(Cut(column, at, below, above) for (column, below, above), at in ends)
        regions, boxes = Regions(cuts, added["n_regions"]), Boxes(own["low"], own["high"])
        pairs = zip(estimator.ensemble_.models, added["n_neighbors"], strict=True)
        models = tuple(without_rows(fitted, size) for fitted, size in pairs)
        estimator.ensemble_ = replace(estimator.ensemble_, models=models)
        sizes = tuple(own["sizes"].tolist())
        if not len(sizes) == len(boxes.low) == len(boxes.high):
            raise ValueError("boxes of other partitions")
        return Head(estimator, regions, own["part_of_region"], boxes, sizes)
