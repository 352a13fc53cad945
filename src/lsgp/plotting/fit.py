# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of predictions over one input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.compute.text import count
from lsgp.ensemble.view import (
    DataRows,
    EncodedRows,
    columns_of,
    input_names,
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
    style.require_kind(model, False, "plot_fit", "plot_decision")
    k = target_number(model.ensemble_, target)
    style.require_inputs(model, 1, "plot_fit", "Use plot_map for two inputs, plot_residuals else.")
    if y is not None and X is None:
        raise ValueError("y was given without X. Give both, or neither for the training data.")
    ax = style.one_axes(ax)
    data = _shown_rows(model, X, y, n_points)
    extent = data.X[:, 0] if X is None else style.inputs_of(model, X)[:, 0]
    low_x, high_x = style.limits(extent, MARGIN)
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
        markersize=style.marker_size(len(data.X)),
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


def _shown_rows(
    model: LSGPRegressor, X: ArrayLike | None, y: ArrayLike | None, n_points: int
) -> DataRows:
    """The data to show: the given ones, or the training data."""
    if X is None or y is None:
        return training_rows(model.ensemble_, n_points)
    inputs, targets = style.inputs_of(model, X), columns_of(y)
    n_targets = len(model.target_scaler_.mean)
    if targets.shape != (len(inputs), n_targets):
        raise ValueError(
            f"y has shape {np.shape(y)}, but X has {len(inputs)} rows and the model "
            f"{count(n_targets, 'target')}. Give one observation per row."
        )
    rows = style.sample(np.arange(len(inputs)), n_points)
    return DataRows(rows, inputs[rows], targets[rows], len(inputs))
