# SPDX-License-Identifier: BSD-3-Clause
"""Conversions of arrays that leave them where they are: NumPy on the host, or CuPy on a device.

NumPy's functions accept arrays of CuPy and return arrays of CuPy (NEP 13 and 18), so formulas are
written once. `numpy.asarray` does not: it would copy the numbers to the host, and CuPy refuses
that. The functions here take its place. Arrays of the host and of a device cannot be combined;
scalars can be combined with both. Signatures say NDArray for arrays of a device too.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Kind = TypeVar("Kind", bound=NDArray[Any])


def is_on_device(values: object) -> bool:
    """Whether an object is an array of CuPy."""
    kind = type(values)
    # The interface of CUDA alone does not tell: tensors of torch on the host have it too.
    return hasattr(kind, "__cuda_array_interface__") and hasattr(kind, "get")


def floats(values: Any) -> Float:
    """Convert to double precision as `numpy.asarray` does, but leave an array on its device."""
    on_device = is_on_device(values)
    converted: Float = values.astype(float, copy=False) if on_device else np.asarray(values, float)
    return converted


def on_host(array: Kind) -> Kind:
    """Copy an array of a device to the host; arrays of the host are returned unchanged."""
    return array.get() if is_on_device(array) else array  # type: ignore[attr-defined]


def beside(array: Kind, other: NDArray[Any]) -> Kind:
    """Copy an array of the host to where ``other`` is."""
    if is_on_device(other) and not is_on_device(array):
        return np.asarray(array, like=other)  # type: ignore[return-value]
    return array
