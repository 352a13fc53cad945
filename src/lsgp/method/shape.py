# SPDX-License-Identifier: BSD-3-Clause
"""The shape of predictive distributions: what calibration may change beside one factor.

Errors of combined models often have heavier tails than their Student-t, or differ more in size from
query to query than their scales do. Both stay within the Student-t family, so that quantiles,
densities, scores, draws and intervals remain those of one distribution:

- the *tail* moves the inverse degrees of freedom towards those of the heaviest tails (above 0) or
  of the Gaussian (below 0);
- the *contrast* c multiplies each scale by (s / typical)^c, s being that of an observation there.

Where no noise was found, observations and the function are the same thing: what a model then calls
noise is part of its error, and intervals of the function have it too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]

#: Inverse degrees of freedom of the heaviest tails that calibration gives: the variance is then 2.5
#: times the squared scale. With .4, standard deviations on the protein table were too large by
#: 40 %, for a log density better by .005.
HEAVIEST_INVERSE_DOF = 0.3


class Shape(NamedTuple):
    """What is done to the combined Student-t distributions of all queries.

    Attributes
    ----------
    tail : float
        From -1, all Gaussian, over 0, as the models say, to 1, all of the heaviest tails.
    contrast : float
        Exponent of the scale of an observation, relative to the typical one.
    log_typical, log_smallest, log_largest : float
        Logarithms of scales, in the scaled units of the targets: of the typical one, and of those
        beyond which the contrast grows no further, as nothing has shown that it does.
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
        """With a share of what it does."""
        return self._replace(tail=share * self.tail, contrast=share * self.contrast)

    def factor(self, scale: Array) -> Array:
        """What a scale is multiplied by where an observation has this one; in scaled units."""
        if self.contrast == 0.0:
            return np.ones_like(scale)
        with np.errstate(divide="ignore"):
            logarithm = np.clip(np.log(scale), self.log_smallest, self.log_largest)
        return np.exp(self.contrast * (logarithm - self.log_typical))

    def elasticity(self, scale: Array) -> Array:
        """Derivative of the factor's logarithm by that of the scale."""
        with np.errstate(divide="ignore"):
            logarithm = np.log(scale)
        is_within = (logarithm > self.log_smallest) & (logarithm < self.log_largest)
        return np.where(is_within, self.contrast, 0.0)

    def inverse_dof(self, inverse: Array) -> Array:
        """Of the calibrated distributions, from those of the combined ones."""
        if self.tail <= 0.0:
            return (1.0 + self.tail) * inverse
        heavier = inverse + self.tail * (HEAVIEST_INVERSE_DOF - inverse)
        return np.maximum(inverse, heavier)

    def inverse_dof_slope(self, inverse: Array) -> Array:
        """Derivative of `inverse_dof`."""
        if self.tail <= 0.0:
            return np.full(np.shape(inverse), 1.0 + self.tail)
        return np.where(inverse < HEAVIEST_INVERSE_DOF, 1.0 - self.tail, 1.0)

    def inverse_dof_by_tail(self, inverse: Array) -> Array:
        """Derivative of `inverse_dof` by the tail; at 0, of lighter tails."""
        if self.tail <= 0.0:
            return inverse
        return np.maximum(HEAVIEST_INVERSE_DOF - inverse, 0.0)

    def apply(
        self, predicted: PredictiveDistribution, observed: PredictiveDistribution | None = None
    ) -> PredictiveDistribution:
        """The calibrated distributions, in scaled units.

        ``observed`` are those of observations at the same queries, where ``predicted`` are others.
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


#: Distributions as the models say.
AS_THEY_ARE = Shape()
