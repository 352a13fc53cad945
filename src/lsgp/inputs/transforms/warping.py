# SPDX-License-Identifier: BSD-3-Clause
"""Inputs that are warped by powers, which the evidence chooses.

A function often varies faster at one end of an input than at the other, as 1 / x does. Powers of
the inputs (Yeo and Johnson's) straighten them, and the marginal likelihood says which: its gradient
in the inputs of the rows, times the gradient of the inputs in the powers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.transforms import InputTransform
from lsgp.inputs.transforms.yeo_johnson import differentiate_by_power, log_slope, yeo_johnson

Array = NDArray[np.float64]

#: Quantiles of an input at which slopes of its transform are compared.
WARP_ENDS = (0.05, 0.95)
#: The logarithm of the ratio of both slopes has a normal prior of this standard deviation, and is
#: at most this large.
WARP_SPREAD, LARGEST_WARP = 0.5, 5.0
#: Powers times logarithms of inputs, at most: their exponentials must not overflow.
MOST_POWER = 50.0
#: Inputs of fewer distinct values are not warped: they tell too little of it.
FEWEST_VALUES = 10


@dataclass(frozen=True, eq=False)
class WarpableRows:
    """Rows in a transform that standardizes, and what warps of its inputs make of them.

    A warp is the logarithm of how many times as steep the transform is where an input is large as
    where it is small: 0 leaves the input as it is.
    """

    inputs: Array  # (n, d) as they are given
    X: Array  # (n, d) transformed
    y: Array  # (n, t)
    noise: Array  # (n,)
    transform: InputTransform
    span: Array  # (d,) of the log slope, for each 1 of the power; infinite: not warped
    largest_warp = LARGEST_WARP

    @classmethod
    def of(
        cls, inputs: Array, X: Array, y: Array, noise: Array, transform: InputTransform
    ) -> WarpableRows:
        is_open = np.array([kind == "standardize" for kind in transform.kinds], dtype=bool)
        if transform.projection is not None or not is_open.any():
            return cls(inputs, X, y, noise, transform, np.full(X.shape[1], np.inf))
        low, high = log_slope(np.quantile(inputs, WARP_ENDS, axis=0))
        span = high - low
        # Far from 0 slopes hardly differ, and the powers of a warp would overflow.
        largest = np.abs(log_slope(inputs)).max(axis=0)
        is_open &= (LARGEST_WARP * largest <= MOST_POWER * span) & (span > 0)
        is_open &= np.array([len(np.unique(x)) >= FEWEST_VALUES for x in inputs.T], dtype=bool)
        return cls(inputs, X, y, noise, transform, np.where(is_open, span, np.inf))

    @property
    def is_warpable(self) -> bool:
        return bool(np.isfinite(self.span).any())

    def part(self, rows: NDArray[np.integer]) -> WarpableRows:
        inputs, X, y, noise = (a[rows] for a in (self.inputs, self.X, self.y, self.noise))
        return replace(self, inputs=inputs, X=X, y=y, noise=noise)

    def powers(self, warps: Array) -> Array:
        return np.asarray(1.0 + warps / self.span)

    def warped(self, warps: Array) -> tuple[Array, Array]:
        """The rows (n, d) in the warped transform, and their derivatives in the warps (n, d)."""
        X, by_warps = self.X.copy(), np.zeros_like(self.X)
        center, scale = self.transform.center, self.transform.scale
        powers = self.powers(warps)
        for j in np.flatnonzero(np.isfinite(self.span)).tolist():
            power = float(powers[j])
            column = np.append(self.inputs[:, j], center[j])
            steepness = float(log_slope(center[j]))
            unit = scale[j] * math.exp((power - 1.0) * steepness)
            value, slope = yeo_johnson(column, power), differentiate_by_power(column, power)
            X[:, j] = (value[:-1] - value[-1]) / unit
            by_power = (slope[:-1] - slope[-1]) / unit - steepness * X[:, j]
            by_warps[:, j] = by_power / self.span[j]
        return X, by_warps

    def negative_log_prior(self, warps: Array) -> tuple[float, Array]:
        """Of a normal prior, but for a constant, and its gradient."""
        return 0.5 * float(warps @ warps) / WARP_SPREAD**2, warps / WARP_SPREAD**2
