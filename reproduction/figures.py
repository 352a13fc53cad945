# SPDX-License-Identifier: BSD-3-Clause
"""Figures 1 and 2 of the paper: localizers, and samples of localized priors."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lsgp.ensemble.prior import sample_localized_prior
from lsgp.method import localizers
from lsgp.method.contract import LocalModel
from lsgp.plotting.style import BLUE, GRAY, GREEN, INK, ORANGE, PURPLE, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

FORMATS = ("png", "svg")

#: Where the Gaussian, which ends nowhere in the paper, is cut: its weight is 1e-7 there.
FAR = 4.0
N_SAMPLES = 5
SAMPLE_COLORS = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE)

#: Of each panel: title, formula, localizer, bandwidth, decay.
PANELS: tuple[tuple[str, str, str, float, float], ...] = (
    ("Rectangular", r"$k(u)=1$,  $|u|\leq 1$", "rectangular", 1.0, 0.0),
    ("Epanechnikov", r"$k(u)=1-u^2$,  $|u|\leq 1$", "epanechnikov", 1.0, 0.0),
    ("Gaussian", r"$k(u)=e^{-u^2}$", "gaussian", FAR, FAR**2),
)


def require_matplotlib() -> None:
    """Refuse before hours of work, not after."""
    if find_spec("matplotlib") is None:
        raise ImportError(
            "The figures are drawn with matplotlib, which is not installed. Install it with "
            "pip install 'lsgp[plot]', or leave the figures out: --no-figures."
        )


def new_figure(width: float, height: float) -> Figure:
    """A figure without pyplot, so that neither a display nor the user's settings matter."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write the picture in both formats, the same bytes each time."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(folder / f"{name}.png", dpi=150)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def is_drawn(folder: Path, name: str) -> bool:
    return all((folder / f"{name}.{suffix}").exists() for suffix in FORMATS)


def draw_localizers(folder: Path) -> None:
    """Figure 1: the weight of a point by its distance from the query x₀, in bandwidths h."""
    figure = new_figure(10.5, 2.9)
    # Formula and title of neighboring panels must not read as one.
    axes = figure.subplots(1, len(PANELS), sharex=True, sharey=True, gridspec_kw={"wspace": 0.07})
    u = np.linspace(-2.2, 2.2, 1101)
    for k, (ax, (title, formula, name, bandwidth, decay)) in enumerate(
        zip(axes, PANELS, strict=True)
    ):
        weight = localizers.evaluate(name, (u / bandwidth) ** 2, decay)[0]
        ax.fill_between(u, weight, color=BLUE, alpha=0.13, linewidth=0)
        ax.plot(u, weight, color=BLUE, linewidth=2)
        ax.plot([0, 0], [0, 1], color=GRAY, linewidth=0.9, linestyle=(0, (4, 3)))
        ax.plot(0, 0, "o", color=INK, markersize=5, clip_on=False, zorder=5)
        height = np.exp(-1.0) if name == "gaussian" else 0.07
        ax.annotate(
            "", (1, height), (0, height), arrowprops={"arrowstyle": "<->", "color": INK, "lw": 1}
        )
        ax.text(0.5, height + 0.03, "$h$", horizontalalignment="center", fontsize=12)
        _title(ax, k, title, formula)
        ax.set_xticks([-1, 0, 1], ["$x_0-h$", "$x_0$", "$x_0+h$"])
        _tidy(ax)
    axes[0].set(xlim=(-2.2, 2.2), ylim=(0, 1.12), ylabel="weight", yticks=(0, 0.5, 1))
    save(figure, folder, "figure1")


def draw_priors(folder: Path) -> None:
    """Figure 2: the same draws from the global prior and from three localized ones."""
    figure = new_figure(10, 5.4)
    axes = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    x = np.linspace(-3.0, 3.0, 801)
    panels = (("Global", "no localizer", "rectangular", 10.0, 0.0), *PANELS)
    for k, (ax, (title, formula, name, bandwidth, decay)) in enumerate(
        zip(axes, panels, strict=True)
    ):
        for sample, color in zip(
            sample_prior(name, x, bandwidth, decay), SAMPLE_COLORS, strict=True
        ):
            ax.plot(x, sample, color=color, linewidth=0.9)
        weight = localizers.evaluate(name, (x / bandwidth) ** 2, decay)[0]
        band = 2 * np.sqrt(weight)
        ax.fill_between(x, -band, band, color=GRAY, alpha=0.15, linewidth=0)
        _title(ax, k, title, formula)
        _tidy(ax)
    axes[0].set(xlim=(-3, 3), ylim=(-3.3, 3.3))
    for ax in axes[2:]:
        ax.set_xlabel("x")
    for ax in axes[::2]:
        ax.set_ylabel("f(x)")
    save(figure, folder, "figure2")


def sample_prior(localizer: str, x: Array, bandwidth: float, decay: float) -> Array:
    """Functions of the exponential kernel, localized at 0; the same draws for each localizer."""
    model = LocalModel("matern12", localizer, np.ones(1), localizer_decay=decay)
    rng = np.random.default_rng(7)
    return sample_localized_prior(model, np.zeros(1), x[:, None], bandwidth, N_SAMPLES, rng)


def _title(ax: Axes, k: int, title: str, formula: str) -> None:
    ax.set_title(f"({'abcd'[k]}) {title}", fontsize=11, fontweight="bold", loc="left")
    ax.set_title(formula, fontsize=10, color=GRAY, loc="right")


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=9)
