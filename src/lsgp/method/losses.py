# SPDX-License-Identifier: BSD-3-Clause
"""Losses of one prediction, by the name of the objective.

Each is a function of the error (observation minus mean), the squared scale ``variance``
and the degrees of freedom ``dof`` of the predictive (infinite for a Gaussian), and
returns the loss and its derivatives with respect to those three. The native core
computes the same formulas from ``_core/losses.h``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from scipy.special import digamma, gammaln


class Loss(NamedTuple):
    value: float
    by_error: float
    by_variance: float
    by_dof: float


def squared_error(error: float, variance: float, dof: float) -> Loss:
    return Loss(error**2, 2.0 * error, 0.0, 0.0)


def log_density(error: float, variance: float, dof: float) -> Loss:
    """Negative log density of the Gaussian (infinite ``dof``) or of the Student-t."""
    if math.isinf(dof):
        z2 = error**2 / variance
        return Loss(
            0.5 * (math.log(2.0 * math.pi * variance) + z2),
            error / variance,
            0.5 * (1.0 - z2) / variance,
            0.0,
        )
    z2 = error**2 / (dof * variance)
    excess = (dof + 1.0) * z2 / (1.0 + z2)
    value = (
        gammaln(0.5 * dof)
        - gammaln(0.5 * (dof + 1.0))
        + 0.5 * math.log(math.pi * dof * variance)
        + 0.5 * (dof + 1.0) * math.log1p(z2)
    )
    by_dof = 0.5 * (
        digamma(0.5 * dof) - digamma(0.5 * (dof + 1.0)) + math.log1p(z2) + (1.0 - excess) / dof
    )
    return Loss(
        value,
        (dof + 1.0) * error / (dof * variance * (1.0 + z2)),
        0.5 * (1.0 - excess) / variance,
        by_dof,
    )


def crps(error: float, variance: float, dof: float) -> Loss:
    """Continuous ranked probability score of the Gaussian with the variance of the predictive.

    A Gaussian in place of the Student-t keeps the derivative in ``dof`` elementary; fewer than
    2.5 degrees of freedom count as 2.5.
    """
    excess = max(dof - 2.0, 0.5)
    inflation = 1.0 if math.isinf(dof) else dof / excess
    scale = math.sqrt(variance * inflation)
    z = error / scale
    by_scale = math.exp(-0.5 * z * z) * math.sqrt(2.0 / math.pi) - 1.0 / math.sqrt(math.pi)
    sign_probability = math.erf(z / math.sqrt(2.0))
    by_inflated = 0.5 * by_scale / scale
    if math.isinf(dof):
        inflation_by_dof = 0.0
    else:
        inflation_by_dof = -2.0 / excess**2 if dof - 2.0 > 0.5 else 1.0 / excess
    return Loss(
        scale * (z * sign_probability + by_scale),
        sign_probability,
        by_inflated * inflation,
        by_inflated * variance * inflation_by_dof,
    )


#: In the order of OBJECTIVES and of the native core's codes.
LOSSES: dict[str, Callable[[float, float, float], Loss]] = {
    "crps": crps,
    "log_density": log_density,
    "squared_error": squared_error,
}
