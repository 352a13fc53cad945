# SPDX-License-Identifier: BSD-3-Clause
"""Arrays as CuPy's where there is no device: NumPy's functions work on them, conversions do not.

What leaves the device is counted. Kernels are the native core.
"""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
from fake_device import LikeCuPy

from lsgp.backends import cpu, host
from lsgp.backends.contract import Systems
from lsgp.backends.cuda import backend
from lsgp.backends.cuda.search import enter
from lsgp.method.contract import LocalProblem, Predictions
from lsgp.search.coarse import search_units

#: Numbers that functions may be given beside arrays.
SCALARS = (bool, int, float, str, slice, type, type(None), np.generic, np.dtype)


class Place(nullcontext):
    """A device, as its arrays name it."""

    id = 0


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that NumPy must not convert, and that mixes with its own kind and scalars alone."""

    __module__ = "cupy"
    __cuda_array_interface__ = property(lambda self: {})
    device = Place()
    #: Shapes of what came to the host, until somebody clears it.
    copies = []  # noqa: RUF012

    def __init__(self, values):
        self.values = np.array(values)

    @classmethod
    def view(cls, values):
        made = cls.__new__(cls)
        made.values = values
        return made

    def get(self):
        DeviceArray.copies.append(self.shape)
        return self.values.copy()

    def __array__(self, *args, **more):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc, method, *inputs, **more):
        assert method == "__call__", f"CuPy has no {ufunc}.{method}"
        return _wrap(ufunc(*map(_unwrap, inputs), **{k: _unwrap(v) for k, v in more.items()}))

    def __array_function__(self, function, types, args, more):
        if function is np.asarray:  # with like=: what brings numbers of the host here
            return DeviceArray(args[0])
        out = more.get("out")
        found = function(*map(_unwrap, args), **{k: _unwrap(v) for k, v in more.items()})
        return out if out is not None else _wrap(found)

    def __getitem__(self, key):
        return _wrap(self.values[_key(key)])

    def __setitem__(self, key, value):
        self.values[_key(key)] = _unwrap(value)

    def __len__(self):
        return len(self.values)

    def __bool__(self):
        return bool(self.values)

    def __int__(self):
        return int(self.values)

    def __getattr__(self, name):
        if name == "values":
            raise AttributeError(name)
        found = getattr(self.values, name)
        if not callable(found):
            return _wrap(found)
        return lambda *args, **more: _wrap(found(*map(_unwrap, args), **more))


def _wrap(found):
    return (
        DeviceArray.view(np.asarray(found)) if isinstance(found, np.ndarray | np.generic) else found
    )


def _unwrap(value):
    if isinstance(value, DeviceArray):
        return value.values
    if isinstance(value, list | tuple):
        return type(value)(map(_unwrap, value))
    if not isinstance(value, SCALARS):
        raise TypeError(f"Unsupported type {type(value)}")
    return value


def _key(key):
    parts = key if isinstance(key, tuple) else (key,)
    return tuple(part.values if isinstance(part, DeviceArray) else part for part in parts)


class FakeTensor:
    """As one of torch, on a device or not."""

    __module__ = "torch"
    ndim = property(lambda self: self.values.ndim)

    @property
    def __cuda_array_interface__(self):
        """The class has it, wherever a tensor is."""
        if self.device.type != "cuda":
            raise AttributeError("Can't get __cuda_array_interface__ on non-CUDA tensor type.")
        return {}

    def __init__(self, values, where="cuda"):
        self.values, self.device = values, SimpleNamespace(type=where)

    def __len__(self):
        return len(self.values)

    def detach(self):
        return self

    def cpu(self):
        DeviceArray.copies.append(self.values.shape)
        return FakeTensor(self.values, "cpu")

    def numpy(self):
        return self.values

    def __array__(self, *args, **more):
        if self.device.type != "cpu":
            raise TypeError("can't convert cuda device type tensor to numpy.")
        return self.values.astype(*args, copy=False) if args else self.values


class CuPyOnHost(LikeCuPy):
    """What is asked of CuPy where it holds arrays."""

    def __init__(self):
        super().__init__(1)
        self.cuda.Stream = lambda non_blocking: nullcontext()
        self.cuda.get_current_stream = lambda: SimpleNamespace(synchronize=lambda: None)

    @staticmethod
    def asarray(values):
        return values if isinstance(values, DeviceArray) else DeviceArray(values)

    @staticmethod
    def from_dlpack(tensor):
        return DeviceArray.view(tensor.values)


TORCH = SimpleNamespace(
    as_tensor=lambda values, device: FakeTensor(values, device.type),
    from_dlpack=lambda array: FakeTensor(array.values),
)


def _here(queries):
    return np.ascontiguousarray(getattr(queries, "values", queries))


def find_nearest(index, request, residence):
    in_units, _ = enter(index, request)
    assert type(in_units) is type(request.queries)
    return find(index, request._replace(queries=_here(request.queries)), residence)


def find(index, request, residence):
    return DeviceArray(host.search(index, request))


def find_units(request, index, residence):
    return DeviceArray(search_units(request))


def predict(problem, queries, neighbors):
    X, y, noise = (array.values for array in problem[:3])
    here = LocalProblem(X, y, noise, problem.model)
    solved = cpu.predict(Systems(here, _here(queries), neighbors.values))
    return Predictions(*map(DeviceArray, solved[:5]))


def download(array):
    return array.get()


def download_together(arrays):
    return tuple(array.get() for array in arrays)


def put_on_host(monkeypatch):
    """All that the path of queries asks of a device; CuPy's stand-in is in `sys.modules`."""
    for function in (find_nearest, find, find_units):
        monkeypatch.setattr(backend.search, function.__name__, function)
    monkeypatch.setattr(backend.solve, "predict", predict)
    for function in (download, download_together):
        monkeypatch.setattr(backend, function.__name__, function)
