# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of how good predictions are: calibration, residuals, extrapolation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from lsgp.compute.text import percent
from lsgp.ensemble.assessment import Calibration, LeaveOneOutResult
from lsgp.ensemble.view import columns_of, target_names, target_number
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting import style
from lsgp.plotting.style import Axes

Array = NDArray[np.float64]

#: Pointwise probability of the bands in which calibrated predictions stay, and of their ends.
BAND = 0.95
TAILS = (0.5 * (1.0 - BAND), 0.5 * (1.0 + BAND))


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
    label = f"{100 * BAND:g} % if calibrated"
    ax.fill_between(levels, low, high, color=style.PALE, linewidth=0, label=label)
    style.diagonal(ax, 0.0, 1.0)
    label = f"observed: {100 * calibration.coverage_at(0.9):.1f} % of the 90 % intervals"
    look: dict[str, Any] = {"color": style.BLUE, "markersize": 5, "linewidth": 1.4, "label": label}
    (line,) = ax.plot(calibration.levels, calibration.coverage, "o-", **look)
    style.TIPS[line] = [
        f"The {100 * level:g} % intervals hold {percent(share)} of the observations"
        for level, share in zip(calibration.levels, calibration.coverage, strict=True)
    ]
    ax.set(xlim=(0, 1), ylim=(0, 1.02))
    ax.set(xlabel="level of the central interval", ylabel="share of observations inside")
    style.legend_below(ax)


def draw_pit(ax: Axes, pit: ArrayLike, n_bins: int | None = None) -> None:
    """Draw the histogram of the PIT with the band in which it stays if calibrated."""
    counts, frequency, edges, band = pit_histogram(pit, n_bins)
    expected = counts.sum() / len(counts)
    tips = [
        f"{low:.2f} to {high:.2f}: {count:,} observations, {expected:.1f} expected"
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    style.bars(ax, edges, frequency, tips)
    # Over the bars, so that both of its ends show.
    ax.axhspan(*band, color=style.GRAY, alpha=0.22, linewidth=0)
    ax.axhline(1.0, color=style.INK, linewidth=1.0, linestyle=style.DASHED)
    ax.set(xlim=(0, 1), ylim=(0, 1.15 * max(band[1], float(frequency.max()))))
    ax.set(xlabel="PIT: predictive probability of less than observed", ylabel="relative frequency")
    style.title(ax, "uniform if calibrated")


def coverage_band(n: int, levels: ArrayLike) -> Array:
    """Ends (2, k) between which the share inside intervals of these levels (k,) lies by chance.

    For n calibrated predictions.
    """
    levels = np.asarray(levels, dtype=np.float64)
    # Beta quantiles, as of a share: those of the binomial go in steps.
    hits, misses = n * levels + 0.5, n * (1.0 - levels) + 0.5
    return np.array([stats.beta.ppf(tail, hits, misses) for tail in TAILS])


def pit_histogram(
    pit: ArrayLike, n_bins: int | None = None
) -> tuple[NDArray[np.int64], Array, Array, tuple[float, float]]:
    """Counts (k,) of the PIT, relative frequencies (k,), edges (k + 1,), and a band.

    Calibrated frequencies are 1, and stay in the band. Unless given, the number of observations
    decides how many bars there are.
    """
    values = np.asarray(pit, dtype=np.float64).ravel()
    values = values[np.isfinite(values)]
    n = max(len(values), 1)
    n_bins = int(np.clip(n // 25, 5, 20)) if n_bins is None else n_bins
    counts, edges = np.histogram(values, bins=n_bins, range=(0.0, 1.0))
    low, high = stats.binom.ppf(TAILS, n, 1.0 / n_bins) * n_bins / n
    return counts, counts * n_bins / n, edges, (float(low), float(high))


def plot_residuals(
    source: LSGPRegressor | LeaveOneOutResult,
    *,
    level: float = 0.9,
    target: int | str = 0,
    target_name: str | None = None,
    n_points: int = style.MOST_POINTS,
    ax: Axes | None = None,
) -> Axes:
    """Leave-one-out residuals against predictions, and which of them the intervals miss.

    Parameters
    ----------
    source : LeaveOneOutResult or fitted LSGPRegressor
        What `LSGPRegressor.loo` returned; of a model, up to 5,000 points are predicted.
    level : float
        Probability of the intervals.
    target : int or str
        Which target to show, if there are several; names are known of a model.
    target_name : str, default=None
        For the labels; None: the model's, or y.
    n_points : int
        Points shown at most, drawn at random; shares are of all of them.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.plotting import plot_residuals
    >>> model = LSGPRegressor(objective=None).fit([[0], [1], [2]], [0, 1, 0])
    >>> ax = plot_residuals(model.loo())
    >>> ax.get_xlabel()
    'leave-one-out prediction of y'
    """
    style.require_kind(source, False, "plot_residuals", "plot_confusion")
    name = target_name or "y"
    if not isinstance(source, LeaveOneOutResult):
        target = target_number(source.ensemble_, target)
        name = target_name or target_names(source.ensemble_)[target]
        source = source.loo(n_points=style.N_LEFT_OUT, random_state=0)
    every = columns_of(source.observed)
    if not isinstance(target, (int, np.integer)) or not 0 <= target < every.shape[1]:
        raise ValueError(
            f"target={target!r} is not a target of the result. Give a number from 0 to "
            f"{every.shape[1] - 1}, or the model itself for names."
        )
    observed, predicted = every[:, target], style.of_target(source.predicted, int(target))
    low, high = predicted.interval(level)
    is_inside = (observed >= low) & (observed <= high)
    shown = style.sample(np.arange(len(observed)), n_points)
    ax = style.one_axes(ax)
    points = Points(observed[shown], predicted.mean[shown], is_inside[shown])
    draw_points(ax, points, as_residuals=True)
    for flag, line in zip((True, False), ax.get_lines()[-2:], strict=True):
        share = percent(float(np.mean(is_inside == flag)))
        line.set_label(f"{'inside' if flag else 'outside'} the {100 * level:g} % interval: {share}")
    some = f" ({len(shown):,} of {len(observed):,})" if len(shown) < len(observed) else ""
    n = "" if some else f"{len(observed):,} "
    rmse = float(np.sqrt(np.mean((observed - predicted.mean) ** 2)))
    style.title(ax, f"RMSE {style.number(rmse)}, {n}points{some}")
    ax.set_xlabel(f"leave-one-out prediction of {name}")
    ax.set_ylabel(f"residual (observed − predicted) of {name}")
    # Below the axes: residuals may be anywhere in them.
    style.legend_below(ax, ncols=2, markerscale=1.8)
    return ax


class Points(NamedTuple):
    """Observations with their predictions, each (q,)."""

    observed: Array
    predicted: Array
    is_inside: NDArray[np.bool_]  # whether the interval holds the observation
    numbers: NDArray[np.int64] | None = None  # by which a page knows them


def draw_points(ax: Axes, points: Points, name: str = "", *, as_residuals: bool) -> None:
    """Draw observations, or residuals, against predictions, on top the ones outside intervals."""
    if as_residuals:
        y, label = points.observed - points.predicted, "observed − predicted"
        ax.axhline(0.0, color=style.GRAY, linewidth=0.8, zorder=1)
    else:
        y, label = points.observed, f"observed {name}"
        style.diagonal(ax, *style.limits(np.append(points.observed, points.predicted)))
    look: dict[str, Any] = {"markersize": 3.6 if len(y) < 500 else 2.6, "markeredgewidth": 0}
    look["rasterized"] = len(y) > 5000
    for part, color, marker, alpha in (
        (points.is_inside, style.BLUE, "o", 0.55),
        (~points.is_inside, style.VERMILLION, "D", 0.85),
    ):
        x = points.predicted[part]
        (line,) = ax.plot(x, y[part], marker, color=color, alpha=alpha, **look)
        if points.numbers is not None:
            style.TIPS[line] = points.numbers[part].tolist()
    ax.set(xlabel=f"predicted {name}", ylabel=label)


def draw_extrapolation(ax: Axes, counts: NDArray[np.int64], edges: Array) -> None:
    """Draw a histogram of scores of extrapolation; those beyond 1 stand out.

    The last bar holds all that lies beyond it.
    """
    ends = [*(f"to {edge:.2f}" for edge in edges[1:-1]), "and more"]
    bars = list(zip(edges[:-1].tolist(), ends, counts.tolist(), strict=True))
    tips = [f"{edge:.2f} {end}: {count:,} rows" for edge, end, count in bars]
    colors = [style.VERMILLION if edge > 1.0 - 1e-9 else style.SKY for edge, _, _ in bars]
    style.bars(ax, edges, counts, tips, colors)
    ax.axvline(1.0, color=style.GRAY, linewidth=1.0, linestyle=style.DASHED)
    ax.set(xlim=(edges[0], edges[-1]), ylim=(0.0, 1.1 * max(counts.max(), 1)))
    ax.set(xlabel="extrapolation score (the last bar holds all beyond)", ylabel="rows")
