# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of predictions: over one input, and as a map over two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.compute.text import count
from lsgp.ensemble.view import (
    DataRows,
    EncodedRows,
    columns_of,
    in_one_piece,
    input_names,
    possible,
    target_names,
    target_number,
    training_rows,
)
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

#: Share of the range of the data that a picture shows beyond it.
MARGIN = 0.03


def plot_fit(
    model: LSGPRegressor,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    level: float = 0.9,
    target: int | str = 0,
    n_grid: int = 600,
    n_points: int = style.MOST_POINTS,
    ax: Axes | None = None,
) -> Axes:
    """Mean and bands of a model of one input, with the data.

    The inner band is the interval of the latent function, the outer that of an observation.

    Parameters
    ----------
    model : fitted LSGPRegressor
        Of one input.
    X : array-like of shape (n, 1), default=None
        With y: data to show instead of the training data. Alone: the range to show.
    y : array-like of shape (n,) or (n, t), default=None
    level : float
        Probability of the intervals.
    target : int or str
        Which target to show, if there are several.
    n_grid : int
        Points at which the model predicts.
    n_points : int
        Data points shown at most, drawn at random; the legend says so.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.plotting import plot_fit
    >>> ax = plot_fit(LSGPRegressor(objective=None).fit([[0], [1], [2]], [0, 1, 0]))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x', 'y')
    """
    k = target_number(model.ensemble_, target)
    style.require_inputs(model, 1, "plot_fit", "Use plot_map for two inputs, plot_residuals else.")
    if y is not None and X is None:
        raise ValueError("y was given without X. Give both, or neither for the training data.")
    ax = style.one_axes(ax)
    data = _shown_rows(model, X, y, n_points)
    extent = data.X[:, 0] if X is None else _inputs(model, X)[:, 0]
    low_x, high_x = _widened(float(np.min(extent)), float(np.max(extent)))
    grid = np.linspace(low_x, high_x, n_grid)
    queries = EncodedRows(grid[:, None])
    for kind, alpha in (("observation", 0.18), ("latent", 0.38)):
        low, high = (
            columns_of(end)[:, k] for end in model.predict_interval(queries, level, kind=kind)
        )
        noun = "an observation" if kind == "observation" else "the latent function"
        label = f"{100 * level:g} % of {noun}"
        ax.fill_between(grid, low, high, color=style.BLUE, alpha=alpha, linewidth=0, label=label)
    inside = (data.X[:, 0] >= low_x) & (data.X[:, 0] <= high_x)
    ax.plot(
        data.X[inside, 0],
        data.y[inside, k],
        "o",
        color=style.INK,
        markersize=_marker_size(len(data.X)),
        markeredgewidth=0,
        alpha=0.55,
        label=style.count_label("data", len(data.X), data.n_total),
        rasterized=len(data.X) > 5000,
    )
    mean = columns_of(model.predict(queries))[:, k]
    ax.plot(grid, mean, color=style.BLUE, linewidth=1.8, label="mean")
    ax.set(
        xlabel=input_names(model.ensemble_)[0],
        ylabel=target_names(model.ensemble_)[k],
        xlim=(low_x, high_x),
    )
    style.legend(ax)
    return ax


def plot_map(
    model: LSGPRegressor,
    bounds: Sequence[float] | None = None,
    resolution: int = 200,
    *,
    target: int | str = 0,
    kind: str = "observation",
    n_points: int = 1000,
    ax: style.SeveralAxes | None = None,
) -> style.AxesArray:
    """Maps of the mean and of the standard deviation of a model of two inputs.

    Parameters
    ----------
    model : fitted LSGPRegressor
        Of two inputs.
    bounds : (low_0, high_0, low_1, high_1) or array-like of shape (n, 2), default=None
        The rectangle to show, or points that it has to hold. None: the training data.
    resolution : int
        Pixels along each input: the model predicts ``resolution`` ** 2 of them.
    target : int or str
        Which target to show, if there are several.
    kind : {"observation", "latent"}
        Whose standard deviation is shown.
    n_points : int
        Training points shown at most, drawn at random; the legend says so. 0 for none.
    ax : two matplotlib Axes, default=None

    Returns
    -------
    array of two matplotlib Axes
        Of the mean and of the standard deviation.

    Examples
    --------
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.plotting import plot_map
    >>> model = LSGPRegressor(objective=None).fit([[0, 0], [0, 1], [1, 0]], [0, 1, 2])
    >>> mean, std = plot_map(model, resolution=20)
    >>> mean.get_title(loc="left"), std.get_title(loc="left")
    ('mean of y', 'standard deviation of y (observation)')
    """
    k = target_number(model.ensemble_, target)
    style.require_inputs(model, 2, "plot_map", "Use plot_fit for one input, plot_residuals else.")
    if resolution < 2:
        raise ValueError(f"resolution={resolution} is too coarse for a map. Use at least 2.")
    data = training_rows(model.ensemble_, max(n_points, 1))
    west, east, south, north = _map_bounds(model, bounds, data)
    sides = ((west, east), (south, north))
    data = data._replace(X=in_one_piece(model.ensemble_, data.X, sides))
    axes = style.several_axes(ax, 2, (10.0, 4.2), "plot_map")
    # Centers of the pixels.
    steps = (np.arange(resolution) + 0.5) / resolution
    first, second = west + (east - west) * steps, south + (north - south) * steps
    queries = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    mean, std = model.predict(EncodedRows(queries), return_std=True, kind=kind)
    name, names = target_names(model.ensemble_)[k], input_names(model.ensemble_)
    shown = (
        (mean, style.VALUE_MAP, f"mean of {name}", name),
        (
            std,
            style.UNCERTAINTY_MAP,
            f"standard deviation of {name} ({kind})",
            f"std of {name}",
        ),
    )
    for axis, (values, colors, title, label) in zip(axes, shown, strict=True):
        image = columns_of(values)[:, k].reshape(resolution, resolution)
        # A few pixels beyond the data would otherwise take all of the colors.
        low, high = _robust_limits(image)
        drawn = axis.imshow(
            image,
            extent=(west, east, south, north),
            origin="lower",
            aspect="auto",
            cmap=colors,
            vmin=low,
            vmax=high,
            interpolation="nearest",
        )
        beyond = {(False, False): "neither", (True, False): "min", (False, True): "max"}
        extend = beyond.get((bool(image.min() < low), bool(image.max() > high)), "both")
        style.color_bar(axis, drawn, label=label, extend=extend)
        if n_points > 0:
            _draw_map_points(axis, data)
        axis.set_title(title, fontsize=11, loc="left")
        axis.set(xlabel=names[0], ylabel=names[1], xlim=(west, east), ylim=(south, north))
    if n_points > 0:
        handles, labels = axes[0].get_legend_handles_labels()
        axes[0].figure.legend(
            handles, labels, loc="outside lower center", frameon=False, fontsize=9, markerscale=2
        )
    return axes


def _draw_map_points(axis: Axes, data: DataRows) -> None:
    axis.plot(
        data.X[:, 0],
        data.X[:, 1],
        "o",
        # White in a dark ring shows on all colors of both maps.
        color="white",
        markersize=max(0.75 * _marker_size(len(data.X)), 1.9),
        markeredgecolor=style.INK,
        markeredgewidth=0.5 if len(data.X) <= 300 else 0.25,
        label=style.count_label("training points", len(data.X), data.n_total),
    )


def _map_bounds(
    model: LSGPRegressor, bounds: ArrayLike | None, data: DataRows
) -> tuple[float, float, float, float]:
    if bounds is None:
        values = in_one_piece(model.ensemble_, data.X)
    else:
        given = np.asarray(bounds, dtype=np.float64)
        if given.shape == (4,):
            west, east, south, north = map(float, given)
            if not (np.all(np.isfinite(given)) and west < east and south < north):
                raise ValueError(
                    f"bounds={tuple(given.tolist())} is not a rectangle. "
                    "Give (low, high) of the first input, then (low, high) of the second."
                )
            return west, east, south, north
        values = in_one_piece(model.ensemble_, _inputs(model, bounds))
    (west, east), (south, north) = (
        possible(model.ensemble_, j, *_widened(float(column.min()), float(column.max())))
        for j, column in enumerate(values.T)
    )
    return west, east, south, north


def _robust_limits(image: Array) -> tuple[float, float]:
    """Ends of the colors: of all values, less the outermost ones if they are far off."""
    low, high = float(np.min(image)), float(np.max(image))
    inner_low, inner_high = np.quantile(image, [0.005, 0.995])
    spread = inner_high - inner_low
    low = max(low, float(inner_low - 0.25 * spread))
    high = min(high, float(inner_high + 0.25 * spread))
    return low, high


def _shown_rows(
    model: LSGPRegressor, X: ArrayLike | None, y: ArrayLike | None, n_points: int
) -> DataRows:
    """The data to show: the given ones, or the training data."""
    if X is None or y is None:
        return training_rows(model.ensemble_, n_points)
    inputs, targets = _inputs(model, X), columns_of(y)
    n_targets = len(model.target_scaler_.mean)
    if targets.shape != (len(inputs), n_targets):
        raise ValueError(
            f"y has shape {np.shape(y)}, but X has {len(inputs)} rows and the model "
            f"{count(n_targets, 'target')}. Give one observation per row."
        )
    rows = np.arange(len(inputs))
    if n_points < len(rows):
        rows = np.sort(np.random.default_rng(0).choice(len(rows), n_points, replace=False))
    return DataRows(rows, inputs[rows], targets[rows], len(inputs))


def _inputs(model: LSGPRegressor, X: ArrayLike) -> Array:
    inputs = np.asarray(X, dtype=np.float64)
    if inputs.ndim != 2 or inputs.shape[1] != model.n_features_in_ or len(inputs) == 0:
        raise ValueError(
            f"X has shape {inputs.shape}, but the model was fitted to "
            f"{count(model.n_features_in_, 'column')}. Give at least one row of them."
        )
    return inputs


def _widened(low: float, high: float) -> tuple[float, float]:
    margin = MARGIN * (high - low) if high > low else max(abs(low), 1.0) * MARGIN
    return low - margin, high + margin


def _marker_size(n_points: int) -> float:
    """Diameter that lets many points still be told apart."""
    return float(np.clip(60.0 / np.sqrt(max(n_points, 1)), 1.6, 5.0))
