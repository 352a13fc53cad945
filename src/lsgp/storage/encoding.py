# SPDX-License-Identifier: BSD-3-Clause
"""How columns became inputs, as a record of a model file, and back, checked."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.adjustment import MOST_CUBED, Adjustment
from lsgp.inputs.encoding.categories import OneHot, Order, Statistics
from lsgp.inputs.encoding.columns import KINDS
from lsgp.inputs.encoding.dates import PERIODS, Date, TimeOfDay
from lsgp.inputs.encoding.encoder import Encoder
from lsgp.inputs.encoding.encodings import Encoding, LeftOut, Number
from lsgp.inputs.encoding.missing import Imputation
from lsgp.storage.records import ArrayStore, Record, require, require_finite, require_number

TYPES: dict[str, Any] = {
    kind.__name__: kind for kind in (LeftOut, Number, Date, TimeOfDay, OneHot, Order, Statistics)
}
#: Fields that are arrays of the file; `levels` are the bytes of a JSON list, of any length.
ARRAYS = ("counts", "sums", "means", "shrinkage", "variance")
FLAGS = ("is_flagged", "has_rare", "has_doubt")
COUNTS = ("n_levels", "n_targets")
TEXTS = ("name", "why", "note")


def encoder_record(encoder: Encoder | None, store: ArrayStore) -> Record | None:
    if encoder is None:
        return None
    return {
        "has_names": encoder.has_names,
        "columns": [
            _encoding_record(each, f"encoding.{j}.", store)
            for j, each in enumerate(encoder.encodings)
        ],
        "imputation": _arrays_record(encoder.imputation, "imputation.", store),
        "adjustment": _arrays_record(encoder.adjustment, "adjustment.", store),
    }


def _encoding_record(encoding: Encoding, prefix: str, store: ArrayStore) -> Record:
    record: Record = {"type": type(encoding).__name__}
    for field in fields(encoding):  # type: ignore[arg-type]
        value = getattr(encoding, field.name)
        if field.name == "levels":
            as_bytes = np.frombuffer(json.dumps(list(value)).encode(), np.uint8)
            value = store.add(prefix + "levels", as_bytes)
        elif field.name in ARRAYS:
            value = store.add(prefix + field.name, value)
        elif isinstance(value, tuple):
            value = list(value)
        record[field.name] = value
    return record


def _arrays_record(
    own: Imputation | Adjustment | None, prefix: str, store: ArrayStore
) -> Record | None:
    if own is None:
        return None
    return {f.name: store.add(prefix + f.name, getattr(own, f.name)) for f in fields(own)}


def read_encoder(
    record: Record | None, arrays: dict[str, NDArray[Any]], n_inputs: int, n_targets: int
) -> Encoder | None:
    if record is None:
        return None
    require(isinstance(record["has_names"], bool), "has_names is neither true nor false")
    encodings = tuple(_read_encoding(one, arrays, n_targets) for one in record["columns"])
    encoder = Encoder(encodings, None, record["has_names"])
    n = len(encoder.inputs)
    require(n == n_inputs, f"columns become {n} inputs, and models have {n_inputs}")
    numbers = sum(isinstance(each, Number) for each in encodings)
    of_categories = (each for each in encodings if isinstance(each, Statistics | OneHot))
    e = n_inputs - sum(len(each.inputs) for each in of_categories)
    p = 1 + (e if e > MOST_CUBED else 3 * e)
    imputation = _read_arrays(
        record["imputation"],
        arrays,
        {"center": (numbers,), "scale": (numbers,), "coefficients": (2 * numbers, numbers)},
    )
    adjustment = _read_arrays(
        record["adjustment"],
        arrays,
        {"center": (e,), "scale": (e,), "coefficients": (p, n_targets)},
    )
    require(numbers == 0 or imputation is not None, "missing numbers have nothing to fill them")
    return Encoder(
        encodings,
        None if imputation is None else Imputation(**imputation),
        record["has_names"],
        None if adjustment is None else Adjustment(**adjustment),
    )


def _read_encoding(record: Record, arrays: dict[str, NDArray[Any]], n_targets: int) -> Encoding:
    kind = record["type"]
    require(kind in TYPES, f"unknown encoding {kind!r}")
    values = {
        name: _read_value(name, value, arrays) for name, value in record.items() if name != "type"
    }
    encoding: Encoding = TYPES[kind](**values)
    if isinstance(encoding, Statistics | OneHot):
        found = encoding.variance.shape
        require(found == (n_targets,), f"variance of {encoding.name!r} has shape {found}")
        require((encoding.variance >= 0).all(), f"variance of {encoding.name!r} is negative")
    if isinstance(encoding, Statistics):
        k, s = len(encoding.levels), len(encoding.targets)
        shapes = {"counts": (k,), "sums": (k, s), "means": (s,), "shrinkage": (s,)}
        for name, shape in shapes.items():
            found = getattr(encoding, name).shape
            require(found == shape, f"{name} of {encoding.name!r} has shape {found}")
        require((encoding.shrinkage > 0).all(), f"shrinkage of {encoding.name!r} is not positive")
        require((encoding.counts >= 0).all(), f"counts of {encoding.name!r} are negative")
        require(encoding.n_targets == n_targets, f"{encoding.name!r} is of other targets")
        is_target = all(0 <= j < n_targets for j in encoding.targets)
        require(is_target and s > 0, f"{encoding.name!r} has statistics of {encoding.targets}")
    return encoding


def _read_value(name: str, value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    if name == "levels":
        require(arrays[value].dtype == np.uint8, f"levels are of {arrays[value].dtype}")
        levels = json.loads(arrays[value].tobytes())
        is_list = isinstance(levels, list) and all(isinstance(level, str) for level in levels)
        require(is_list and len(set(levels)) == len(levels), "levels are not texts, each once")
        return tuple(levels)
    if name in ARRAYS:
        require(arrays[value].dtype == np.float64, f"{name} is of {arrays[value].dtype}")
        require_finite(name, arrays[value])
        return arrays[value]
    if name in FLAGS:
        require(isinstance(value, bool), f"{name} is {value!r}")
    elif name in COUNTS:
        require(type(value) is int and value >= 0, f"{name} is {value!r}")
    elif name in TEXTS:
        require(isinstance(value, str), f"{name} is {value!r}")
    elif name == "kind":
        require(value in KINDS, f"unknown kind of column {value!r}")
    elif name == "zone":
        require(value is None or isinstance(value, str), f"zone is {value!r}")
    elif name in ("share_missing", "usual_doubt"):
        require_number(name, value)
        require(value <= 1, f"{name} is {value!r}")
    elif name == "fill":
        require(isinstance(value, int | float) and np.isfinite(value), f"fill is {value!r}")
    elif name == "cycles":
        require(isinstance(value, list) and set(value) <= set(PERIODS), f"cycles are {value!r}")
        return tuple(value)
    elif name == "targets":
        is_list = isinstance(value, list) and all(type(each) is int for each in value)
        require(is_list, f"targets are {value!r}")
        return tuple(value)
    return value


def _read_arrays(
    record: Record | None, arrays: dict[str, NDArray[Any]], shapes: dict[str, tuple[int, ...]]
) -> dict[str, NDArray[Any]] | None:
    if record is None:
        return None
    own = {name: arrays[record[name]] for name in shapes}
    for name, shape in shapes.items():
        is_right = own[name].shape == shape and own[name].dtype == np.float64
        require(is_right, f"{name} has shape {own[name].shape}, not {shape}")
        require_finite(name, own[name])
    require((own["scale"] > 0).all(), "a scale is not positive")
    return own
