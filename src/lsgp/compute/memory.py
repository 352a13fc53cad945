# SPDX-License-Identifier: BSD-3-Clause
"""Memory: budgets as users write them, and arrays where the native core is fastest."""

from __future__ import annotations

import re
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", start=1):
    UNITS |= {f"{_letter}B": 1000**_power, f"{_letter}IB": 1024**_power}


def parse_memory_budget(budget: str | int) -> int:
    """Number of bytes of a memory budget.

    Parameters
    ----------
    budget : str or int
        Bytes, or a number with a unit: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB
        (powers of 1024), in any case.
    """
    remedy = "Pass a positive number of bytes, or a string such as '1GB' or '512MiB'."
    if isinstance(budget, Integral) and not isinstance(budget, bool):
        n_bytes = int(budget)
    elif isinstance(budget, str):
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+|[0-9]+\.)\s*([A-Za-z]*)\s*", budget)
        if match is None or match[2].upper() not in UNITS:
            raise ValueError(f"memory_budget is {budget!r}, which is not a size. {remedy}")
        n_bytes = int(float(match[1]) * UNITS[match[2].upper()])
    else:
        raise TypeError(f"memory_budget is {budget!r}, of type {type(budget).__name__}. {remedy}")
    if n_bytes < 1:
        raise ValueError(f"memory_budget is {budget!r}, less than one byte. {remedy}")
    return n_bytes


def empty_aligned(shape: tuple[int, int]) -> NDArray[np.float64]:
    """np.empty, at a multiple of 64 bytes: a vector never lies in two cache lines."""
    n_bytes = 8 * shape[0] * shape[1]
    memory = np.empty(n_bytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + n_bytes].view(np.float64).reshape(shape)
