# SPDX-License-Identifier: BSD-3-Clause
"""Calibration of scales by leave-one-out predictions.

Of one model: signal variance and degrees of freedom by log density. The means do not depend on
either, so predictions are made once, and the two numbers are fitted to their errors. Of the
combination of models: one factor, and the shape of its distributions, by log density too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import digamma, gammaln

from lsgp.method.contract import LocalModel, Predictions
from lsgp.method.distribution import PredictiveDistribution
from lsgp.method.parameters import SHARED_BOUNDS
from lsgp.method.shape import AS_THEY_ARE, Shape

Array = NDArray[np.float64]

#: So many independent targets show half of what calibration does to the combination: held-out
#: errors of few rows, which the models were tuned on as well, are no proof.
N_HALF_PROVEN = 400
#: The CRPS of held-out targets may rise by this fraction to gain log density.
MOST_CRPS_LOST = 0.01
#: Level of the intervals that regions must cover, and the largest factor that makes them.
COVERED_LEVEL, LARGEST_FACTOR = 0.9, 10.0
#: Bounds of the logarithm of the factor, of the tail and of the contrast.
SHAPE_BOUNDS = ((-2.3, 2.3), (-0.95, 1.0), (-0.5, 1.0))
#: Degrees of freedom from which on slopes in them are those of the Gaussian.
NEARLY_GAUSSIAN = 1e4
#: Standardized errors beyond, whose fourth powers would overflow, count as these in slopes.
FARTHEST = 1e60
#: Scales, as quantiles of those that were compared, between which the contrast is learnt.
CONTRAST_RANGE = (0.02, 0.98)


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


class ScaleAndShape(NamedTuple):
    """What calibration does to the combination of models."""

    factor: float = 1.0
    shape: Shape = AS_THEY_ARE

    def apply(self, predicted: PredictiveDistribution) -> PredictiveDistribution:
        shaped = self.shape.apply(predicted)
        return PredictiveDistribution(shaped.mean, self.factor * shaped.scale, shaped.dof)

    def shrunk(self, share: float) -> ScaleAndShape:
        """With a share of what it does."""
        return ScaleAndShape(self.factor**share, self.shape.shrunk(share))


def calibrate_combination(
    predicted: PredictiveDistribution, observed: Array, n_independent: float
) -> ScaleAndShape:
    """The factor on all scales and the shape that make held-out observations likeliest.

    Shrunk towards nothing where few independent targets show it, and further until the CRPS of
    these targets is at most 1 % higher than without.
    """
    is_positive = predicted.scale > 0
    if not is_positive.any() or not np.isfinite(predicted.mean).all():
        return ScaleAndShape()
    found = _likeliest(predicted, observed, is_positive)
    share = n_independent**2 / (n_independent**2 + N_HALF_PROVEN**2)
    most = (1.0 + MOST_CRPS_LOST) * float(np.mean(predicted.crps(observed)))
    for smaller in (1.0, 0.75, 0.5, 0.25):
        shrunk = found.shrunk(smaller * share)
        if float(np.mean(shrunk.apply(predicted).crps(observed))) <= most:
            return shrunk
    return ScaleAndShape()


def widen_to_cover(predicted: PredictiveDistribution, observed: Array) -> ScaleAndShape:
    """The factor with which 90 % intervals cover held-out targets, if they cover too few.

    For regions, whose targets err together: they are no proof that intervals are too wide.
    """
    half_width = predicted.interval(COVERED_LEVEL)[1] - predicted.mean
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(observed - predicted.mean) / half_width
    factor = float(np.quantile(np.where(np.isfinite(ratio), ratio, 1.0), COVERED_LEVEL))
    return ScaleAndShape(float(np.clip(factor, 1.0, LARGEST_FACTOR)))


def _likeliest(
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

    # From one side of the kink that the loss has at a tail of 0, and from the other.
    starts = (np.array([-0.1, 0.2, 0.0]), np.array([0.1, -0.2, 0.0]))
    found = [
        minimize(loss, each, jac=True, method="L-BFGS-B", bounds=SHAPE_BOUNDS) for each in starts
    ]
    best = min(found, key=lambda one: float(one.fun))
    return unpack(best.x) if math.isfinite(best.fun) else ScaleAndShape()


def _log_density_slopes(
    predicted: PredictiveDistribution, of: NDArray[np.bool_], observed: Array
) -> tuple[Array, Array]:
    """Of log densities, by the logarithm of the scale and by the inverse degrees of freedom.

    Of those distributions that are asked for, each at what was observed.
    """
    z = (observed - predicted.mean[of]) / predicted.scale[of]
    z = np.clip(z, -FARTHEST, FARTHEST)
    dof = predicted.dof[of]
    nu = np.minimum(dof, NEARLY_GAUSSIAN)
    finite = np.minimum(dof, 1e15)
    by_scale = (finite + 1.0) * z * z / (finite + z * z) - 1.0
    ratio = z * z / nu
    share = ratio / (1.0 + ratio)
    by_dof = digamma(0.5 * (nu + 1.0)) - digamma(0.5 * nu) - np.log1p(ratio)
    by_dof = 0.5 * (by_dof + ((nu + 1.0) * share - 1.0) / nu)
    # Towards the Gaussian, the two logarithms and all else cancel but for this.
    gaussian = 0.25 * (z**4 - 2.0 * z * z - 1.0)
    return by_scale, np.where(dof < NEARLY_GAUSSIAN, -nu * nu * by_dof, gaussian)
