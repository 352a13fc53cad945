# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of what tuning tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from lsgp.compute.text import percent
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting import style
from lsgp.solvers.objective import OBJECTIVES
from lsgp.tuning.result import Candidate, TuningResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Characters of the name of a candidate that are shown.
LONGEST_NAME = 36


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
        Candidates shown at most, beside the combined ones; the label says so.
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
    order = shown_candidates(tuning, n_candidates)
    ax = style.one_axes(ax, (7.6, 1.4 + 0.27 * len(order)))
    draw_tuning(ax, tuning, order)
    return ax


def shown_candidates(tuning: TuningResult, n: int) -> list[int]:
    """The best n candidates and all that are combined, the best first."""
    order = np.argsort([candidate.loss for candidate in tuning.candidates], kind="stable").tolist()
    return [k for place, k in enumerate(order) if place < n or tuning.weights[k] > 0]


def draw_tuning(ax: Axes, tuning: TuningResult, order: list[int]) -> None:
    """Draw these candidates of tuning, one below the other."""
    candidates, weights = [tuning.candidates[k] for k in order], tuning.weights[order]
    losses = np.array([candidate.loss for candidate in candidates])
    errors = np.array([candidate.standard_error for candidate in candidates])
    places, is_chosen = np.arange(len(order)), weights > 0
    # A few bad candidates must not squeeze the others: they are drawn at the edge.
    edge = largest_shown(losses, errors)
    tips = np.array(
        [
            f"{_name(candidate)}\nloss {style.number(candidate.loss)} ± "
            f"{style.number(candidate.standard_error, 2)}\nweight {percent(weight)}"
            for candidate, weight in zip(candidates, weights, strict=True)
        ]
    )
    for part, color, size, width in (
        (is_chosen, style.BLUE, 6, 1.6),
        (~is_chosen, style.GRAY, 4, 1.0),
    ):
        near, far = part & (losses <= edge), part & (losses > edge)
        drawn = ax.errorbar(
            losses[near],
            places[near],
            xerr=errors[near],
            fmt="o",
            color=color,
            markersize=size,
            linewidth=width,
        )
        (beyond,) = ax.plot(
            np.full(far.sum(), edge), places[far], ">", color=color, markersize=6, clip_on=False
        )
        style.TIPS[drawn.lines[0]] = tips[near].tolist()
        style.TIPS[beyond] = tips[far].tolist()
        for place in places[far]:
            style.note(ax, style.number(losses[place]), (edge, place), (-8, 0), color, ha="right")
    labels = [
        style.shorten(_name(candidate), LONGEST_NAME)
        + (f"  ({100 * weight:.0f} %)" if weight > 0 else "")
        for candidate, weight in zip(candidates, weights, strict=True)
    ]
    ax.set_yticks(places, labels)
    for text, chosen in zip(ax.get_yticklabels(), is_chosen, strict=True):
        text.set(color=style.INK if chosen else style.GRAY)
        text.set_fontweight("bold" if chosen else "normal")
    ax.axvline(tuning.loss, color=style.VERMILLION, linestyle=style.DASHED, linewidth=1.2, zorder=0)
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


def _name(candidate: Candidate) -> str:
    """Kernel, transform, scale and size: short, as it stands beside the axes."""
    kind = candidate.input_transform
    transform = "per input" if isinstance(kind, tuple) else kind or "none"
    parts = [str(candidate.model.kernel), transform, candidate.scale]
    if candidate.n_neighbors is not None:
        parts.append(f"{candidate.n_neighbors}")
    return ", ".join(parts)


def largest_shown(losses: ArrayLike, errors: ArrayLike) -> float:
    """Where an axis of losses ends, so that a few bad ones do not squeeze the others.

    Infinite if all of them can be shown.

    Examples
    --------
    >>> from lsgp.plotting.tuning import largest_shown
    >>> largest_shown([1.0, 1.25, 1.5, 50.0], [0.1, 0.1, 0.1, 1.0])
    3.25
    >>> largest_shown([1.0, 1.25, 1.5], [0.1, 0.1, 0.1])
    inf
    """
    values, widths = np.asarray(losses, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    best = int(np.argmin(values))
    reach = 6.0 * max(float(np.median(values) - values[best]), float(widths[best]), 1e-12)
    end = float(values[best]) + reach
    return end if np.any(values > end) else np.inf
