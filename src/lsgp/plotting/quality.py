# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of how good predictions are, and whether their uncertainty can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.compute.text import percent
from lsgp.ensemble.assessment import Calibration, LeaveOneOutResult
from lsgp.ensemble.picture_facts import BAND, coverage_band, pit_histogram
from lsgp.ensemble.view import columns_of, target_names, target_number
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.method.distribution import PredictiveDistribution
from lsgp.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

#: Training points that are predicted leave-one-out when a model is given.
N_LEFT_OUT = 5000


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
    style.require_together(X, y)
    calibration, how = _calibration_of(source, X, y)
    axes = style.several_axes(ax, 2, (9.6, 4.2), "plot_calibration")
    _draw_reliability(axes[0], calibration)
    _draw_pit(axes[1], calibration.pit, n_bins)
    axes[0].set_title(f"{how}: {calibration.n:,} points", fontsize=11, loc="left")
    return axes


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
    loo, name = source, target_name
    if not isinstance(source, LeaveOneOutResult):
        number = target_number(source.ensemble_, target)
        loo = source.loo(n_points=N_LEFT_OUT, random_state=0)
        name = name or target_names(source.ensemble_)[number]
        target = number
    observed, mean, scale, dof = _of_target(loo, target)
    low, high = PredictiveDistribution(mean, scale, dof).interval(level)
    is_inside = (observed >= low) & (observed <= high)
    shown = np.arange(len(observed))
    if n_points < len(shown):
        shown = np.random.default_rng(0).choice(len(shown), n_points, replace=False)
    ax = style.one_axes(ax)
    ax.axhline(0.0, color=style.GRAY, linewidth=0.8, zorder=1)
    for flag, color, marker, word in (
        (True, style.BLUE, "o", "inside"),
        (False, style.VERMILLION, "D", "outside"),
    ):
        part = shown[is_inside[shown] == flag]
        share = np.mean(is_inside == flag)
        ax.plot(
            mean[part],
            (observed - mean)[part],
            marker,
            color=color,
            markersize=3.6 if len(shown) < 500 else 2.6,
            markeredgewidth=0,
            alpha=0.55 if flag else 0.85,
            label=f"{word} the {100 * level:g} % interval: {percent(share)}",
            rasterized=len(shown) > 5000,
        )
    name = name or "y"
    rmse = np.sqrt(np.mean((observed - mean) ** 2))
    points = style.count_label("points", len(shown), len(observed))
    if len(shown) == len(observed):
        points = f"{len(observed):,} points"
    ax.set_title(f"RMSE {style.number(rmse)}, {points}", fontsize=11, loc="left")
    ax.set(
        xlabel=f"leave-one-out prediction of {name}",
        ylabel=f"residual (observed − predicted) of {name}",
    )
    # Below the axes: residuals may be anywhere in them.
    style.legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, markerscale=1.8)
    return ax


def _calibration_of(
    source: LSGPRegressor | Calibration | LeaveOneOutResult,
    X: ArrayLike | None,
    y: ArrayLike | None,
) -> tuple[Calibration, str]:
    if isinstance(source, LeaveOneOutResult):
        return source.calibration, "leave-one-out"
    if isinstance(source, Calibration):
        return source, "calibration"
    if X is not None and y is not None:
        return source.calibration(X, y), "given data"
    return source.loo(n_points=N_LEFT_OUT, random_state=0).calibration, "leave-one-out"


def _of_target(loo: LeaveOneOutResult, target: int | str) -> tuple[Array, Array, Array, Array]:
    """Observations, means, scales and degrees of freedom of one target, each (q,)."""
    predicted = loo.predicted
    columns = [
        columns_of(values)
        for values in (loo.observed, predicted.mean, predicted.scale, predicted.dof)
    ]
    n_targets = columns[0].shape[1]
    if not isinstance(target, (int, np.integer)) or not 0 <= target < n_targets:
        raise ValueError(
            f"target={target!r} is not a target of the result. Give a number from 0 to "
            f"{n_targets - 1}, or the model itself for names."
        )
    observed, mean, scale, dof = (column[:, target] for column in columns)
    return observed, mean, scale, dof


def _draw_reliability(ax: Axes, calibration: Calibration) -> None:
    levels = np.linspace(0.0, 1.0, 101)
    low, high = coverage_band(calibration.pit.size, levels)
    ax.fill_between(
        levels, low, high, color=style.PALE, linewidth=0, label=f"{100 * BAND:g} % if calibrated"
    )
    ax.plot([0, 1], [0, 1], color=style.GRAY, linewidth=1.0, linestyle=(0, (4, 3)))
    ax.plot(
        calibration.levels,
        calibration.coverage,
        "o-",
        color=style.BLUE,
        markersize=5,
        linewidth=1.4,
        label=f"observed: {100 * calibration.coverage_at(0.9):.1f} % of the 90 % intervals",
    )
    ax.set(xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
    ax.set(xlabel="level of the central interval", ylabel="share of observations inside")
    # Below the axes: coverage may be above or below the diagonal.
    style.legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.13))


def _draw_pit(ax: Axes, pit: Array, n_bins: int | None) -> None:
    _, frequency, edges, low, high = pit_histogram(pit, n_bins)
    ax.bar(
        edges[:-1],
        frequency,
        width=np.diff(edges),
        align="edge",
        color=style.SKY,
        edgecolor="white",
        linewidth=0.8,
    )
    # Over the bars, so that both of its ends show.
    ax.axhspan(low, high, color=style.GRAY, alpha=0.22, linewidth=0)
    ax.axhline(1.0, color=style.INK, linewidth=1.0, linestyle=(0, (4, 3)))
    ax.set(xlim=(0, 1), ylim=(0, 1.15 * max(high, float(frequency.max()))))
    ax.set(xlabel="PIT: predictive probability of less than observed", ylabel="relative frequency")
    ax.set_title("uniform if calibrated", fontsize=11, loc="left")
