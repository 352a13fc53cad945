# SPDX-License-Identifier: BSD-3-Clause
"""All that is settled before the first cell of a map is predicted, and refused if it cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from lsgp.compute.text import count
from lsgp.ensemble.view import input_names
from lsgp.maps.cells import MapQuestion, Model, Variable, variables
from lsgp.maps.crs import GivenCRS, name_of, read_crs, transform
from lsgp.maps.grid import Grid, Window, grid_of, grid_within
from lsgp.maps.inputs import (
    Coordinates,
    Covariates,
    Sources,
    coordinates_of,
    read_cells,
    sources_of,
)
from lsgp.maps.places import Places, places_of

if TYPE_CHECKING:
    import dask.array as da

#: Points along each side of a grid by which it is seen whether it meets the data.
N_CORNERS = 21


@dataclass(frozen=True, eq=False)
class MapPlan:
    """A model, a grid, where its inputs come from, and what is asked."""

    model: Model
    grid: Grid
    sources: Sources
    question: MapQuestion
    wanted: NDArray[np.bool_] | None = None  # which cells are asked for; None: all

    @cached_property
    def variables(self) -> list[Variable]:
        return variables(self.model.ensemble_, self.question)

    def predict_windows(
        self, advance: Callable[[int], None] | None = None
    ) -> Iterator[tuple[Window, NDArray[Any]]]:
        """The map in windows (v, ...). Raises ValueError in the end if no cell was predicted."""
        n_predicted = 0
        for window in self.grid.windows():
            cells = read_cells(self.grid, self.sources, window, self.wanted)
            values = self.question.answer(self.model, cells)
            n_predicted += int(np.count_nonzero(np.isfinite(values[0])))
            yield window, values
            if advance is not None:
                advance(values[0].size)
        if n_predicted == 0:
            self._explain_nothing()

    def _explain_nothing(self) -> None:
        """Raise the error that says why no cell has a prediction."""
        cells = count(self.grid.n_cells, "cell")
        for column, source in self.sources.others.items():
            if not bool(source.notnull().any()):
                name = input_names(self.model.ensemble_)[column]
                raise ValueError(
                    f"None of the {cells} can be predicted: the covariate {name!r} is missing "
                    "everywhere. Check that it was read with its own missing value."
                )
        if self.question.max_distance is not None:
            raise ValueError(
                f"None of the {cells} is within max_distance={self.question.max_distance:g} of the "
                "data and has all covariates. Increase max_distance, or check the units."
            )
        raise ValueError(
            f"None of the {cells} can be predicted: each misses a covariate, or lies outside of "
            "the reference system of the model."
        )

    def dataset(self, values: NDArray[Any] | da.Array) -> xr.Dataset:
        """Values (v, ...) as variables with their coordinates, units and reference system."""
        found = self.skeleton()
        for k, variable in enumerate(self.variables):
            found[variable.name] = (self.grid.dims, values[k], variable.attrs)
        return georeferenced(found, self.grid)

    def skeleton(self) -> xr.Dataset:
        """The Dataset without its variables."""
        return coordinates_only(self.grid)


def coordinates_only(grid: Grid) -> xr.Dataset:
    """A Dataset of the grid's coordinates, its reference system and no variables."""
    # The mapping is written anew below; a band is no coordinate of predictions.
    kept = grid.coords.drop_vars(["spatial_ref", "band"], errors="ignore")
    found = xr.Dataset(coords=kept.coords, attrs={"Conventions": "CF-1.11"})
    return georeferenced(found, grid)


def georeferenced(found: xr.Dataset, grid: Grid) -> xr.Dataset:
    """With the reference system, as CF and GDAL have it, and the attributes of the axes."""
    found = found.rio.set_spatial_dims(grid.x, grid.y)
    if grid.crs is not None:
        found = found.rio.write_crs(grid.crs.to_wkt())
        found = found.rio.write_coordinate_system()
    if grid.crs is not None and grid.affine is not None:
        found = found.rio.write_transform(grid.affine)
    return found


# -- making one ------------------------------------------------------------------------------------


def plan_map(
    model: Model,
    like: xr.DataArray | xr.Dataset | None = None,
    *,
    bounds: Sequence[float] | None = None,
    spacing: float | tuple[float, float] | None = None,
    covariates: Covariates | None = None,
    max_distance: float | None = None,
    block: tuple[float, float] | None = None,
    block_points: int = 4,
    level: float = 0.9,
    kind: str = "observation",
    crs: GivenCRS = None,
    x: int | str | None = None,
    y: int | str | None = None,
    dtype: str = "float64",
) -> MapPlan:
    """As `predict_grid`, of which this is all but the predictions."""
    check_is_fitted(model)
    grid, coordinates = _grid(model, like, bounds, spacing, covariates, crs, x, y)
    _require_known_crs(grid, coordinates)
    places = places_of(model.ensemble_, coordinates)
    _require_overlap(grid, coordinates, places)
    sources = sources_of(model, grid, coordinates, covariates)
    question = MapQuestion(
        coordinates=coordinates,
        columns=tuple(sources.others),
        x_axis=grid.dims.index(grid.x),
        y_axis=grid.dims.index(grid.y),
        crs=grid.crs,
        kind=kind,
        level=level,
        max_distance=max_distance,
        block=block,
        n_points=block_points,
        dtype=dtype,
    )
    question.check(model)
    return MapPlan(model, grid, sources, question)


def _grid(
    model: Model,
    like: xr.DataArray | xr.Dataset | None,
    bounds: Sequence[float] | None,
    spacing: float | tuple[float, float] | None,
    covariates: Covariates | None,
    crs: GivenCRS,
    x: int | str | None,
    y: int | str | None,
) -> tuple[Grid, Coordinates]:
    if (bounds is None) != (spacing is None):
        raise ValueError("bounds and spacing go together. Give both, or a template: like=....")
    if like is not None and bounds is not None:
        raise ValueError("Both a template and bounds were given. Give one of them.")
    if bounds is not None:
        coordinates = coordinates_of(model, x, y, None)
        return grid_within(bounds, spacing, read_crs(crs) or coordinates.crs), coordinates
    template = like
    if template is None and isinstance(covariates, xr.Dataset | xr.DataArray):
        template = covariates
    if template is None:
        raise ValueError("There is no grid. Give a template, like=..., or bounds and spacing.")
    grid = grid_of(template, crs)
    return grid, coordinates_of(model, x, y, (grid.x, grid.y))


def _require_known_crs(grid: Grid, coordinates: Coordinates) -> None:
    if grid.crs is None and coordinates.crs is not None:
        raise ValueError(
            f"The template has no reference system, and the model is in "
            f"{name_of(coordinates.crs)}. Give the template's: crs=..., or "
            "template.rio.write_crs(...)."
        )


def _require_overlap(grid: Grid, coordinates: Coordinates, places: Places) -> None:
    """Refuse a grid that nowhere meets the data: nearly always of other units, or swapped."""
    axes = [
        axis[np.linspace(0, len(axis) - 1, N_CORNERS).astype(int)]
        for axis in (grid.axis(grid.x).astype(float), grid.axis(grid.y).astype(float))
    ]
    x, y = (part.reshape(-1) for part in np.meshgrid(*axes))
    x, y = transform(x, y, grid.crs, coordinates.crs)
    is_there = np.isfinite(x) & np.isfinite(y)
    turns = [-360.0, 0.0, 360.0] if coordinates.is_round else [0.0]
    for turn in turns:
        meets = is_there.any() and all(
            values[is_there].min() <= high and values[is_there].max() >= low
            for values, low, high in zip((x + turn, y), places.low, places.high, strict=True)
        )
        if meets:
            return
    low, high = places.low, places.high
    raise ValueError(
        f"The grid ({grid.describe()}) does not meet the data of the model (x from {low[0]:g} to "
        f"{high[0]:g}, y from {low[1]:g} to {high[1]:g}). Check the reference systems, and which "
        "input is x."
    )
