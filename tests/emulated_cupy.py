# SPDX-License-Identifier: BSD-3-Clause
"""CuPy as far as local systems need it, on the host: its arrays are NumPy's, its kernels emulated.

Queues run what they are given at once; what they would have waited for is noted.
"""

import ctypes
import sys
import types

import cuda_emulation as emulation
import numpy as np

from lsgp.backends.cuda import backend, residence, solve, streams
from lsgp.backends.cuda.device import Device

DEVICE = Device("Emulated", 132, 232_448, 10**9, "9.0", "14")
C_TYPES = {np.int32: ctypes.c_int, np.int64: ctypes.c_longlong, np.float64: ctypes.c_double}


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


class EmulatedCuPy:
    """In the place of the library, for the kernel of scores."""

    def __init__(self, launch=None):
        self.launch, self.n_fetched = launch, 0
        self.queues = [Queue(self)]
        self.cuda = types.SimpleNamespace(
            alloc=self.allocate,
            Device=lambda: types.SimpleNamespace(id=0),
            Stream=lambda non_blocking: Queue(self),
            get_current_stream=lambda: self.queues[-1],
            runtime=types.SimpleNamespace(memGetInfo=lambda: (10**9, 10**9)),
        )

    def asarray(self, array):
        return np.array(array).view(DeviceArray)

    def empty(self, shape, dtype=float):
        return np.empty(shape, dtype).view(DeviceArray)

    def allocate(self, n_bytes):
        return self.empty(n_bytes, np.uint8).data

    def ndarray(self, shape, dtype, pointer):
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        memory = (ctypes.c_uint8 * n_bytes).from_address(pointer.ptr)
        memory.owner = pointer.owner  # which must live as long
        return np.frombuffer(memory, dtype).reshape(shape).view(DeviceArray)

    def get_default_memory_pool(self):
        return types.SimpleNamespace(free_bytes=lambda: 0)

    def kernel(self, grid, block, arguments, shared_mem=0):
        self.queues[-1].n_kernels += 1
        values = [
            ctypes.c_void_p(each.ctypes.data)
            if isinstance(each, np.ndarray)
            else C_TYPES[type(each)](each)
            for each in arguments
        ]
        self.launch(ctypes.c_longlong(1), *values)

    def empty_pinned(self, shape, dtype):
        self.n_fetched += 1
        return np.empty(shape, dtype)


def emulate_queues(monkeypatch, launch=None):
    """Put it in the place of CuPy, and give it."""
    library = EmulatedCuPy(launch)
    for module in (backend, residence, solve, streams):
        monkeypatch.setattr(module, "cupy", lambda: library)
    monkeypatch.setattr(streams, "_idle", {})
    return library


def emulate_scores(monkeypatch, folder):
    """The same, with a kernel."""
    library = emulate_queues(monkeypatch, emulation.compile_kernel("score", "score", folder))
    monkeypatch.setattr(solve, "find_device", lambda: DEVICE)
    monkeypatch.setattr(solve, "kernel_of", lambda *wanted: library.kernel)
    monkeypatch.setattr(solve, "_compile_for_tuning", lambda n_inputs: None)
    monkeypatch.setattr(solve, "allow_shared_memory", lambda kernel, n_bytes: None)
    monkeypatch.setattr(solve, "WARP_BLOCKS", {key: {} for key in solve.WARP_BLOCKS})
    pinned = types.SimpleNamespace(empty_pinned=library.empty_pinned)
    monkeypatch.setitem(sys.modules, "cupyx", pinned)
    return library
