# SPDX-License-Identifier: BSD-3-Clause
"""Localizers: the weight k(u) of a training point at relative distance u = r/h.

Each is a function of ``s`` = u² and of the decay kappa, and returns the weight, its derivative
with respect to ``s``, and its derivative with respect to kappa. The formulas hold within the
bandwidth (u <= 1); `evaluate` sets the weight to 0 outside. The native core computes the same
formulas from ``_core/formulas.h``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
WeightAndDerivatives = tuple[Array, Array, Array]

#: Hilbert's 1/u is constant below this u², so that a query at a training point has a finite weight.
SMALLEST_HILBERT_U2 = 1e-12


def rectangular(s: Array, decay: float) -> WeightAndDerivatives:
    """k = 1."""
    return np.ones_like(s), np.zeros_like(s), np.zeros_like(s)


def epanechnikov(s: Array, decay: float) -> WeightAndDerivatives:
    """k = 1 - u²."""
    return 1.0 - s, -np.ones_like(s), np.zeros_like(s)


def gaussian(s: Array, decay: float) -> WeightAndDerivatives:
    """k = exp(-kappa u²), truncated at the bandwidth."""
    value = np.exp(-decay * s)
    return value, -decay * value, -s * value


def hilbert(s: Array, decay: float) -> WeightAndDerivatives:
    """k = 1/u."""
    inside = s > SMALLEST_HILBERT_U2
    value = 1.0 / np.sqrt(np.where(inside, s, SMALLEST_HILBERT_U2))
    return value, np.where(inside, -0.5 * value**3, 0.0), np.zeros_like(s)


def smooth(s: Array, decay: float) -> WeightAndDerivatives:
    """k = (1 - u²) exp(-kappa u²): vanishes at the bandwidth, so predictions have no seams."""
    gauss = np.exp(-decay * s)
    value = (1.0 - s) * gauss
    return value, -gauss - decay * value, -s * value


#: In the order of the native core's codes.
LOCALIZERS: dict[str, Callable[[Array, float], WeightAndDerivatives]] = {
    "rectangular": rectangular,
    "epanechnikov": epanechnikov,
    "gaussian": gaussian,
    "hilbert": hilbert,
    "smooth": smooth,
}

#: Localizers whose decay kappa can be tuned.
LOCALIZERS_WITH_DECAY = ("gaussian", "smooth")


def evaluate(localizer: str, s: Array, decay: float) -> WeightAndDerivatives:
    """Weight and derivatives of the named localizer; zero outside the bandwidth."""
    inside = s <= 1.0
    parts = LOCALIZERS[localizer](np.minimum(s, 1.0), decay)
    value, ds, ddecay = (np.where(inside, part, 0.0) for part in parts)
    return value, ds, ddecay
