# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of what a model learnt: which inputs matter, who is asked, what tuning tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.compute.text import count
from lsgp.ensemble.effects import Effect
from lsgp.ensemble.picture_facts import largest_shown
from lsgp.ensemble.view import (
    as_table,
    columns_of,
    input_names,
    inputs_of_rows,
    target_names,
    target_number,
    training_rows,
)
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting import style
from lsgp.tuning.objective import OBJECTIVES
from lsgp.tuning.result import TuningResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


def plot_importance(
    model: LSGPRegressor,
    *,
    n_inputs: int = 20,
    n_points: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Bars of how much predictions depend on each input, with standard errors.

    Parameters
    ----------
    model : fitted LSGPRegressor
    n_inputs : int
        Inputs shown at most, the most important; the label says so.
    n_points : int, default=None
        Training rows that are predicted, as in `LSGPRegressor.importance`.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.plotting import plot_importance
    >>> X = np.random.default_rng(0).uniform(size=(200, 3))
    >>> model = LSGPRegressor(objective=None).fit(X, X @ [1.0, 9.0, 3.0])
    >>> [text.get_text() for text in plot_importance(model).get_yticklabels()]
    ['x1', 'x2', 'x0']
    """
    found = model.importance(n_points)
    order = found.order[: max(n_inputs, 1)]
    values, errors = found.values[order], found.standard_errors[order]
    ax = style.one_axes(ax, (6.4, 1.3 + 0.3 * len(order)))
    places = np.arange(len(order))
    ax.barh(places, values, height=0.68, color=style.BLUE)
    ax.errorbar(
        values, places, xerr=errors, fmt="none", ecolor=style.INK, elinewidth=1.0, capsize=2.5
    )
    ax.set_yticks(places, [found.names[j] for j in order])
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    for place, value, error in zip(places, values, errors, strict=True):
        ax.annotate(
            f"{value + 0.0:.2f}".replace("-0.00", "0.00"),
            (max(value + error, 0.0), place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=style.GRAY,
        )
    label = "importance: R² lost when the input is shuffled"
    n = len(found.names)
    ax.set_xlabel(label if len(order) == n else f"{label} ({len(order)} of {n})")
    ax.set_title(
        f"leave-one-out, {count(found.n_points, 'point')}, ± 1 standard error",
        fontsize=11,
        loc="left",
    )
    ax.set_xlim(min(0.0, 1.1 * float((values - errors).min())), _end(values + errors))
    return ax


#: The former name.
plot_relevance = plot_importance


#: Characters of level names that stand side by side.
LONGEST_LEVELS = 24


def _end(values: Array) -> float:
    return 1.14 * max(float(values.max()), 1e-12)


def plot_effects(
    model: LSGPRegressor,
    inputs: Sequence[int | str] | None = None,
    *,
    target: int | str = 0,
    n_points: int | None = None,
    ax: Any = None,
) -> Any:
    """How the predicted mean changes along inputs: accumulated local effects.

    The band is two standard errors over the rows: how far they disagree on the effect. Ticks at
    the bottom are the quantiles of the input that the curve goes through.

    Parameters
    ----------
    model : fitted LSGPRegressor
    inputs : sequence of int or str, default=None
        By number or name; None: the six most important at most.
    target : int or str
        Which target to show, if there are several.
    n_points : int, default=None
        Training rows that are moved, as in `LSGPRegressor.effects`.
    ax : sequence of matplotlib Axes, default=None
        One for each input.

    Returns
    -------
    array of matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.plotting import plot_effects
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
    >>> [axes.get_xlabel() for axes in plot_effects(model, ["x1", "x0"])]
    ['x1', 'x0']
    """
    drawn = model.effects(inputs, target, n_points)
    name = target_names(model.ensemble_)[target_number(model.ensemble_, target)]
    axes = style.several_axes(
        ax, len(drawn), (3.2 * min(len(drawn), 3), 2.7 * -(-len(drawn) // 3)), "plot_effects", 3
    )
    ends = [(e.effect - 2 * e.standard_error, e.effect + 2 * e.standard_error) for e in drawn]
    low, high = min(float(e[0].min()) for e in ends), max(float(e[1].max()) for e in ends)
    margin = 0.06 * (high - low) or 1.0
    for each, effect, (below, above) in zip(axes, drawn, ends, strict=True):
        each.axhline(0.0, color=style.PALE, linewidth=0.8, zorder=1)
        if effect.levels:
            _draw_levels(each, effect)
            each.set_ylim(low - margin, high + margin)
            continue
        each.fill_between(effect.grid, below, above, color=style.SKY, alpha=0.4, linewidth=0)
        each.plot(effect.grid, effect.effect, color=style.BLUE, linewidth=1.6)
        # Heights are comparable only on one scale.
        each.set_ylim(low - margin, high + margin)
        each.plot(
            effect.grid,
            np.full(len(effect.grid), low - margin),
            "|",
            color=style.GRAY,
            markersize=7,
            clip_on=False,
        )
        each.set_xlabel(effect.name)
    axes[0].set_ylabel(f"change of mean {name}")
    for each in axes[3::3]:
        each.set_ylabel(f"change of mean {name}")
    return axes


def _draw_levels(axes: Any, effect: Effect) -> None:
    """A point with its error for each level of a category."""
    axes.errorbar(
        effect.grid,
        effect.effect,
        2 * effect.standard_error,
        fmt="o",
        color=style.BLUE,
        ecolor=style.SKY,
        markersize=4,
    )
    is_long = len("".join(effect.levels)) > LONGEST_LEVELS
    axes.set_xticks(effect.grid, effect.levels, rotation=90 if is_long else 0, fontsize=7)
    axes.set_xlabel(effect.name)


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
    style.require_plain(model, "plot_neighborhood")
    k, names = target_number(model.ensemble_, target), input_names(model.ensemble_)
    point = np.asarray(query, dtype=np.float64).reshape(-1)
    if len(point) != len(names):
        raise ValueError(
            f"query has {len(point)} values, but the model has {len(names)} inputs. "
            "Give one query: a value for each of them."
        )
    explained = model.explain(as_table(model.ensemble_, point[None, :]))
    neighbors = explained.of_query(0)
    X = inputs_of_rows(model.ensemble_, neighbors.rows)
    others = training_rows(model.ensemble_, n_points)
    ax = style.one_axes(ax, (6.4, 4.6))
    mean = float(columns_of(explained.predicted.mean)[0, k])
    low, high = (float(columns_of(end)[0, k]) for end in explained.predicted.interval(0.9))
    if len(names) == 1:
        y = columns_of(neighbors.observed)[:, k]
        background, sizes = (others.X[:, 0], others.y[:, k]), np.full(len(y), 34.0)
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
        places = (X[:, 0], y)
        ax.set(xlabel=names[0], ylabel=target_names(model.ensemble_)[k])
    else:
        shown = _two_inputs(model, inputs, names)
        contributions = np.abs(columns_of(neighbors.contributions)[:, k])
        sizes = 18.0 + 160.0 * contributions / max(float(contributions.max(initial=0.0)), 1e-300)
        background = (others.X[:, shown[0]], others.X[:, shown[1]])
        places = (X[:, shown[0]], X[:, shown[1]])
        ax.plot(
            point[shown[0]],
            point[shown[1]],
            "D",
            color=style.VERMILLION,
            markeredgecolor="white",
            markersize=8,
            label="query",
            zorder=4,
        )
        ax.set(xlabel=names[shown[0]], ylabel=names[shown[1]])
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
        s=sizes,
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
    if len(names) == 1:
        _zoom(ax.set_xlim, np.append(X[:, 0], point[0]))
        _zoom(ax.set_ylim, np.append(places[1], [low, high]))
    else:
        _zoom(ax.set_xlim, np.append(places[0], point[shown[0]]))
        _zoom(ax.set_ylim, np.append(places[1], point[shown[1]]))
    std = float(columns_of(explained.predicted.std)[0, k])
    ax.set_title(
        f"{target_names(model.ensemble_)[k]} = {style.number(mean)} ± {style.number(std)} "
        "(observation), "
        f"effectively {explained.n_effective[0]:.1f} neighbors"
        + (", extrapolating" if explained.is_extrapolating[0] else ""),
        fontsize=11,
        loc="left",
    )
    style.legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3)
    for handle in ax.get_legend().legend_handles:  # type: ignore[union-attr]
        # Of all the sizes, the legend must not show the largest.
        if handle is not None and hasattr(handle, "set_sizes"):
            handle.set_sizes([40.0])
    return ax


def _two_inputs(
    model: LSGPRegressor, inputs: tuple[int | str, int | str] | None, names: list[str]
) -> list[int]:
    if inputs is None:
        # In the order of the columns, as users know them.
        return sorted(int(j) for j in model.importance().order[:2])
    numbers = [names.index(each) if each in names else each for each in inputs]
    is_known = [isinstance(j, (int, np.integer)) and 0 <= j < len(names) for j in numbers]
    if len(numbers) != 2 or not all(is_known):
        raise ValueError(
            f"inputs={inputs!r} are not two inputs of the model. Give two of {', '.join(names)}, "
            f"or of their numbers from 0 to {len(names) - 1}."
        )
    return [int(j) for j in numbers]


def _zoom(set_limits: Any, values: Array) -> None:
    """Show the neighborhood and a little around it, not all of the data."""
    low, high = float(values.min()), float(values.max())
    margin = 0.12 * (high - low) or 1.0
    set_limits(low - margin, high + margin)


def plot_tuning(
    model: LSGPRegressor | TuningResult, *, n_candidates: int = 30, ax: Axes | None = None
) -> Axes:
    """The candidates of tuning with their losses and standard errors, the best at the top.

    Those that are combined are highlighted, with their weights; the dashed line is the loss of
    their combination.

    Parameters
    ----------
    model : fitted LSGPRegressor or TuningResult
    n_candidates : int
        Candidates shown at most, beside those that are combined; the label says so.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.plotting import plot_tuning
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> model = LSGPRegressor(kernel="rbf", input_transform="standardize", random_state=0)
    >>> ax = plot_tuning(model.fit(X, np.sin(6 * X[:, 0])))
    >>> ax.get_xlabel()
    'leave-one-out crps (scaled targets)'
    """
    tuning: TuningResult | None = model if isinstance(model, TuningResult) else model.tuning_
    if tuning is None:
        raise ValueError(
            "The model was not tuned, so there are no candidates to show. "
            "Fit it with an objective, e.g. objective='auto'."
        )
    order = np.argsort([candidate.loss for candidate in tuning.candidates], kind="stable")
    order = np.array(
        [k for place, k in enumerate(order) if place < n_candidates or tuning.weights[k] > 0]
    )
    ax = style.one_axes(ax, (7.6, 1.4 + 0.27 * len(order)))
    losses = np.array([tuning.candidates[k].loss for k in order])
    errors = np.array([tuning.candidates[k].standard_error for k in order])
    # A few bad candidates must not squeeze the others: they are drawn at the edge.
    edge = largest_shown(losses, errors)
    for place, k in enumerate(order):
        candidate, weight = tuning.candidates[k], float(tuning.weights[k])
        color = style.BLUE if weight > 0 else style.GRAY
        if candidate.loss > edge:
            ax.plot(edge, place, ">", color=color, markersize=6, clip_on=False)
            ax.annotate(
                style.number(candidate.loss),
                (edge, place),
                xytext=(-8, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=9,
                color=color,
            )
            continue
        ax.errorbar(
            candidate.loss,
            place,
            xerr=candidate.standard_error,
            fmt="o",
            color=color,
            markersize=6 if weight > 0 else 4,
            linewidth=1.6 if weight > 0 else 1.0,
        )
    labels = []
    for k in order:
        weight = float(tuning.weights[k])
        share = f"  ({100 * weight:.0f} %)" if weight > 0 else ""
        labels.append(tuning.candidates[k].describe() + share)
    ax.set_yticks(np.arange(len(order)), labels)
    for text, k in zip(ax.get_yticklabels(), order, strict=True):
        is_chosen = tuning.weights[k] > 0
        text.set(color=style.INK if is_chosen else style.GRAY)
        text.set_fontweight("bold" if is_chosen else "normal")
    ax.axvline(tuning.loss, color=style.VERMILLION, linestyle=(0, (4, 3)), linewidth=1.2, zorder=0)
    ax.annotate(
        f"combined {style.number(tuning.loss)}",
        (tuning.loss, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        fontsize=9,
        color=style.VERMILLION,
    )
    if np.isfinite(edge):
        ax.set_xlim(right=edge)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    total = len(tuning.candidates)
    some = "" if len(order) == total else f", {len(order)} of {total} candidates"
    ax.set_xlabel(f"{OBJECTIVES[tuning.objective].loss_name} (scaled targets){some}")
    return ax
