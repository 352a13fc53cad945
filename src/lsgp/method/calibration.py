# SPDX-License-Identifier: BSD-3-Clause
"""Calibration of predictive scales by leave-one-out predictions.

For one model, the signal variance and the degrees of freedom maximize the log density. The means
depend on neither, so the model predicts once and both numbers are fitted to the errors. For a
combination of models, one factor and the shape of the distributions maximize the log density.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import digamma, gammaln

from lsgp.method.combination import UNCHANGED_SHAPE, Shape
from lsgp.method.contract import LocalModel, Predictions
from lsgp.method.distribution import PredictiveDistribution
from lsgp.method.parameters import SHARED_BOUNDS

Array = NDArray[np.float64]

#: With this many independent targets, half of the fitted calibration is applied. Held-out errors
#: of few rows, which tuned the models as well, are weak evidence.
N_HALF_PROVEN = 400
#: The CRPS of held-out targets may rise by this fraction to gain log density.
MOST_CRPS_LOST = 0.01
#: Level of the intervals that must cover the targets of regions, and the largest factor for it.
COVERED_LEVEL, LARGEST_FACTOR = 0.9, 10.0
#: Bounds of the logarithm of the factor, of the tail and of the contrast.
SHAPE_BOUNDS = ((-2.3, 2.3), (-0.95, 1.0), (-0.5, 1.0))
#: From this many degrees of freedom on, derivatives in them use the limit of the Gaussian.
NEARLY_GAUSSIAN = 1e4
#: Standardized errors are clipped to this in derivatives, whose fourth powers would overflow.
FARTHEST = 1e60
#: The contrast is learnt between these quantiles of the scales of the held-out predictions.
CONTRAST_RANGE = (0.02, 0.98)


def calibrate(
    model: LocalModel,
    predictions: Predictions,
    observed: Array,
    noise: Array,
    given: frozenset[str],
    signal_range: tuple[float, float],
) -> tuple[LocalModel, Predictions]:
    """Fit a model's signal variance and degrees of freedom to held-out errors.

    Returns the changed model and its changed predictions. ``signal_range`` bounds the logarithm
    of the signal variance; hyperparameters in ``given`` stay.
    """
    free = [name for name in ("signal_variance", "scale_dof") if name not in given]
    is_local = math.isfinite(model.scale_dof)
    if not free or (not is_local and "signal_variance" in given):
        return model, predictions
    relative = predictions.relative_variance(model.noise_of(noise))
    squared_error = (observed - predictions.mean) ** 2 / relative
    if not is_local:
        # The mean square maximizes the likelihood of Gaussian errors.
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
        # Stop by the gradient alone: along a bound, a step may gain little far from the optimum.
        options={"maxiter": 100, "ftol": 0.0, "gtol": 1e-6},
    )
    changed = rescale(found.x)
    dof = changed.scale_dof + n_effective
    scale = (changed.scale_dof * changed.signal_variance + misfit) / dof[:, None]  # [E6]
    return changed, predictions._replace(scale=scale, dof=dof)


def _student_loss(squared_error: Array, total: Array, dof: Array) -> tuple[float, float, float]:
    """Mean negative log density of Student-t errors up to a constant, and its derivatives.

    ``total`` (q, t) is the numerator of [E6], the squared scale times ``dof`` (q, 1), and
    ``squared_error`` (q, t) is relative to the variance that multiplies the scale. The derivatives
    are those in a shift of all totals and in a shift of all degrees of freedom.
    """
    ratio = squared_error / total
    logarithm = np.log1p(ratio)
    half = 0.5 * dof
    value = gammaln(half) - gammaln(half + 0.5) + 0.5 * np.log(total) + (half + 0.5) * logarithm
    by_total = (0.5 - (half + 0.5) * ratio / (1.0 + ratio)) / total
    by_dof = 0.5 * (digamma(half) - digamma(half + 0.5) + logarithm)
    return float(value.mean()), float(by_total.mean()), float(by_dof.mean())


class ScaleAndShape(NamedTuple):
    """The calibration of a combination of models: a factor on all scales, and a shape."""

    factor: float = 1.0
    shape: Shape = UNCHANGED_SHAPE

    def apply(self, predicted: PredictiveDistribution) -> PredictiveDistribution:
        shaped = self.shape.apply(predicted)
        return PredictiveDistribution(shaped.mean, self.factor * shaped.scale, shaped.dof)

    def shrunk(self, share: float) -> ScaleAndShape:
        """The calibration with its effect reduced to a share, 0 for none and 1 for all of it."""
        return ScaleAndShape(self.factor**share, self.shape.shrunk(share))


def calibrate_combination(
    predicted: PredictiveDistribution, observed: Array, n_independent: float
) -> ScaleAndShape:
    """Fit the factor and the shape that maximize the log density of held-out observations.

    The result is shrunk when there are few independent targets, and further until the CRPS of
    these targets is at most 1 % higher than without calibration.
    """
    is_positive = predicted.scale > 0
    if not is_positive.any() or not np.isfinite(predicted.mean).all():
        return ScaleAndShape()
    found = _maximize_density(predicted, observed, is_positive)
    share = n_independent**2 / (n_independent**2 + N_HALF_PROVEN**2)
    most = (1.0 + MOST_CRPS_LOST) * float(np.mean(predicted.crps(observed)))
    for smaller in (1.0, 0.75, 0.5, 0.25):
        shrunk = found.shrunk(smaller * share)
        if float(np.mean(shrunk.apply(predicted).crps(observed))) <= most:
            return shrunk
    return ScaleAndShape()


def widen_to_cover(predicted: PredictiveDistribution, observed: Array) -> ScaleAndShape:
    """Return the factor with which 90 % intervals cover 90 % of the held-out targets; at least 1.

    Used for regions. Errors of targets of one region are correlated, so small errors are no
    evidence that intervals are too wide.
    """
    half_width = predicted.interval(COVERED_LEVEL)[1] - predicted.mean
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(observed - predicted.mean) / half_width
    factor = float(np.quantile(np.where(np.isfinite(ratio), ratio, 1.0), COVERED_LEVEL))
    return ScaleAndShape(float(np.clip(factor, 1.0, LARGEST_FACTOR)))


def _maximize_density(
    predicted: PredictiveDistribution, observed: Array, is_positive: NDArray[np.bool_]
) -> ScaleAndShape:
    logarithms = np.log(predicted.scale[is_positive])
    low, high = np.quantile(logarithms, CONTRAST_RANGE)
    start = Shape(0.0, 0.0, float(np.clip(logarithms.mean(), low, high)), float(low), float(high))

    def unpack(vector: Array) -> ScaleAndShape:
        log_factor, tail, contrast = vector.tolist()
        return ScaleAndShape(math.exp(log_factor), start._replace(tail=tail, contrast=contrast))

    logarithms = np.clip(logarithms, low, high) - start.log_typical
    inverse = 1.0 / predicted.dof[is_positive]
    y = np.broadcast_to(observed, predicted.mean.shape)[is_positive]

    def loss(vector: Array) -> tuple[float, Array]:
        calibration = unpack(vector)
        changed = calibration.apply(predicted)
        by_scale, by_inverse_dof = _log_density_slopes(changed, is_positive, y)
        slopes = (
            by_scale,
            by_inverse_dof * calibration.shape.inverse_dof_by_tail(inverse),
            by_scale * logarithms,
        )
        value = changed.logpdf(observed)[is_positive].mean()
        return -float(value), -np.array([slope.mean() for slope in slopes])

    # The loss has a kink at a tail of 0: start on either side.
    starts = (np.array([-0.1, 0.2, 0.0]), np.array([0.1, -0.2, 0.0]))
    found = [
        minimize(loss, each, jac=True, method="L-BFGS-B", bounds=SHAPE_BOUNDS) for each in starts
    ]
    best = min(found, key=lambda one: float(one.fun))
    return unpack(best.x) if math.isfinite(best.fun) else ScaleAndShape()


def _log_density_slopes(
    predicted: PredictiveDistribution, mask: NDArray[np.bool_], observed: Array
) -> tuple[Array, Array]:
    """Derivatives of log densities in the log scale and in the inverse degrees of freedom.

    One each for the distributions in ``mask``, at the values ``observed``.
    """
    z = (observed - predicted.mean[mask]) / predicted.scale[mask]
    z = np.clip(z, -FARTHEST, FARTHEST)
    dof = predicted.dof[mask]
    nu = np.minimum(dof, NEARLY_GAUSSIAN)
    finite = np.minimum(dof, 1e15)
    by_scale = (finite + 1.0) * z * z / (finite + z * z) - 1.0
    ratio = z * z / nu
    share = ratio / (1.0 + ratio)
    by_dof = digamma(0.5 * (nu + 1.0)) - digamma(0.5 * nu) - np.log1p(ratio)
    by_dof = 0.5 * (by_dof + ((nu + 1.0) * share - 1.0) / nu)
    # The limit for infinite degrees of freedom, where the terms above cancel.
    gaussian = 0.25 * (z**4 - 2.0 * z * z - 1.0)
    return by_scale, np.where(dof < NEARLY_GAUSSIAN, -nu * nu * by_dof, gaussian)
