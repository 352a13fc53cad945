# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of variograms: what the data say, and what a model makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsgp.ensemble.variogram import Variogram, variogram
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.inputs.empirical_variogram import EmpiricalVariogram
from lsgp.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Areas of points of the fewest and of the most pairs, in points².
SMALLEST_AREA, LARGEST_AREA = 12.0, 90.0


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
        ax.scatter(
            empirical.lags,
            empirical.semivariance,
            area,
            color=style.INK,
            alpha=0.75,
            linewidth=0,
            label=f"data ({empirical.n_pairs.sum():,} pairs)",
        )
    if model is not None:
        last = None if empirical is None else 1.05 * float(empirical.lags.max())
        _draw_curve(ax, model, last)
    ax.set_xlim(left=0.0)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("distance" + (f" ({unit})" if unit else ""))
    ax.set_ylabel("semivariance")
    style.legend(ax, loc="lower right")
    drawn = ax.get_legend()
    assert drawn is not None
    # On white, so that the line of the range does not cross the words.
    drawn.set(frame_on=True)
    drawn.get_frame().set(edgecolor="none", facecolor="white", alpha=0.9)
    return ax


def _draw_curve(ax: Axes, model: LSGPRegressor | Variogram, last: float | None) -> None:
    own = model if isinstance(model, Variogram) else variogram(model)
    if not isinstance(model, Variogram) and last is not None:
        own = variogram(model, lags=np.linspace(0.0, last, len(own.lags)))
    label = f"{own.kernel}: {repr(own).partition(', ')[2].removesuffix(')')}"
    # At distance 0 it jumps from 0 to the nugget.
    ax.plot(own.lags, own.semivariance, color=style.BLUE, linewidth=1.8, label=label)
    ax.axhline(own.sill, color=style.GRAY, linewidth=0.8, linestyle=(0, (4, 3)))
    if own.range <= own.lags.max():
        ax.axvline(own.range, color=style.GRAY, linewidth=0.8, linestyle=(0, (4, 3)))
