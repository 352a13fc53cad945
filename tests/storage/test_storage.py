# SPDX-License-Identifier: BSD-3-Clause
"""Saved models are the same to the last bit, also after pickle, copy and joblib."""

import copy
import dataclasses
import pickle
import tracemalloc
from functools import partial
from importlib import import_module

import joblib
import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file
from sklearn.base import clone
from storage_cases import CASES, MODELS, QUERIES, fit_case, make_data, same_predictions

from lsgp import Hyperparameters, LSGPClassifier, LSGPRegressor
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.setting import Frozen
from lsgp.method.kernels import SumKernel
from lsgp.search.index import build_index
from lsgp.solvers.choose import choose_solver
from lsgp.storage import TRUSTED_TYPES, model_file
from lsgp.storage.model_file import read_model_file

ALL = {name: partial(fit_case, name) for name in CASES} | MODELS

# -- the round trip ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_models_survive_a_file_to_the_last_bit(name, model_path):
    model, again = ALL[name](), model_path.with_suffix(".again")
    model.save(model_path)
    loaded = type(model).load(model_path)
    assert same_predictions(model, loaded)
    # Whatever fit learns must be in the file.
    assert vars(loaded).keys() == vars(model).keys()
    # And a saved copy of the copy is the same file.
    loaded.save(again)
    assert model_path.read_bytes() == again.read_bytes()


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_fits_and_clones_like_the_first(name, model_path):
    _, n, n_targets = CASES[name]
    model = fit_case(name)
    model.save(model_path)
    loaded = LSGPRegressor.load(model_path)
    for key, value in model.get_params().items():
        mine = loaded.get_params()[key]
        if key == "random_state" and not isinstance(value, int | None):
            assert mine.randint(2**31) == copy.deepcopy(value).randint(2**31)
        elif isinstance(value, Frozen):
            assert type(mine) is type(value)  # and their fields are among the others
        else:
            assert np.array_equal(mine, value), key
    if name.startswith("ensemble"):
        return  # tuning again would only take time
    again = clone(loaded).fit(*make_data(n, n_targets))
    assert same_predictions(again, model)
    assert same_predictions(loaded.fit(*make_data(n, n_targets)), model)


def test_tuning_is_remembered(model_path):
    model = fit_case("ensemble")
    model.save(model_path)
    loaded = LSGPRegressor.load(model_path)
    assert loaded.tuning_.to_rows() == model.tuning_.to_rows()
    assert loaded.tuning_.loss == model.tuning_.loss
    assert loaded.scale_factor_ == model.scale_factor_
    assert [w for _, w in loaded.tuning_.chosen] == [w for _, w in model.tuning_.chosen]
    for mine, other in zip(loaded.tuning_.candidates, model.tuning_.candidates, strict=True):
        assert mine.describe() == other.describe()
        assert np.array_equal(mine.predicted.mean, other.predicted.mean)


def test_names_of_inputs_and_targets_are_remembered(model_path):
    X, y = make_data(50, None)
    frame = pd.DataFrame(X, columns=["größe", "b", "c"])
    LSGPRegressor(objective=None).fit(frame, pd.Series(y, name="temp")).save(model_path)
    loaded = LSGPRegressor.load(model_path)
    assert loaded.target_names_ == ["temp"]
    assert list(loaded.feature_names_in_) == ["größe", "b", "c"]
    with pytest.raises(ValueError, match="X has no column"):
        loaded.predict(frame.rename(columns={"b": "z"}))


def test_models_share_their_rows_in_the_file_and_after_loading(model_path):
    X, y = make_data(3000, None)
    model = LSGPRegressor(objective=None).fit(X, y)
    first = model.fitted_[0]
    # As tuning leaves them with float32: equal arrays that are not the same.
    twin = copy.deepcopy(first)
    model.save(model_path)
    size = model_path.stat().st_size
    model.ensemble_ = dataclasses.replace(model.ensemble_, models=(first, twin))
    model.save(model_path)
    assert model_path.stat().st_size < size + 5000
    loaded = LSGPRegressor.load(model_path)
    for name in ("X", "y", "noise"):
        mine, other = (getattr(fitted.problem, name) for fitted in loaded.fitted_)
        assert np.shares_memory(mine, other)


def test_index_is_saved_in_its_own_units(model_path):
    X, y = make_data(300, None)
    model = LSGPRegressor(objective=None).fit(X, y)
    models = []
    for fitted in model.fitted_:
        index = fitted.index
        rebuilt = build_index(index.points() * index.unit, np.full(index.d, 0.7))
        solver = dataclasses.replace(fitted.solver, index=rebuilt)
        models.append(FittedModel(fitted.transform, solver, fitted.weight))
    model.ensemble_ = dataclasses.replace(model.ensemble_, models=tuple(models))
    model.save(model_path)
    loaded = LSGPRegressor.load(model_path)
    for mine, other in zip(loaded.fitted_, model.fitted_, strict=True):
        for name, expected in vars(other.index).items():
            np.testing.assert_array_equal(getattr(mine.index, name), expected)
    assert np.array_equal(loaded.predict(QUERIES), model.predict(QUERIES))


def test_arrays_are_read_from_the_file_where_vectors_are_aligned(model_path):
    fit_case("ensemble").save(model_path)
    fitted = LSGPRegressor.load(model_path).fitted_[0]
    index = fitted.index
    for array in (*fitted.problem[:3], index.leaves, index.order, index.boxes):
        assert type(array) is np.ndarray
        assert not array.flags.owndata
        assert not array.flags.writeable
        assert array.flags.c_contiguous
        assert array.ctypes.data % model_file.ALIGNMENT == 0


def test_loading_and_predicting_copy_no_rows(model_path):
    X, y = make_data(60_000, None)
    LSGPRegressor(objective=None, memory_budget="1MB", n_neighbors=10).fit(X, y).save(model_path)
    tracemalloc.start()
    try:
        LSGPRegressor.load(model_path).predict(QUERIES)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes / 2


def test_other_readers_of_safetensors_read_the_file(model_path):
    model = fit_case("half_rank")
    model.save(model_path)
    arrays = load_file(model_path)
    assert np.array_equal(arrays["models.0.problem.X"], model.fitted_[0].problem.X)
    assert np.array_equal(arrays["models.0.index.order"], model.fitted_[0].index.order)
    own = read_model_file(model_path).arrays
    assert {name for name in arrays if not name.startswith("padding.")} == own.keys()
    # Of bytes: the padding of leaves is no number.
    assert all(arrays[name].tobytes() == own[name].tobytes() for name in own)


def test_a_loaded_model_outlives_its_file_and_is_saved_over_it(saved_model):
    loaded = LSGPRegressor.load(saved_model)
    loaded.save(saved_model)
    assert same_predictions(loaded, fit_case("given"))
    assert same_predictions(LSGPRegressor.load(saved_model), loaded)
    assert load_file(saved_model)["models.0.transform.knots"].shape == (0,)
    saved_model.unlink()
    assert same_predictions(loaded, fit_case("given"))


# -- other ways to store -----------------------------------------------------------------------


@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize("name", ["given", "kernel_object", "ensemble"])
def test_pickle_copy_and_joblib_keep_the_model(name, is_loaded, model_path, tmp_path):
    model = fit_case(name)
    if is_loaded:
        model.save(model_path)
        model = LSGPRegressor.load(model_path)
    joblib.dump(model, tmp_path / "model.joblib")
    for twin in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        joblib.load(tmp_path / "model.joblib"),
        joblib.load(tmp_path / "model.joblib", mmap_mode="r"),
    ):
        assert same_predictions(twin, model)


# -- stores that load what is trusted ------------------------------------------------------------


def grown():
    """A model whose index has taken rows in and let rows go."""
    X, y = make_data(300, None)
    model = LSGPRegressor(objective=None, n_neighbors=20).fit(X[:280], y[:280])
    model.partial_fit(X[280:], y[280:])
    return model.forget(np.arange(3))


def tuned(kind, times=1):
    """A tuned model of numbers or of labels, of rows that are there more than once."""
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(90, 3))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=90)
    y = y if kind is LSGPRegressor else np.digitize(y, [-0.3, 0.3])
    rows = np.tile(np.arange(90), times)
    return kind(effort="fast", random_state=0).fit(X[rows], y[rows])


def sum_of_two():
    """An exact model whose kernel is a sum of two correlations."""
    own = SumKernel(("rbf", "matern32"), 0.5, (0.1, 0.1, 0.1))
    exact = LSGPRegressor(
        objective=None,
        localizer="rectangular",
        n_neighbors=10**6,
        hyperparameters=Hyperparameters(scale="global"),
    ).fit(*make_data(60, None))
    (fitted,) = exact.ensemble_.models
    problem = fitted.problem._replace(model=fitted.model.replace(kernel=own))
    solver = choose_solver(problem, fitted.index, 60, fitted.solver.backend)
    exact.ensemble_ = dataclasses.replace(exact.ensemble_, models=(fitted.with_solver(solver),))
    return exact


#: skops cannot store a pandas series with an index of its own, which is among the odd settings.
STORED = {name: make for name, make in ALL.items() if name != "odd_settings"} | {
    "grown": grown,
    "copies": partial(tuned, LSGPRegressor, times=2),
    "numbers": partial(tuned, LSGPRegressor),
    "labels": partial(tuned, LSGPClassifier),
    "sum of two": sum_of_two,
}
#: What users who give a kernel object have to trust beside our own.
KERNELS = {
    f"sklearn.gaussian_process.kernels.{name}"
    for name in ("DotProduct", "Product", "RationalQuadratic", "Sum", "WhiteKernel")
}


@pytest.mark.parametrize("name", STORED)
def test_skops_keeps_models_of_trusted_types(name):
    skops_io = pytest.importorskip("skops.io", reason="skops is not installed")
    model = STORED[name]()
    stored = skops_io.dumps(model)
    found = set(skops_io.get_untrusted_types(data=stored))
    needed = KERNELS if name == "kernel_object" else set()
    assert found - set(TRUSTED_TYPES) == needed
    loaded = skops_io.loads(stored, trusted=[*TRUSTED_TYPES, *needed])
    assert same_predictions(loaded, model)
    assert vars(loaded).keys() == vars(model).keys()


def test_few_types_are_trusted_without_need():
    skops_io = pytest.importorskip("skops.io", reason="skops is not installed")
    found = [skops_io.get_untrusted_types(data=skops_io.dumps(make())) for make in STORED.values()]
    assert set(TRUSTED_TYPES) <= set().union(*found)


@pytest.mark.parametrize("name", TRUSTED_TYPES)
def test_trusted_types_are_classes_of_ours(name):
    module, _, kind = name.rpartition(".")
    assert module.startswith("lsgp.")
    assert isinstance(getattr(import_module(module), kind), type)
