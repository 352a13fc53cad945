# SPDX-License-Identifier: BSD-3-Clause
"""What all pictures share: matplotlib when it is needed, colors, axes, numbers of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.compute.text import count
from lsgp.estimators.estimator import LSGPEstimator
from lsgp.estimators.regressor import LSGPRegressor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap

#: Of matplotlib Axes, in one row; and what is taken as such.
AxesArray: TypeAlias = NDArray[np.object_]
SeveralAxes: TypeAlias = "Axes | Sequence[Axes] | AxesArray"

#: Okabe and Ito's colors, which the color-blind can tell apart.
BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY = "#CC79A7", "#56B4E9"
INK, GRAY, PALE = "#222222", "#767676", "#D0D0D0"

#: Maps of values and of their uncertainty: even in lightness, and alike for the color-blind.
VALUE_MAP, UNCERTAINTY_MAP = "viridis", "cividis"

#: Points that a picture shows at most, unless told otherwise.
MOST_POINTS = 2000


def require_matplotlib() -> None:
    """Raise the one error that says how to get matplotlib."""
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "lsgp.plotting draws with matplotlib, which is not installed. "
            "Install it with: pip install 'lsgp[plot]'"
        ) from error


def one_axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.2)) -> Axes:
    """The axes to draw on; those of a new figure unless given."""
    require_matplotlib()
    if ax is None:
        from matplotlib import pyplot as plt

        ax = plt.subplots(figsize=size, layout="constrained")[1]
    return _tidy(ax)


def several_axes(
    ax: SeveralAxes | None,
    n: int,
    size: tuple[float, float],
    what: str,
    n_across: int | None = None,
) -> AxesArray:
    """An array of ``n`` axes to draw on; those of a new figure unless given."""
    require_matplotlib()
    if ax is None:
        from matplotlib import pyplot as plt

        columns = min(n, n_across or n)
        figure, ax = plt.subplots(
            -(-n // columns), columns, figsize=size, layout="constrained", squeeze=False
        )
        for spare in ax.ravel()[n:]:
            figure.delaxes(spare)
        ax = ax.ravel()[:n]
    axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(axes) != n:
        raise ValueError(f"ax has {len(axes)} axes, but {what} needs {n}. Pass ax=[left, right].")
    for each in axes:
        _tidy(each)
    return axes


def _tidy(ax: Axes) -> Axes:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=9)
    return ax


def legend(ax: Axes, **options: Any) -> None:
    ax.legend(frameon=False, fontsize=9, **options)


def color_bar(ax: Axes, drawn: ScalarMappable, **options: Any) -> None:
    bar = ax.figure.colorbar(drawn, ax=ax, pad=0.02, **options)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=9)


def weight_colors() -> ListedColormap:
    """From pale to dark blue; without the palest, which nobody sees on white."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["Blues"](np.linspace(0.22, 1.0, 256)), name="weights")


def require_together(X: ArrayLike | None, y: ArrayLike | None) -> None:
    if (X is None) != (y is None):
        raise ValueError("X and y judge a model only together. Give both, or neither.")


def count_label(what: str, shown: int, total: int) -> str:
    """The label of points, which says so when only some of them are shown."""
    return what if shown == total else f"{what} ({shown:,} of {total:,})"


def number(value: float) -> str:
    """A number with four significant digits, without an exponent where it can be read."""
    return f"{value:.4g}"


def require_plain(model: LSGPEstimator, what: str) -> None:
    """Refuse a model of columns that are no numbers: they have no axis."""
    if model.ensemble_.encoder is not None:
        raise ValueError(
            f"{what} shows models of numbers, but this one has columns of other kinds (see "
            "encoding_). Use plot_effects, plot_importance or plot_residuals."
        )


def require_inputs(model: LSGPRegressor, n_inputs: int, what: str, remedy: str) -> None:
    """Refuse a model of another dimension, or of more than numbers."""
    require_plain(model, what)
    if model.n_features_in_ != n_inputs:
        raise ValueError(
            f"{what} shows models of {count(n_inputs, 'input')}, but this one "
            f"has {model.n_features_in_}. {remedy}"
        )
