# SPDX-License-Identifier: BSD-3-Clause
"""What is asked of the arrays that a search is given."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray


def require_array(name: str, value: object, dtype: type, shape: tuple[int | None, ...]) -> None:
    """Refuse what is not a C-contiguous array of this dtype and shape; None: any size."""
    if not isinstance(value, np.ndarray) or value.dtype != dtype or not value.flags.c_contiguous:
        raise TypeError(f"{name} must be a C-contiguous NumPy array of {np.dtype(dtype)}.")
    matches = value.ndim == len(shape) and all(
        size in (None, actual) for size, actual in zip(shape, value.shape, strict=True)
    )
    if not matches:
        expected = str(tuple("any" if size is None else size for size in shape)).replace("'", "")
        raise ValueError(f"{name} has shape {value.shape}, expected {expected}.")


def require_scale(name: str, value: NDArray[np.float64], d: int) -> None:
    """Refuse what is not one positive number per input, (d,)."""
    require_array(name, value, np.float64, (d,))
    if not (np.all(np.isfinite(value)) and np.all(value > 0)):
        raise ValueError(f"{name}={value} is not positive and finite in every input.")


def is_finite(values: NDArray[np.float64]) -> bool:
    """Whether all values are finite, without an array of flags as long as the data."""
    extremes = np.min(values, initial=0.0), np.max(values, initial=0.0)
    return bool(np.all(np.isfinite(extremes)))


def numbered(rows: NDArray[np.integer], n: int) -> NDArray[np.int32]:
    """Numbers among n rows, of 32 bits where these suffice: the core has no others.

    More rows than that are on clusters only, whose searches take 64 bits.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.search.arrays import numbered
    >>> numbered(np.arange(3), 10).dtype, numbered(np.arange(3), 10**10).dtype
    (dtype('int32'), dtype('int64'))
    """
    is_few = n <= np.iinfo(np.int32).max
    return cast("NDArray[np.int32]", rows.astype(np.int32 if is_few else np.int64))
