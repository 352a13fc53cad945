# SPDX-License-Identifier: BSD-3-Clause
"""The shape of predictive distributions: two numbers that calibration fits beside a factor.

Errors of combined models often have heavier tails than their Student-t, or differ more in size from
query to query than their scales do. Both corrections stay within the Student-t family, so that
quantiles, densities, scores, draws and intervals belong to one distribution:

- the *tail* moves the inverse degrees of freedom towards the heaviest tails (above 0) or towards
  the Gaussian (below 0);
- the *contrast* c multiplies each scale by (s / typical)^c, where s is the scale of an observation
  at the query.

If tuning found no noise, an observation is a value of the function. The noise of a model is then
part of its error, and intervals of the function include it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]

#: Inverse degrees of freedom of the heaviest tails that calibration allows: the variance is then
#: 2.5 times the squared scale. Heavier tails gain little log density, and make standard deviations
#: much too large.
HEAVIEST_INVERSE_DOF = 0.3


class Shape(NamedTuple):
    """Changes of tail and contrast, applied to the combined distributions of all queries.

    Attributes
    ----------
    tail : float
        -1 makes all distributions Gaussian, 0 changes nothing, 1 gives all the heaviest tails.
    contrast : float
        Exponent of the scale of an observation, relative to the typical scale.
    log_typical, log_smallest, log_largest : float
        Logarithms of scales, in the scaled units of the targets: of the typical scale, and of the
        range in which the contrast was fitted. Scales outside count as its ends.
    is_noisy : bool
        Whether observations differ from the function.
    """

    tail: float = 0.0
    contrast: float = 0.0
    log_typical: float = 0.0
    log_smallest: float = 0.0
    log_largest: float = 0.0
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
