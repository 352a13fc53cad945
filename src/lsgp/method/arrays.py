# SPDX-License-Identifier: BSD-3-Clause
"""Arrays where they are: in NumPy on this machine, or in CuPy on a device.

NumPy's functions work on arrays of CuPy as on its own, and answer in kind (NEP 13 and 18): formulas
are written once. What does not carry over are conversions, which would bring the numbers here, and
which CuPy refuses. In their place are these. Arrays in different places do not mix; single numbers
go with all. In signatures, arrays of a device are NDArrays too.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Kind = TypeVar("Kind", bound=NDArray[Any])


def is_on_device(values: object) -> bool:
    """Whether it is an array of CuPy, on a device.

    Tensors of torch have the interface of CUDA too, those of the host among them.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.method.arrays import is_on_device
    >>> is_on_device(np.zeros(3))
    False
    """
    kind = type(values)
    return hasattr(kind, "__cuda_array_interface__") and hasattr(kind, "get")


def floats(values: Any) -> Float:
    """As `numpy.asarray` in double precision, of arrays where they are."""
    if is_on_device(values):
        moved: Float = values.astype(np.float64, copy=False)
        return moved
    return np.asarray(values, dtype=np.float64)


def on_host(array: Kind) -> Kind:
    """The same numbers on this machine; what is here already, as it is."""
    return array.get() if is_on_device(array) else array  # type: ignore[attr-defined]


def beside(array: Kind, other: NDArray[Any]) -> Kind:
    """Numbers of this machine where the other array is."""
    if is_on_device(other) and not is_on_device(array):
        return np.asarray(array, like=other)  # type: ignore[return-value]
    return array
