# SPDX-License-Identifier: BSD-3-Clause
"""CuPy as far as local systems need it, on the host: its arrays are NumPy's, its kernels emulated.

Queues run what they are given at once; what they would have waited for is noted.
"""

import ctypes
import sys
import tempfile
import types
from functools import cache
from pathlib import Path

import cuda_emulation as emulation
import numpy as np
import pytest
from fake_device import LikeCuPy

from lsgp import backends
from lsgp.backends.cuda import device, modules, solve
from lsgp.backends.forwarding import PlacedBackend

REASON = backends.cuda.why_not()
needs_device = pytest.mark.skipif(REASON is not None, reason=str(REASON))
needs_compiler = pytest.mark.skipif(
    emulation.COMPILER is None or not sys.platform.startswith("linux"),
    reason="there is no C++ compiler to ask, or no glibc, which lanes take their stacks from",
)
#: Where the kernels run: on the host, by emulated lanes, and on a device.
on_each_place = pytest.mark.parametrize(
    "cuda",
    [pytest.param("emulated", marks=needs_compiler), pytest.param("device", marks=needs_device)],
    indirect=True,
)
NUMBERS = {
    np.int32: ctypes.c_int,
    np.int64: ctypes.c_longlong,
    np.float64: ctypes.c_double,
    np.uint64: ctypes.c_void_p,  # no array
}


class Pointer(types.SimpleNamespace):
    """To memory of somebody else."""

    def __add__(self, offset):
        return Pointer(ptr=self.ptr + offset, owner=self.owner)


class DeviceArray(np.ndarray):
    """An array that says where it is, and is fetched on request."""

    @property
    def data(self):
        return Pointer(ptr=self.ctypes.data, owner=self)

    def get(self, out):
        np.copyto(out, self)


class Queue:
    """A stream: whose events it has waited for, and how many kernels it has had."""

    def __init__(self, library):
        self.library, self.after, self.n_kernels = library, [], 0

    def __enter__(self):
        self.library.queues.append(self)

    def __exit__(self, *error):
        self.library.queues.pop()

    def record(self):
        return self

    def wait_event(self, event):
        self.after.append(event)

    def synchronize(self):
        pass


@cache
def _compiled(module, name, dtype, size, n_threads):
    folder = Path(tempfile.mkdtemp(prefix="lsgp-kernels-"))
    return emulation.compile_kernel(module, name, folder, dtype, size, n_threads)


class EmulatedKernel:
    """A kernel, whose blocks run one after another."""

    max_dynamic_shared_size_bytes = 1 << 20

    def __init__(self, library, module, name, *definitions):
        self.library, self.is_of_warps = library, module.startswith("warp_")
        meant = dict(each.split("=") for each in definitions)
        dtype = "float32" if meant.get("LSGP_DTYPE") == "float" else "float64"
        n_threads = 32 if self.is_of_warps else library.n_threads
        size = int(meant.get("LSGP_M", 64))
        self.launch = _compiled(module, name, dtype, size, n_threads)

    def __call__(self, grid, block, arguments, shared_mem=0):
        self.library.queues[-1].n_kernels += 1
        self.library.launched[id(self.launch)] = self.launch
        values = [
            ctypes.c_void_p(each.ctypes.data)
            if isinstance(each, np.ndarray)
            else NUMBERS[type(each)](each.item())
            for each in arguments
        ]
        # A block takes all queries, a warp with the matrix in its registers one.
        n_blocks = grid[0] * block[0] // 32 if self.is_of_warps else 1
        self.launch(ctypes.c_longlong(n_blocks), *values)


class EmulatedCuPy(LikeCuPy):
    """In the place of the library."""

    facts = LikeCuPy.facts | {"multiProcessorCount": 132, "sharedMemPerBlockOptin": 232_448}

    def __init__(self, n_threads=32):
        super().__init__(1)
        self.n_threads, self.n_fetched, self.launched = n_threads, 0, {}
        self.queues = [Queue(self)]
        self.cuda.alloc = self.allocate
        self.cuda.Stream = lambda non_blocking: Queue(self)
        self.cuda.get_current_stream = lambda: self.queues[-1]

    def __getattr__(self, name):
        return getattr(np, name)

    def asarray(self, array):
        return array if isinstance(array, DeviceArray) else np.array(array).view(DeviceArray)

    def asnumpy(self, array):
        return np.array(array, subok=False)

    def empty(self, shape, dtype=float):
        return np.empty(shape, dtype).view(DeviceArray)

    def zeros(self, shape, dtype=float):
        return np.zeros(shape, dtype).view(DeviceArray)

    def allocate(self, n_bytes):
        return self.empty(n_bytes, np.uint8).data

    def ndarray(self, shape, dtype, pointer):
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if n_bytes == 0:
            return self.empty(shape, dtype)
        memory = (ctypes.c_uint8 * n_bytes).from_address(pointer.ptr)
        memory.owner = pointer.owner  # which must live as long
        return np.frombuffer(memory, dtype).reshape(shape).view(DeviceArray)

    def empty_pinned(self, shape, dtype):
        self.n_fetched += 1
        return np.empty(shape, dtype)

    def turn_around(self):
        """Run the lanes of all kernels from the last to the first, or again from the first."""
        for launch in self.launched.values():
            emulation.turn_around(launch)


def emulate(monkeypatch, n_threads=32):
    """A backend whose device is emulated, and the library that stands for CuPy."""
    library = EmulatedCuPy(n_threads)
    device.forget_devices()
    monkeypatch.setitem(sys.modules, "cupy", library)
    monkeypatch.setitem(sys.modules, "cupyx", library)
    monkeypatch.setattr(device, "_idle", {})
    monkeypatch.setattr(modules, "_kernels", {})
    monkeypatch.setattr(modules, "_compile", lambda *wanted: EmulatedKernel(library, *wanted))
    monkeypatch.setattr(solve, "_compile_for_tuning", lambda n_inputs: None)
    return PlacedBackend(), library
