# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that were uploaded, for as long as they live on the host.

The rows of a model, its index and its targets go to the device once. An array is recognized by
being itself, through a weak reference: when it is gone, so is its copy. As everywhere behind the
estimators, arrays are not written to once they were handed over.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.cuda.device import cupy

#: An array of the device, which CuPy does not type.
DeviceArray = Any

#: Smaller arrays are not worth remembering, and are often made anew.
FEWEST_BYTES = 1 << 16


def download(array: DeviceArray) -> NDArray[Any]:
    """The array on the host, in memory that the device writes to by itself: ten times as fast."""
    import cupyx

    copy: NDArray[Any] = cupyx.empty_pinned(array.shape, array.dtype)
    array.get(out=copy)
    return copy


class Residence:
    """What is on the device, and of which array of the host it is the copy."""

    def __init__(self) -> None:
        self._entries: list[tuple[weakref.ref[NDArray[Any]], DeviceArray]] = []
        self._lock = threading.Lock()

    def upload(self, array: NDArray[Any]) -> DeviceArray:
        """The array on the device, C-contiguous; the copy that is there, if there is one."""
        found = self._find(array)
        if found is not None:
            return found
        copy = cupy().asarray(np.ascontiguousarray(array))
        self.remember(array, copy)
        return copy

    def remember(self, array: NDArray[Any], copy: DeviceArray) -> None:
        """That this is the array's copy."""
        if array.nbytes < FEWEST_BYTES:
            return
        with self._lock:
            self._entries = [entry for entry in self._entries if entry[0]() is not None]
            self._entries.append((weakref.ref(array, self._forget), copy))

    @property
    def n_bytes(self) -> int:
        """Memory of the device that is held."""
        with self._lock:
            return sum(int(copy.nbytes) for _, copy in self._entries)

    def _find(self, array: NDArray[Any]) -> DeviceArray | None:
        with self._lock:
            return next((copy for ref, copy in self._entries if ref() is array), None)

    def _forget(self, gone: weakref.ref[NDArray[Any]]) -> None:
        # A new list, in one assignment: collection may run at any time, also under the lock.
        self._entries = [entry for entry in self._entries if entry[0] is not gone]
