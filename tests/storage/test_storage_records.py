# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of record that a file may hold is refused when it makes no sense."""

import json
from dataclasses import make_dataclass
from types import GenericAlias
from typing import Any, TypeVar

import numpy as np
import pytest
from model_files import as_text, change_at, first, item, own_contents, rewrite, shorter
from storage_cases import MODELS, D, N, table

from lsgp import ModelFileError
from lsgp.storage.records import ArrayStore, Reader, write_record
from lsgp.storage.rules import InvalidRecord


def test_arrays_share_a_place_only_if_all_of_them_is_alike():
    store, first = ArrayStore(), np.arange(100.0)
    last = np.append(first[:-1], -1.0)
    names = [store.add(name, array) for name, array in (("a", first), ("b", last))]
    assert names == ["a", "b"]
    assert store.add("c", last.copy()) == "b"
    np.testing.assert_array_equal(store.arrays["b"], last)


BOOSTED, GROUPS = "ensemble.boosted", "ensemble.groups"
POOL, MODEL = "ensemble.classification", "models.0"
INDEX, ROWS = f"{MODEL}.index", f"{MODEL}.problem"
TREES, LAPLACE, LINEAR = (f"{POOL}.others.{k}" for k in range(3))
ENCODER = "ensemble.encoder"
COLUMN = {name: f"{ENCODER}.encodings.{k}" for k, name in enumerate(table(2, 0).columns)}
NAN = {"type": "float", "value": "nan"}
INFINITE = {"type": "float", "value": "inf"}

HUGE = {"type": "array", "dtype": "float64", "shape": [10**12], "items": []}
ROTATION = {"type": "Rotation", "first": 0, "second": 1, "angle": 0.0, "ratio": None}

#: What is wrong: by models, places in their files and fields, what is put there.
IMPOSSIBLE = {
    "given": {
        INDEX: {
            "order": [
                first(10**9),
                first(-2),
                first(-1),
                lambda a: item((0, 1), a[0, 0])(a),
                lambda a: a.astype(np.int64),
            ],
            "leaves": [shorter, lambda a: np.where(np.isnan(a), 0.0, a), first(7.0), first(np.nan)],
            "boxes": [
                shorter,
                item((1, 1, 0), -9.0),
                item((0, 1, 0), 1e9),
                item((2, 0, 1), np.nan),
            ],
        },
        ROWS: {
            "X": [np.ravel, lambda a: a.astype(np.int64), item((3, 1), np.nan), "nowhere"],
            "y": [shorter, first(np.nan), first(np.inf)],
            "noise": [lambda a: a.astype(np.float32), first(-1.0), first(np.nan)],
            "model": [{}],
            "model.temperature": [1.0],
            "model.lengthscale": [first(-1.0), 1.0],
            "model.kernel": ["sigmoid", {"type": "kernel", "class": "system", "parameters": {}}],
            "model.localizer": ["box"],
            "model.noise_variance": ["0.1", 10**400],
            "model.signal_variance": [-1.0],
            "model.scale_dof": [10**400, NAN],
        },
        MODEL: {
            "n_neighbors": [10**6, "3"],
            "transform.kinds": [["log"] * 3],
            "transform.knot_offsets": [item(-1, 10)],
            "transform.center": [first(np.nan)],
            "transform.scale": [first(np.nan)],
        },
        "": {
            "models": [[]],
            "ensemble": [{}],
            "parameters": [{}],
        },
        "ensemble": {
            "target_shape": [[2]],
            "target_names": [["a", "b"]],
            "input_names": [["a"]],
            "scale_factor": [None, 0.0, INFINITE],
            "mean_noise_variance": [INFINITE],
            "shape": [{"tail": 0.1}],
        },
        "ensemble.target_scaler": {
            "mean": [first(np.nan)],
            "std": [first(0.0), first(np.nan)],
        },
        "ensemble.shape": {
            "tail": [1.5],
            "contrast": [-1.0],
        },
        "parameters": {
            "kernel": [{"type": "module"}],
            "n_neighbors": [10**400],
            "trend": [HUGE],
        },
    },
    "beside models": {
        BOOSTED: {
            "share": [1.5, NAN],
            "baseline": [first(np.nan), shorter],
            "folds": [first(2), first(-2), shorter],
            "held_out": [first(np.inf), shorter],
            "nodes.feature": [first(D), shorter],
            "nodes.left": [first(10**6), shorter, lambda a: a.astype(np.int64)],
            "nodes.right": [first(0), shorter],
            "nodes.roots": [first(-1)],
            "nodes.ends": [first(100)],
            "nodes.threshold": [first(np.nan), shorter],
            "nodes.value": [first(np.nan), shorter, lambda a: a.astype(np.float32)],
        },
        GROUPS: {
            "numbers": [first(N), first(-2), shorter],
            "labels": [
                as_text("[1, 1]"),
                as_text('{"a": 1}'),
                lambda a: a.view(np.uint8).astype(np.int32),
            ],
        },
        "ensemble.georeference": {
            "x": [3],
            "y": [-1, 0],
            "crs": [28992],
            "units": [["m"]],
        },
        "ensemble": {
            "target_names": [["iron"], ["iron", 2]],
            "input_names": [["east", "north"]],
            "target_shape": [[], [3]],
            "mean_noise_variance": [0.0],
        },
        "ensemble.target_scaler": {
            "mean": [shorter],
        },
        "ensemble.shape": {
            "log_smallest": [1e9],
            "is_noisy": [1],
        },
        MODEL: {
            "index.reach": [0.0],
            "index.recall": [1.5],
            "index.codes.halves": [shorter],
            "index.codes.points": [lambda a: a.astype(np.int32)],
            "index.unit": [first(0.0)],
            "index.n": [N - 1],
            "weight": [-0.1],
            "n_neighbors": [0, None],
            "problem.model.normalize": ["no"],
            "problem.model.noise_levels": [[1.0], [1.0, -1.0]],
            "problem.model.reach": [0.5],
            "problem.model.bandwidth": [0.0, 1.0],
            "problem.model.scale_dof": [0.0],
            "problem.model.constant_variance": [-1.0],
            "problem.model.slope_variance": [-1.0],
            "problem.model.signal_variance": [INFINITE],
            "problem.model.localizer_decay": [-1.0],
            "problem.model.localizer_metric": ["chords"],
            "problem.model.is_single": [0],
            "problem.model.lengthscale": [lambda a: a.astype(np.int64)],
            "transform.kinds": [["standardize"] * (D - 1), ["half-rank"] * D],
            "transform.center": [shorter],
            "transform.scale": [first(0.0)],
            "transform.power": [first(np.inf)],
            "transform.knots": [lambda a: np.zeros(1)],
            "transform.knot_offsets": [first(1), shorter],
        },
    },
    "rotated": {
        MODEL: {
            "transform.projection.type": ["Sphere", "os.system"],
            "transform.projection.first": [3, 0],
            "transform.projection.second": [-1],
            "transform.projection.angle": [INFINITE],
            "transform.projection.ratio": [1.5, 0.0],
        },
    },
    "tuned": {
        "ensemble.tuning": {
            "loss": ["small"],
            "weights": [shorter, first(np.nan)],
            "at_bounds": [[1]],
            "is_complete": [1],
        },
        "ensemble.tuning.candidates.0": {
            "loss": [NAN],
        },
        "ensemble.tuning.candidates.0.predicted": {
            "scale": [first(-1.0)],
        },
        "ensemble.tuning.candidates.0.model": {
            "lengthscale": [shorter],
        },
        "models.1.transform": {
            "projection": [ROTATION],
        },
    },
    "all members": {
        POOL: {
            "classes": [shorter],
            "links": [[]],
            "label_name": [3],
            "links.0.slope": [-1.0],
            "links.0.prior_share": [0.0, 1.0],
            "links.0.bias": [shorter, first(np.nan)],
            "links.0.prior": [first(0.0)],
        },
        TREES: {
            "type": ["Trees"],
            "weight": [-1.0],
            "trees.nodes.feature": [first(D)],
        },
        LAPLACE: {
            "weight": [INFINITE],
            "center": [shorter, first(np.nan)],
            "gp.codes": [first(3), first(-1), shorter],
            "gp.Z": [first(np.nan)],
            "gp.weight": [first(-1.0), shorter],
            "gp.prior_share": [2.0],
            "gp.covariance.kernel": ["sigmoid"],
            "gp.covariance.amplitude": [-1.0],
            "gp.covariance.slope_variance": [-1.0],
            "gp.covariance.constant_variance": [-1.0],
            "gp.covariance.lengthscale": [first(0.0)],
        },
        LINEAR: {
            "ridge": [-1.0],
            "weight": [-1.0],
            "logits.coefficients": [shorter, first(np.inf)],
            "logits.intercept": [shorter],
            "logits.prior_share": [1.0],
        },
    },
    "columns": {
        ENCODER: {
            "has_names": ["yes"],
            "encodings": [[]],
            "imputation": [None],
            "imputation.center": [shorter, first(np.nan)],
            "imputation.scale": [first(0.0)],
            "imputation.coefficients": [shorter, first(np.nan)],
            "adjustment.center": [shorter, first(np.nan)],
            "adjustment.coefficients": [shorter, first(np.nan)],
            "adjustment.scale": [first(0.0)],
        },
        COLUMN["size"]: {
            "scheme.type": ["Matrix"],
            "kind": ["matrix"],
            "share_missing": [1.5],
            "is_flagged": [None],
            "n_levels": [-1],
        },
        COLUMN["day"]: {
            "scheme.cycles": [["century", "weekday"]],
            "scheme.fill": [NAN],
            "zone": [3],
        },
        COLUMN["color"]: {
            "scheme.levels": [
                as_text('["red", "red", "blue"]'),
                as_text('["red", 3, "blue"]'),
                as_text('["red", "green"]'),
            ],
            "scheme.variance": [first(-1.0), shorter],
        },
        COLUMN["shop"]: {
            "scheme.counts": [shorter, first(-1.0)],
            "scheme.sums": [shorter, first(np.nan)],
            "scheme.means": [lambda a: np.zeros(2)],
            "scheme.shrinkage": [first(0.0)],
            "scheme.targets": [[1], [-1]],
            "scheme.usual_uncertainty": [2.0],
        },
        COLUMN["same"]: {
            "scheme.why": [None],
        },
    },
}
CASES = [
    (name, ".".join(filter(None, (place, field))), value)
    for name, places in IMPOSSIBLE.items()
    for place, fields in places.items()
    for field, values in fields.items()
    for value in values
]


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda k: CASES[k][1])
def test_records_that_make_no_sense_give_the_one_error(number, tmp_path):
    name, path, value = CASES[number]
    model = MODELS[name]()
    model.save(tmp_path / "model.lsgp")
    rewrite(tmp_path / "model.lsgp", change_at(path, value))
    with pytest.raises(ModelFileError, match="its contents contradict each other"):
        type(model).load(tmp_path / "model.lsgp")


JUNK = [None, True, -1, 0, 3, 10**20, 0.5, 1e300, "x", [], [1], [[]], {}, NAN, INFINITE, HUGE]


def paths_in(stored, path=""):
    """The paths of all values below this one."""
    for key, value in stored.items() if isinstance(stored, dict) else enumerate(stored):
        yield f"{path}{key}"
        if isinstance(value, dict | list):
            yield from paths_in(value, f"{path}{key}.")


@pytest.mark.parametrize("name", MODELS)
def test_junk_in_any_place_gives_the_one_error_or_a_model(name, tmp_path):
    rng = np.random.default_rng(0)
    model, path = MODELS[name](), tmp_path / "model.lsgp"
    model.save(path)
    texts, _ = own_contents(path)
    paths = list(paths_in(json.loads(texts["estimator"])))
    n_refused = 0
    for _ in range(30):
        model.save(path)
        rewrite(path, change_at(str(rng.choice(paths)), JUNK[rng.integers(len(JUNK))]))
        try:
            type(model).load(path)
        except ModelFileError:
            n_refused += 1
    assert n_refused > 10


class Alias:
    """What `NDArray` is from NumPy 2.5 on, with Python 3.12."""

    __value__ = np.ndarray[Any, np.dtype[TypeVar("scalar")]]

    def __getitem__(self, items):
        return GenericAlias(self, items)


def test_arrays_are_known_by_an_alias_of_their_type():
    hint = Alias()[np.float64]
    record = make_dataclass("Aliased", [("values", hint), ("others", hint | None)])
    store, kept = ArrayStore(), record(np.arange(3.0), None)
    stored = write_record(kept, "", store)
    again = Reader(store.arrays).read(record, stored)
    assert np.array_equal(again.values, kept.values)
    with pytest.raises(InvalidRecord, match="values is of int64"):
        Reader({"values": np.arange(3)}).read(record, stored)
