# SPDX-License-Identifier: BSD-3-Clause
"""Combining the predictions of several models into one.

Models that differ in kernel or input transform often score alike and err differently. Their
combination is again one Student-t. Its location is the mean of the locations. Its squared scale is
the geometric mean of the squared scales, so that one cautious model does not drown the others,
plus the variance of the locations, so that disagreement widens the prediction. Its degrees of
freedom are the harmonic mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import cast

import numpy as np
from numpy.typing import NDArray

from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]


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
