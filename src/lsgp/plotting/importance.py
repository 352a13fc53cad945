# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of which inputs matter, and how: bars of importance, and curves of effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import count
from lsgp.ensemble.effects import Effect
from lsgp.ensemble.view import (
    target_names,
    target_number,
)
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting import style

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
    ax: style.SeveralAxes | None = None,
) -> style.AxesArray:
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


def _draw_levels(axes: Axes, effect: Effect) -> None:
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
