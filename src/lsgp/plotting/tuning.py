# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of what tuning tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lsgp.ensemble.picture_facts import largest_shown
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting import style
from lsgp.solvers.objective import OBJECTIVES
from lsgp.tuning.result import TuningResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


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
