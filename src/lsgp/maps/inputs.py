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
from lsgp.maps.grid import (
    DEGREES,
    X_NAMES,
    Y_NAMES,
    Grid,
    is_same,
    name_of,
    read_crs,
    same_axis,
    tolerance_of,
)

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
    dims: tuple[Hashable, Hashable] = ("", ""),
) -> Coordinates:
    """As given; else as fitted with the model; else by the names of its inputs.

    ``dims`` are the names of x and y of a grid, which inputs may have too.
    """
    ensemble = model.ensemble_
    names, known = input_names(ensemble), ensemble.georeference
    crs = None if known is None else read_crs(known.crs)
    sphere = sphere_of(model.coordinates)
    if sphere is not None and crs is None:
        crs = read_crs(DEGREES)
    # Without units, as in "east [km]".
    plain = [re.sub(r"\s*[\[(].*", "", name).strip().lower() for name in names]
    columns = []
    for place, (given, usual) in enumerate(((x, X_NAMES), (y, Y_NAMES))):
        found = [j for j, name in enumerate(plain) if name in usual]
        if given is not None:
            columns.append(input_number(ensemble, given))
        elif known is not None:
            columns.append((known.x, known.y)[place])
        elif sphere is not None:
            columns.append(input_number(ensemble, sphere[place]))
        elif str(dims[place]) in names:
            columns.append(names.index(str(dims[place])))
        elif len(found) == 1:
            columns.append(found[0])
        elif ensemble.input_names is None and len(names) == 2:
            columns.append(place)  # x0 and x1 of arrays: in their order
        else:
            axis = "xy"[place]
            raise ValueError(
                f"Which input of the model is {axis} cannot be told from their names: "
                f"{', '.join(names)}. Say it: {axis}=name or number."
            )
    if columns[0] == columns[1]:
        raise ValueError(
            f"The input {names[columns[0]]!r} cannot be both x and y. Say which are: x=..., y=...."
        )
    return Coordinates(columns[0], columns[1], crs, sphere is not None)


# -- inputs that are no coordinates ----------------------------------------------------------------


def sources_of(
    model: LSGPEstimator, grid: Grid, coordinates: Coordinates, covariates: Covariates | None
) -> dict[int, xr.DataArray]:
    """The other inputs of the model by column, with dimensions of the grid or none.

    Raises ValueError if one is missing.
    """
    given = by_name(covariates)
    found: dict[int, xr.DataArray] = {}
    for j, name in enumerate(input_names(model.ensemble_)):
        if j in (coordinates.x, coordinates.y):
            continue
        if name in given:
            found[j] = on_grid(given[name], name, grid)
        elif name in grid.coords.coords and name not in (grid.x, grid.y):
            found[j] = grid.coords[name].reset_coords(drop=True)
        else:
            has = ", ".join(map(str, given)) or "none"
            raise ValueError(
                f"The model has the input {name!r}, which is neither a coordinate of the grid nor "
                f"among the covariates ({has}). Give it: covariates={{{name!r}: DataArray}}, or a "
                "number for a constant."
            )
        if model.ensemble_.encoder is None and found[j].dtype.kind not in "fiub":
            raise ValueError(
                f"The input {name!r} is of type {found[j].dtype} on the grid, and the model was "
                "fitted on numbers. Give it as the same numbers."
            )
    return found


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
        if dim in array.coords and not same_axis(array[dim].to_numpy(), grid.axis(dim)):
            array = _select(array, name, dim, grid)
    array = without_nodata(array)
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


def without_nodata(array: xr.DataArray) -> xr.DataArray:
    """The array with NaN instead of its own value for missing cells."""
    nodata = array.rio.nodata
    if nodata is None or np.isnan(nodata) or array.dtype.kind not in "fiu":
        return array
    return array.where(array != nodata)


# -- cells -----------------------------------------------------------------------------------------


def expand(
    values: NDArray[Any], dims: Iterable[Hashable], grid_dims: tuple[Hashable, ...]
) -> NDArray[Any]:
    """With a dimension of one for each of the grid that it does not have."""
    sizes = dict(zip(dims, values.shape, strict=True))
    return values.reshape([sizes.get(dim, 1) for dim in grid_dims])


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are NaN, infinite, NaT or None."""
    if values.dtype.kind == "f":
        return ~np.isfinite(values)
    return np.asarray(pd.isna(values))


def make_rows(ensemble: Ensemble, columns: list[NDArray[Any]]) -> Any:
    """Queries of these columns (k,), as the model was fitted: numbers, or a table."""
    if ensemble.encoder is None:
        return EncodedRows(np.column_stack([np.asarray(c, dtype=float) for c in columns]))
    return make_frame(dict(zip(input_names(ensemble), columns, strict=True)), "pandas")
