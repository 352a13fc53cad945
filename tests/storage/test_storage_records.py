# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of record that a file may hold survives it, and is refused when it makes no sense.

The models are put together by hand, because whether tuning finds a use for trees or for GP
classification is a matter of the data.
"""

import datetime as dt
import json
from dataclasses import make_dataclass, replace
from functools import cache, partial
from types import GenericAlias
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pytest
from model_files import as_text, change_at, first, item, own_contents, rewrite, shorter
from storage_cases import GIVEN, fit_case, make_data

from lsgp import LSGPClassifier, LSGPRegressor, ModelFileError
from lsgp.backends.grow import Nodes
from lsgp.ensemble.georeference import Georeference
from lsgp.method.link import LinearLogits
from lsgp.solvers.boosted import BoostedTrees
from lsgp.solvers.choose import choose_solver
from lsgp.solvers.laplace import Covariance, LaplaceGP
from lsgp.storage.records import ArrayStore, Reader, write_record
from lsgp.storage.rules import InvalidRecord
from lsgp.tuning.class_members import LaplaceMember, LinearMember, TreesMember

N, D = 90, 3
GRADES = ["low", "middle", "high"]


def stumps(n, n_targets, share):
    """Trees of two folds, each a step in the first input for each target."""
    n_trees = 2 * n_targets
    first = 3 * np.arange(n_trees)
    nodes = Nodes(
        feature=np.tile([0, -1, -1], n_trees).astype(np.int32),
        threshold=np.tile([1.0, 0.0, 0.0], n_trees),
        left=np.repeat(first + 1, 3).astype(np.int32),
        right=np.repeat(first + 2, 3).astype(np.int32),
        value=np.tile([0.0, -0.5, 0.5], n_trees),
        roots=first.astype(np.int32),
        ends=np.arange(1, n_trees + 1),
    )
    held_out = np.random.default_rng(0).normal(size=(n, n_targets))
    folds = (np.arange(n) % 3 - 1).astype(np.int32)
    return BoostedTrees(nodes, np.zeros((2, n_targets)), share, folds, held_out)


@cache
def beside_models():
    """A regressor with groups, trees, an approximate search, names and places."""
    X, y = make_data(N, 2)
    frame = pd.DataFrame(X, columns=["east", "north", "depth"])
    targets = pd.DataFrame(y, columns=["iron", "zinc"])
    settings = {**GIVEN, "coordinates": None, "hyperparameters__noise_variance": 0.1}
    model = LSGPRegressor().set_params(**settings)
    model.fit(frame, targets, groups=np.arange(N) // 3, noise_variance=np.full(N, 0.1))
    (fitted,) = model.ensemble_.models
    index = fitted.index.encoded(0.5, 0.99)
    solver = choose_solver(fitted.problem, index, 20, fitted.solver.backend)
    model.ensemble_ = replace(
        model.ensemble_,
        models=(fitted.with_solver(solver),),
        boosted=stumps(N, 2, 0.3),
        georeference=Georeference(0, 1, "EPSG:28992", ("m", "g")),
    )
    return model


def labels(**settings):
    X, y = make_data(N, None)
    codes = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    return LSGPClassifier(objective=None, n_neighbors=20, **settings).fit(X, codes)


@cache
def all_members():
    """A classifier with logistic regression, GP classification and trees in its pool."""
    model = labels()
    ensemble = model.ensemble_
    (fitted,), own = ensemble.models, ensemble.classification
    X = fitted.problem.X
    transform, prior = fitted.transform, own.prior
    covariance = Covariance("rbf", np.ones(D), 0.1, 2.0, 1.0)
    codes = np.argmax(fitted.problem.y, axis=1)
    gp = LaplaceGP.fit(covariance, X, codes, np.ones(N), prior, 0.01)
    logits = LinearLogits(np.arange(3.0 * D).reshape(3, D), np.zeros(3), 0.01, prior)
    others = (
        TreesMember(stumps(N, 3, 0.0), 0.2),
        LaplaceMember(transform, np.zeros(D), gp, 0.2),
        LinearMember(transform, logits, 1.0, 0.2),
    )
    model.ensemble_ = replace(
        ensemble,
        models=(replace(fitted, weight=0.4),),
        classification=replace(own, others=others),
    )
    return model


@cache
def trees_alone():
    """A classifier in whose pool trees have all of the weight."""
    model = labels()
    ensemble = model.ensemble_
    (fitted,) = ensemble.models
    pool = replace(ensemble.classification, others=(TreesMember(stumps(N, 3, 0.0), 1.0),))
    model.ensemble_ = replace(ensemble, models=(replace(fitted, weight=0.0),), classification=pool)
    return model


def table(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": np.where(np.arange(n) % 9 == 0, np.nan, rng.normal(size=n)),
            "width": rng.normal(size=n),
            "color": rng.choice(["red", "green", "blue"], n),
            "day": pd.date_range("2020-01-01", periods=n),
            "at": [dt.time(k % 24) for k in range(n)],
            "shop": [f"shop {k}" for k in rng.integers(0, 60, n)],
            "grade": pd.Categorical(rng.choice(GRADES, n), GRADES, ordered=True),
            "same": "same",
        }
    )


@cache
def columns():
    """A regressor of a table with a column of every kind."""
    shop = np.array([int(name.split()[1]) for name in table(400, 0)["shop"]])
    y = np.random.default_rng(1).normal(size=60)[shop]
    return LSGPRegressor(objective=None, n_neighbors=20).fit(table(400, 0), y)


MODELS = {
    "given": partial(fit_case, "given"),
    "beside models": beside_models,
    "all members": all_members,
    "trees alone": trees_alone,
    "columns": columns,
    "rotated": partial(fit_case, "rotated"),
    "tuned": partial(fit_case, "ensemble"),
}


def answers(name, model):
    """What a model says of other queries, and of its rows."""
    X = make_data(30, None, seed=1)[0]
    if name == "columns":
        return model.predict(table(30, 5), return_std=True)
    if isinstance(model, LSGPClassifier):
        return (model.predict_proba(X),)
    if name == "beside models":
        X = pd.DataFrame(X, columns=model.feature_names_in_)
    return (*model.predict(X, return_std=True), model.loo().predicted.mean)


def test_arrays_share_a_place_only_if_all_of_them_is_alike():
    store, first = ArrayStore(), np.arange(100.0)
    last = np.append(first[:-1], -1.0)
    names = [store.add(name, array) for name, array in (("a", first), ("b", last))]
    assert names == ["a", "b"]
    assert store.add("c", last.copy()) == "b"
    np.testing.assert_array_equal(store.arrays["b"], last)


@pytest.mark.parametrize("name", MODELS)
def test_records_of_every_kind_survive_a_file(name, tmp_path):
    model = MODELS[name]()
    first, second = tmp_path / "first.lsgp", tmp_path / "second.lsgp"
    model.save(first)
    loaded = type(model).load(first)
    for mine, other in zip(answers(name, model), answers(name, loaded), strict=True):
        assert np.array_equal(mine, other)
    loaded.save(second)
    assert first.read_bytes() == second.read_bytes()


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

#: What is wrong: a model, a path in its file, and what is put there.
IMPOSSIBLE = [
    ("given", f"{INDEX}.order", first(10**9)),
    ("given", f"{INDEX}.order", first(-2)),
    ("given", f"{INDEX}.order", first(-1)),
    ("given", f"{INDEX}.order", lambda a: item((0, 1), a[0, 0])(a)),
    ("given", f"{INDEX}.order", lambda a: a.astype(np.int64)),
    ("given", f"{INDEX}.leaves", shorter),
    ("given", f"{INDEX}.leaves", lambda a: np.where(np.isnan(a), 0.0, a)),
    ("given", f"{INDEX}.leaves", first(7.0)),
    ("given", f"{INDEX}.leaves", first(np.nan)),
    ("given", f"{INDEX}.boxes", shorter),
    ("given", f"{INDEX}.boxes", item((1, 1, 0), -9.0)),
    ("given", f"{INDEX}.boxes", item((0, 1, 0), 1e9)),
    ("given", f"{INDEX}.boxes", item((2, 0, 1), np.nan)),
    ("given", f"{ROWS}.X", np.ravel),
    ("given", f"{ROWS}.X", lambda a: a.astype(np.int64)),
    ("given", f"{ROWS}.X", item((3, 1), np.nan)),
    ("given", f"{ROWS}.X", "nowhere"),
    ("given", f"{ROWS}.y", shorter),
    ("given", f"{ROWS}.y", first(np.nan)),
    ("given", f"{ROWS}.y", first(np.inf)),
    ("given", f"{ROWS}.noise", lambda a: a.astype(np.float32)),
    ("given", f"{ROWS}.noise", first(-1.0)),
    ("given", f"{ROWS}.noise", first(np.nan)),
    ("given", f"{ROWS}.model", {}),
    ("given", f"{ROWS}.model.temperature", 1.0),
    ("given", f"{ROWS}.model.lengthscale", first(-1.0)),
    ("given", f"{ROWS}.model.lengthscale", 1.0),
    ("given", f"{ROWS}.model.kernel", "sigmoid"),
    ("given", f"{ROWS}.model.kernel", {"type": "kernel", "class": "system", "parameters": {}}),
    ("given", f"{ROWS}.model.localizer", "box"),
    ("given", f"{ROWS}.model.noise_variance", "0.1"),
    ("given", f"{ROWS}.model.noise_variance", 10**400),
    ("given", f"{ROWS}.model.signal_variance", -1.0),
    ("given", f"{ROWS}.model.scale_dof", 10**400),
    ("given", f"{ROWS}.model.scale_dof", NAN),
    ("given", f"{MODEL}.n_neighbors", 10**6),
    ("given", f"{MODEL}.n_neighbors", "3"),
    ("given", f"{MODEL}.transform.kinds", ["log"] * 3),
    ("given", f"{MODEL}.transform.knot_offsets", item(-1, 10)),
    ("given", f"{MODEL}.transform.center", first(np.nan)),
    ("given", f"{MODEL}.transform.scale", first(np.nan)),
    ("given", "models", []),
    ("given", "ensemble", {}),
    ("given", "ensemble.target_shape", [2]),
    ("given", "ensemble.target_names", ["a", "b"]),
    ("given", "ensemble.input_names", ["a"]),
    ("given", "ensemble.target_scaler.mean", first(np.nan)),
    ("given", "ensemble.target_scaler.std", first(0.0)),
    ("given", "ensemble.target_scaler.std", first(np.nan)),
    ("given", "ensemble.scale_factor", None),
    ("given", "ensemble.scale_factor", 0.0),
    ("given", "ensemble.scale_factor", INFINITE),
    ("given", "ensemble.mean_noise_variance", INFINITE),
    ("given", "ensemble.shape", {"tail": 0.1}),
    ("given", "ensemble.shape.tail", 1.5),
    ("given", "ensemble.shape.contrast", -1.0),
    ("given", "parameters", {}),
    ("given", "parameters.kernel", {"type": "module"}),
    ("given", "parameters.n_neighbors", 10**400),
    ("given", "parameters.trend", HUGE),
    ("beside models", f"{BOOSTED}.share", 1.5),
    ("beside models", f"{BOOSTED}.share", NAN),
    ("beside models", f"{BOOSTED}.baseline", first(np.nan)),
    ("beside models", f"{BOOSTED}.baseline", shorter),
    ("beside models", f"{BOOSTED}.folds", first(2)),
    ("beside models", f"{BOOSTED}.folds", first(-2)),
    ("beside models", f"{BOOSTED}.folds", shorter),
    ("beside models", f"{BOOSTED}.held_out", first(np.inf)),
    ("beside models", f"{BOOSTED}.held_out", shorter),
    ("beside models", f"{BOOSTED}.nodes.feature", first(D)),
    ("beside models", f"{BOOSTED}.nodes.feature", shorter),
    ("beside models", f"{BOOSTED}.nodes.left", first(10**6)),
    ("beside models", f"{BOOSTED}.nodes.left", shorter),
    ("beside models", f"{BOOSTED}.nodes.left", lambda a: a.astype(np.int64)),
    ("beside models", f"{BOOSTED}.nodes.right", first(0)),
    ("beside models", f"{BOOSTED}.nodes.right", shorter),
    ("beside models", f"{BOOSTED}.nodes.roots", first(-1)),
    ("beside models", f"{BOOSTED}.nodes.ends", first(100)),
    ("beside models", f"{BOOSTED}.nodes.threshold", first(np.nan)),
    ("beside models", f"{BOOSTED}.nodes.threshold", shorter),
    ("beside models", f"{BOOSTED}.nodes.value", first(np.nan)),
    ("beside models", f"{BOOSTED}.nodes.value", shorter),
    ("beside models", f"{BOOSTED}.nodes.value", lambda a: a.astype(np.float32)),
    ("beside models", f"{GROUPS}.numbers", first(N)),
    ("beside models", f"{GROUPS}.numbers", first(-2)),
    ("beside models", f"{GROUPS}.numbers", shorter),
    ("beside models", f"{GROUPS}.labels", as_text("[1, 1]")),
    ("beside models", f"{GROUPS}.labels", as_text('{"a": 1}')),
    ("beside models", f"{GROUPS}.labels", lambda a: a.view(np.uint8).astype(np.int32)),
    ("beside models", "ensemble.georeference.x", 3),
    ("beside models", "ensemble.georeference.y", -1),
    ("beside models", "ensemble.georeference.y", 0),
    ("beside models", "ensemble.georeference.crs", 28992),
    ("beside models", "ensemble.georeference.units", ["m"]),
    ("beside models", "ensemble.target_names", ["iron"]),
    ("beside models", "ensemble.target_names", ["iron", 2]),
    ("beside models", "ensemble.input_names", ["east", "north"]),
    ("beside models", "ensemble.target_shape", []),
    ("beside models", "ensemble.target_shape", [3]),
    ("beside models", "ensemble.target_scaler.mean", shorter),
    ("beside models", "ensemble.mean_noise_variance", 0.0),
    ("beside models", "ensemble.shape.log_smallest", 1e9),
    ("beside models", "ensemble.shape.is_noisy", 1),
    ("beside models", f"{MODEL}.index.reach", 0.0),
    ("beside models", f"{MODEL}.index.recall", 1.5),
    ("beside models", f"{MODEL}.index.codes.halves", shorter),
    ("beside models", f"{MODEL}.index.codes.points", lambda a: a.astype(np.int32)),
    ("beside models", f"{MODEL}.index.unit", first(0.0)),
    ("beside models", f"{MODEL}.index.n", N - 1),
    ("beside models", f"{MODEL}.weight", -0.1),
    ("beside models", f"{MODEL}.n_neighbors", 0),
    ("beside models", f"{MODEL}.n_neighbors", None),
    ("beside models", f"{MODEL}.problem.model.normalize", "no"),
    ("beside models", f"{MODEL}.problem.model.noise_levels", [1.0]),
    ("beside models", f"{MODEL}.problem.model.noise_levels", [1.0, -1.0]),
    ("beside models", f"{MODEL}.problem.model.reach", 0.5),
    ("beside models", f"{MODEL}.problem.model.bandwidth", 0.0),
    ("beside models", f"{MODEL}.problem.model.bandwidth", 1.0),
    ("beside models", f"{MODEL}.problem.model.scale_dof", 0.0),
    ("beside models", f"{MODEL}.problem.model.constant_variance", -1.0),
    ("beside models", f"{MODEL}.problem.model.slope_variance", -1.0),
    ("beside models", f"{MODEL}.problem.model.signal_variance", INFINITE),
    ("beside models", f"{MODEL}.problem.model.localizer_decay", -1.0),
    ("beside models", f"{MODEL}.problem.model.localizer_metric", "chords"),
    ("beside models", f"{MODEL}.problem.model.is_single", 0),
    ("beside models", f"{MODEL}.problem.model.lengthscale", lambda a: a.astype(np.int64)),
    ("beside models", f"{MODEL}.transform.kinds", ["standardize"] * (D - 1)),
    ("beside models", f"{MODEL}.transform.kinds", ["half-rank"] * D),
    ("beside models", f"{MODEL}.transform.center", shorter),
    ("beside models", f"{MODEL}.transform.scale", first(0.0)),
    ("beside models", f"{MODEL}.transform.power", first(np.inf)),
    ("beside models", f"{MODEL}.transform.knots", lambda a: np.zeros(1)),
    ("beside models", f"{MODEL}.transform.knot_offsets", first(1)),
    ("beside models", f"{MODEL}.transform.knot_offsets", shorter),
    ("rotated", f"{MODEL}.transform.projection.type", "Sphere"),
    ("rotated", f"{MODEL}.transform.projection.type", "os.system"),
    ("rotated", f"{MODEL}.transform.projection.first", 3),
    ("rotated", f"{MODEL}.transform.projection.first", 0),
    ("rotated", f"{MODEL}.transform.projection.second", -1),
    ("rotated", f"{MODEL}.transform.projection.angle", INFINITE),
    ("rotated", f"{MODEL}.transform.projection.ratio", 1.5),
    ("rotated", f"{MODEL}.transform.projection.ratio", 0.0),
    ("tuned", "ensemble.tuning.loss", "small"),
    ("tuned", "ensemble.tuning.weights", shorter),
    ("tuned", "ensemble.tuning.weights", first(np.nan)),
    ("tuned", "ensemble.tuning.candidates.0.loss", NAN),
    ("tuned", "ensemble.tuning.candidates.0.predicted.scale", first(-1.0)),
    ("tuned", "ensemble.tuning.candidates.0.model.lengthscale", shorter),
    ("tuned", "ensemble.tuning.at_bounds", [1]),
    ("tuned", "ensemble.tuning.is_complete", 1),
    ("tuned", "models.1.transform.projection", ROTATION),
    ("all members", f"{POOL}.classes", shorter),
    ("all members", f"{POOL}.links", []),
    ("all members", f"{POOL}.label_name", 3),
    ("all members", f"{POOL}.links.0.slope", -1.0),
    ("all members", f"{POOL}.links.0.prior_share", 0.0),
    ("all members", f"{POOL}.links.0.prior_share", 1.0),
    ("all members", f"{POOL}.links.0.bias", shorter),
    ("all members", f"{POOL}.links.0.bias", first(np.nan)),
    ("all members", f"{POOL}.links.0.prior", first(0.0)),
    ("all members", f"{TREES}.type", "Trees"),
    ("all members", f"{TREES}.weight", -1.0),
    ("all members", f"{TREES}.trees.nodes.feature", first(D)),
    ("all members", f"{LAPLACE}.weight", INFINITE),
    ("all members", f"{LAPLACE}.center", shorter),
    ("all members", f"{LAPLACE}.center", first(np.nan)),
    ("all members", f"{LAPLACE}.gp.codes", first(3)),
    ("all members", f"{LAPLACE}.gp.codes", first(-1)),
    ("all members", f"{LAPLACE}.gp.codes", shorter),
    ("all members", f"{LAPLACE}.gp.Z", first(np.nan)),
    ("all members", f"{LAPLACE}.gp.weight", first(-1.0)),
    ("all members", f"{LAPLACE}.gp.weight", shorter),
    ("all members", f"{LAPLACE}.gp.prior_share", 2.0),
    ("all members", f"{LAPLACE}.gp.covariance.kernel", "sigmoid"),
    ("all members", f"{LAPLACE}.gp.covariance.amplitude", -1.0),
    ("all members", f"{LAPLACE}.gp.covariance.slope_variance", -1.0),
    ("all members", f"{LAPLACE}.gp.covariance.constant_variance", -1.0),
    ("all members", f"{LAPLACE}.gp.covariance.lengthscale", first(0.0)),
    ("all members", f"{LINEAR}.ridge", -1.0),
    ("all members", f"{LINEAR}.weight", -1.0),
    ("all members", f"{LINEAR}.logits.coefficients", shorter),
    ("all members", f"{LINEAR}.logits.coefficients", first(np.inf)),
    ("all members", f"{LINEAR}.logits.intercept", shorter),
    ("all members", f"{LINEAR}.logits.prior_share", 1.0),
    ("columns", f"{ENCODER}.has_names", "yes"),
    ("columns", f"{ENCODER}.encodings", []),
    ("columns", f"{ENCODER}.imputation", None),
    ("columns", f"{ENCODER}.imputation.center", shorter),
    ("columns", f"{ENCODER}.imputation.scale", first(0.0)),
    ("columns", f"{ENCODER}.imputation.coefficients", shorter),
    ("columns", f"{ENCODER}.imputation.coefficients", first(np.nan)),
    ("columns", f"{ENCODER}.adjustment.center", shorter),
    ("columns", f"{ENCODER}.imputation.center", first(np.nan)),
    ("columns", f"{ENCODER}.adjustment.coefficients", shorter),
    ("columns", f"{ENCODER}.adjustment.coefficients", first(np.nan)),
    ("columns", f"{ENCODER}.adjustment.scale", first(0.0)),
    ("columns", f"{ENCODER}.adjustment.center", first(np.nan)),
    ("columns", f"{COLUMN['size']}.scheme.type", "Matrix"),
    ("columns", f"{COLUMN['size']}.kind", "matrix"),
    ("columns", f"{COLUMN['size']}.share_missing", 1.5),
    ("columns", f"{COLUMN['size']}.is_flagged", None),
    ("columns", f"{COLUMN['size']}.n_levels", -1),
    ("columns", f"{COLUMN['day']}.scheme.cycles", ["century", "weekday"]),
    ("columns", f"{COLUMN['day']}.scheme.fill", NAN),
    ("columns", f"{COLUMN['day']}.zone", 3),
    ("columns", f"{COLUMN['color']}.scheme.levels", as_text('["red", "red", "blue"]')),
    ("columns", f"{COLUMN['color']}.scheme.levels", as_text('["red", 3, "blue"]')),
    ("columns", f"{COLUMN['color']}.scheme.levels", as_text('["red", "green"]')),
    ("columns", f"{COLUMN['color']}.scheme.variance", first(-1.0)),
    ("columns", f"{COLUMN['color']}.scheme.variance", shorter),
    ("columns", f"{COLUMN['shop']}.scheme.counts", shorter),
    ("columns", f"{COLUMN['shop']}.scheme.counts", first(-1.0)),
    ("columns", f"{COLUMN['shop']}.scheme.sums", shorter),
    ("columns", f"{COLUMN['shop']}.scheme.sums", first(np.nan)),
    ("columns", f"{COLUMN['shop']}.scheme.means", lambda a: np.zeros(2)),
    ("columns", f"{COLUMN['shop']}.scheme.shrinkage", first(0.0)),
    ("columns", f"{COLUMN['shop']}.scheme.targets", [1]),
    ("columns", f"{COLUMN['shop']}.scheme.targets", [-1]),
    ("columns", f"{COLUMN['shop']}.scheme.usual_uncertainty", 2.0),
    ("columns", f"{COLUMN['same']}.scheme.why", None),
]


@pytest.mark.parametrize("number", range(len(IMPOSSIBLE)), ids=lambda k: IMPOSSIBLE[k][1])
def test_records_that_make_no_sense_give_the_one_error(number, tmp_path):
    name, path, value = IMPOSSIBLE[number]
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
