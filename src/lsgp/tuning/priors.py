# SPDX-License-Identifier: BSD-3-Clause
"""Priors on hyperparameters: what tuning believes before it has seen a row."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.method.contract import SHARED_PARAMETERS, LocalModel
from lsgp.method.kernels import Composite, Groups, first_of_groups

Array = NDArray[np.float64]

#: Strength of the prior that keeps log lengthscales near their mean, relative to the loss of one
#: target, so that irrelevant inputs fade instead of exploding; it yields to much data.
LENGTHSCALE_PRIOR = 40.0

#: Standard deviations of the normal priors of exact GPs: of log lengthscales about their mean, of
#: that mean about the typical distance of standardized inputs, of the log noise about its default.
LENGTHSCALE_SPREAD = 1.5
MEAN_LENGTHSCALE_SPREAD = 1.0
NOISE_SPREAD = 2.0
USUAL_NOISE = 0.1
#: The same of the own logarithms of a kernel that is made of several, about those that are usual.
CONSTANT_SPREAD = 1.0


class IntegratedPrior(NamedTuple):
    """Normal priors of the logarithms that are integrated over: medians and spreads.

    In units of standardized inputs and of the signal variance.
    """

    lengthscale: float = math.exp(0.3)  # times sqrt(d): of the mean log lengthscale
    mean_lengthscale_spread: float = 1.0
    lengthscale_spread: float = 1.0  # of each about their mean; .7 harms where few inputs matter
    # Wide: (.1, 2) instead of these raises the CRPS by 2 to 5 % at every n.
    noise_variance: float = 0.01
    noise_spread: float = 3.0
    slope_variance: float = 0.5
    slope_spread: float = 2.0


INTEGRATED = IntegratedPrior()


def lengthscale_deviation(vector: Array, n_lengthscales: int) -> tuple[float, Array]:
    """Mean squared deviation of the log lengthscales, the first entries, from their mean.

    And its gradient. A leave-one-out loss is tuned with it, `LENGTHSCALE_PRIOR` / n strong.
    """
    gradient = np.zeros(len(vector))
    if n_lengthscales < 2:
        return 0.0, gradient
    deviation = vector[:n_lengthscales] - vector[:n_lengthscales].mean()
    gradient[:n_lengthscales] = 2.0 * deviation / n_lengthscales
    return float((deviation**2).mean()), gradient


def negative_log_prior(
    model: LocalModel, groups: Groups | None = None, has_noise: bool = True
) -> tuple[float, Array]:
    """Of an exact GP's lengthscales, constants and noise, but for a constant, and its gradient.

    A lengthscale that a group of inputs shares counts once: the gradient is in its first.
    """
    d = len(model.lengthscale)
    first = list(range(d)) if groups is None else first_of_groups(groups)
    logarithms = np.log(model.lengthscale)[first]
    mean = float(logarithms.mean())
    deviation = (logarithms - mean) / LENGTHSCALE_SPREAD
    shift = (mean - 0.5 * math.log(d)) / MEAN_LENGTHSCALE_SPREAD
    noise = 0.0
    if has_noise:
        noise = (math.log(model.noise_variance) - math.log(USUAL_NOISE)) / NOISE_SPREAD
    own = np.zeros(len(model.correlation.own_logarithms))
    if isinstance(model.correlation, Composite):
        kernel, counted = model.correlation, model.correlation.counted(groups)
        own[counted] = (kernel.own_logarithms - kernel.usual_logarithms)[counted] / CONSTANT_SPREAD
    value = 0.5 * (float(deviation @ deviation) + shift**2 + noise**2 + float(own @ own))
    gradient = np.zeros(d + len(own) + len(SHARED_PARAMETERS))
    by_mean = shift / (MEAN_LENGTHSCALE_SPREAD * len(first))
    gradient[first] = deviation / LENGTHSCALE_SPREAD + by_mean
    gradient[d : d + len(own)] = own / CONSTANT_SPREAD
    gradient[d + len(own) + 1] = noise / NOISE_SPREAD
    return value, gradient
