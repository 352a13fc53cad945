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
from scipy.special import digamma, gammaln

from lsgp.method.contract import LocalModel, Predictions
from lsgp.method.distribution import PredictiveDistribution
from lsgp.tuning.parameters import SHARED_BOUNDS

Array = NDArray[np.float64]

#: The level whose coverage is calibrated.
COVERED_LEVEL = 0.95
#: Observations that the factor is held to 1 by: leave-one-out errors of few rows, which the
#: models were tuned on as well, are no proof.
PRIOR_OBSERVATIONS = 1000


def calibrate(
    model: LocalModel,
    predictions: Predictions,
    observed: Array,
    noise: Array,
    given: frozenset[str],
    signal_range: tuple[float, float],
) -> tuple[LocalModel, Predictions]:
    """The model and its predictions with the scale that makes the observations likeliest.

    ``signal_range`` is that of the logarithm of the signal variance.
    """
    free = [name for name in ("signal_variance", "scale_dof") if name not in given]
    is_local = math.isfinite(model.scale_dof)
    if not free or (not is_local and "signal_variance" in given):
        return model, predictions
    relative = predictions.relative_variance(model.noise_of(noise))
    squared_error = (observed - predictions.mean) ** 2 / relative
    if not is_local:
        # The likeliest variance of Gaussian errors is their mean square.
        low, high = np.exp(signal_range)
        signal = float(np.clip(squared_error.mean(), low, high))
        scale = np.full_like(predictions.scale, signal)
        return model.replace(signal_variance=signal), predictions._replace(scale=scale)
    n_effective = np.asarray(predictions.dof - model.scale_dof, dtype=float)
    misfit = predictions.scale * predictions.dof[:, None] - model.scale_dof * model.signal_variance

    def rescale(logarithms: Array) -> LocalModel:
        return model.replace(**dict(zip(free, np.exp(logarithms).tolist(), strict=True)))

    def loss(logarithms: Array) -> tuple[float, Array]:
        changed = rescale(logarithms)
        prior = changed.scale_dof * changed.signal_variance
        value, by_total, by_dof = _student_loss(
            squared_error, prior + misfit, (changed.scale_dof + n_effective)[:, None]
        )
        slope = {
            "signal_variance": prior * by_total,
            "scale_dof": prior * by_total + changed.scale_dof * by_dof,
        }
        return value, np.array([slope[name] for name in free])

    ranges = {"signal_variance": signal_range, "scale_dof": SHARED_BOUNDS["scale_dof"]}
    bounds = [ranges[name] for name in free]
    found = minimize(
        loss,
        np.clip(np.log([getattr(model, name) for name in free]), *np.transpose(bounds)),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        # By the gradient alone: along a bound, a step may gain next to nothing before the end.
        options={"maxiter": 100, "ftol": 0.0, "gtol": 1e-6},
    )
    changed = rescale(found.x)
    dof = changed.scale_dof + n_effective
    scale = (changed.scale_dof * changed.signal_variance + misfit) / dof[:, None]  # [E6]
    return changed, predictions._replace(scale=scale, dof=dof)


def _student_loss(squared_error: Array, total: Array, dof: Array) -> tuple[float, float, float]:
    """Mean negative log density of Student-t errors, but for a constant, and its derivatives.

    ``total`` (q, t) is the squared scale times ``dof`` (q, 1), the numerator of [E6]; errors are
    relative to what it is multiplied by. The derivatives are in a shift of all totals, and of
    all degrees of freedom.
    """
    ratio = squared_error / total
    logarithm = np.log1p(ratio)
    half = 0.5 * dof
    value = gammaln(half) - gammaln(half + 0.5) + 0.5 * np.log(total) + (half + 0.5) * logarithm
    by_total = (0.5 - (half + 0.5) * ratio / (1.0 + ratio)) / total
    by_dof = 0.5 * (digamma(half) - digamma(half + 0.5) + logarithm)
    return float(value.mean()), float(by_total.mean()), float(by_dof.mean())


def coverage_factor(predicted: PredictiveDistribution, observed: Array) -> float:
    """What the scales must be multiplied by for central intervals to cover their share."""
    half_width = predicted.interval(COVERED_LEVEL)[1] - predicted.mean
    ratio = np.abs(observed - predicted.mean) / np.maximum(half_width, 1e-300)
    factor = float(np.quantile(ratio, COVERED_LEVEL))
    if not 0.0 < factor < math.inf:
        return 1.0
    n = len(observed)
    return float(np.clip(factor, 0.1, 10.0) ** (n / (n + PRIOR_OBSERVATIONS)))
