# SPDX-License-Identifier: BSD-3-Clause
"""Saved models: the same to the last bit, never half written, and clear about damage."""

import copy
import io
import json
import math
import os
import pickle
import stat
import subprocess
import sys
import tracemalloc
from functools import cache

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels as sk

from lsgp import LSGPRegressor, ModelFileError
from lsgp.storage import model_file
from lsgp.storage.model_file import Contents, read_model_file, write_model_file
from lsgp.storage.values import KERNEL_CLASSES, decode, encode

#: Files damaged at random, and savings killed at random moments. More were tried once: 500.
N_DAMAGED = 120
N_KILLED = 50

GIVEN = {"objective": None, "n_neighbors": 20}
TUNED = {"n_tuning_points": 100, "n_models": 2, "kernel": "matern32", "random_state": 0}

#: Constructor arguments, number of rows and number of targets (None: y is a vector).
CASES = {
    "given": (GIVEN, 200, None),
    "one_row": ({"objective": None}, 1, None),
    "several_targets": (GIVEN, 200, 3),
    "one_column": (GIVEN, 130, 1),
    "float32": ({**GIVEN, "dtype": "float32"}, 200, 2),
    "fixed_bandwidth": ({"objective": None, "bandwidth": 1.5, "scale": "global"}, 200, None),
    "half_rank": ({**GIVEN, "input_transform": "half-rank"}, 200, None),
    "kinds_by_input": ({**GIVEN, "input_transform": ["yeo-johnson", None, "half-rank"]}, 200, None),
    "kernel_object": (
        {
            **GIVEN,
            "kernel": sk.RationalQuadratic(0.7) * sk.DotProduct() + sk.WhiteKernel(0.01),
            "backend": "reference",
        },
        60,
        None,
    ),
    "arrays_as_settings": (
        {**GIVEN, "lengthscale": np.array([1.0, 0.1 + 0.2, 3.0]), "trend": (0.5, 1e-300)},
        200,
        None,
    ),
    "odd_settings": (
        {
            **GIVEN,
            "n_neighbors": np.int64(7),
            "noise_variance": np.float32(0.1),
            "random_state": np.random.RandomState(3),
            "lengthscale": pd.Series([1.0, 2.0, 3.0]),
        },
        50,
        None,
    ),
    "ensemble": (TUNED, 150, None),
    "ensemble_float32": ({**TUNED, "dtype": "float32", "n_models": 4}, 150, 2),
}


def make_data(n, n_targets, seed=0):
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(n, 3)))
    y = np.sin(2 * X[:, :1]) + X[:, 1:2] * np.arange(1, (n_targets or 1) + 1)
    y = y + 0.1 * rng.normal(size=y.shape)
    return X, y if n_targets else y[:, 0]


@cache
def fit_case(name):
    settings, n, n_targets = CASES[name]
    return LSGPRegressor(**settings).fit(*make_data(n, n_targets))


QUERIES = make_data(40, None, seed=1)[0]


def same_predictions(a, b):
    mine, other = a.predict_distribution(QUERIES), b.predict_distribution(QUERIES)
    return all(
        np.array_equal(getattr(mine, part), getattr(other, part))
        for part in ("mean", "scale", "dof")
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.lsgp"


@pytest.fixture
def saved(path):
    fit_case("given").save(path)
    return path


# -- the round trip ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_predictions_after_a_round_trip_are_identical(name, path):
    model = fit_case(name)
    model.save(path)
    loaded = LSGPRegressor.load(path)
    assert same_predictions(model, loaded)
    assert np.array_equal(model.predict(QUERIES), loaded.predict(QUERIES))
    assert loaded.predict(QUERIES).shape == model.predict(QUERIES).shape
    # Whatever fit learns must be in the file.
    assert vars(loaded).keys() == vars(model).keys()
    # And a saved copy of the copy is the same file.
    loaded.save(path.with_suffix(".again"))
    assert path.read_bytes() == path.with_suffix(".again").read_bytes()


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_fits_and_clones_like_the_first(name, path):
    _, n, n_targets = CASES[name]
    model = fit_case(name)
    model.save(path)
    loaded = LSGPRegressor.load(path)
    for key, value in model.get_params(deep=False).items():
        mine = loaded.get_params(deep=False)[key]
        if key == "random_state" and not isinstance(value, int | None):
            assert mine.randint(2**31) == copy.deepcopy(value).randint(2**31)
        else:
            assert np.array_equal(mine, value), key
    if name.startswith("ensemble"):
        return  # tuning again would only take time
    again = clone(loaded).fit(*make_data(n, n_targets))
    assert same_predictions(again, model)
    assert same_predictions(loaded.fit(*make_data(n, n_targets)), model)


def test_leave_one_out_after_a_round_trip_is_identical(saved):
    mine, other = fit_case("given").loo(), LSGPRegressor.load(saved).loo()
    assert np.array_equal(mine.predicted.mean, other.predicted.mean)
    assert np.array_equal(mine.observed, other.observed)


def test_tuning_is_remembered(path):
    model = fit_case("ensemble")
    model.save(path)
    loaded = LSGPRegressor.load(path)
    assert loaded.tuning_.to_rows() == model.tuning_.to_rows()
    assert loaded.tuning_.loss == model.tuning_.loss
    assert loaded.scale_factor_ == model.scale_factor_
    assert [w for _, w in loaded.tuning_.chosen] == [w for _, w in model.tuning_.chosen]
    for mine, other in zip(loaded.tuning_.candidates, model.tuning_.candidates, strict=True):
        assert mine.describe() == other.describe()
        assert np.array_equal(mine.predicted.mean, other.predicted.mean)


def test_names_of_inputs_and_targets_are_remembered(path):
    X, y = make_data(50, None)
    frame = pd.DataFrame(X, columns=["größe", "b", "c"])
    LSGPRegressor(objective=None).fit(frame, pd.Series(y, name="temp")).save(path)
    loaded = LSGPRegressor.load(path)
    assert loaded.target_names_ == ["temp"]
    assert list(loaded.feature_names_in_) == ["größe", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[["b", "c", "größe"]])


def test_models_share_their_rows_in_the_file_and_after_loading(path):
    X, y = make_data(3000, None)
    model = LSGPRegressor(objective=None).fit(X, y)
    first = model.fitted_[0]
    # As tuning leaves them with float32: equal arrays that are not the same.
    twin = copy.deepcopy(first)
    model.save(path)
    size = path.stat().st_size
    model.fitted_ = (first, twin)
    model.save(path)
    assert path.stat().st_size < size + 5000
    loaded = LSGPRegressor.load(path)
    for name in ("X", "y", "noise"):
        mine, other = (getattr(fitted.problem, name) for fitted in loaded.fitted_)
        assert np.shares_memory(mine, other)


def test_arrays_are_read_from_the_file_where_vectors_are_aligned(path):
    fit_case("ensemble").save(path)
    fitted = LSGPRegressor.load(path).fitted_[0]
    for array in (*fitted.problem[:3], *fitted.index[:3]):
        assert type(array) is np.ndarray
        assert not array.flags.owndata
        assert not array.flags.writeable
        assert array.flags.c_contiguous
        assert array.ctypes.data % model_file.ALIGNMENT == 0


def test_loading_and_predicting_copy_no_rows(path):
    X, y = make_data(60_000, None)
    LSGPRegressor(objective=None, memory_budget="1MB", n_neighbors=10).fit(X, y).save(path)
    tracemalloc.start()
    try:
        LSGPRegressor.load(path).predict(QUERIES)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes / 2


def test_other_readers_of_safetensors_read_the_file(path):
    model = fit_case("half_rank")
    model.save(path)
    arrays = load_file(path)
    assert np.array_equal(arrays["models.0.X"], model.fitted_[0].problem.X)
    assert np.array_equal(arrays["models.0.order"], model.fitted_[0].index.order)
    own = read_model_file(path).arrays
    assert {name for name in arrays if not name.startswith("padding.")} == own.keys()
    # Of bytes: the padding of leaves is no number.
    assert all(arrays[name].tobytes() == own[name].tobytes() for name in own)


def test_other_readers_of_safetensors_read_empty_arrays(saved):
    assert load_file(saved)["models.0.knots"].shape == (0,)


def test_a_model_is_saved_over_the_file_that_it_is_read_from(saved):
    loaded = LSGPRegressor.load(saved)
    loaded.save(saved)
    assert same_predictions(loaded, fit_case("given"))
    assert same_predictions(LSGPRegressor.load(saved), loaded)


def test_a_loaded_model_outlives_its_file(saved):
    loaded = LSGPRegressor.load(saved)
    saved.unlink()
    assert same_predictions(loaded, fit_case("given"))


# -- other ways to store -----------------------------------------------------------------------


@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize("name", ["given", "kernel_object", "ensemble"])
def test_pickle_copy_and_joblib_keep_the_model(name, is_loaded, path, tmp_path):
    model = fit_case(name)
    if is_loaded:
        model.save(path)
        model = LSGPRegressor.load(path)
    joblib.dump(model, tmp_path / "model.joblib")
    for twin in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        joblib.load(tmp_path / "model.joblib"),
        joblib.load(tmp_path / "model.joblib", mmap_mode="r"),
    ):
        assert same_predictions(twin, model)


def test_skops_keeps_the_model():
    skops_io = pytest.importorskip("skops.io", reason="skops is not installed")
    model = fit_case("ensemble")
    stored = skops_io.dumps(model)
    types = skops_io.get_untrusted_types(data=stored)
    assert all(name.startswith("lsgp.") for name in types)
    assert same_predictions(skops_io.loads(stored, trusted=types), model)


# -- values ------------------------------------------------------------------------------------

SIMPLE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
NESTED = st.recursive(
    SIMPLE,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(NESTED)
def test_values_survive_json_exactly(value):
    again = decode(json.loads(json.dumps(encode(value, "value"), allow_nan=False)))
    assert again == value
    assert repr(again) == repr(value)  # -0.0, and 1 rather than 1.0


@pytest.mark.parametrize(
    "array",
    [
        np.array([[0.1, math.inf], [-0.0, 5e-324]]),
        np.array([1, 2], np.int32),
        np.empty((0, 3)),
        np.array(["standardize", "x"]),
        np.array(["half-rank", None], dtype=object),
        np.array(3.5, np.float32),
    ],
)
def test_arrays_survive_json_exactly(array):
    again = decode(json.loads(json.dumps(encode(array, "value"), allow_nan=False)))
    assert again.shape == array.shape
    assert again.dtype == array.dtype
    assert again.tolist() == array.tolist()


@pytest.mark.parametrize(
    "kernel",
    [
        2.0 * sk.RBF([0.1, 1.0], "fixed") + sk.WhiteKernel(1e-5),
        sk.Matern(nu=math.inf) ** 2,
        sk.ExpSineSquared(periodicity_bounds=(1e-3, 10.0)) * sk.RationalQuadratic(),
        sk.PairwiseKernel(metric="polynomial", pairwise_kernels_kwargs={"degree": 2}),
        sk.CompoundKernel([sk.RBF(), sk.DotProduct()]),
    ],
    ids=str,
)
def test_kernels_survive_json_exactly(kernel):
    again = decode(json.loads(json.dumps(encode(kernel, "kernel"))))
    assert again == kernel
    assert repr(again) == repr(kernel)


def test_every_kernel_of_scikit_learn_is_known():
    classes = {
        name
        for name, value in vars(sk).items()
        if isinstance(value, type)
        and issubclass(value, sk.Kernel)
        and value.__module__ == sk.__name__
    }
    abstract = {"Kernel", "KernelOperator"}
    assert set(KERNEL_CLASSES) == classes - abstract


class OwnKernel(sk.RBF):
    """A kernel that a model file cannot hold."""


@pytest.mark.parametrize("kernel", [OwnKernel(), sk.RBF() + OwnKernel()], ids=["itself", "a_part"])
def test_a_kernel_of_ones_own_is_refused_when_saving(kernel, path):
    X, y = make_data(50, None)
    model = LSGPRegressor(objective=None, kernel=kernel, backend="reference").fit(X, y)
    with pytest.raises(ModelFileError, match=r"kernel has a part of type test_storage\.OwnKernel"):
        model.save(path)
    assert os.listdir(path.parent) == []


def test_a_function_as_a_setting_is_refused_when_saving(path):
    model = copy.copy(fit_case("given"))
    model.verbose = print
    with pytest.raises(ModelFileError, match=r"verbose is .* which a model file cannot hold"):
        model.save(path)


def test_an_estimator_that_is_not_fitted_is_not_saved(path):
    with pytest.raises(NotFittedError):
        LSGPRegressor().save(path)
    assert os.listdir(path.parent) == []


# -- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(saved, monkeypatch, error):
    before = saved.read_bytes()

    def fail(descriptor):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    expected = KeyboardInterrupt if error is KeyboardInterrupt else OSError
    with pytest.raises(expected) as caught:
        fit_case("several_targets").save(saved)
    if expected is OSError:
        assert caught.value.errno == 28
        assert caught.value.strerror == (
            f"The model was not saved to {saved}: No space left on device. The file that was "
            "there is unchanged. Free some space, or save elsewhere."
        )
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are of POSIX")
def test_a_full_disk_leaves_the_old_file_and_nothing_else(saved):
    import resource

    before = saved.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"The model was not saved to .* Free some space"):
            fit_case("several_targets").save(saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_saving_where_there_is_no_folder_or_no_file_is_explained(tmp_path):
    model = fit_case("given")
    with pytest.raises(FileNotFoundError, match="Create the folder first"):
        model.save(tmp_path / "missing" / "model.lsgp")
    with pytest.raises(ModelFileError, match=r"is not a file\. Give the path of a file to save to"):
        model.save(tmp_path)
    if os.path.exists("/dev/null"):
        with pytest.raises(ModelFileError, match="is not a file"):
            model.save("/dev/null")


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes are of POSIX")
def test_links_and_permissions_stay(saved):
    link = saved.with_name("link.lsgp")
    link.symlink_to(saved.name)
    saved.chmod(0o640)
    fit_case("several_targets").save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(saved.stat().st_mode) == 0o640
    assert same_predictions(LSGPRegressor.load(saved), fit_case("several_targets"))


KILL_SCRIPT = """
import os, random, signal, sys, time
import numpy as np
from lsgp import LSGPRegressor

path, n_killed = sys.argv[1], int(sys.argv[2])
X = np.random.default_rng(0).normal(size=(20_000, 3))
models = [LSGPRegressor(objective=None, lengthscale=ell).fit(X, X[:, 0]) for ell in (1.0, 2.0)]
began = time.perf_counter()
for model in models:
    model.save(path)
seconds = (time.perf_counter() - began) / 2
random = random.Random(0)
seen, n_partial = set(), 0
for _ in range(n_killed):
    child = os.fork()
    if child == 0:
        while True:
            for model in models:
                model.save(path)
    time.sleep(random.uniform(0, 4 * seconds))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    loaded = LSGPRegressor.load(path)  # with its checksums
    assert loaded.n_features_in_ == 3
    seen.add(float(loaded.model_.lengthscale[0]))
    folder = os.path.dirname(path)
    for name in set(os.listdir(folder)) - {os.path.basename(path)}:
        assert name.startswith(".") and name.endswith(".tmp"), name
        n_partial += 1
        os.unlink(os.path.join(folder, name))
print(len(seen), n_partial)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks to be killed are of POSIX")
def test_saving_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILL_SCRIPT, tmp_path / "model.lsgp", str(N_KILLED)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    n_seen, n_partial = map(int, result.stdout.split())
    # Both models were found, and many of the moments were in the middle of writing.
    assert n_seen == 2
    assert n_partial > N_KILLED // 5


# -- damaged and foreign files -----------------------------------------------------------------


def damage(rng, data, other):
    """A copy of the file's bytes with one kind of damage."""
    data = bytearray(data)
    end = 8 + int.from_bytes(data[:8], "little")
    kind = rng.integers(8)
    if kind == 0:  # bits anywhere
        for place in rng.integers(len(data), size=rng.integers(1, 9)):
            data[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:  # bits of the header
        for place in rng.integers(end, size=rng.integers(1, 4)):
            data[place] ^= 1 << int(rng.integers(8))
    elif kind == 2:  # bits of its length
        data[rng.integers(8)] ^= 1 << int(rng.integers(8))
    elif kind == 3:
        del data[int(rng.integers(len(data))) :]
    elif kind == 4:
        data += rng.bytes(int(rng.integers(1, 1000)))
    elif kind == 5:  # the header of another model
        data[:end] = other[: 8 + int.from_bytes(other[:8], "little")]
    elif kind == 6:  # a block of zeros, as after a crash of the system
        start = int(rng.integers(len(data)))
        data[start : start + 4096] = bytes(len(data[start : start + 4096]))
    else:  # two blocks in each other's place
        a, b = (64 * int(k) for k in rng.integers(len(data) // 64, size=2))
        data[a : a + 64], data[b : b + 64] = data[b : b + 64], data[a : a + 64]
    return bytes(data)


REMEDIES = (
    "Give the path of a file that `save` has written.",
    "Copy it again from where it came, or fit and save the model again.",
    "Update lsgp, or fit and save the model again.",
)


def load_or_explain(path):
    try:
        return LSGPRegressor.load(path), None
    except ModelFileError as error:
        return None, str(error)


def test_a_damaged_file_gives_the_one_error_or_the_same_model(tmp_path):
    rng = np.random.default_rng(0)
    models, files = [], []
    names = ("given", "half_rank", "ensemble", "kernel_object")
    for name in names:
        fit_case(name).save(tmp_path / name)
        files.append((tmp_path / name).read_bytes())
        models.append(fit_case(name))
    path, n_errors = tmp_path / "damaged", 0
    tracemalloc.start()
    try:
        for _ in range(N_DAMAGED):
            k, other = rng.choice(len(names), size=2, replace=False)
            path.write_bytes(damage(rng, files[k], files[other]))
            loaded, message = load_or_explain(path)
            if loaded is not None:
                assert same_predictions(loaded, models[k])
                continue
            n_errors += 1
            assert message.startswith(str(path))
            assert message.endswith(REMEDIES)
            assert len(message) < 500
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert n_errors > 0.8 * N_DAMAGED
    assert peak < 20e6


def test_every_cut_of_the_header_gives_the_one_error(saved):
    data = saved.read_bytes()
    for length in (*range(0, 300, 7), len(data) // 2, len(data) - 64, len(data) - 1):
        saved.write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            LSGPRegressor.load(saved)


def test_the_same_header_over_other_rows_is_noticed(tmp_path):
    a, b = tmp_path / "a.lsgp", tmp_path / "b.lsgp"
    for path, seed in ((a, 0), (b, 1)):
        LSGPRegressor(objective=None).fit(*make_data(100, None, seed)).save(path)
    first, second = a.read_bytes(), b.read_bytes()
    end = 8 + int.from_bytes(first[:8], "little")
    assert end == 8 + int.from_bytes(second[:8], "little")
    a.write_bytes(first[:end] + second[end:])
    with pytest.raises(ModelFileError, match="its arrays do not have their checksum"):
        LSGPRegressor.load(a)


def buffer_of(save):
    file = io.BytesIO()
    save(file)
    return file.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"a",
        b"x,y,z\n1,2,3\n" * 100,
        b"PK\x03\x04" + bytes(100),
        bytes(1000),
        b"\xff" * 1000,
        (2).to_bytes(8, "little") + b"[]",
        (2).to_bytes(8, "little") + b"{}",
        (100_000).to_bytes(8, "little") + b"[" * 100_000,
        (40).to_bytes(8, "little") + b'{"__metadata__":{"format":["lsgp"]}}    ',
        pickle.dumps({"a": np.arange(1000)}),
        buffer_of(lambda file: np.save(file, np.arange(100))),
    ],
    ids=range(12),
)
def test_a_foreign_file_gives_the_one_error(data, path):
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"is not a model file, or a damaged one: .*\. Give"):
        LSGPRegressor.load(path)


def test_another_safetensors_file_gives_the_one_error(path):
    save_file({"weight": np.ones((3, 4), np.float32)}, path)
    with pytest.raises(ModelFileError, match="does not say that it is a model of lsgp"):
        LSGPRegressor.load(path)


def test_a_folder_or_a_pipe_is_not_waited_for(tmp_path):
    with pytest.raises(ModelFileError, match=r"is not a file\. Give the path of a saved model"):
        LSGPRegressor.load(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="is not a file"):
            LSGPRegressor.load(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        LSGPRegressor.load(tmp_path / "missing.lsgp")


def test_a_newer_format_says_what_to_update(saved, monkeypatch):
    contents = own_contents(saved)
    monkeypatch.setattr(model_file, "FORMAT_VERSION", 2)
    write_model_file(saved, contents)
    monkeypatch.undo()
    message = r"has format version 2, written by lsgp .*; this lsgp reads version 1\. Update lsgp"
    with pytest.raises(ModelFileError, match=message):
        LSGPRegressor.load(saved)


def test_a_parameter_of_a_newer_library_says_what_to_update(saved):
    rewrite(saved, lambda state, arrays: state["parameters"].update(temperature=1.0))
    with pytest.raises(ModelFileError, match="has the parameter 'temperature', which this lsgp"):
        LSGPRegressor.load(saved)


def test_a_model_of_another_estimator_says_how_to_load_it(saved):
    class OtherRegressor(LSGPRegressor):
        pass

    with pytest.raises(ModelFileError, match="holds a model of LSGPRegressor, not of OtherRegr"):
        OtherRegressor.load(saved)


# -- files with right checksums and wrong contents -----------------------------------------------


def own_contents(path):
    texts, arrays = read_model_file(path)
    texts = {name: texts[name] for name in ("library_version", "estimator")}
    return Contents(texts, {name: array.copy() for name, array in arrays.items()})


def rewrite(path, change):
    """Change the contents of a file, and give it the checksums of a valid one."""
    texts, arrays = own_contents(path)
    state = json.loads(texts["estimator"])
    change(state, arrays)
    write_model_file(path, Contents({**texts, "estimator": json.dumps(state)}, arrays))


def set_value(*keys, value):
    def change(state, arrays):
        for key in keys[:-1]:
            state = state[key]
        state[keys[-1]] = value

    return change


def set_item(name, where, value):
    def change(state, arrays):
        arrays[name][where] = value

    return change


def replace_array(name, function):
    def change(state, arrays):
        arrays[name] = function(arrays[name])

    return change


MODEL = ("models", 0, "model")
IMPOSSIBLE = {
    "a row that does not exist": set_item("models.0.order", (0, 0), 10**9),
    "a row below all": set_item("models.0.order", (0, 0), -2),
    "a row that is missing": set_item("models.0.order", (0, 0), -1),
    "a row that is there twice": lambda state, arrays: arrays["models.0.order"].put(
        [0, 1], arrays["models.0.order"][0, 0]
    ),
    "fewer leaves": replace_array("models.0.leaves", lambda a: a[:-1]),
    "smaller boxes": replace_array("models.0.boxes", lambda a: a[:-1]),
    "rows of 64 bits": replace_array("models.0.order", lambda a: a.astype(np.int64)),
    "fewer targets": replace_array("models.0.y", lambda a: a[:-1]),
    "a vector as X": replace_array("models.0.X", np.ravel),
    "X of whole numbers": replace_array("models.0.X", lambda a: a.astype(np.int64)),
    "other precision": replace_array("models.0.noise", lambda a: a.astype(np.float32)),
    "another number of targets": set_value("target_shape", value=[2]),
    "negative lengthscale": set_value(*MODEL, "lengthscale", "items", 0, value=-1.0),
    "fewer lengthscales": set_value(*MODEL, "lengthscale", value=1.0),
    "unknown kernel": set_value(*MODEL, "kernel", value="sigmoid"),
    "unknown localizer": set_value(*MODEL, "localizer", value="box"),
    "text as a variance": set_value(*MODEL, "noise_variance", value="0.1"),
    "negative variance": set_value(*MODEL, "signal_variance", value=-1.0),
    "unknown hyperparameter": set_value(*MODEL, "temperature", value=1.0),
    "code as a kernel": set_value(
        *MODEL, "kernel", value={"type": "kernel", "class": "system", "parameters": {}}
    ),
    "unknown type": set_value("parameters", "kernel", value={"type": "module"}),
    "a huge array": set_value(
        "parameters",
        "lengthscale",
        value={"type": "array", "dtype": "float64", "shape": [10**12], "items": []},
    ),
    "too many neighbors": set_value("models", 0, "n_neighbors", value=10**6),
    "unknown backend": set_value("models", 0, "backend", value="abacus"),
    "unknown transform": set_value("models", 0, "input_transform", value=["log"] * 3),
    "knots beyond the end": set_item("models.0.knot_offsets", -1, 10),
    "no model": set_value("models", value=[]),
    "an array that is missing": set_value("models", 0, "arrays", "X", value="nowhere"),
    "no scale": set_value("scale_factor", value=None),
    "inputs as text": set_value("n_features", value="3"),
    "more target names": set_value("target_names", value=["a", "b"]),
    "fewer names": set_value("feature_names", value=["a"]),
    "nothing": lambda state, arrays: state.clear(),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_contents_that_contradict_each_other_give_the_one_error(name, saved):
    rewrite(saved, IMPOSSIBLE[name])
    with pytest.raises(ModelFileError, match="its contents contradict each other"):
        LSGPRegressor.load(saved)


def test_rows_are_checked_even_if_the_checksum_is_not(saved):
    LSGPRegressor.load(saved, check_arrays=False)
    rewrite(saved, IMPOSSIBLE["a row that does not exist"])
    with pytest.raises(ModelFileError, match="order has rows that do not exist"):
        LSGPRegressor.load(saved, check_arrays=False)
