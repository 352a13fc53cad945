# SPDX-License-Identifier: BSD-3-Clause
"""Yeo and Johnson's power transform, its inverse, and the power by maximum likelihood."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from lsgp.inputs.transforms.column_statistics import subsample

Float = NDArray[np.float64]

#: Values from which the power is learnt when there are more.
LARGEST_POWER_SAMPLE = 20_000
COARSE_POWERS = (-10.0, -5.0, -2.5, -1.0, -0.3, 0.0, 0.5, 1.0, 1.5, 2.0, 2.3, 3.0, 4.5, 7.0, 12.0)


def yeo_johnson(x: Float, power: float) -> Float:
    """Yeo and Johnson's transform; monotone, and finite for finite `x`."""
    if power == 1.0:
        return x
    logarithm = np.log1p(np.abs(x))
    return np.where(x >= 0, _power_of(logarithm, power), -_power_of(logarithm, 2.0 - power))


def _power_of(logarithm: Float, power: float) -> Float:
    """((1 + a)^power - 1) / power, of log(1 + a): exact for tiny a, cut at about 1e260."""
    if power == 0.0:
        return logarithm
    return np.expm1(np.minimum(power * logarithm, 600.0)) / power


def differentiate_yeo_johnson(x: Float, power: float) -> Float:
    """Derivative of `yeo_johnson` in `x`; 0 where its value is cut."""
    logarithm = np.log1p(np.abs(x))
    power_of_side = np.where(x >= 0, power, 2.0 - power)
    derivative = np.exp(np.minimum((power_of_side - 1.0) * logarithm, 600.0))
    return np.where(power_of_side * logarithm > 600.0, 0.0, derivative)


def differentiate_by_power(x: Float, power: float) -> Float:
    """Derivative of `yeo_johnson` in the power."""
    logarithm = np.log1p(np.abs(x))
    u = np.where(x >= 0, power, 2.0 - power) * logarithm
    # (e^u (u - 1) + 1) / u², by its series where that would be rounding.
    is_small = np.abs(u) < 1e-2
    v = np.where(is_small, 1.0, np.minimum(u, 600.0))
    series = 0.5 + u * (1.0 / 3.0 + u * (0.125 + u / 30.0))
    ratio = np.where(is_small, series, (np.exp(v) * (v - 1.0) + 1.0) / v**2)
    return np.asarray(ratio * logarithm**2)


def log_slope(x: Float) -> Float:
    """By which the logarithm of the slope at x is more than 0, for each 1 of the power above 1."""
    return np.asarray(np.sign(x) * np.log1p(np.abs(x)))


def inverse_yeo_johnson(t: Float, power: float) -> Float:
    if power == 1.0:
        return t
    size = np.abs(t)
    return np.where(t >= 0, _inverse_power(size, power), -_inverse_power(size, 2.0 - power))


def _inverse_power(t: Float, power: float) -> Float:
    # A negative power saturates at -1/power: nothing beyond has an inverse.
    logarithm = t if power == 0.0 else np.log1p(np.maximum(power * t, -1.0 + 1e-16)) / power
    return np.expm1(np.minimum(logarithm, 700.0))


def fit_power(sample: Float) -> float:
    """Power that makes the transformed sample most nearly Gaussian; 1 if that is degenerate."""
    rows = subsample(len(sample), LARGEST_POWER_SAMPLE)
    x = sample if rows is None else sample[rows]
    positive, negative = np.log1p(x[x >= 0]), np.log1p(-x[x < 0])
    jacobian = float(positive.sum() - negative.sum()) / len(x)

    def negative_log_likelihood(power: float) -> float:
        t = np.concatenate([_power_of(positive, power), -_power_of(negative, 2.0 - power)])
        low, high = float(t.min()), float(t.max())
        size, half = max(-low, high), 0.5 * high - 0.5 * low
        # A spread lost in the rounding of the values is not a fit, however likely it looks.
        if size > 1e200 or half < 1e-8 * size or half == 0.0:
            return 1e6
        # In units of half the range: its square would overflow in others.
        return float(np.log(half) + np.log(np.std(t / half))) - (power - 1.0) * jacobian

    # A coarse look first: extreme data leave only a narrow valid range, easily stepped over.
    losses = [negative_log_likelihood(power) for power in COARSE_POWERS]
    best = int(np.argmin(losses))
    bounds = COARSE_POWERS[max(best - 1, 0)], COARSE_POWERS[min(best + 1, len(losses) - 1)]
    found = minimize_scalar(
        negative_log_likelihood, bounds=bounds, method="bounded", options={"xatol": 1e-6}
    )
    power = float(found.x) if found.fun <= losses[best] else COARSE_POWERS[best]
    # A likelihood that hardly prefers the power to none at all (tiny values) is no reason.
    is_better = negative_log_likelihood(power) < negative_log_likelihood(1.0) - 1e-12
    return power if is_better else 1.0
