# SPDX-License-Identifier: BSD-3-Clause
"""Maps of models of two coordinates in the report: mean, spread, and where the data are."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.ensemble.view import (
    DataRows,
    EncodedRows,
    columns_of,
    in_one_piece,
    input_names,
    input_number,
    inputs_of_rows,
    possible,
)
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.inputs.coordinates import sphere_of
from lsgp.report import charts
from lsgp.report.axes import format_number, limits
from lsgp.report.pixels import BLUES, CIVIDIS, VIRIDIS, colorize, png_data

Array = NDArray[np.float64]

#: Pixels of a map, and cells of the density, along the longer side; and data points shown.
RESOLUTION, N_CELLS, N_DATA = 110, 36, 500
#: Sides that differ by more than this factor are no map, unless a reference system says so.
LONGEST = 3.0


class MapFrame(NamedTuple):
    """The rectangle that maps show, and what its sides are."""

    columns: tuple[int, int]  # of x and y
    sides: list[tuple[float, float]]
    aspect: float | None  # height by width on the ground; None: as the page likes it

    def shape(self, n: int) -> tuple[int, int]:
        """Rows and columns of about square cells, ``n`` along the longer side."""
        if self.aspect is None:
            return n, n
        if self.aspect > 1:
            return n, max(4, round(n / self.aspect))
        return max(4, round(n * self.aspect)), n


def coordinates(model: LSGPRegressor) -> tuple[int, int] | None:
    """Columns that are x and y: as known with the model, or its only two; None: there are none."""
    ensemble = model.ensemble_
    if ensemble.encoder is not None:
        return None
    if ensemble.georeference is not None:
        return ensemble.georeference.x, ensemble.georeference.y
    sphere = sphere_of(model.coordinates)
    if sphere is not None:
        lon, lat = (input_number(ensemble, given) for given in sphere)
        return lon, lat
    return (0, 1) if ensemble.n_columns == 2 else None


def maps(model: LSGPRegressor, names: Sequence[str], sample: DataRows) -> str:
    """Mean and standard deviation of every target, and the density of the data, as figures."""
    sample = sample._replace(X=in_one_piece(model.ensemble_, sample.X))
    frame = _frame(model, sample.X)
    across, up = frame.columns
    part = slice(None, None, max(1, -(-len(sample.rows) // N_DATA)))
    points = sample.X[part][:, [across, up]]
    shown = "data"
    if len(points) < sample.n_total:
        shown = f"{len(points):,} of {sample.n_total:,} training rows"
    mean, std = _predicted(model, frame, sample.X)
    labels = [input_names(model.ensemble_)[j] for j in frame.columns]
    known = model.ensemble_.georeference
    units = None if known is None else known.units
    note = _others(model, frame, sample.X)
    figures = []
    for k, name in enumerate(names):
        unit = "" if units is None else units[k]
        label = f"{name} [{unit}]" if unit else name
        for values, colors, what in (
            (mean, VIRIDIS, "Mean"),
            (std, CIVIDIS, "Standard deviation of an observation"),
        ):
            image = columns_of(values)[:, k].reshape(frame.shape(RESOLUTION))
            low, high = np.quantile(image[np.isfinite(image)], [0.005, 0.995])
            ends = (float(low), float(high))
            title = f"{what} of {name}"
            chart = _chart(image, ends, colors, frame, points, labels, title, label)
            figures.append(figure(chart, f"{title}{note}. Points: {shown}."))
    counts = _density(model, frame)
    rows, columns = frame.shape(N_CELLS)
    cell = " × ".join(
        format_number((high - low) / n, 2)
        for (low, high), n in zip(frame.sides, (columns, rows), strict=True)
    )
    ends = (0.0, max(float(counts.max()), 1.0))
    title = "Density of the data"
    chart = _chart(counts, ends, BLUES, frame, None, labels, title, "rows per cell")
    figures.append(figure(chart, f"{title}: training rows per cell of {cell}."))
    return "".join(figures)


def figure(chart: str, caption: str) -> str:
    return f"<figure>{chart}<figcaption>{escape(caption)}</figcaption></figure>"


def _frame(model: LSGPRegressor, X: Array) -> MapFrame:
    columns = coordinates(model)
    assert columns is not None
    sides = [possible(model.ensemble_, j, *limits(X[:, j], 0.02)) for j in columns]
    width, height = (high - low for low, high in sides)
    is_degrees = sphere_of(model.coordinates) is not None
    if is_degrees:
        # A degree of longitude is shorter away from the equator.
        width *= max(float(np.cos(np.radians(np.mean(sides[1])))), 0.2)
    known = model.ensemble_.georeference
    is_map = is_degrees or (known is not None and known.crs is not None)
    aspect = height / width
    is_even = is_map or 1.0 / LONGEST <= aspect <= LONGEST
    return MapFrame(columns, sides, float(aspect) if is_even else None)


def _predicted(model: LSGPRegressor, frame: MapFrame, X: Array) -> tuple[Array, Array]:
    """Mean and std of the pixels, from the top row on; other inputs have their medians."""
    rows, columns = frame.shape(RESOLUTION)
    (west, east), (south, north) = frame.sides
    across = west + (east - west) * (np.arange(columns) + 0.5) / columns
    up = north - (north - south) * (np.arange(rows) + 0.5) / rows
    queries = np.tile(np.median(X, axis=0), (rows * columns, 1))
    x, y = np.meshgrid(across, up)
    queries[:, frame.columns[0]], queries[:, frame.columns[1]] = x.reshape(-1), y.reshape(-1)
    mean, std = model.predict(EncodedRows(queries), return_std=True)
    return mean, std


def _others(model: LSGPRegressor, frame: MapFrame, X: Array) -> str:
    """What is said of inputs that are no coordinates."""
    names = input_names(model.ensemble_)
    middle = np.median(X, axis=0)
    said = [
        f"{name} = {format_number(float(middle[j]))}"
        for j, name in enumerate(names)
        if j not in frame.columns
    ]
    if not said:
        return ""
    more = f" and {len(said) - 3} more at their medians" if len(said) > 3 else ""
    return f" at {', '.join(said[:3])}{more}"


def _density(model: LSGPRegressor, frame: MapFrame) -> Array:
    """Training rows per cell, from the top row on."""
    rows, columns = frame.shape(N_CELLS)
    ensemble = model.ensemble_
    everything = in_one_piece(ensemble, inputs_of_rows(ensemble, np.arange(ensemble.n_rows)))
    x, y = (everything[:, j] for j in frame.columns)
    counts, _, _ = np.histogram2d(
        y, x, bins=(rows, columns), range=(frame.sides[1], frame.sides[0])
    )
    return np.asarray(counts[::-1], dtype=float)


def _chart(
    image: Array,
    ends: tuple[float, float],
    colors: Sequence[str],
    frame: MapFrame,
    points: Array | None,
    labels: Sequence[str],
    title: str,
    unit: str,
) -> str:
    return charts.map_chart(
        png_data(colorize(image, *ends, colors)),
        png_data(colorize(np.linspace(1, 0, 64)[:, None], 0.0, 1.0, colors)),
        frame.sides,
        ends,
        np.empty((0, 2)) if points is None else points,
        labels,
        title,
        aspect=frame.aspect,
        unit=unit,
        is_of_cells=points is None,
    )
