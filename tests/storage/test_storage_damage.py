# SPDX-License-Identifier: BSD-3-Clause
"""Damaged and foreign files, and files that contradict themselves, give one clear error."""

import os
import pickle
import tracemalloc

import numpy as np
import pytest
from model_files import change_at, first, item, own_contents, rewrite
from safetensors.numpy import save_file
from storage_cases import fit_case, make_data, same_predictions

from lsgp import Hyperparameters, LSGPRegressor, ModelFileError
from lsgp.storage import model_file
from lsgp.storage.model_file import write_model_file

#: Files damaged at random. More were tried once: 500.
N_DAMAGED = 120


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


def test_a_damaged_file_gives_the_one_error_or_the_same_model(tmp_path):
    rng = np.random.default_rng(0)
    models, files = [], []
    names = ("given", "half_rank", "ensemble", "kernel_object")
    for name in names:
        fit_case(name).save(tmp_path / name)
        files.append((tmp_path / name).read_bytes())
        models.append(fit_case(name))
    path, messages = tmp_path / "damaged", []
    tracemalloc.start()
    try:
        for _ in range(N_DAMAGED):
            k, other = rng.choice(len(names), size=2, replace=False)
            path.write_bytes(damage(rng, files[k], files[other]))
            try:
                assert same_predictions(LSGPRegressor.load(path), models[k])
            except ModelFileError as error:
                messages.append(str(error))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(messages) > 0.8 * N_DAMAGED
    for message in messages:
        assert message.startswith(str(path))
        assert message.endswith(REMEDIES)
        assert len(message) < 500
    assert peak < 20e6


def test_every_cut_of_the_header_gives_the_one_error(saved_model):
    data = saved_model.read_bytes()
    for length in (*range(0, 300, 7), len(data) // 2, len(data) - 64, len(data) - 1):
        saved_model.write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            LSGPRegressor.load(saved_model)


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
    b.write_bytes(second.replace(b"library_version", b"Library_version", 1))
    with pytest.raises(ModelFileError, match="its header does not have its checksum"):
        LSGPRegressor.load(b)


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
        b"\x93NUMPY\x01\x00v\x00{'descr': '<i8', 'shape': (100,)}" + bytes(800),
    ],
    ids=range(12),
)
def test_a_foreign_file_gives_the_one_error(data, model_path):
    model_path.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"is not a model file, or a damaged one: .*\. Give"):
        LSGPRegressor.load(model_path)


def test_another_safetensors_file_gives_the_one_error(model_path):
    save_file({"weight": np.ones((3, 4), np.float32)}, model_path)
    with pytest.raises(ModelFileError, match="does not say that it is a model of lsgp"):
        LSGPRegressor.load(model_path)


def test_a_folder_or_a_pipe_is_not_waited_for(tmp_path):
    with pytest.raises(ModelFileError, match=r"is not a file\. Give the path of a saved model"):
        LSGPRegressor.load(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="is not a file"):
            LSGPRegressor.load(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        LSGPRegressor.load(tmp_path / "missing.lsgp")


def test_a_newer_format_says_what_to_update(saved_model, monkeypatch):
    contents = own_contents(saved_model)
    monkeypatch.setattr(model_file, "FORMAT_VERSION", 2)
    write_model_file(saved_model, contents)
    monkeypatch.undo()
    message = r"has format version 2, written by lsgp .*; this lsgp reads version 1\. Update lsgp"
    with pytest.raises(ModelFileError, match=message):
        LSGPRegressor.load(saved_model)


def test_a_parameter_of_a_newer_library_says_what_to_update(saved_model):
    rewrite(saved_model, lambda state, arrays: state["parameters"].update(temperature=1.0))
    with pytest.raises(ModelFileError, match="has the parameter 'temperature', which this lsgp"):
        LSGPRegressor.load(saved_model)


def test_a_model_of_another_estimator_says_how_to_load_it(saved_model):
    class OtherRegressor(LSGPRegressor):
        pass

    with pytest.raises(ModelFileError, match="holds a model of LSGPRegressor, not of OtherRegr"):
        OtherRegressor.load(saved_model)


# -- files with right checksums and wrong contents: see test_storage_records too ------------------


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("order", first(10**9), "order has rows that do not exist"),
        ("order", lambda a: item((0, 1), a[0, 0])(a), "order has not every row once"),
        # They would be found again and again: a search would not end.
        ("leaves", lambda a: np.where(np.isnan(a), 0.0, a), "a leaf has points without a row"),
    ],
)
def test_rows_are_checked_even_if_the_checksum_is_not(saved_model, name, change, message):
    LSGPRegressor.load(saved_model, check_arrays=False)
    rewrite(saved_model, change_at(f"models.0.index.{name}", change))
    with pytest.raises(ModelFileError, match=message):
        LSGPRegressor.load(saved_model, check_arrays=False)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 129, 200, 321, 1000])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_trees_of_any_size_are_found_to_be_right(n, dtype, model_path):
    X, y = make_data(n, None)
    model = LSGPRegressor(
        objective=None, dtype=dtype, hyperparameters=Hyperparameters(lengthscale=[0.1, 3.0, 1.0])
    ).fit(X, y)
    model.save(model_path)
    assert same_predictions(LSGPRegressor.load(model_path), model)
    if n > 64:
        model = model.forget([0, 5]).partial_fit(X[:30] + 9.0, y[:30])
        model.save(model_path)
        assert same_predictions(LSGPRegressor.load(model_path), model)
