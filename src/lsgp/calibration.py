# SPDX-License-Identifier: BSD-3-Clause
"""Calibration of scales by leave-one-out predictions.

Of one model: signal variance and degrees of freedom by log density. The means do not depend on
either, so predictions are made once, and the two numbers are fitted to their errors. Of the
combination of models: one factor by the coverage of its intervals.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lsgp.local_problem import LocalModel, Predictions
from lsgp.parameters import SHARED_BOUNDS
from lsgp.predictive import PredictiveDistribution

Array = NDArray[np.float64]

#: The level whose coverage is calibrated.
COVERED_LEVEL = 0.95
#: Observations that the factor is held to 1 by: leave-one-out errors of few rows, which the
#: models were tuned on as well, are no proof.
PRIOR_OBSERVATIONS = 1000


def observation_distribution(
    model: LocalModel, predictions: Predictions, noise: Array | float = 1.0
) -> PredictiveDistribution:
    """[E7]; ``noise`` (q,) multiplies the noise variance of each observation."""
    relative = np.asarray(predictions.variance + model.noise_variance * noise)
    scale = np.sqrt(predictions.scale * relative[:, None])
    return PredictiveDistribution(predictions.mean, scale, predictions.dof)


def calibrate(
    model: LocalModel,
    predictions: Predictions,
    observed: Array,
    noise: Array,
    given: frozenset[str],
) -> tuple[LocalModel, Predictions]:
    """The model and its predictions with the scale that makes the observations likeliest."""
    relative = (predictions.variance + model.noise_variance * noise)[:, None]
    is_local = math.isfinite(model.scale_dof)
    free = [name for name in ("signal_variance", "scale_dof") if name not in given]
    if not is_local:
        free = [name for name in free if name == "signal_variance"]
    if not free:
        return model, predictions
    n_effective = predictions.dof - model.scale_dof if is_local else np.zeros(len(observed))
    misfit = (
        predictions.scale * predictions.dof[:, None] - model.scale_dof * model.signal_variance
        if is_local
        else None
    )

    def rescale(logarithms: Array) -> tuple[LocalModel, Predictions]:
        clipped = (
            float(np.clip(value, *SHARED_BOUNDS[name]))
            for name, value in zip(free, logarithms, strict=True)
        )
        changed = model.replace(**dict(zip(free, map(math.exp, clipped), strict=True)))
        if misfit is None:
            scale = np.full_like(predictions.scale, changed.signal_variance)
            return changed, predictions._replace(scale=scale)
        dof = changed.scale_dof + n_effective
        scale = (changed.scale_dof * changed.signal_variance + misfit) / dof[:, None]  # [E6]
        return changed, predictions._replace(scale=scale, dof=dof)

    def loss(logarithms: Array) -> float:
        _, changed = rescale(logarithms)
        distribution = PredictiveDistribution(
            changed.mean, np.sqrt(changed.scale * relative), changed.dof
        )
        return -float(distribution.logpdf(observed).mean())

    start = np.log([getattr(model, name) for name in free])
    found = minimize(
        loss, start, method="Nelder-Mead", options={"maxiter": 150, "xatol": 1e-3, "fatol": 1e-6}
    )
    return rescale(found.x if found.fun <= loss(start) else start)


def coverage_factor(predicted: PredictiveDistribution, observed: Array) -> float:
    """What the scales must be multiplied by for central intervals to cover their share."""
    half_width = predicted.interval(COVERED_LEVEL)[1] - predicted.mean
    ratio = np.abs(observed - predicted.mean) / np.maximum(half_width, 1e-300)
    factor = float(np.quantile(ratio, COVERED_LEVEL))
    if not 0.0 < factor < math.inf:
        return 1.0
    n = len(observed)
    return float(np.clip(factor, 0.1, 10.0) ** (n / (n + PRIOR_OBSERVATIONS)))
