# SPDX-License-Identifier: BSD-3-Clause
"""What stands for a device where there is none: NumPy for CuPy, SciPy for cuSOLVER."""

import contextlib
import types

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

from lsgp.backends.cuda import dense as device_dense
from lsgp.method.kernels import KERNELS

#: What is left where a device would not write: nobody may read it.
POISON = np.nan


class PoisonedNumpy:
    """NumPy, whose empty arrays are full of what must not be read."""

    def __getattr__(self, name):
        return getattr(np, name)

    asnumpy = staticmethod(np.array)

    @staticmethod
    def empty(shape, dtype=float):
        return np.full(shape, POISON, dtype)


def correlate_there(kernel, left, right, rho, by_r2):
    values = KERNELS[kernel](cdist(left, right, "sqeuclidean"))
    for target, found in zip((rho, by_r2), values, strict=True):
        if target is not None:
            target[:] = found


def factor_in_place(matrix):
    symmetric = np.tril(matrix) + np.tril(matrix, -1).T
    try:
        found = np.linalg.cholesky(symmetric)
    except np.linalg.LinAlgError:
        return False
    lower = np.tril_indices(len(matrix))
    matrix[lower] = found[lower]
    return True


def invert_small(block):
    return solve_triangular(np.tril(block), np.eye(len(block)), lower=True)


#: Bytes that are free.
MEMORY = 10**12


def dense_on_host(monkeypatch):
    """A `DeviceDense` whose device is NumPy."""
    for function in (correlate_there, factor_in_place, invert_small):
        monkeypatch.setattr(device_dense, function.__name__, function)
    monkeypatch.setattr(device_dense, "cupy", PoisonedNumpy)
    monkeypatch.setattr(device_dense, "free_memory", lambda: MEMORY)
    return device_dense.DeviceDense(contextlib.nullcontext)


class LikeCuPy:
    """What is asked of CuPy before anything runs."""

    __version__ = "14.0.0"
    #: Of its devices.
    facts = {  # noqa: RUF012
        "multiProcessorCount": 1,
        "sharedMemPerBlockOptin": 1,
        "totalGlobalMem": 10**9,
        "major": 9,
        "minor": 0,
    }

    class CUDARuntimeError(RuntimeError):
        __module__ = "cupy_backends.cuda.api.runtime"

    class OutOfMemoryError(MemoryError):
        __module__ = "cupy.cuda.memory"

    def __init__(self, n_devices=2, error=None):
        self.error, self.n_devices, self.used = error, n_devices, []
        runtime = types.SimpleNamespace(
            CUDARuntimeError=self.CUDARuntimeError,
            getDeviceCount=self.count,
            getDeviceProperties=lambda number: {"name": f"Fake {number}".encode(), **self.facts},
            memGetInfo=lambda: (10**9, 10**9),
        )
        self.cuda = types.SimpleNamespace(runtime=runtime, Device=self.device)

    def count(self):
        if self.error is not None:
            raise self.CUDARuntimeError(self.error)
        return self.n_devices

    def device(self, number=0):
        used = self.used

        class Context:
            id = number

            def __enter__(self):
                used.append(number)

            def __exit__(self, *error):
                return False

        return Context()

    def get_default_memory_pool(self):
        return types.SimpleNamespace(free_all_blocks=lambda: None, free_bytes=lambda: 0)

    get_default_pinned_memory_pool = get_default_memory_pool
