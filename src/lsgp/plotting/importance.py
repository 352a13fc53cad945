# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of which inputs matter, and how: bars of importance, and curves of effects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lsgp.compute.text import count
from lsgp.ensemble.effects import Effect
from lsgp.ensemble.importance import Importance
from lsgp.ensemble.view import target_names, target_number
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting import style
from lsgp.plotting.style import Axes

#: Characters that are shown of the name of an input and of a level, and of levels side by side.
LONGEST_NAME, LONGEST_LEVEL, LONGEST_LEVELS = 26, 14, 24


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
    n_shown = min(max(n_inputs, 1), len(found.names))
    ax = style.one_axes(ax, (6.4, 1.3 + 0.3 * n_shown))
    draw_importance(ax, found, n_shown)
    points = count(found.n_points, "point")
    style.title(ax, f"leave-one-out, {points}, ± 1 standard error")
    return ax


def draw_importance(ax: Axes, found: Importance, n_shown: int) -> None:
    """Draw bars of the most important inputs, the strongest at the top."""
    order = found.order[:n_shown]
    values, errors = found.values[order], found.standard_errors[order]
    places = np.arange(len(order))
    bars = ax.barh(places, values, height=0.68, color=style.BLUE)
    ax.errorbar(
        values, places, xerr=errors, fmt="none", ecolor=style.INK, elinewidth=1.0, capsize=2.5
    )
    names = [found.names[j] for j in order]
    ax.set_yticks(places, [style.shorten(name, LONGEST_NAME) for name in names])
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    for place, (bar, name, value, error) in enumerate(
        zip(bars, names, values, errors, strict=True)
    ):
        style.TIPS[bar] = [f"{name}: {style.number(value, 3)} ± {style.number(error, 2)}"]
        shown = f"{value + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")
        style.note(ax, shown, (max(value + error, 0.0), place), (5, 0), style.GRAY)
    label = "importance: R² lost when the input is shuffled"
    n = len(found.names)
    ax.set_xlabel(label if len(order) == n else f"{label} ({len(order)} of {n})")
    end = 1.14 * max(float((values + errors).max()), 1e-12)
    ax.set_xlim(min(0.0, 1.1 * float((values - errors).min())), end)


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
    n_across = 3
    size = (3.2 * min(len(drawn), n_across), 2.7 * -(-len(drawn) // n_across))
    axes = style.several_axes(ax, len(drawn), size, "plot_effects", n_across)
    ends = limits_of_effects(drawn)
    for k, (each, effect) in enumerate(zip(axes, drawn, strict=True)):
        draw_effect(each, effect, ends)
        if k % n_across == 0:
            each.set_ylabel(f"change of mean {name}")
    return axes


def limits_of_effects(drawn: Sequence[Effect]) -> tuple[float, float]:
    """One scale for several effects: only on one are heights comparable."""
    ends = [e.effect + sign * 2.0 * e.standard_error for e in drawn for sign in (-1.0, 1.0)]
    return style.limits(np.concatenate(ends), 0.06)


def draw_effect(ax: Axes, effect: Effect, ends: tuple[float, float]) -> None:
    """Draw the change of the mean along one input with two standard errors: a curve, or levels."""
    ax.axhline(0.0, color=style.PALE, linewidth=0.8, zorder=1)
    ax.set(xlabel=effect.name, ylim=ends)
    grid, mean, error = effect.grid, effect.effect, 2.0 * effect.standard_error
    if not effect.levels:
        ax.fill_between(grid, mean - error, mean + error, color=style.SKY, alpha=0.4, linewidth=0)
        ax.plot(grid, mean, color=style.BLUE, linewidth=1.6)
        bottom = np.full(len(grid), ends[0])
        ax.plot(grid, bottom, "|", color=style.GRAY, markersize=7, clip_on=False)
        return
    drawn = ax.errorbar(
        grid, mean, error, fmt="o", color=style.BLUE, ecolor=style.SKY, markersize=4
    )
    pairs = zip(effect.levels, mean, strict=True)
    style.TIPS[drawn.lines[0]] = [f"{level}: {style.number(value)}" for level, value in pairs]
    is_long = len("".join(effect.levels)) > LONGEST_LEVELS
    names = [style.shorten(level, LONGEST_LEVEL) for level in effect.levels]
    ax.set_xticks(grid, names, rotation=90 if is_long else 0, fontsize=7)
