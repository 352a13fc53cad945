# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of predictions: over one input, and the neighbors that one prediction is made from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.compute.text import count
from lsgp.ensemble import view
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting import style
from lsgp.plotting.style import Axes

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
    k = view.target_number(model.ensemble_, target)
    style.require_inputs(model, 1, "plot_fit", "Use plot_map for two inputs, plot_residuals else.")
    if y is not None and X is None:
        raise ValueError("y was given without X. Give both, or neither for the training data.")
    ax = style.one_axes(ax)
    if X is None or y is None:
        data = view.training_rows(model.ensemble_, n_points)
    else:
        data = _given_rows(model, X, y, n_points)
    extent = data.X[:, 0] if X is None else style.inputs_of(model, X)[:, 0]
    low_x, high_x = style.limits(extent, MARGIN)
    grid = np.linspace(low_x, high_x, n_grid)
    queries = view.EncodedRows(grid[:, None])
    for kind, noun, alpha in (
        ("observation", "an observation", 0.18),
        ("latent", "the latent function", 0.38),
    ):
        low, high = (
            view.columns_of(e)[:, k] for e in model.predict_interval(queries, level, kind=kind)
        )
        label = f"{100 * level:g} % of {noun}"
        ax.fill_between(grid, low, high, color=style.BLUE, alpha=alpha, linewidth=0, label=label)
    inside = (data.X[:, 0] >= low_x) & (data.X[:, 0] <= high_x)
    look: dict[str, Any] = {"color": style.INK, "markeredgewidth": 0, "alpha": 0.55}
    look["markersize"] = style.marker_size(len(data.X))
    look["label"] = style.count_label("data", len(data.X), data.n_total)
    ax.plot(data.X[inside, 0], data.y[inside, k], "o", rasterized=len(data.X) > 5000, **look)
    mean = view.columns_of(model.predict(queries))[:, k]
    ax.plot(grid, mean, color=style.BLUE, linewidth=1.8, label="mean")
    ax.set(
        xlabel=view.input_names(model.ensemble_)[0], ylabel=view.target_names(model.ensemble_)[k]
    )
    ax.set_xlim(low_x, high_x)
    style.legend(ax)
    return ax


def _given_rows(model: LSGPRegressor, X: ArrayLike, y: ArrayLike, n_points: int) -> view.DataRows:
    inputs, targets = style.inputs_of(model, X), view.columns_of(y)
    n_targets = len(model.target_scaler_.mean)
    if targets.shape != (len(inputs), n_targets):
        raise ValueError(
            f"y has shape {np.shape(y)}, but X has {len(inputs)} rows and the model "
            f"{count(n_targets, 'target')}. Give one observation per row."
        )
    rows = style.sample(np.arange(len(inputs)), n_points)
    return view.DataRows(rows, inputs[rows], targets[rows], len(inputs))


def plot_neighborhood(
    model: LSGPRegressor,
    query: ArrayLike,
    *,
    target: int | str = 0,
    inputs: tuple[int | str, int | str] | None = None,
    n_points: int = style.MOST_POINTS,
    ax: Axes | None = None,
) -> Axes:
    """The neighbors that one prediction is made from, by their weights.

    With one input, targets against it; with more, neighbors over two inputs. Darker is a larger
    weight; beyond one input, the area is the size of the contribution to the mean.

    Parameters
    ----------
    model : fitted LSGPRegressor
    query : array-like of shape (d,) or (1, d)
    target : int or str
        Which target to show, if there are several.
    inputs : pair of int or str, default=None
        The inputs to show, by number or name; None: the two most important.
    n_points : int
        Other training points shown at most, drawn at random.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.plotting import plot_neighborhood
    >>> model = LSGPRegressor(objective=None).fit([[0, 0], [0, 1], [1, 0]], [0, 1, 2])
    >>> ax = plot_neighborhood(model, [0.5, 0.5])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x0', 'x1')
    """
    style.require_kind(model, False, "plot_neighborhood", "explain")
    style.require_inputs(model, None, "plot_neighborhood")
    ensemble = model.ensemble_
    k, names = view.target_number(ensemble, target), view.input_names(ensemble)
    name = view.target_names(ensemble)[k]
    point = np.asarray(query, dtype=np.float64).reshape(-1)
    if len(point) != len(names):
        raise ValueError(
            f"query has {len(point)} values, but the model has {len(names)} inputs. "
            "Give one query: a value for each of them."
        )
    explained = model.explain(view.EncodedRows(point[None, :]))
    neighbors, predicted = explained.of_query(0), style.of_target(explained.predicted, k)
    mean, std = float(predicted.mean[0]), float(predicted.std[0])
    around = [(value - 1.0, value + 1.0) for value in point.tolist()]
    X = view.in_one_piece(ensemble, view.inputs_of_rows(ensemble, neighbors.rows), around)
    others = view.training_rows(ensemble, n_points)
    background = view.in_one_piece(ensemble, others.X, around)
    ax = style.one_axes(ax, (6.4, 4.6))
    look: dict[str, Any]
    red: dict[str, Any] = {"color": style.VERMILLION, "zorder": 4}
    if len(names) == 1:
        low, high = (float(end[0]) for end in predicted.interval(0.9))
        background = np.column_stack([background, others.y[:, k]])
        places = np.column_stack([X, view.columns_of(neighbors.observed)[:, k]])
        shown, sizes = np.array([[point[0], low], [point[0], high]]), np.full(len(X), 34.0)
        error, label = [[mean - low], [high - mean]], "prediction, 90 % interval"
        look = {"markersize": 6, "linewidth": 1.8, "capsize": 3, "label": label}
        ax.errorbar(point[0], mean, error, fmt="D", **red, **look)
        ax.set(xlabel=names[0], ylabel=name)
    else:
        two = _two_inputs(model, inputs)
        background, places, shown = background[:, two], X[:, two], point[None, two]
        contributions = np.abs(view.columns_of(neighbors.contributions)[:, k])
        sizes = 18.0 + 160.0 * contributions / max(float(contributions.max(initial=0.0)), 1e-300)
        ax.plot(*shown.T, "D", markeredgecolor="white", markersize=8, label="query", **red)
        ax.set(xlabel=names[two[0]], ylabel=names[two[1]])
    label = style.count_label("training points", len(others.rows), others.n_total)
    look = {"markersize": 2.5, "markeredgewidth": 0, "label": label, "zorder": 1}
    ax.plot(*background.T, "o", color=style.PALE, **look)
    look = {"cmap": style.weight_colors(), "edgecolor": style.GRAY, "linewidth": 0.5, "zorder": 3}
    look |= {"vmin": 0.0, "vmax": max(1.0, float(neighbors.weights.max(initial=0.0)))}
    look |= {"c": neighbors.weights, "label": f"{len(neighbors.rows)} neighbors"}
    drawn = ax.scatter(places[:, 0], places[:, 1], sizes, **look)
    style.color_bar(ax, drawn, label="weight")
    # The neighborhood and a little around it, not all of the data.
    ends = np.vstack([places, shown])
    ax.set(xlim=style.limits(ends[:, 0], 0.12), ylim=style.limits(ends[:, 1], 0.12))
    said = f"{name} = {style.number(mean)} ± {style.number(std)} (observation), effectively "
    far = ", extrapolating" if explained.is_extrapolating[0] else ""
    style.title(ax, f"{said}{explained.n_effective[0]:.1f} neighbors{far}")
    style.legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3)
    for handle in ax.get_legend().legend_handles:  # type: ignore[union-attr]
        # Of all the sizes, the legend must not show the largest.
        if handle is not None and hasattr(handle, "set_sizes"):
            handle.set_sizes([40.0])
    return ax


def _two_inputs(model: LSGPRegressor, inputs: tuple[int | str, int | str] | None) -> list[int]:
    if inputs is None:
        # In the order of the columns, as users know them.
        return sorted(int(j) for j in model.importance().order[:2])
    if len(inputs) != 2:
        raise ValueError(f"inputs={inputs!r} are not two inputs of the model. Give two.")
    return [view.input_number(model.ensemble_, each) for each in inputs]
