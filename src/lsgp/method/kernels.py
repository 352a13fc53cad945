# SPDX-License-Identifier: BSD-3-Clause
"""Correlation functions rho of the scaled distance, by name.

Each is a function of the *squared* distance ``r2`` in the scaled metric, and returns
its value and its derivative with respect to ``r2``. All have value 1 at distance 0.
The native core computes the same formulas from ``_core/formulas.h``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
ValueAndDerivative = tuple[Array, Array]


def rbf(r2: Array) -> ValueAndDerivative:
    """rho = exp(-r²/2)."""
    value = np.exp(-0.5 * r2)
    return value, -0.5 * value


def matern12(r2: Array) -> ValueAndDerivative:
    """rho = exp(-r), the exponential kernel.

    Its derivative in r² is infinite at 0, where it only ever multiplies a zero: 0 stands there.
    """
    r = np.sqrt(r2)
    value = np.exp(-r)
    return value, np.divide(-0.5 * value, r, out=np.zeros_like(value), where=r > 0)


def matern32(r2: Array) -> ValueAndDerivative:
    """rho = (1 + a) exp(-a), a = sqrt(3) r."""
    a = np.sqrt(3.0 * r2)
    decay = np.exp(-a)
    return (1.0 + a) * decay, -1.5 * decay


def matern52(r2: Array) -> ValueAndDerivative:
    """rho = (1 + a + a²/3) exp(-a), a = sqrt(5) r."""
    a = np.sqrt(5.0 * r2)
    decay = np.exp(-a)
    return (1.0 + a + a * a / 3.0) * decay, -5.0 / 6.0 * (1.0 + a) * decay


#: In the order of the native core's codes.
KERNELS: dict[str, Callable[[Array], ValueAndDerivative]] = {
    "rbf": rbf,
    "matern12": matern12,
    "matern32": matern32,
    "matern52": matern52,
}
