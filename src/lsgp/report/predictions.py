# SPDX-License-Identifier: BSD-3-Clause
"""The predictions of models of one input, or of two coordinates: curves, or maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lsgp.ensemble.view import DataRows, EncodedRows, columns_of, in_one_piece, input_names
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting import maps, style
from lsgp.plotting.fit import plot_fit
from lsgp.report.page import Section, section
from lsgp.report.svg import WIDE, picture

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

Array = NDArray[np.float64]

#: Pixels of a map, and cells of the density, along the longer side; and data points shown.
RESOLUTION, N_CELLS, N_DATA = 110, 36, 500
#: Points of a curve.
N_GRID = 300
#: Inches of the width of a map beside its colors, and of the highest one.
ACROSS, HIGHEST = 3.9, 5.0

#: Pictures with their captions, and whether they are of cells, which have edges.
Figures: TypeAlias = "list[tuple[Markup, str, bool]]"


def predictions_section(
    model: LSGPRegressor, names: Sequence[str], sample: DataRows
) -> Section | None:
    """Curves or maps of every target; None for models of other inputs."""
    columns = maps.coordinates(model)
    if columns is not None:
        X = in_one_piece(model.ensemble_, sample.X)
        figures = _maps(model, names, sample._replace(X=X), columns)
    elif model.n_features_in_ == 1 and model.ensemble_.encoder is None:
        figures = _curves(model, names)
    else:
        return None
    return section("predictions", "Predictions", figures=figures)


def _curves(model: LSGPRegressor, names: Sequence[str]) -> Figures:
    caption = (
        "Mean, and 90 % intervals of an observation (light) and of the latent function (dark). "
        f"Points: {_shown(min(N_DATA, model.ensemble_.n_rows), model.ensemble_.n_rows)}."
    )
    figures: Figures = []
    for k, name in enumerate(names):

        def draw(ax: Axes, k: int = k, name: str = name) -> None:
            plot_fit(model, target=k, n_grid=N_GRID, n_points=N_DATA, ax=ax)
            ax.set_ylabel(name)
            ax.legend_ = None  # the caption says it

        x = input_names(model.ensemble_)[0]
        figures.append((picture(draw, f"{name} against {x}: mean, bands and data"), caption, False))
    return figures


def _maps(
    model: LSGPRegressor, names: Sequence[str], sample: DataRows, columns: tuple[int, int]
) -> Figures:
    """Mean and standard deviation of every target, and the density of the data."""
    frame = maps.frame_on_the_ground(model, columns, sample.X)
    every = max(1, -(-len(sample.rows) // N_DATA))
    points = sample.X[::every, list(columns)]
    # Other inputs have their medians.
    middle = np.median(sample.X, axis=0)
    centers = frame.centers(RESOLUTION)
    queries = np.tile(middle, (len(centers), 1))
    queries[:, list(columns)] = centers
    mean, std = model.predict(EncodedRows(queries), return_std=True)
    where = _others(model, frame, middle)
    georeference = model.ensemble_.georeference
    units = None if georeference is None else georeference.units
    figures: Figures = []
    for k, name in enumerate(names):
        label = f"{name} [{units[k]}]" if units and units[k] else name
        for values, colors, what in (
            (mean, style.VALUE_MAP, "Mean"),
            (std, style.UNCERTAINTY_MAP, "Standard deviation of an observation"),
        ):
            image = columns_of(values)[:, k].reshape(frame.shape(RESOLUTION))
            title = f"{what} of {name}"
            svg = _map(model, frame, image, colors, label, title, points)
            caption = f"{title}{where}. Points: {_shown(len(points), sample.n_total)}."
            figures.append((svg, caption, False))
    counts = maps.density(model, frame, N_CELLS)
    rows, across = counts.shape
    (west, east), (south, north) = frame.sides
    cell = f"{style.number((east - west) / across, 2)} × {style.number((north - south) / rows, 2)}"
    title = "Density of the data"
    svg = _map(model, frame, counts, style.weight_colors(), "rows per cell", title)
    figures.append((svg, f"{title}: training rows per cell of {cell}.", True))
    return figures


def _map(
    model: LSGPRegressor,
    frame: maps.MapFrame,
    image: Array,
    colors: str | Colormap,
    label: str,
    title: str,
    points: Array | None = None,
) -> Markup:
    def draw(ax: Axes) -> None:
        maps.draw_map(ax, image, frame, colors, label)
        if points is not None:
            maps.draw_sites(ax, points, "data")
        maps.label_sides(ax, model, frame)

    width, height = WIDE
    if frame.aspect is not None:
        height = min(ACROSS * frame.aspect, HIGHEST)
    return picture(draw, title, (width, height))


def _others(model: LSGPRegressor, frame: maps.MapFrame, middle: Array) -> str:
    """What is said of inputs that are no coordinates."""
    said = [
        f"{name} = {style.number(float(middle[j]))}"
        for j, name in enumerate(input_names(model.ensemble_))
        if j not in frame.columns
    ]
    if not said:
        return ""
    more = f" and {len(said) - 3} more at their medians" if len(said) > 3 else ""
    return f" at {', '.join(said[:3])}{more}"


def _shown(n: int, total: int) -> str:
    return "data" if n == total else f"{n:,} of {total:,} training rows"
