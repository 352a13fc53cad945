# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of a device are taken, and answered in kind; those of the host in NumPy's."""

import sys
import types
from contextlib import nullcontext

import numpy as np
import pytest
from bare import BARE

from lsgp import LSGPClassifier, LSGPRegressor
from lsgp.backends import cuda
from lsgp.inputs.device_arrays import kind_of

REASON = cuda.why_not()
needs_device = pytest.mark.skipif(REASON is not None, reason=str(REASON))


class FakeArray:
    """As CuPy's: no NumPy function may convert it by itself."""

    __module__ = "cupy"
    device = nullcontext()

    def __init__(self, values):
        self.values = values

    def get(self):
        return self.values

    def __array__(self, *args, **more):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


class FakeTensor:
    """As one of torch."""

    __module__ = "torch"

    def __init__(self, values, where):
        self.values, self.device = values, types.SimpleNamespace(type=where)

    def detach(self):
        return self

    def cpu(self):
        return FakeTensor(self.values, "cpu")

    def numpy(self):
        return self.values

    def __array__(self, *args, **more):
        if self.device.type != "cpu":
            raise TypeError("can't convert cuda device type tensor to numpy.")
        return self.values


def fake(monkeypatch, name):
    """The fake library, and how to make and read its arrays."""
    if name == "cupy":
        monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(asarray=FakeArray))
        return FakeArray
    library = types.SimpleNamespace(as_tensor=lambda a, device: FakeTensor(a, device.type))
    monkeypatch.setitem(sys.modules, "torch", library)
    return lambda values: FakeTensor(values, "cuda")


def make_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    return X, np.sin(X[:, 0]), rng.normal(size=(40, 2))


def check_answers(make, read, backend="cpu"):
    """Everything that takes such arrays, against the same of NumPy's."""
    X, y, queries = make_data()
    settings = {**BARE, "backend": backend}
    plain = LSGPRegressor(**settings).fit(X, y)
    model = LSGPRegressor(**settings).fit(make(X), make(y))
    kind = type(make(queries))
    for got, expected in (
        ([model.predict(make(queries))], [plain.predict(queries)]),
        (
            model.predict(make(queries), return_std=True),
            plain.predict(queries, return_std=True),
        ),
        (model.predict_interval(make(queries)), plain.predict_interval(queries)),
    ):
        for left, right in zip(got, expected, strict=True):
            assert type(left) is kind
            assert np.array_equal(read(left), right)
    assert type(model.predict(queries)) is np.ndarray
    assert type(model.predict_distribution(make(queries)).mean) is np.ndarray
    for ask in (model.predict_gradient, model.explain):
        with pytest.raises(TypeError, match="which only fit, predict, predict_interval"):
            ask(make(queries))
    with pytest.raises(TypeError, match=r"Bring it to the host: cupy.asnumpy\(X\)"):
        LSGPClassifier().fit(make(X), y > 0)


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_arrays_of_a_device_are_answered_in_kind(monkeypatch, name):
    check_answers(fake(monkeypatch, name), lambda array: array.values)


def test_tensors_of_the_host_are_answered_in_kind_where_that_is_asked_for(monkeypatch):
    fake(monkeypatch, "torch")
    tensor = FakeTensor(np.zeros((1, 2)), "cpu")
    assert not kind_of(tensor).is_foreign
    monkeypatch.setattr("lsgp.inputs.device_arrays.get_config", lambda: {"array_api_dispatch": 1})
    assert kind_of(tensor).is_foreign


@needs_device
def test_cupy_arrays_are_answered_in_kind():
    cupy = pytest.importorskip("cupy")
    check_answers(cupy.asarray, cupy.asnumpy, "cuda")


@needs_device
def test_tensors_on_the_device_are_answered_in_kind():
    torch = pytest.importorskip("torch")
    check_answers(lambda a: torch.as_tensor(a, device="cuda"), lambda a: a.cpu().numpy(), "cuda")
