# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of models: the candidates of tuning, and variograms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lsgp.compute.text import percent
from lsgp.ensemble.variogram import Variogram, variogram
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.inputs.empirical_variogram import EmpiricalVariogram
from lsgp.plotting import style
from lsgp.plotting.style import Axes
from lsgp.solvers.objective import OBJECTIVES
from lsgp.tuning.result import Candidate, TuningResult

#: Characters of the name of a candidate that are shown.
LONGEST_NAME = 36
#: Areas of points of the fewest and of the most pairs, in points².
SMALLEST_AREA, LARGEST_AREA = 12.0, 90.0


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
    names = [_name(candidate) for candidate in candidates]
    losses = np.array([candidate.loss for candidate in candidates])
    errors = np.array([candidate.standard_error for candidate in candidates])
    places, is_chosen = np.arange(len(order)), weights > 0
    # A few bad candidates must not squeeze the others: they are drawn at the edge.
    edge = largest_shown(losses, errors)
    facts = list(zip(names, losses, errors, weights, strict=True))
    tips = np.array(
        [
            f"{name}\nloss {style.number(loss)} ± {style.number(error, 2)}\n"
            f"weight {percent(weight)}"
            for name, loss, error, weight in facts
        ]
    )
    for part, color, size, width in (
        (is_chosen, style.BLUE, 6, 1.6),
        (~is_chosen, style.GRAY, 4, 1.0),
    ):
        near, far = part & (losses <= edge), part & (losses > edge)
        look: dict[str, Any] = {"fmt": "o", "color": color, "markersize": size, "linewidth": width}
        drawn = ax.errorbar(losses[near], places[near], xerr=errors[near], **look)
        edges = np.full(far.sum(), edge)
        (beyond,) = ax.plot(edges, places[far], ">", color=color, markersize=6, clip_on=False)
        style.TIPS[drawn.lines[0]] = tips[near].tolist()
        style.TIPS[beyond] = tips[far].tolist()
        for place in places[far]:
            style.note(ax, style.number(losses[place]), (edge, place), (-8, 0), color, ha="right")
    labels = [
        style.shorten(name, LONGEST_NAME) + (f"  ({100 * weight:.0f} %)" if weight > 0 else "")
        for name, _, _, weight in facts
    ]
    ax.set_yticks(places, labels)
    for text, chosen in zip(ax.get_yticklabels(), is_chosen, strict=True):
        text.set(color=style.INK if chosen else style.GRAY)
        text.set_fontweight("bold" if chosen else "normal")
    ax.axvline(tuning.loss, color=style.VERMILLION, linestyle=style.DASHED, linewidth=1.2, zorder=0)
    said, place = f"combined {style.number(tuning.loss)}", (tuning.loss, 1.0)
    top: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "baseline"}
    style.note(ax, said, place, (0, 3), style.VERMILLION, **top)
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
    """
    values, widths = np.asarray(losses, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    best = int(np.argmin(values))
    reach = 6.0 * max(float(np.median(values) - values[best]), float(widths[best]), 1e-12)
    end = float(values[best]) + reach
    return end if np.any(values > end) else np.inf


def plot_variogram(
    model: LSGPRegressor | Variogram | None = None,
    empirical: EmpiricalVariogram | None = None,
    *,
    unit: str = "",
    ax: Axes | None = None,
) -> Axes:
    """The variogram of a model as a curve, and of data as points, one over the other.

    Points are the larger the more pairs they are of. The curve ends at the farthest point, or at
    1.5 ranges.

    Parameters
    ----------
    model : fitted LSGPRegressor or Variogram, default=None
    empirical : EmpiricalVariogram, default=None
        From `lsgp.empirical_variogram`.
    unit : str
        Of distances, for the axis.
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import LSGPRegressor, empirical_variogram
    >>> from lsgp.plotting import plot_variogram
    >>> X = np.random.default_rng(0).uniform(size=(100, 2))
    >>> y = np.sin(6 * X[:, 0])
    >>> model = LSGPRegressor.kriging(model="spherical", psill=0.5, range=0.6).fit(X, y)
    >>> ax = plot_variogram(model, empirical_variogram(X, y))
    """
    ax = style.one_axes(ax)
    if model is None and empirical is None:
        raise ValueError("There is nothing to draw. Give a model, an empirical variogram, or both.")
    if empirical is not None:
        share = np.sqrt(empirical.n_pairs / empirical.n_pairs.max())
        area = SMALLEST_AREA + (LARGEST_AREA - SMALLEST_AREA) * share
        label = f"data ({empirical.n_pairs.sum():,} pairs)"
        look: dict[str, Any] = {"color": style.INK, "alpha": 0.75, "linewidth": 0, "label": label}
        ax.scatter(empirical.lags, empirical.semivariance, area, **look)
    if model is not None:
        own = model if isinstance(model, Variogram) else variogram(model)
        if not isinstance(model, Variogram) and empirical is not None:
            last = 1.05 * float(empirical.lags.max())
            own = variogram(model, lags=np.linspace(0.0, last, len(own.lags)))
        label = f"{own.kernel}: {repr(own).partition(', ')[2].removesuffix(')')}"
        # At distance 0 it jumps from 0 to the nugget.
        ax.plot(own.lags, own.semivariance, color=style.BLUE, linewidth=1.8, label=label)
        ax.axhline(own.sill, color=style.GRAY, linewidth=0.8, linestyle=style.DASHED)
        if own.range <= own.lags.max():
            ax.axvline(own.range, color=style.GRAY, linewidth=0.8, linestyle=style.DASHED)
    ax.set_xlim(left=0.0)
    ax.set_ylim(bottom=0.0)
    ax.set(xlabel="distance" + (f" ({unit})" if unit else ""), ylabel="semivariance")
    # On white, so that the line of the range does not cross the words.
    frame: dict[str, Any] = {"edgecolor": "none", "facecolor": "white", "framealpha": 0.9}
    ax.legend(loc="lower right", fontsize=9, **frame)
    return ax
