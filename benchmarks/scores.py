# SPDX-License-Identifier: BSD-3-Clause
"""How good predictions are: the scores that the benchmarks of regression share."""

from __future__ import annotations

from typing import Any

import numpy as np

from lsgp.method.distribution import PredictiveDistribution, interval_score

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
COVERED = 0.95


def rmse_of(predicted: PredictiveDistribution, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((y - predicted.mean) ** 2)))


def coverage_of(predicted: PredictiveDistribution, y: np.ndarray, level: float) -> float:
    """Share of the rows that lie in their central interval."""
    low, high = predicted.interval(level)
    return float(np.mean((low <= y) & (y <= high)))


def scores(predicted: PredictiveDistribution, y: np.ndarray) -> dict[str, Any]:
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
