# SPDX-License-Identifier: BSD-3-Clause
"""How good predictions are: the scores that the benchmarks share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.method.distribution import PredictiveDistribution, interval_score

Array = NDArray[np.float64]

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
COVERED = 0.95
#: Probabilities are cut here: some methods say 0, whose log loss is infinite.
SMALLEST = 1e-7


def rmse_of(predicted: PredictiveDistribution, y: Array) -> float:
    return float(np.sqrt(np.mean((y - predicted.mean) ** 2)))


def coverage_of(predicted: PredictiveDistribution, y: Array, level: float) -> float:
    """Share of the rows that lie in their central interval."""
    low, high = predicted.interval(level)
    return float(np.mean((low <= y) & (y <= high)))


def scores(predicted: PredictiveDistribution, y: Array) -> dict[str, Any]:
    """Means over the test rows."""
    low, high = predicted.interval(COVERED)
    found: dict[str, Any] = {
        "rmse": rmse_of(predicted, y),
        "nll": -float(np.mean(predicted.logpdf(y))),
        "crps": float(np.mean(predicted.crps(y))),
        "coverage": coverage_of(predicted, y, COVERED),
        "interval_score": float(np.mean(interval_score(y, low, high, COVERED))),
    }
    bad = [name for name, value in found.items() if not np.isfinite(value)]
    if bad:
        raise ArithmeticError(f"{', '.join(bad)} of the predictions is not finite")
    found["coverages"] = {str(level): coverage_of(predicted, y, level) for level in LEVELS}
    return found


def log_loss(proba: Array, codes: NDArray[np.int64], smallest: float = SMALLEST) -> float:
    """Mean negative log probability of the observed classes."""
    own = proba[np.arange(len(codes)), codes]
    return float(-np.log(np.maximum(own, smallest)).mean())


def confidence_bins(proba: Array, is_right: NDArray[np.bool_], n_bins: int) -> Array:
    """Counts, sums of confidence and right ones by bins of confidence, (3, n_bins)."""
    confidence = proba.max(axis=1)
    place = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    values = (np.ones(len(proba)), confidence, is_right)
    return np.array([np.bincount(place, each, n_bins) for each in values])


def calibration_error(bins: Array) -> float:
    """Mean difference between confidence and frequency over bins, weighted by their counts."""
    counts, sure, right = bins
    return float(np.abs(sure - right).sum() / counts.sum())
