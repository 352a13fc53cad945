# SPDX-License-Identifier: BSD-3-Clause
"""How good predictions are, and whether their uncertainty can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.method.distribution import PredictiveDistribution, interval_score

Array = NDArray[np.float64]

#: Levels of the central intervals whose coverage is reported.
LEVELS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])


@dataclass(frozen=True, eq=False)
class Calibration:
    """Accuracy and calibration of predictions, against what was observed.

    Attributes
    ----------
    n : int
        Number of observations.
    rmse : float
        Root mean squared error of the means.
    mae : float
        Mean absolute error of the means.
    nll : float
        Mean negative log density of the observations.
    crps : float
        Mean continuous ranked probability score, in the units of y.
    levels : array of shape (11,)
        Probabilities of central intervals.
    coverage : array of shape (11,)
        Share of observations inside the interval of each level.
    interval_score_95 : float
        Mean interval score of the central 95 % intervals: width, plus penalties.
    sharpness : float
        Mean width of the central 90 % intervals.
    pit : array of shape (n,) or (n, t)
        Probability integral transform: uniform on [0, 1] for calibrated predictions.
    """

    n: int
    rmse: float
    mae: float
    nll: float
    crps: float
    levels: Array
    coverage: Array
    interval_score_95: float
    sharpness: float
    pit: Array

    def coverage_at(self, level: float) -> float:
        """Share of observations inside the central interval, interpolated between levels."""
        return float(np.interp(level, [0.0, *self.levels, 1.0], [0.0, *self.coverage, 1.0]))

    def __repr__(self) -> str:
        return (
            f"Calibration(n={self.n}, rmse={self.rmse:.4g}, mae={self.mae:.4g}, "
            f"nll={self.nll:.4g}, crps={self.crps:.4g}, "
            f"coverage of 90 %={self.coverage_at(0.9):.3f}, "
            f"of 95 %={self.coverage_at(0.95):.3f})"
        )


class LeaveOneOutResult(NamedTuple):
    """Predictions of training points from their neighbors without themselves.

    Attributes
    ----------
    rows : array of shape (q,)
        Row numbers in the training data.
    observed : array of shape (q,) or (q, t)
    predicted : PredictiveDistribution
    calibration : Calibration
    residuals : array of the shape of ``observed``
        Observed less the predicted mean.
    """

    rows: NDArray[np.int64]
    observed: Array
    predicted: PredictiveDistribution
    calibration: Calibration

    def __repr__(self) -> str:
        return f"LeaveOneOutResult(predicted={self.predicted!r}, calibration={self.calibration!r})"

    @property
    def residuals(self) -> Array:
        return self.observed - self.predicted.mean


def assess(predicted: PredictiveDistribution, observed: ArrayLike) -> Calibration:
    """Compare predictions with observations.

    Parameters
    ----------
    predicted : PredictiveDistribution
    observed : array-like of the shape of ``predicted.mean``

    Returns
    -------
    Calibration

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.ensemble.assessment import assess
    >>> from lsgp.method.distribution import PredictiveDistribution
    >>> rng = np.random.default_rng(0)
    >>> predicted = PredictiveDistribution(np.zeros(10_000), np.ones(10_000))
    >>> round(assess(predicted, rng.normal(size=10_000)).coverage_at(0.9), 2)
    0.9
    """
    y = np.asarray(observed, dtype=float)
    if y.shape != predicted.mean.shape:
        raise ValueError(
            f"y has shape {y.shape}, but the predictions for X have shape {predicted.mean.shape}. "
            "Give one observation per prediction."
        )
    error = y - predicted.mean
    pit = np.asarray(predicted.cdf(y))
    # |2 PIT - 1| <= level says that y is inside the central interval of that level.
    centrality = np.abs(2.0 * pit - 1.0)
    low, high = predicted.interval(0.95)
    narrow_low, narrow_high = predicted.interval(0.9)
    return Calibration(
        n=len(y),
        rmse=_root_mean_square(error),
        mae=float(np.mean(np.abs(error))),
        nll=-float(np.mean(predicted.logpdf(y))),
        crps=float(np.mean(predicted.crps(y))),
        levels=LEVELS,
        coverage=np.array([np.mean(centrality <= level) for level in LEVELS]),
        interval_score_95=float(np.mean(interval_score(y, low, high, 0.95))),
        sharpness=float(np.mean(narrow_high - narrow_low)),
        pit=pit,
    )


def _root_mean_square(error: Array) -> float:
    """In units of the largest error where that has no square."""
    largest = float(np.abs(error).max(initial=0.0))
    unit = 1.0 if largest == 0 or 1e-150 < largest < 1e150 else largest
    return unit * float(np.sqrt(np.mean((error / unit) ** 2)))
