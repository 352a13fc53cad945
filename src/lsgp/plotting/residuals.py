# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of single errors: residuals, observations against predictions, extrapolation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import percent
from lsgp.ensemble.assessment import LeaveOneOutResult
from lsgp.ensemble.view import columns_of, target_names, target_number
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.method.distribution import PredictiveDistribution
from lsgp.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


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
    observed, predicted = every[:, target], of_target(source.predicted, int(target))
    low, high = predicted.interval(level)
    is_inside = (observed >= low) & (observed <= high)
    shown = style.sample(np.arange(len(observed)), n_points)
    ax = style.one_axes(ax)
    draw_residuals(ax, Points(observed[shown], predicted.mean[shown], is_inside[shown]))
    for flag, line in zip((True, False), ax.get_lines()[-2:], strict=True):
        share = percent(float(np.mean(is_inside == flag)))
        line.set_label(f"{'inside' if flag else 'outside'} the {100 * level:g} % interval: {share}")
    points = style.count_label("points", len(shown), len(observed))
    if len(shown) == len(observed):
        points = f"{len(observed):,} points"
    rmse = float(np.sqrt(np.mean((observed - predicted.mean) ** 2)))
    style.title(ax, f"RMSE {style.number(rmse)}, {points}")
    ax.set_xlabel(f"leave-one-out prediction of {name}")
    ax.set_ylabel(f"residual (observed − predicted) of {name}")
    # Below the axes: residuals may be anywhere in them.
    style.legend_below(ax, ncols=2, markerscale=1.8)
    return ax


def of_target(predicted: PredictiveDistribution, target: int) -> PredictiveDistribution:
    """The predictions of one target, (q,), of those of all of them, (q,) or (q, t)."""
    mean, scale, dof = map(columns_of, (predicted.mean, predicted.scale, predicted.dof))
    return PredictiveDistribution(mean[:, target], scale[:, target], dof[:, target])


class Points(NamedTuple):
    """Observations with their predictions, each (q,)."""

    observed: Array
    predicted: Array
    is_inside: NDArray[np.bool_]  # whether the interval holds the observation
    numbers: NDArray[np.int64] | None = None  # by which a page knows them


def draw_residuals(ax: Axes, points: Points, name: str = "") -> None:
    """Draw residuals against predictions."""
    ax.axhline(0.0, color=style.GRAY, linewidth=0.8, zorder=1)
    _draw_points(ax, points, points.observed - points.predicted)
    ax.set(xlabel=f"predicted {name}", ylabel="observed − predicted")


def draw_observed(ax: Axes, points: Points, name: str) -> None:
    """Draw observations against predictions, with the diagonal."""
    style.diagonal(ax, *style.limits(np.append(points.observed, points.predicted)))
    _draw_points(ax, points, points.observed)
    ax.set(xlabel=f"predicted {name}", ylabel=f"observed {name}")


def _draw_points(ax: Axes, points: Points, y: Array) -> None:
    """Draw y of points inside their intervals, and on top of them of those outside."""
    for part, color, marker, alpha in (
        (points.is_inside, style.BLUE, "o", 0.55),
        (~points.is_inside, style.VERMILLION, "D", 0.85),
    ):
        (line,) = ax.plot(
            points.predicted[part],
            y[part],
            marker,
            color=color,
            markersize=3.6 if len(y) < 500 else 2.6,
            markeredgewidth=0,
            alpha=alpha,
            rasterized=len(y) > 5000,
        )
        if points.numbers is not None:
            style.TIPS[line] = points.numbers[part].tolist()


def draw_extrapolation(ax: Axes, counts: NDArray[np.int64], edges: Array) -> None:
    """Draw a histogram of scores of extrapolation; those beyond 1 stand out.

    The last bar holds all that lies beyond it.
    """
    ends = [*(f"to {edge:.2f}" for edge in edges[1:-1]), "and more"]
    tips = [
        f"{edge:.2f} {end}: {count:,} rows"
        for edge, end, count in zip(edges[:-1], ends, counts, strict=True)
    ]
    colors = [style.VERMILLION if edge > 1.0 - 1e-9 else style.SKY for edge in edges[:-1]]
    style.bars(ax, edges, counts, tips, colors)
    ax.axvline(1.0, color=style.GRAY, linewidth=1.0, linestyle=style.DASHED)
    ax.set(xlim=(edges[0], edges[-1]), ylim=(0.0, 1.1 * max(counts.max(), 1)))
    ax.set(xlabel="extrapolation score (the last bar holds all beyond)", ylabel="rows")
