# SPDX-License-Identifier: BSD-3-Clause
"""The predictions of models of one input, or of two coordinates: curves, or maps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from lsgp.ensemble.view import DataRows, EncodedRows, columns_of, in_one_piece, input_names
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting import maps, style
from lsgp.plotting.fit import plot_fit
from lsgp.plotting.style import Axes
from lsgp.report.page import Section, section
from lsgp.report.svg import WIDE, picture

#: Pixels of a map, and cells of the density, along the longer side; and data points shown.
RESOLUTION, N_CELLS, N_DATA = 110, 36, 500
#: Points of a curve.
N_GRID = 300
#: Inches of the width of a map beside its colors, and of the highest one.
ACROSS, HIGHEST = 3.9, 5.0


class Figure(NamedTuple):
    """A picture, its caption, and whether it is of cells, which have edges."""

    svg: str
    caption: str
    is_of_cells: bool = False


def predictions_section(
    model: LSGPRegressor, names: Sequence[str], sample: DataRows
) -> list[Section]:
    """Curves or maps of every target; none for models of other inputs."""
    columns = maps.coordinates(model)
    if columns is not None:
        figures = _maps(model, names, sample, columns)
    elif model.n_features_in_ == 1 and model.ensemble_.encoder is None:
        figures = _curves(model, names)
    else:
        return []
    return [section("predictions", "Predictions", {"figures": figures})]


def _curves(model: LSGPRegressor, names: Sequence[str]) -> list[Figure]:
    x, n = input_names(model.ensemble_)[0], model.ensemble_.n_rows
    caption = (
        "Mean, and 90 % intervals of an observation (light) and of the latent function (dark). "
        f"Points: {_shown(min(N_DATA, n), n)}."
    )

    def curve(target: int, name: str) -> Figure:
        def draw(ax: Axes) -> None:
            plot_fit(model, target=target, n_grid=N_GRID, n_points=N_DATA, ax=ax)
            ax.set_ylabel(name)
            ax.legend_ = None  # the caption says it

        return Figure(picture(draw, f"{name} against {x}: mean, bands and data"), caption)

    return [curve(k, name) for k, name in enumerate(names)]


def _maps(
    model: LSGPRegressor, names: Sequence[str], sample: DataRows, columns: tuple[int, int]
) -> list[Figure]:
    """Mean and standard deviation of every target, and the density of the data."""
    X = in_one_piece(model.ensemble_, sample.X)
    frame = maps.frame_on_the_ground(model, columns, X)
    points = X[:: max(1, -(-len(X) // N_DATA)), list(columns)]
    width, height = WIDE
    if frame.aspect is not None:
        height = min(ACROSS * frame.aspect, HIGHEST)
    # Other inputs have their medians.
    middle = np.median(X, axis=0)
    centers = frame.centers(RESOLUTION)
    queries = np.tile(middle, (len(centers), 1))
    queries[:, list(columns)] = centers
    predicted = model.predict(EncodedRows(queries), return_std=True)
    others = [
        f"{name} = {style.number(middle[j])}"
        for j, name in enumerate(input_names(model.ensemble_))
        if j not in columns
    ]
    more = f" and {len(others) - 3} more at their medians" if len(others) > 3 else ""
    where = f" at {', '.join(others[:3])}{more}" if others else ""
    georeference = model.ensemble_.georeference
    units = (None if georeference is None else georeference.units) or [""] * len(names)
    figures = []
    show = partial(maps.draw_map, model=model, frame=frame)
    for k, (name, unit) in enumerate(zip(names, units, strict=False)):
        show_target = partial(show, label=f"{name} [{unit}]" if unit else name, points=points)
        for values, colors, what in zip(
            predicted,
            (style.VALUE_MAP, style.UNCERTAINTY_MAP),
            ("Mean", "Standard deviation of an observation"),
            strict=True,
        ):
            image = columns_of(values)[:, k].reshape(frame.shape(RESOLUTION))
            title = f"{what} of {name}"
            caption = f"{title}{where}. Points: {_shown(len(points), sample.n_total)}."
            draw = partial(show_target, image=image, colors=colors)
            figures.append(Figure(picture(draw, title, (width, height)), caption))
    counts = maps.density(model, frame, N_CELLS)
    draw = partial(show, image=counts, colors=style.weight_colors(), label="rows per cell")
    svg = picture(draw, "Density of the data", (width, height))
    steps = [
        style.number((high - low) / n, 2)
        for (low, high), n in zip(frame.sides, counts.shape[::-1], strict=True)
    ]
    caption = f"Density of the data: training rows per cell of {' × '.join(steps)}."
    return [*figures, Figure(svg, caption, is_of_cells=True)]


def _shown(n: int, total: int) -> str:
    return "data" if n == total else f"{n:,} of {total:,} training rows"
