# SPDX-License-Identifier: BSD-3-Clause
"""Fitting a model to points with geometries, or to the cells of a grid that have a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pyproj import CRS
from sklearn.utils.validation import check_is_fitted

from lsgp.compute.text import count
from lsgp.ensemble.ensemble import Georeference
from lsgp.inputs.setting_objects import Sphere
from lsgp.maps.cells import Model
from lsgp.maps.grid import (
    GivenCRS,
    Grid,
    grid_of,
    is_same,
    read_crs,
    transform,
)
from lsgp.maps.inputs import (
    Covariates,
    by_name,
    coordinates_of,
    is_missing,
    on_grid,
    without_nodata,
)

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries

#: Names of one or of several.
GivenTarget: TypeAlias = str | Sequence[str] | None
#: Names of columns or variables of the data, or maps of their own.
GivenCovariates: TypeAlias = str | Sequence[str] | Covariates | None
AnyModel = TypeVar("AnyModel", bound=Model)


class Rows(NamedTuple):
    """Inputs and targets of a map, ready for an estimator."""

    X: pd.DataFrame  # the first two columns are x and y
    y: object  # a Series, or a DataFrame of several targets
    crs: CRS | None
    kept: NDArray[np.bool_]  # which points or cells these are
    units: tuple[str, ...] | None


def fit(
    estimator: AnyModel,
    data: object,
    target: GivenTarget = None,
    *,
    covariates: GivenCovariates = None,
    crs: GivenCRS = None,
    units: str | Sequence[str] | None = None,
    noise_variance: str | None = None,
    groups: str | None = None,
    queries: object = None,
    sphere: bool = True,
) -> AnyModel:
    """Fit an estimator to points or to a grid, and keep the reference system with it.

    Geographic coordinates are on the sphere (``estimator.coordinates``). Rows without a target are
    left out. Points at the same place with different values are noisy observations of one function,
    whose mean there lies between them.

    Parameters
    ----------
    estimator : LSGPRegressor or LSGPClassifier
        Is fitted, and returned.
    data : GeoDataFrame of points, DataArray or Dataset
        Of an xarray object, the cells that have a value are fitted; dimensions beside x and y,
        such as time, are inputs.
    target : str or sequence of str, default=None
        Columns, or a variable of a Dataset.
    covariates : default=None
        Of points, names of columns; of a grid, names of variables, or as in `predict_grid`.
    crs : default=None
        Reference system to bring the data to before fitting, say ``template.rio.crs``; for data
        without one, the system they are in.
    units : str or sequence of str, default=None
        Of the targets, for maps. None: the attribute ``units`` of an xarray object.
    noise_variance, groups : str, default=None
        Columns of a GeoDataFrame, as in `LSGPRegressor.fit`.
    queries : GeoDataFrame or GeoSeries of points, or array of shape (q, d), default=None
        Where predictions will be made, as in `LSGPRegressor.fit`. An array has the columns of
        the model: x, y, then the others.
    sphere : bool
        Whether longitude and latitude lie on the sphere. False: they are plain inputs, each with
        a lengthscale of its own, which may suit a small region away from the date line.

    Returns
    -------
    estimator

    Examples
    --------
    >>> import geopandas
    >>> import numpy as np
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.maps import fit, predict_grid
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(0, 1000, size=(2, 200))
    >>> wells = geopandas.GeoDataFrame(
    ...     {"depth": x + y}, geometry=geopandas.points_from_xy(x, y), crs="EPSG:28992"
    ... )
    >>> model = fit(LSGPRegressor(objective=None), wells, "depth", units="m")
    >>> grid = predict_grid(model, bounds=(0, 0, 1000, 1000), spacing=100)
    >>> grid["mean"].attrs["units"], grid.rio.crs.to_epsg()
    ('m', 28992)
    """
    rows = _read_rows(data, target, covariates, crs)
    fitted = estimator._copy()
    is_geographic = rows.crs is not None and rows.crs.is_geographic
    if sphere and is_geographic and fitted.coordinates is None:
        fitted.coordinates = Sphere(*rows.X.columns[:2])
    given: dict[str, object] = {}
    for option, column in (("noise_variance", noise_variance), ("groups", groups)):
        if column is not None:
            given[option] = _column(data, column)[rows.kept]
    if queries is not None:
        given["queries"] = _queries(queries, rows)
    fitted.fit(rows.X, rows.y, **given)
    said = rows.units if units is None else tuple(np.atleast_1d(np.asarray(units, dtype=str)))
    n_targets = fitted.ensemble_.n_targets
    if said is not None and len(said) != n_targets:
        raise ValueError(
            f"units={units!r} for {count(n_targets, 'target')}. Give one for each of them."
        )
    known = None if rows.crs is None else rows.crs.to_wkt()
    fitted.ensemble_ = replace(
        fitted.ensemble_,
        georeference=Georeference(0, 1, known, None if said is None else tuple(map(str, said))),
    )
    estimator._become(fitted)
    return estimator


def set_crs(
    model: AnyModel, crs: GivenCRS, x: int | str | None = None, y: int | str | None = None
) -> AnyModel:
    """Say in which reference system the coordinates of a fitted model are.

    For models that were fitted on plain tables; `save` keeps it.

    Parameters
    ----------
    model : fitted LSGPRegressor or LSGPClassifier
        Is changed, and returned.
    crs : str or object of pyproj or rasterio
    x, y : int or str, default=None
        Which inputs are the coordinates, where their names do not say it.

    Examples
    --------
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.maps import set_crs
    >>> model = LSGPRegressor(objective=None).fit([[0, 0], [4, 0], [0, 4]], [0, 1, 2])
    >>> set_crs(model, "EPSG:28992").ensemble_.georeference.crs[:33]
    'PROJCRS["Amersfoort / RD New",BAS'
    """
    check_is_fitted(model)
    found, ensemble = read_crs(crs), model.ensemble_
    if found is None:
        raise ValueError("crs=None is no reference system. Give a code such as 'EPSG:4326'.")
    known = coordinates_of(model, x, y)
    units = None if ensemble.georeference is None else ensemble.georeference.units
    model.ensemble_ = replace(
        ensemble, georeference=Georeference(known.x, known.y, found.to_wkt(), units)
    )
    return model


# -- reading ---------------------------------------------------------------------------------------


def _read_rows(data: Any, target: GivenTarget, covariates: Any, crs: GivenCRS) -> Rows:
    """Inputs and targets of points or of a grid."""
    names = [covariates] if isinstance(covariates, str) else covariates
    if isinstance(data, xr.DataArray | xr.Dataset):
        if target is not None and not isinstance(target, str):
            raise ValueError(f"target={target!r}: of a grid, give the name of one variable.")
        if names is not None and not isinstance(names, xr.Dataset | xr.DataArray | dict):
            if not isinstance(data, xr.Dataset):
                raise ValueError(f"covariates={covariates!r} are names, which only a Dataset has.")
            names = data[list(names)]
        return _rows_of_grid(target_array(data, target), names, read_crs(crs))
    if hasattr(data, "geometry") and hasattr(data, "to_crs"):
        return _rows_of_points(data, target, list(names or ()), read_crs(crs))
    raise TypeError(
        f"data is of type {type(data).__name__}. Give a GeoDataFrame of points, or a DataArray or "
        "Dataset of xarray; other tables go to the estimator's own fit."
    )


def _names_of_axes(crs: CRS | None) -> tuple[str, str]:
    return ("lon", "lat") if crs is not None and crs.is_geographic else ("x", "y")


def _column(frame: GeoDataFrame, name: str) -> NDArray[Any]:
    if name not in getattr(frame, "columns", ()):
        raise ValueError(f"The data have no column {name!r}.")
    return np.asarray(frame[name])


def _points_of(frame: GeoDataFrame | GeoSeries, what: str, crs: CRS | None) -> GeoSeries:
    """The points of a frame, in another reference system if both are known."""
    geometry = frame.geometry
    kinds = set(geometry.geom_type.dropna())
    if kinds - {"Point"}:
        raise ValueError(
            f"The geometries of {what} are {', '.join(sorted(kinds))}, not points alone. Use "
            f"{what}.set_geometry({what}.centroid), or predict_mean for averages over polygons."
        )
    own = read_crs(geometry.crs)
    if own is None or crs is None or is_same(own, crs):
        return geometry
    return geometry.to_crs(crs.to_wkt())


def _rows_of_points(
    frame: GeoDataFrame, target: GivenTarget, others: list[str], crs: CRS | None
) -> Rows:
    names = [target] if isinstance(target, str) else list(target or ())
    if not names:
        raise ValueError("target=None. Name the column to predict.")
    points = _points_of(frame, "data", crs)
    end = crs if crs is not None else read_crs(frame.crs)
    axes = _names_of_axes(end)
    clash = sorted(set(others) & set(axes))
    if clash:
        raise ValueError(
            f"The covariate {clash[0]!r} has the name of a coordinate. Rename the column."
        )
    y = pd.DataFrame({name: _column(frame, name) for name in names})
    columns = {name: _column(frame, name) for name in others}
    X = pd.DataFrame({axes[0]: np.asarray(points.x), axes[1]: np.asarray(points.y), **columns})
    kept = np.isfinite(X[[*axes]].to_numpy(dtype=float)).all(axis=1)
    kept &= ~y.isna().to_numpy().any(axis=1)
    X, y = (table[kept].reset_index(drop=True) for table in (X, y))
    return Rows(X, y[target] if isinstance(target, str) else y, end, kept, None)


def target_array(data: xr.DataArray | xr.Dataset, target: str | None) -> xr.DataArray:
    """The variable to fit or to fill, missing cells as NaN."""
    if isinstance(data, xr.Dataset):
        if target is None and len(data.data_vars) == 1:
            target = str(next(iter(data.data_vars)))
        if target is None or target not in data.data_vars:
            listed = ", ".join(map(str, data.data_vars))
            raise ValueError(f"{target!r} is not a variable of the data, which have: {listed}.")
        data = data[target]
    return without_nodata(data)


def _rows_of_grid(array: xr.DataArray, covariates: Covariates | None, crs: CRS | None) -> Rows:
    """The cells of a grid that have a value, and all covariates."""
    grid = grid_of(array)
    if grid.crs is None:
        grid = grid_of(array, crs)
    array = array.squeeze(drop=True).transpose(*grid.dims)
    end = crs if crs is not None else grid.crs
    columns, kept = cells_as_columns(grid, covariates, end)
    values = np.asarray(array.to_numpy(), dtype=float).reshape(-1)
    kept &= np.isfinite(values)
    if not kept.any():
        raise ValueError(
            f"None of the {count(grid.n_cells, 'cell')} of {array.name or 'the data'} has a value. "
            "There is nothing to learn from: check its missing value."
        )
    X = pd.DataFrame({name: column[kept] for name, column in columns.items()})
    y = pd.Series(values[kept], name=str(array.name or "values"))
    unit = array.attrs.get("units")
    return Rows(X, y, end, kept, None if unit is None else (str(unit),))


def cells_as_columns(
    grid: Grid, covariates: Covariates | None, crs: CRS | None
) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
    """Inputs of all cells (n,), x and y first, and which cells have them all."""

    def flat(array: xr.DataArray) -> NDArray[Any]:
        sizes = dict(zip(grid.dims, grid.shape, strict=True))
        return array.variable.to_base_variable().set_dims(sizes).to_numpy().reshape(-1)

    axes = {dim: flat(grid.coords[dim]) for dim in grid.dims}
    x, y = (axes.pop(dim).astype(float) for dim in (grid.x, grid.y))
    columns: dict[str, NDArray[Any]] = dict(
        zip(_names_of_axes(crs), transform(x, y, grid.crs, crs), strict=True)
    )
    columns |= {str(dim): values for dim, values in axes.items()}
    for name, source in by_name(covariates).items():
        columns[name] = flat(on_grid(source, name, grid))
    kept = np.ones(grid.n_cells, dtype=bool)
    for values in columns.values():
        kept &= ~is_missing(values)
    return columns, kept


def _queries(queries: Any, rows: Rows) -> Any:
    if not hasattr(queries, "geometry"):
        return queries
    points = _points_of(queries, "queries", rows.crs)
    x, y, *others = rows.X.columns
    columns = {name: _column(queries, name) for name in others}
    return pd.DataFrame({x: np.asarray(points.x), y: np.asarray(points.y), **columns})
