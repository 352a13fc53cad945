# SPDX-License-Identifier: BSD-3-Clause
"""Combining the predictions of several models into one, and the shape of the combination.

Models that differ in kernel or input transform often score alike and err differently. Their
combination is again one Student-t. Its location is the mean of the locations. Its squared scale is
the geometric mean of the squared scales, so that one cautious model does not drown the others,
plus the variance of the locations, so that disagreement widens the prediction. Its degrees of
freedom are the harmonic mean.

Errors of combined models often have heavier tails than their Student-t, or differ more in size from
query to query than their scales do. Calibration corrects both, beside a factor on all scales.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]

#: Inverse degrees of freedom of the heaviest tails that calibration allows: the variance is then
#: 2.5 times the squared scale. Heavier tails gain little log density, and make standard deviations
#: much too large.
HEAVIEST_INVERSE_DOF = 0.3


def combine(
    predicted: Sequence[PredictiveDistribution], weights: Sequence[float] | Array
) -> PredictiveDistribution:
    """Combine the distributions of several models into one per query; weights sum to 1."""
    if len(predicted) == 1:
        return predicted[0]
    pairs = list(zip(weights, predicted, strict=True))
    mean = cast(Array, sum(w * p.mean for w, p in pairs))
    # Relative to the largest scale, so that no square overflows or underflows.
    largest = reduce(np.maximum, [np.maximum(p.scale, np.abs(p.mean - mean)) for p in predicted])
    largest = np.where(largest > 0, largest, 1.0)
    log_scale = sum(w * np.log(np.maximum(p.scale / largest, 1e-150)) for w, p in pairs)
    spread = sum(w * ((p.mean - mean) / largest) ** 2 for w, p in pairs)
    scale = largest * np.sqrt(np.exp(2.0 * log_scale) + spread)
    dof = 1.0 / np.maximum(sum(w / p.dof for w, p in pairs), 1e-300)
    return PredictiveDistribution(mean, scale, np.where(dof > 1e299, np.inf, dof))


def blend_location(
    predicted: PredictiveDistribution, location: Array, share: float
) -> PredictiveDistribution:
    """[B1] Move the locations of predictions a share of the way to other locations.

    The other locations come without a scale. The result is the combination with a model of the
    same scale: the prediction is wider where both disagree.
    """
    gap = location - predicted.mean
    scale = np.hypot(predicted.scale, math.sqrt(share * (1.0 - share)) * gap)
    return replace(predicted, mean=predicted.mean + share * gap, scale=scale)


class Shape(NamedTuple):
    """Changes of tail and contrast, applied to the combined distributions of all queries.

    Both stay within the Student-t family, so that quantiles, densities, scores, draws and intervals
    belong to one distribution.
    """

    #: Moves the inverse degrees of freedom: -1 makes all distributions Gaussian, 0 changes nothing,
    #: 1 gives all the heaviest tails.
    tail: float = 0.0
    #: Multiplies each scale by (s / typical) to this power, with the scale s of an observation at
    #: the query.
    contrast: float = 0.0
    #: Logarithms of scales, in the scaled units of the targets: of the typical scale, and of the
    #: range in which the contrast was fitted. Scales outside count as its ends.
    log_typical: float = 0.0
    log_smallest: float = 0.0
    log_largest: float = 0.0
    #: Whether observations differ from the function. If tuning found no noise, they do not: the
    #: noise of a model is then part of its error, and intervals of the function include it.
    is_noisy: bool = True

    def shrunk(self, share: float) -> Shape:
        """The shape with its effect reduced to a share, 0 for none and 1 for all of it."""
        return self._replace(tail=share * self.tail, contrast=share * self.contrast)

    def factor(self, scale: Array) -> Array:
        """Factor on the scales of queries whose observations have this scale (scaled units)."""
        if self.contrast == 0.0:
            return np.ones_like(scale)
        with np.errstate(divide="ignore"):
            logarithm = np.clip(np.log(scale), self.log_smallest, self.log_largest)
        return np.exp(self.contrast * (logarithm - self.log_typical))

    def elasticity(self, scale: Array) -> Array:
        """Derivative of the logarithm of `factor` in the logarithm of the scale."""
        with np.errstate(divide="ignore"):
            logarithm = np.log(scale)
        is_within = (logarithm > self.log_smallest) & (logarithm < self.log_largest)
        return np.where(is_within, self.contrast, 0.0)

    def inverse_dof(self, inverse: Array) -> Array:
        """Inverse degrees of freedom after calibration, from those before."""
        if self.tail <= 0.0:
            return (1.0 + self.tail) * inverse
        heavier = inverse + self.tail * (HEAVIEST_INVERSE_DOF - inverse)
        return np.maximum(inverse, heavier)

    def inverse_dof_slope(self, inverse: Array) -> Array:
        """Derivative of `inverse_dof` in its argument."""
        if self.tail <= 0.0:
            return np.full(np.shape(inverse), 1.0 + self.tail)
        return np.where(inverse < HEAVIEST_INVERSE_DOF, 1.0 - self.tail, 1.0)

    def inverse_dof_by_tail(self, inverse: Array) -> Array:
        """Derivative of `inverse_dof` in the tail; at a tail of 0, the one from below."""
        if self.tail <= 0.0:
            return inverse
        return np.maximum(HEAVIEST_INVERSE_DOF - inverse, 0.0)

    def apply(
        self, predicted: PredictiveDistribution, observed: PredictiveDistribution | None = None
    ) -> PredictiveDistribution:
        """Apply the shape to distributions in scaled units.

        ``observed`` are the distributions of observations at the same queries; None if
        ``predicted`` are these already.
        """
        if observed is not None and not self.is_noisy:
            predicted = observed
        if self.tail == 0.0 and self.contrast == 0.0:
            return predicted
        scale = (predicted if observed is None else observed).scale
        with np.errstate(divide="ignore"):
            dof = 1.0 / self.inverse_dof(1.0 / predicted.dof)
        return PredictiveDistribution(
            predicted.mean, self.factor(scale) * predicted.scale, dof, predicted.is_jittered
        )


#: The shape that changes nothing.
UNCHANGED_SHAPE = Shape()
