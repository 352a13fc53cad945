# SPDX-License-Identifier: BSD-3-Clause
"""What all pictures share: matplotlib when it is needed, colors, axes, texts, and refusals."""

from __future__ import annotations

import math
from collections.abc import MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier

from lsgp.compute.text import count
from lsgp.ensemble.assessment import ClassAssessment, LeaveOneOutResult
from lsgp.ensemble.classify import LeaveOneOutClasses
from lsgp.ensemble.view import columns_of
from lsgp.estimators.estimator import LSGPEstimator
from lsgp.method.distribution import PredictiveDistribution

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes as Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap
else:
    Axes = Any  # matplotlib is imported when something is drawn

Array = NDArray[np.float64]

#: Of matplotlib Axes, in one row; and what is taken as such.
AxesArray: TypeAlias = NDArray[np.object_]
SeveralAxes: TypeAlias = "Axes | Sequence[Axes] | AxesArray"

#: Okabe and Ito's colors, which the color-blind can tell apart.
BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY = "#CC79A7", "#56B4E9"
INK, GRAY, PALE = "#222222", "#767676", "#D0D0D0"
#: Maps of values and of their uncertainty: even in lightness, and alike for the color-blind.
VALUE_MAP, UNCERTAINTY_MAP = "viridis", "cividis"
DASHED = (0, (4, 3))

#: Points that a picture shows at most, unless told otherwise.
MOST_POINTS = 2000
#: Training points that are predicted leave-one-out when a model is given.
N_LEFT_OUT = 5000

#: The text of each mark of an artist, or the number of its observation, for pages that show it
#: under the pointer.
TIPS: MutableMapping[Artist, Sequence[str | int]] = WeakKeyDictionary()


def one_axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.2)) -> Axes:
    """The axes to draw on; those of a new figure unless given."""
    axes: Axes = several_axes(ax, 1, size, "one picture")[0]
    return axes


def several_axes(
    ax: SeveralAxes | None,
    n: int,
    size: tuple[float, float],
    what: str,
    n_across: int | None = None,
) -> AxesArray:
    """An array of ``n`` axes to draw on; those of a new figure unless given."""
    if ax is None:
        try:
            from matplotlib import pyplot as plt
        except ImportError as error:
            raise ImportError(
                "lsgp.plotting draws with matplotlib, which is not installed. "
                "Install it with: pip install 'lsgp[plot]'"
            ) from error
        columns = min(n, n_across or n)
        shape = -(-n // columns), columns
        figure, ax = plt.subplots(*shape, figsize=size, layout="constrained", squeeze=False)
        for spare in ax.ravel()[n:]:
            figure.delaxes(spare)
        ax = ax.ravel()[:n]
    axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(axes) != n:
        raise ValueError(f"ax has {len(axes)} axes, but {what} needs {n}. Pass ax=[left, right].")
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.tick_params(labelsize=9)
    return axes


def limits(values: Array, margin: float = 0.04) -> tuple[float, float]:
    """Ends of an axis that shows all of the finite values."""
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    spread = high - low
    if not spread > 1e-9 * max(abs(low), abs(high), 1e-300):
        spread = max(abs(low), 1.0)
    return low - margin * spread, high + margin * spread


def title(ax: Axes, text: str) -> None:
    ax.set_title(text, fontsize=11, loc="left")


def legend(ax: Axes, **options: Any) -> None:
    ax.legend(frameon=False, fontsize=9, **options)


def legend_below(ax: Axes, **options: Any) -> None:
    """A legend under the axes, where it hides nothing."""
    legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.14), **options)


def note(
    ax: Axes,
    text: str,
    at: tuple[SupportsFloat, SupportsFloat],
    offset: tuple[float, float],
    color: str,
    **options: Any,
) -> None:
    """Write a small text beside a mark, at an offset in points."""
    place, options = (float(at[0]), float(at[1])), {"va": "center", **options}
    ax.annotate(
        text, place, xytext=offset, textcoords="offset points", fontsize=9, color=color, **options
    )


def diagonal(ax: Axes, low: float, high: float) -> None:
    ax.plot([low, high], [low, high], color=GRAY, linewidth=1.0, linestyle=DASHED, zorder=1)


def bars(
    ax: Axes,
    edges: Array,
    heights: ArrayLike,
    tips: Sequence[str],
    color: str | Sequence[str] = SKY,
) -> None:
    """Upright bars between edges, with the text of each."""
    look: dict[str, Any] = {"color": color, "edgecolor": "white", "linewidth": 0.8}
    drawn = ax.bar(edges[:-1], heights, width=np.diff(edges), align="edge", **look)
    for bar, tip in zip(drawn, tips, strict=True):
        TIPS[bar] = [tip]


def color_bar(ax: Axes, drawn: ScalarMappable, **options: Any) -> None:
    bar = ax.figure.colorbar(drawn, ax=ax, pad=0.02, **options)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=9)


def weight_colors() -> ListedColormap:
    """From pale to dark blue; without the palest, which nobody sees on white."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["Blues"](np.linspace(0.22, 1.0, 256)), name="weights")


def marker_size(n_points: int) -> float:
    """Diameter that lets many points still be told apart."""
    return float(np.clip(60.0 / np.sqrt(max(n_points, 1)), 1.6, 5.0))


def count_label(what: str, shown: int, total: int) -> str:
    """The label of points, which says so when only some of them are shown."""
    return what if shown == total else f"{what} ({shown:,} of {total:,})"


def shorten(text: str, length: int) -> str:
    """The text, cut where it is longer."""
    return text if len(text) <= length else text[: length - 1] + "…"


def number(value: SupportsFloat, digits: int = 4) -> str:
    """A number to read: four significant digits, a true minus sign, no exponent if it is short.

    Examples
    --------
    >>> from lsgp.plotting.style import number
    >>> number(1234567.0), number(-0.000123456), number(float("nan"))
    ('1,234,567', '−0.0001235', '–')
    """
    value = float(value)
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size != 0 and (size >= 1e9 or size < 1e-4):
        text = f"{value:.{digits - 1}e}"
    elif size >= 10 ** (digits - 1):
        text = f"{value:,.0f}"
    else:
        text = f"{value:.{digits}g}"
    return text.replace("-", "−")


def sample(rows: NDArray[np.int64], n_points: int, random_state: int = 0) -> NDArray[np.int64]:
    """These rows in their order, or ``n_points`` of them drawn at random."""
    if len(rows) <= n_points:
        return rows
    return np.sort(np.random.default_rng(random_state).choice(rows, n_points, replace=False))


def of_target(predicted: PredictiveDistribution, target: int) -> PredictiveDistribution:
    """The predictions of one target, (q,), of those of all of them, (q,) or (q, t)."""
    mean, scale, dof = map(columns_of, (predicted.mean, predicted.scale, predicted.dof))
    return PredictiveDistribution(mean[:, target], scale[:, target], dof[:, target])


def judged(source: Any, X: ArrayLike | None, y: ArrayLike | None) -> tuple[Any, str]:
    """How good the predictions of a source are, and of which rows.

    The source is a model, which predicts X or, without it, training rows without themselves; or
    the result of its `loo`; or an assessment, as returned here.
    """
    if (X is None) != (y is None):
        raise ValueError("X and y judge a model only together. Give both, or neither.")
    if isinstance(source, LSGPEstimator):
        if X is not None:
            return source.calibration(X, y), "given data"
        source = source.loo(n_points=N_LEFT_OUT, random_state=0)
    if isinstance(source, LeaveOneOutResult):
        return source.calibration, "leave-one-out"
    if isinstance(source, LeaveOneOutClasses):
        return source.assessment, "leave-one-out"
    return source, "given predictions"


def require_kind(source: Any, of_labels: bool, what: str, instead: str) -> None:
    """Refuse a model of numbers, or its results, where labels are shown; and the reverse."""
    is_of_labels = isinstance(source, LeaveOneOutClasses | ClassAssessment)
    if isinstance(source, LSGPEstimator):
        is_of_labels = is_classifier(source)
    if is_of_labels != of_labels:
        shown, given = ("labels", "numbers") if of_labels else ("numbers", "labels")
        raise TypeError(
            f"{what} is for models of {shown}, and this {type(source).__name__} is of {given}. "
            f"Use {instead}."
        )


def require_inputs(model: LSGPEstimator, n_inputs: int | None, what: str, remedy: str = "") -> None:
    """Refuse columns that are no numbers, which have no axis, and other numbers of inputs."""
    if model.ensemble_.encoder is not None:
        raise ValueError(
            f"{what} shows models of numbers, but this one has columns of other kinds (see "
            "encoding_). Use plot_effects, plot_importance or plot_residuals."
        )
    if n_inputs not in (None, model.n_features_in_):
        raise ValueError(
            f"{what} shows models of {count(n_inputs, 'input')}, but this one "
            f"has {model.n_features_in_}. {remedy}"
        )


def inputs_of(model: LSGPEstimator, X: ArrayLike) -> Array:
    """Rows of a model of numbers, (n, d)."""
    inputs = np.asarray(X, dtype=np.float64)
    if inputs.ndim != 2 or inputs.shape[1] != model.n_features_in_ or len(inputs) == 0:
        raise ValueError(
            f"X has shape {inputs.shape}, but the model was fitted to "
            f"{count(model.n_features_in_, 'column')}. Give at least one row of them."
        )
    return inputs
