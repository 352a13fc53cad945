# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that were uploaded, for as long as they live on the host.

The rows of a model, its index and its targets go to the device once, and so do the neighborhoods
that tuning evaluates again and again. An array is recognized by the memory that it is: its owner,
through a weak reference, and its place there. Each device that is current in turn has copies of its
own. When the owner is gone, so is the copy. As everywhere behind the estimators, arrays are not
written to once they were handed over.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.cuda.device import cupy, wait

#: An array of the device, which CuPy does not type.
DeviceArray = Any

#: Smaller arrays are not worth remembering, and are often made anew.
FEWEST_BYTES = 1 << 10
#: The largest number of so small an array is found on the host before the device is asked for it.
MOST_READ_HERE = 1 << 22
#: Arrays of one allocation begin at multiples of this.
ALIGNMENT = 256


def allocate(*parts: tuple[tuple[int, ...], Any]) -> tuple[DeviceArray, ...]:
    """Arrays of these shapes and dtypes, in one piece of memory: they are downloaded at once."""
    library = cupy()
    sizes = [int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype in parts]
    places = np.cumsum([0, *(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)]).tolist()
    memory = library.cuda.alloc(max(1, places[-1]))
    return tuple(
        library.ndarray(shape, dtype, memory + place)
        for (shape, dtype), place in zip(parts, places[:-1], strict=True)
    )


def download(array: DeviceArray) -> NDArray[Any]:
    """The array on the host, in memory that the device writes to by itself: ten times as fast."""
    import cupyx

    copy: NDArray[Any] = cupyx.empty_pinned(array.shape, array.dtype)
    array.get(out=copy)
    return copy


def download_together(arrays: tuple[DeviceArray, ...]) -> tuple[NDArray[Any], ...]:
    """Arrays of one `allocate`, by one copy."""
    begin = min(array.data.ptr for array in arrays)
    end = max(array.data.ptr + array.nbytes for array in arrays)
    first = next(array for array in arrays if array.data.ptr == begin)
    memory = download(cupy().ndarray((end - begin,), np.uint8, first.data))
    parts = []
    for array in arrays:
        start = array.data.ptr - begin
        part = memory[start : start + array.nbytes].view(array.dtype)
        parts.append(part.reshape(array.shape))
    return tuple(parts)


@dataclass(eq=False)
class Copy:
    """Of an array of the host, and what is known of it."""

    owner: weakref.ref[NDArray[Any]]
    place: tuple[object, ...]
    array: DeviceArray
    largest: int | None = None  # of row numbers, once someone asked


class Residence:
    """What is on the device, and of which array of the host it is the copy."""

    def __init__(self) -> None:
        self._copies: dict[tuple[object, ...], Copy] = {}  # by devices, and places on the host
        self._lock = threading.Lock()

    def upload(self, array: NDArray[Any]) -> DeviceArray:
        """The array on the device, C-contiguous; the copy that is there, if there is one."""
        return self._copy_of(array).array

    def upload_rows(self, rows: NDArray[np.int32]) -> tuple[DeviceArray, int]:
        """Row numbers on the device, and the largest of them, -1 without any."""
        copy = self._copy_of(rows)
        if copy.largest is None:
            near = rows if rows.nbytes <= MOST_READ_HERE else copy.array
            copy.largest = int(near.max()) if rows.size else -1
        return copy.array, copy.largest

    def remember(self, array: NDArray[Any], copy: DeviceArray) -> Copy:
        """That this is the array's copy."""
        owner = _owner(array)
        known = Copy(weakref.ref(owner, self._forget), _place(array), copy)
        if array.nbytes >= FEWEST_BYTES:
            with self._lock:
                self._copies = {**_alive(self._copies), known.place: known}
        return known

    @property
    def n_bytes(self) -> int:
        """Memory of the device that is held."""
        return sum(int(copy.array.nbytes) for copy in self._copies.values())

    def _copy_of(self, array: NDArray[Any]) -> Copy:
        owner, place = _owner(array), _place(array)
        copy = self._copies.get(place)
        if copy is not None and copy.owner() is owner:
            return copy
        uploaded = cupy().asarray(np.ascontiguousarray(array))
        wait()  # other threads find it from now on, whose queues are others
        return self.remember(array, uploaded)

    def _forget(self, gone: weakref.ref[NDArray[Any]]) -> None:
        # New ones, in one assignment, without the lock: collection may run at any time, also
        # while it is held.
        self._copies = _alive(self._copies)


def _alive(copies: dict[tuple[object, ...], Copy]) -> dict[tuple[object, ...], Copy]:
    return {place: copy for place, copy in copies.items() if copy.owner() is not None}


def _owner(array: NDArray[Any]) -> NDArray[Any]:
    """The array whose memory this one is a part of; itself, if it is its own."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _place(array: NDArray[Any]) -> tuple[object, ...]:
    """On the host, and the device that a copy is for: the current one."""
    number = int(cupy().cuda.Device().id)
    return number, array.ctypes.data, array.shape, array.strides, array.dtype.str
