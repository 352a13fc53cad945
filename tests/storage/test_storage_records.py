# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of record that a file may hold is refused when it makes no sense."""

import json
from dataclasses import make_dataclass
from types import GenericAlias
from typing import Any, TypeVar

import numpy as np
import pytest
from model_files import as_text, as_type, change_at, first, item, own_contents, rewrite, shorter
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

#: What is wrong in the file of a model: a place, fields of it, and what is put in each.
IMPOSSIBLE = {
    "given": [
        (INDEX, "order", first(10**9)),
        (INDEX, "order", first(-2)),
        (INDEX, "order", first(-1)),
        (INDEX, "order", lambda a: item((0, 1), a[0, 0])(a)),
        (INDEX, "order", as_type(np.int64)),
        (INDEX, "leaves boxes", shorter),
        (INDEX, "leaves", lambda a: np.where(np.isnan(a), 0.0, a)),
        (INDEX, "leaves", first(7.0)),
        (INDEX, "leaves", first(np.nan)),
        (INDEX, "leaves", lambda a: item((0, slice(None), slice(2)), a[0, :, 1::-1].copy())(a)),
        (INDEX, "boxes", item((1, 1, 0), -9.0)),
        (INDEX, "boxes", item((0, 1, 0), 1e9)),
        (INDEX, "boxes", item((2, 0, 1), np.nan)),
        (ROWS, "X", np.ravel),
        (ROWS, "X", as_type(np.int64)),
        (ROWS, "X", item((3, 1), np.nan)),
        (ROWS, "X", "nowhere"),
        (ROWS, "y", shorter),
        (ROWS, "y noise", first(np.nan)),
        (ROWS, "y", first(np.inf)),
        (ROWS, "noise", as_type(np.float32)),
        (ROWS, "noise model.lengthscale", first(-1.0)),
        (ROWS, "model", {}),
        (ROWS, "model.temperature model.lengthscale", 1.0),
        (ROWS, "model.kernel", "sigmoid"),
        (ROWS, "model.kernel", {"type": "kernel", "class": "system", "parameters": {}}),
        (ROWS, "model.localizer", "box"),
        (ROWS, "model.noise_variance", "0.1"),
        (ROWS, "model.noise_variance model.scale_dof", 10**400),
        (ROWS, "model.signal_variance", -1.0),
        (ROWS, "model.scale_dof", NAN),
        (MODEL, "n_neighbors", 10**6),
        (MODEL, "n_neighbors", "3"),
        (MODEL, "transform.kinds", ["log"] * 3),
        (MODEL, "transform.knot_offsets", item(-1, 10)),
        (MODEL, "transform.center transform.scale", first(np.nan)),
        ("", "models", []),
        ("", "ensemble parameters", {}),
        ("ensemble", "target_shape", [2]),
        ("ensemble", "target_names", ["a", "b"]),
        ("ensemble", "input_names", ["a"]),
        ("ensemble", "scale_factor", None),
        ("ensemble", "scale_factor", 0.0),
        ("ensemble", "scale_factor mean_noise_variance", INFINITE),
        ("ensemble", "shape", {"tail": 0.1}),
        ("ensemble", "target_scaler.mean target_scaler.std", first(np.nan)),
        ("ensemble", "target_scaler.std", first(0.0)),
        ("ensemble", "shape.tail", 1.5),
        ("ensemble", "shape.contrast", -1.0),
        ("parameters", "kernel", {"type": "module"}),
        ("parameters", "n_neighbors", 10**400),
        ("parameters", "trend", HUGE),
    ],
    "beside models": [
        (BOOSTED, "share", 1.5),
        (BOOSTED, "share", NAN),
        (BOOSTED, "baseline nodes.threshold nodes.value", first(np.nan)),
        (BOOSTED, "baseline folds held_out nodes.feature nodes.left nodes.right", shorter),
        (BOOSTED, "nodes.threshold nodes.value", shorter),
        (BOOSTED, "folds", first(2)),
        (BOOSTED, "folds", first(-2)),
        (BOOSTED, "held_out", first(np.inf)),
        (BOOSTED, "nodes.feature", first(D)),
        (BOOSTED, "nodes.left", first(10**6)),
        (BOOSTED, "nodes.left", as_type(np.int64)),
        (BOOSTED, "nodes.right", first(0)),
        (BOOSTED, "nodes.roots", first(-1)),
        (BOOSTED, "nodes.ends", first(100)),
        (BOOSTED, "nodes.value", as_type(np.float32)),
        (GROUPS, "numbers", first(N)),
        (GROUPS, "numbers", first(-2)),
        (GROUPS, "numbers", shorter),
        (GROUPS, "labels", as_text("[1, 1]")),
        (GROUPS, "labels", as_text('{"a": 1}')),
        (GROUPS, "labels", lambda a: a.view(np.uint8).astype(np.int32)),
        ("ensemble", "georeference.x", 3),
        ("ensemble", "georeference.y", -1),
        ("ensemble", "georeference.y", 0),
        ("ensemble", "georeference.crs", 28992),
        ("ensemble", "georeference.units", ["m"]),
        ("ensemble", "target_names", ["iron"]),
        ("ensemble", "target_names", ["iron", 2]),
        ("ensemble", "input_names", ["east", "north"]),
        ("ensemble", "target_shape", []),
        ("ensemble", "target_shape", [3]),
        ("ensemble", "mean_noise_variance", 0.0),
        ("ensemble", "target_scaler.mean", shorter),
        ("ensemble", "shape.log_smallest", 1e9),
        ("ensemble", "shape.is_noisy", 1),
        (MODEL, "index.reach problem.model.bandwidth problem.model.scale_dof", 0.0),
        (MODEL, "index.recall", 1.5),
        (MODEL, "index.codes.halves transform.center transform.knot_offsets", shorter),
        (MODEL, "index.codes.points", as_type(np.int32)),
        (MODEL, "index.unit transform.scale", first(0.0)),
        (MODEL, "index.n", N - 1),
        (MODEL, "weight", -0.1),
        (MODEL, "n_neighbors problem.model.is_single", 0),
        (MODEL, "n_neighbors", None),
        (MODEL, "problem.model.normalize", "no"),
        (MODEL, "problem.model.noise_levels", [1.0]),
        (MODEL, "problem.model.noise_levels", [1.0, -1.0]),
        (MODEL, "problem.model.reach", 0.5),
        (MODEL, "problem.model.bandwidth", 1.0),
        (MODEL, "problem.model.constant_variance problem.model.slope_variance", -1.0),
        (MODEL, "problem.model.localizer_decay", -1.0),
        (MODEL, "problem.model.signal_variance", INFINITE),
        (MODEL, "problem.model.localizer_metric", "chords"),
        (MODEL, "problem.model.lengthscale", as_type(np.int64)),
        (MODEL, "transform.kinds", ["standardize"] * (D - 1)),
        (MODEL, "transform.kinds", ["half-rank"] * D),
        (MODEL, "transform.power", first(np.inf)),
        (MODEL, "transform.knots", lambda a: np.zeros(1)),
        (MODEL, "transform.knot_offsets", first(1)),
    ],
    "rotated": [
        (MODEL, "transform.projection.type", "Sphere"),
        (MODEL, "transform.projection.type", "os.system"),
        (MODEL, "transform.projection.first", 3),
        (MODEL, "transform.projection.first", 0),
        (MODEL, "transform.projection.second", -1),
        (MODEL, "transform.projection.angle", INFINITE),
        (MODEL, "transform.projection.ratio", 1.5),
        (MODEL, "transform.projection.ratio", 0.0),
    ],
    "tuned": [
        ("ensemble", "tuning.loss", "small"),
        ("ensemble", "tuning.weights tuning.candidates.0.model.lengthscale", shorter),
        ("ensemble", "tuning.weights", first(np.nan)),
        ("ensemble", "tuning.at_bounds", [1]),
        ("ensemble", "tuning.is_complete", 1),
        ("ensemble", "tuning.candidates.0.loss", NAN),
        ("ensemble", "tuning.candidates.0.predicted.scale", first(-1.0)),
        ("models.1", "transform.projection", ROTATION),
    ],
    "all members": [
        (POOL, "classes links.0.bias", shorter),
        (POOL, "links", []),
        (POOL, "label_name", 3),
        (POOL, "links.0.slope", -1.0),
        (POOL, "links.0.prior_share", 0.0),
        (POOL, "links.0.prior_share", 1.0),
        (POOL, "links.0.bias", first(np.nan)),
        (POOL, "links.0.prior", first(0.0)),
        (TREES, "type", "Trees"),
        (TREES, "weight", -1.0),
        (TREES, "trees.nodes.feature", first(D)),
        (LAPLACE, "weight", INFINITE),
        (LAPLACE, "center gp.codes gp.weight", shorter),
        (LAPLACE, "center gp.Z", first(np.nan)),
        (LAPLACE, "gp.codes", first(3)),
        (LAPLACE, "gp.codes", first(-1)),
        (LAPLACE, "gp.weight", first(-1.0)),
        (LAPLACE, "gp.prior_share", 2.0),
        (LAPLACE, "gp.covariance.kernel", "sigmoid"),
        (LAPLACE, "gp.covariance.amplitude gp.covariance.slope_variance", -1.0),
        (LAPLACE, "gp.covariance.constant_variance", -1.0),
        (LAPLACE, "gp.covariance.lengthscale", first(0.0)),
        (LINEAR, "ridge weight", -1.0),
        (LINEAR, "logits.coefficients logits.intercept", shorter),
        (LINEAR, "logits.coefficients", first(np.inf)),
        (LINEAR, "logits.prior_share", 1.0),
    ],
    "columns": [
        (ENCODER, "has_names", "yes"),
        (ENCODER, "encodings", []),
        (ENCODER, "imputation", None),
        (ENCODER, "imputation.center imputation.coefficients adjustment.center", shorter),
        (ENCODER, "adjustment.coefficients", shorter),
        (ENCODER, "imputation.center imputation.coefficients adjustment.center", first(np.nan)),
        (ENCODER, "adjustment.coefficients", first(np.nan)),
        (ENCODER, "imputation.scale adjustment.scale", first(0.0)),
        (COLUMN["size"], "scheme.type", "Matrix"),
        (COLUMN["size"], "kind", "matrix"),
        (COLUMN["size"], "share_missing", 1.5),
        (COLUMN["size"], "is_flagged", None),
        (COLUMN["size"], "n_levels", -1),
        (COLUMN["day"], "scheme.cycles", ["century", "weekday"]),
        (COLUMN["day"], "scheme.fill", NAN),
        (COLUMN["day"], "zone", 3),
        (COLUMN["color"], "scheme.levels", as_text('["red", "red", "blue"]')),
        (COLUMN["color"], "scheme.levels", as_text('["red", 3, "blue"]')),
        (COLUMN["color"], "scheme.levels", as_text('["red", "green"]')),
        (COLUMN["color"], "scheme.variance", first(-1.0)),
        (COLUMN["color"], "scheme.variance", shorter),
        (COLUMN["shop"], "scheme.counts scheme.sums", shorter),
        (COLUMN["shop"], "scheme.counts", first(-1.0)),
        (COLUMN["shop"], "scheme.sums", first(np.nan)),
        (COLUMN["shop"], "scheme.means", lambda a: np.zeros(2)),
        (COLUMN["shop"], "scheme.shrinkage", first(0.0)),
        (COLUMN["shop"], "scheme.targets", [1]),
        (COLUMN["shop"], "scheme.targets", [-1]),
        (COLUMN["shop"], "scheme.usual_uncertainty", 2.0),
        (COLUMN["same"], "scheme.why", None),
    ],
}
CASES = [
    (name, f"{place}.{field}" if place else field, value)
    for name, wrong in IMPOSSIBLE.items()
    for place, fields, value in wrong
    for field in fields.split()
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
