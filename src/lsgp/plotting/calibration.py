# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of whether the uncertainty of predictions can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from lsgp.compute.text import percent
from lsgp.ensemble.assessment import Calibration, LeaveOneOutResult
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

#: Pointwise probability of the bands in which calibrated predictions stay.
BAND = 0.95


def plot_calibration(
    source: LSGPRegressor | Calibration | LeaveOneOutResult,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    n_bins: int | None = None,
    ax: style.SeveralAxes | None = None,
) -> style.AxesArray:
    """Coverage of the intervals by their level, and the histogram of the PIT.

    The gray bands are where 95 % of calibrated predictions of independent observations would
    lie. In the histogram, a hump in the middle says that intervals are too wide, a valley that
    they are too narrow, a slope that means are off to one side.

    Parameters
    ----------
    source : fitted LSGPRegressor, Calibration or LeaveOneOutResult
        A model is judged on X and y, or, without them, on up to 5,000 training points that are
        predicted from their neighbors without themselves.
    X : array-like of shape (n, d), default=None
    y : array-like of shape (n,) or (n, t), default=None
    n_bins : int, default=None
        Bars of the histogram; None: by the number of observations.
    ax : two matplotlib Axes, default=None

    Returns
    -------
    array of two matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.ensemble.assessment import assess
    >>> from lsgp.plotting import plot_calibration
    >>> from lsgp.method.distribution import PredictiveDistribution
    >>> predicted = PredictiveDistribution(np.zeros(500), np.ones(500))
    >>> observed = np.random.default_rng(0).normal(size=500)
    >>> reliability, histogram = plot_calibration(assess(predicted, observed))
    """
    style.require_kind(source, False, "plot_calibration", "plot_reliability")
    calibration, how = style.judged(source, X, y)
    axes = style.several_axes(ax, 2, (9.6, 4.2), "plot_calibration")
    draw_coverage(axes[0], calibration)
    draw_pit(axes[1], calibration.pit, n_bins)
    axes[0].set_aspect("equal")
    style.title(axes[0], f"{how}: {calibration.n:,} points")
    return axes


def draw_coverage(ax: Axes, calibration: Calibration) -> None:
    """Draw the share of observations inside central intervals by the level of these."""
    levels = np.linspace(0.0, 1.0, 101)
    low, high = coverage_band(calibration.pit.size, levels)
    ax.fill_between(
        levels, low, high, color=style.PALE, linewidth=0, label=f"{100 * BAND:g} % if calibrated"
    )
    style.diagonal(ax, 0.0, 1.0)
    (line,) = ax.plot(
        calibration.levels,
        calibration.coverage,
        "o-",
        color=style.BLUE,
        markersize=5,
        linewidth=1.4,
        label=f"observed: {100 * calibration.coverage_at(0.9):.1f} % of the 90 % intervals",
    )
    style.TIPS[line] = [
        f"The {100 * level:g} % intervals hold {percent(share)} of the observations"
        for level, share in zip(calibration.levels, calibration.coverage, strict=True)
    ]
    ax.set(xlim=(0, 1), ylim=(0, 1.02))
    ax.set(xlabel="level of the central interval", ylabel="share of observations inside")
    style.legend_below(ax)


def draw_pit(ax: Axes, pit: ArrayLike, n_bins: int | None = None) -> None:
    """Draw the histogram of the PIT with the band in which it stays if calibrated."""
    histogram = pit_histogram(pit, n_bins)
    expected = histogram.counts.sum() / len(histogram.counts)
    tips = [
        f"{low:.2f} to {high:.2f}: {count:,} observations, {expected:.1f} expected"
        for low, high, count in zip(
            histogram.edges[:-1], histogram.edges[1:], histogram.counts, strict=True
        )
    ]
    style.bars(ax, histogram.edges, histogram.frequency, tips)
    # Over the bars, so that both of its ends show.
    ax.axhspan(histogram.low, histogram.high, color=style.GRAY, alpha=0.22, linewidth=0)
    ax.axhline(1.0, color=style.INK, linewidth=1.0, linestyle=style.DASHED)
    top = max(histogram.high, float(histogram.frequency.max()))
    ax.set(xlim=(0, 1), ylim=(0, 1.15 * top))
    ax.set(xlabel="PIT: predictive probability of less than observed", ylabel="relative frequency")
    style.title(ax, "uniform if calibrated")


def coverage_band(n: int, levels: ArrayLike) -> tuple[Array, Array]:
    """Where the share inside intervals of these levels lies, for n calibrated predictions.

    Examples
    --------
    >>> from lsgp.plotting.calibration import coverage_band
    >>> low, high = coverage_band(1000, 0.9)
    >>> print(f"{low:.3f} {high:.3f}")
    0.880 0.917
    """
    levels = np.asarray(levels, dtype=np.float64)
    # Beta quantiles, as of a share: those of the binomial go in steps.
    hits, misses = n * levels + 0.5, n * (1.0 - levels) + 0.5
    tail = 0.5 * (1.0 - BAND)
    return stats.beta.ppf(tail, hits, misses), stats.beta.ppf(1.0 - tail, hits, misses)


class PitHistogram(NamedTuple):
    """Histogram of the probability integral transform, relative to a flat one."""

    counts: NDArray[np.int64]  # (k,)
    frequency: Array  # (k,) 1 if calibrated
    edges: Array  # (k + 1,)
    low: float  # ends of the band in which a calibrated frequency stays
    high: float


def pit_histogram(pit: ArrayLike, n_bins: int | None = None) -> PitHistogram:
    """The histogram, with as many bars as the number of observations allows unless given."""
    values = np.asarray(pit, dtype=np.float64).ravel()
    values = values[np.isfinite(values)]
    n = max(len(values), 1)
    n_bins = int(np.clip(n // 25, 5, 20)) if n_bins is None else n_bins
    counts, edges = np.histogram(values, bins=n_bins, range=(0.0, 1.0))
    tail = 0.5 * (1.0 - BAND)
    low, high = stats.binom.ppf([tail, 1.0 - tail], n, 1.0 / n_bins) * n_bins / n
    return PitHistogram(counts, counts * n_bins / n, edges, float(low), float(high))
