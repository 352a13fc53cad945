# SPDX-License-Identifier: BSD-3-Clause
"""What each input of a model is on a grid: a coordinate, a covariate, or a constant."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pyproj import CRS

from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.view import EncodedRows, input_names, input_number
from lsgp.estimators.estimator import LSGPEstimator
from lsgp.inputs.containers import make_frame
from lsgp.inputs.setting_objects import sphere_of
from lsgp.maps.crs import DEGREES, is_same, name_of, read_crs
from lsgp.maps.grid import X_NAMES, Y_NAMES, Grid, Window, same_axis, tolerance_of

Array = NDArray[np.float64]
Covariates: TypeAlias = xr.Dataset | xr.DataArray | Mapping[str, Any]


class Coordinates(NamedTuple):
    """Which columns of a model are coordinates, and in which system."""

    x: int
    y: int
    crs: CRS | None
    is_round: bool  # whether a turn of 360 degrees leads to the same place

    @property
    def is_geographic(self) -> bool:
        return self.crs is not None and self.crs.is_geographic


def coordinates_of(
    model: LSGPEstimator,
    x: int | str | None = None,
    y: int | str | None = None,
    dims: tuple[Hashable, Hashable] | None = None,
) -> Coordinates:
    """As given; else as fitted with the model; else by the names of its inputs.

    ``dims`` are the names of x and y of a grid, which inputs may have too.
    """
    ensemble = model.ensemble_
    known = ensemble.georeference
    crs = None if known is None else read_crs(known.crs)
    sphere = sphere_of(model.coordinates)
    if sphere is not None and crs is None:
        crs = read_crs(DEGREES)
    columns = []
    for place, given, names in ((0, x, X_NAMES), (1, y, Y_NAMES)):
        if given is not None:
            columns.append(input_number(ensemble, given))
        elif known is not None:
            columns.append((known.x, known.y)[place])
        elif sphere is not None:
            columns.append(input_number(ensemble, sphere[place]))
        else:
            own = None if dims is None else str(dims[place])
            columns.append(_column_by_name(ensemble, place, own, names))
    if columns[0] == columns[1]:
        name = input_names(ensemble)[columns[0]]
        raise ValueError(f"The input {name!r} cannot be both x and y. Say which are: x=..., y=....")
    return Coordinates(columns[0], columns[1], crs, sphere is not None)


def _column_by_name(ensemble: Ensemble, place: int, dim: str | None, names: tuple[str, ...]) -> int:
    own = input_names(ensemble)
    if dim is not None and dim in own:
        return own.index(dim)
    # Without units, as in "east [km]".
    plain = [re.sub(r"\s*[\[(].*", "", name).strip().lower() for name in own]
    found = [j for j, name in enumerate(plain) if name in names]
    if len(found) == 1:
        return found[0]
    # x0 and x1 of arrays: in their order.
    if ensemble.input_names is None and len(own) == 2:
        return place
    axis = "xy"[place]
    raise ValueError(
        f"Which input of the model is {axis} cannot be told from their names: {', '.join(own)}. "
        f"Say it: {axis}=name or number."
    )


# -- inputs that are no coordinates ----------------------------------------------------------------


class Sources(NamedTuple):
    """Where the inputs of a model come from on a grid."""

    coordinates: Coordinates
    others: dict[int, xr.DataArray]  # by column, with dimensions of the grid or none


def sources_of(
    model: LSGPEstimator, grid: Grid, coordinates: Coordinates, covariates: Covariates | None
) -> Sources:
    """Find every input of the model on the grid, or say which is missing."""
    names = input_names(model.ensemble_)
    given = by_name(covariates)
    others: dict[int, xr.DataArray] = {}
    for j, name in enumerate(names):
        if j in (coordinates.x, coordinates.y):
            continue
        if name in given:
            others[j] = on_grid(given[name], name, grid)
        elif name in grid.coords.coords and name not in (grid.x, grid.y):
            others[j] = grid.coords[name].reset_coords(drop=True)
        else:
            has = ", ".join(map(str, given)) or "none"
            raise ValueError(
                f"The model has the input {name!r}, which is neither a coordinate of the grid nor "
                f"among the covariates ({has}). Give it: covariates={{{name!r}: DataArray}}, or a "
                "number for a constant."
            )
        if model.ensemble_.encoder is None and others[j].dtype.kind not in "fiub":
            raise ValueError(
                f"The input {name!r} is of type {others[j].dtype} on the grid, and the model was "
                "fitted on numbers. Give it as the same numbers."
            )
    return Sources(coordinates, others)


def by_name(covariates: Covariates | None) -> dict[str, Any]:
    if covariates is None:
        return {}
    if isinstance(covariates, xr.DataArray):
        if covariates.name is None:
            raise ValueError(
                "covariates is a DataArray without a name. Name it as the input of the model: "
                "covariates.rename('elevation')."
            )
        return {str(covariates.name): covariates}
    return {str(name): covariates[name] for name in covariates}


def on_grid(given: object, name: str, grid: Grid) -> xr.DataArray:
    """A covariate with the dimensions and the order of the grid, missing cells as NaN."""
    if not isinstance(given, xr.DataArray):
        return xr.DataArray(given)
    array = given.squeeze([d for d in given.dims if d not in grid.dims and given.sizes[d] == 1])
    crs = read_crs(array.rio.crs)
    if crs is not None and grid.crs is not None and not is_same(crs, grid.crs):
        raise ValueError(
            f"The covariate {name!r} is in {name_of(crs)}, and the grid in {name_of(grid.crs)}. "
            "Reproject it: covariates.rio.reproject_match(template)."
        )
    for dim in array.dims:
        if dim not in grid.dims:
            raise ValueError(
                f"The covariate {name!r} has the dimension {dim!r}, and the grid has "
                f"{', '.join(map(str, grid.dims))}. Select one of it: covariates.sel({dim}=...)."
            )
        if dim not in array.coords or same_axis(array[dim].to_numpy(), grid.axis(dim)):
            continue
        array = _select(array, name, dim, grid)
    nodata = array.rio.nodata
    if nodata is not None and not np.isnan(nodata) and array.dtype.kind in "fiu":
        array = array.where(array != nodata)
    order = [dim for dim in grid.dims if dim in array.dims]
    return array.transpose(*order).reset_coords(drop=True)


def _select(array: xr.DataArray, name: str, dim: Hashable, grid: Grid) -> xr.DataArray:
    """The cells of the grid out of a larger covariate, or one that runs the other way."""
    wanted = grid.axis(dim)
    if wanted.dtype.kind in "fiu" and array[dim].dtype.kind in "fiu":
        with suppress(KeyError, pd.errors.InvalidIndexError):  # none is that near, or several are
            return array.sortby(dim).sel(
                {dim: wanted.astype(float)}, method="nearest", tolerance=tolerance_of(wanted)
            )
    raise ValueError(
        f"The covariate {name!r} has other coordinates {dim!r} than the grid. Bring it onto the "
        "grid: covariates.rio.reproject_match(template), or covariates.interp_like(template)."
    )


# -- rows ------------------------------------------------------------------------------------------


class Cells(NamedTuple):
    """Cells of a window of the grid: their axes, and their inputs that are no coordinates."""

    axes: tuple[NDArray[Any], ...]  # one per dimension of the grid
    others: tuple[NDArray[Any], ...]  # with as many dimensions each, or of one value
    wanted: NDArray[np.bool_] | None = None  # which cells are asked for; None: all


def read_cells(
    grid: Grid, sources: Sources, window: Window, wanted: NDArray[np.bool_] | None = None
) -> Cells:
    axes = tuple(grid.axis(dim)[window[dim]] for dim in grid.dims)
    others = []
    for source in sources.others.values():
        part = source.isel({dim: window[dim] for dim in source.dims})
        others.append(expand(part.to_numpy(), source.dims, grid.dims))
    where = None if wanted is None else wanted[tuple(window[dim] for dim in grid.dims)]
    return Cells(axes, tuple(others), where)


def expand(
    values: NDArray[Any], dims: Iterable[Hashable], grid_dims: tuple[Hashable, ...]
) -> NDArray[Any]:
    """With a dimension of one for each of the grid that it does not have."""
    sizes = dict(zip(dims, values.shape, strict=True))
    return values.reshape([sizes.get(dim, 1) for dim in grid_dims])


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are not there: NaN, NaT, None."""
    if values.dtype.kind in "iub":
        return np.zeros(values.shape, dtype=bool)
    if values.dtype.kind == "f":
        return ~np.isfinite(values)
    if values.dtype.kind in "Mm":
        return np.isnat(values)
    return np.array([value is None or value != value for value in values.flat]).reshape(
        values.shape
    )


def make_rows(ensemble: Ensemble, columns: list[NDArray[Any]]) -> Any:
    """Queries of these columns (k,), as the model was fitted: numbers, or a table."""
    if ensemble.encoder is None:
        return EncodedRows(np.column_stack([np.asarray(c, dtype=float) for c in columns]))
    names = input_names(ensemble)
    return make_frame(dict(zip(names, columns, strict=True)), "pandas")
