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
from lsgp.inputs.coordinates import Sphere
from lsgp.maps.cells import Model
from lsgp.maps.crs import GivenCRS, is_same, read_crs, transform
from lsgp.maps.grid import Grid, grid_of, spatial_array
from lsgp.maps.inputs import Covariates, by_name, coordinates_of, is_missing, on_grid

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
    rows = read_rows(data, target, covariates, crs)
    fitted = estimator._copy()
    if sphere:
        _set_sphere(fitted, rows)
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


def _set_sphere(estimator: Model, rows: Rows) -> None:
    """Degrees lie on the sphere, unless the estimator was told something else."""
    if rows.crs is not None and rows.crs.is_geographic and estimator.coordinates is None:
        estimator.coordinates = Sphere(*rows.X.columns[:2])


# -- reading ---------------------------------------------------------------------------------------


def read_rows(
    data: object, target: GivenTarget, covariates: GivenCovariates, crs: GivenCRS
) -> Rows:
    """Inputs and targets of points or of a grid."""
    if isinstance(data, xr.DataArray | xr.Dataset):
        if target is not None and not isinstance(target, str):
            raise ValueError(f"target={target!r}: of a grid, give the name of one variable.")
        return rows_of_grid(data, target, covariates, crs)
    if hasattr(data, "geometry") and hasattr(data, "to_crs"):
        return _rows_of_points(data, target, covariates, crs)
    raise TypeError(
        f"data is of type {type(data).__name__}. Give a GeoDataFrame of points, or a DataArray or "
        "Dataset of xarray; other tables go to the estimator's own fit."
    )


def names_of_axes(crs: CRS | None) -> tuple[str, str]:
    return ("lon", "lat") if crs is not None and crs.is_geographic else ("x", "y")


def _column(frame: GeoDataFrame, name: str) -> NDArray[Any]:
    if name not in getattr(frame, "columns", ()):
        raise ValueError(f"The data have no column {name!r}.")
    return np.asarray(frame[name])


def _points(geometry: GeoSeries, what: str) -> None:
    kinds = set(geometry.geom_type.dropna())
    if kinds - {"Point"}:
        raise ValueError(
            f"The geometries of {what} are {', '.join(sorted(kinds))}, not points alone. Use "
            f"{what}.set_geometry({what}.centroid), or predict_mean for averages over polygons."
        )


def _rows_of_points(
    frame: GeoDataFrame, target: GivenTarget, covariates: GivenCovariates, crs: GivenCRS
) -> Rows:
    names = [target] if isinstance(target, str) else list(target or ())
    if not names:
        raise ValueError("target=None. Name the column to predict.")
    _points(frame.geometry, "data")
    own, wanted = read_crs(frame.crs), read_crs(crs)
    geometry = frame.geometry
    if own is not None and wanted is not None and not is_same(own, wanted):
        geometry = geometry.to_crs(wanted.to_wkt())
    end = wanted if wanted is not None else own
    axes = names_of_axes(end)
    others = [covariates] if isinstance(covariates, str) else list(covariates or ())
    for name in (*names, *others):
        _column(frame, name)
    if set(others) & set(axes):
        clash = sorted(set(others) & set(axes))[0]
        raise ValueError(
            f"The covariate {clash!r} has the name of a coordinate. Rename the column."
        )
    table = {axes[0]: geometry.x, axes[1]: geometry.y, **{name: frame[name] for name in others}}
    X = pd.DataFrame({name: np.asarray(values) for name, values in table.items()})
    y = pd.DataFrame({name: np.asarray(frame[name]) for name in names})
    kept = np.isfinite(X[[*axes]].to_numpy(dtype=float)).all(axis=1)
    kept &= ~y.isna().to_numpy().any(axis=1)
    targets = y[kept].reset_index(drop=True)
    return Rows(
        X[kept].reset_index(drop=True),
        targets[names[0]] if isinstance(target, str) else targets,
        end,
        kept,
        None,
    )


def target_array(data: xr.DataArray | xr.Dataset, target: str | None) -> xr.DataArray:
    """The variable to fit or to fill, missing cells as NaN."""
    if isinstance(data, xr.Dataset):
        if target is None and len(data.data_vars) == 1:
            target = str(next(iter(data.data_vars)))
        if target is None or target not in data.data_vars:
            listed = ", ".join(map(str, data.data_vars))
            raise ValueError(f"{target!r} is not a variable of the data, which have: {listed}.")
        data = data[target]
    nodata = data.rio.nodata
    if nodata is not None and not np.isnan(nodata):
        data = data.where(data != nodata)
    return data


def rows_of_grid(
    data: xr.DataArray | xr.Dataset, target: str | None, covariates: GivenCovariates, crs: GivenCRS
) -> Rows:
    """The cells of a grid that have a value, and all covariates."""
    array = spatial_array(target_array(data, target))
    grid = grid_of(array)
    if grid.crs is None:
        grid = grid_of(array, crs)
    array = array.squeeze(drop=True).transpose(*grid.dims)
    wanted = read_crs(crs)
    end = wanted if wanted is not None else grid.crs
    others = _covariates_of(data, covariates)
    columns, kept = cells_as_columns(grid, others, end)
    values = np.asarray(array.to_numpy(), dtype=float).reshape(-1)
    kept &= np.isfinite(values)
    if not kept.any():
        raise ValueError(
            f"None of the {count(grid.n_cells, 'cell')} of {array.name or 'the data'} has a value. "
            "There is nothing to learn from: check its missing value."
        )
    X = pd.DataFrame({name: column[kept] for name, column in columns.items()})
    unit = array.attrs.get("units")
    return Rows(
        X,
        pd.Series(values[kept], name=str(array.name or "values")),
        end,
        kept,
        None if unit is None else (str(unit),),
    )


def _covariates_of(data: object, covariates: GivenCovariates) -> Covariates | None:
    if covariates is None or isinstance(covariates, xr.Dataset | xr.DataArray | dict):
        return covariates
    names = [covariates] if isinstance(covariates, str) else list(covariates)
    if not isinstance(data, xr.Dataset):
        raise ValueError(f"covariates={covariates!r} are names, which only a Dataset has.")
    found: xr.Dataset = data[names]
    return found


def cells_as_columns(
    grid: Grid, covariates: Covariates | None, crs: CRS | None
) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
    """Inputs of all cells (n,), x and y first, and which cells have them all."""
    shape = grid.shape
    flat = {}
    for dim in grid.dims:
        sizes = [-1 if dim == other else 1 for other in grid.dims]
        flat[dim] = np.broadcast_to(grid.axis(dim).reshape(sizes), shape).reshape(-1)
    x, y = transform(flat[grid.x].astype(float), flat[grid.y].astype(float), grid.crs, crs)
    names = names_of_axes(crs)
    columns: dict[str, NDArray[Any]] = {names[0]: x, names[1]: y}
    columns |= {str(dim): flat[dim] for dim in grid.dims if dim not in (grid.x, grid.y)}
    for name, source in by_name(covariates).items():
        array = on_grid(source, name, grid)
        sizes = [array.sizes.get(dim, 1) for dim in grid.dims]
        columns[name] = np.broadcast_to(array.to_numpy().reshape(sizes), shape).reshape(-1)
    kept = np.ones(grid.n_cells, dtype=bool)
    for values in columns.values():
        kept &= ~is_missing(values)
    return columns, kept


def _queries(queries: Any, rows: Rows) -> Any:
    if not hasattr(queries, "geometry"):
        return queries
    geometry = queries.geometry
    _points(geometry, "queries")
    if rows.crs is not None and queries.crs is not None:
        geometry = geometry.to_crs(rows.crs.to_wkt())
    axes = rows.X.columns[:2]
    table: dict[str, Any] = {axes[0]: np.asarray(geometry.x), axes[1]: np.asarray(geometry.y)}
    for name in rows.X.columns[2:]:
        table[name] = _column(queries, name)
    return pd.DataFrame(table)
