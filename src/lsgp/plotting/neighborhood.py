# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of where a prediction comes from: the neighborhood of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.ensemble.view import (
    EncodedRows,
    columns_of,
    in_one_piece,
    input_names,
    input_number,
    inputs_of_rows,
    target_names,
    target_number,
    training_rows,
)
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


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
    style.require_plain(model, "plot_neighborhood")
    k, names = target_number(model.ensemble_, target), input_names(model.ensemble_)
    point = np.asarray(query, dtype=np.float64).reshape(-1)
    if len(point) != len(names):
        raise ValueError(
            f"query has {len(point)} values, but the model has {len(names)} inputs. "
            "Give one query: a value for each of them."
        )
    explained = model.explain(EncodedRows(point[None, :]))
    neighbors = explained.of_query(0)
    around = [(value - 1.0, value + 1.0) for value in point.tolist()]
    X = in_one_piece(model.ensemble_, inputs_of_rows(model.ensemble_, neighbors.rows), around)
    others = training_rows(model.ensemble_, n_points)
    others = others._replace(X=in_one_piece(model.ensemble_, others.X, around))
    ax = style.one_axes(ax, (6.4, 4.6))
    mean = float(columns_of(explained.predicted.mean)[0, k])
    if len(names) == 1:
        low, high = (float(columns_of(end)[0, k]) for end in explained.predicted.interval(0.9))
        background = others.X[:, 0], others.y[:, k]
        places = X[:, 0], columns_of(neighbors.observed)[:, k]
        middle, sizes = (point[0], (low, high)), np.full(len(X), 34.0)
        ax.errorbar(
            point[0],
            mean,
            yerr=[[mean - low], [high - mean]],
            fmt="D",
            color=style.VERMILLION,
            markersize=6,
            linewidth=1.8,
            capsize=3,
            label="prediction, 90 % interval",
            zorder=4,
        )
        ax.set(xlabel=names[0], ylabel=target_names(model.ensemble_)[k])
    else:
        first, second = _two_inputs(model, inputs)
        background = others.X[:, first], others.X[:, second]
        places, middle = (X[:, first], X[:, second]), (point[first], point[second])
        contributions = np.abs(columns_of(neighbors.contributions)[:, k])
        sizes = 18.0 + 160.0 * contributions / max(float(contributions.max(initial=0.0)), 1e-300)
        ax.plot(
            *middle,
            "D",
            color=style.VERMILLION,
            markeredgecolor="white",
            markersize=8,
            label="query",
            zorder=4,
        )
        ax.set(xlabel=names[first], ylabel=names[second])
    ax.plot(
        *background,
        "o",
        color=style.PALE,
        markersize=2.5,
        markeredgewidth=0,
        label=style.count_label("training points", len(others.rows), others.n_total),
        zorder=1,
    )
    drawn = ax.scatter(
        *places,
        sizes,
        c=neighbors.weights,
        cmap=style.weight_colors(),
        vmin=0.0,
        vmax=max(1.0, float(neighbors.weights.max(initial=0.0))),
        edgecolor=style.GRAY,
        linewidth=0.5,
        zorder=3,
        label=f"{len(neighbors.rows)} neighbors",
    )
    style.color_bar(ax, drawn, label="weight")
    # The neighborhood and a little around it, not all of the data.
    ax.set_xlim(*style.limits(np.append(places[0], middle[0]), 0.12))
    ax.set_ylim(*style.limits(np.append(places[1], middle[1]), 0.12))
    std = float(columns_of(explained.predicted.std)[0, k])
    style.title(
        ax,
        f"{target_names(model.ensemble_)[k]} = {style.number(mean)} ± {style.number(std)} "
        "(observation), "
        f"effectively {explained.n_effective[0]:.1f} neighbors"
        + (", extrapolating" if explained.is_extrapolating[0] else ""),
    )
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
    return [input_number(model.ensemble_, each) for each in inputs]
