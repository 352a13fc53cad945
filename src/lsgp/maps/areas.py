# SPDX-License-Identifier: BSD-3-Clause
"""Averages over polygons: of fields, municipalities, catchments."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pyproj import CRS
from sklearn.utils.validation import check_is_fitted

from lsgp.ensemble.joint import predict_average
from lsgp.ensemble.view import columns_of, input_names, target_names
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.maps.cells import places_of
from lsgp.maps.grid import GivenCRS, name_of, read_crs, spatial_dims, transform
from lsgp.maps.inputs import Covariates, by_name, coordinates_of, is_missing

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries
    from shapely import MultiPolygon, Polygon

Array = NDArray[np.float64]
#: One or several.
Polygons: TypeAlias = "GeoDataFrame | GeoSeries | Polygon | MultiPolygon | Iterable[Polygon]"

#: Points that stand for a polygon unless a spacing is given, and the fewest with one.
TYPICAL_POINTS, LEAST_POINTS = 100, 16
#: Every point of an area is predicted together with all others: more take long, and add nothing.
MOST_POINTS = 4000
#: How often a spacing is halved for a small or narrow polygon before one point stands for it.
MOST_HALVINGS = 8


def predict_mean(
    model: LSGPRegressor,
    polygons: Polygons,
    spacing: float | None = None,
    *,
    covariates: Covariates | None = None,
    crs: GivenCRS = None,
    x: int | str | None = None,
    y: int | str | None = None,
) -> pd.DataFrame:
    """Mean and standard deviation of the average over each polygon.

    The average of the latent function over points inside, on a regular grid: its standard
    deviation takes into account that neighboring points err together.

    Parameters
    ----------
    model : fitted LSGPRegressor
    polygons : GeoSeries, GeoDataFrame or sequence of shapely polygons
        In another reference system than the model's, points are predicted where they lie.
    spacing : float, default=None
        Of the points, in the units of the polygons; smaller for polygons that would have fewer
        than 16. None: about 100 points for each.
    covariates : Dataset, or mapping of names to DataArrays or numbers, default=None
        Inputs of the model that are no coordinates; points have the value of the nearest cell,
        and do not count where it is missing.
    crs : default=None
        Reference system of polygons that have none.
    x, y : int or str, default=None
        Which inputs of the model are coordinates, where their names do not say it.

    Returns
    -------
    pandas.DataFrame
        ``mean``, ``std`` (for several targets with their names in front) and ``n_points``, with
        the index of the polygons.

    Examples
    --------
    >>> import numpy as np
    >>> from shapely.geometry import box
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.maps import predict_mean
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> model = LSGPRegressor(objective=None).fit(X, X[:, 0])
    >>> found = predict_mean(model, [box(0.2, 0.2, 0.4, 0.4), box(0.5, 0.1, 0.9, 0.9)])
    >>> found["mean"].round(2).to_list()
    [0.3, 0.7]
    """
    check_is_fitted(model)
    shapes, index, own = _read(polygons)
    given = read_crs(crs) if own is None else own
    coordinates = coordinates_of(model, x, y)
    if coordinates.crs is not None and given is None:
        raise ValueError(
            "The polygons have no reference system, and the model is in "
            f"{name_of(coordinates.crs)}. Give theirs: crs=...."
        )
    if spacing is not None and not (math.isfinite(spacing) and spacing > 0):
        raise ValueError(f"spacing={spacing!r} must be a positive number.")
    names, known = input_names(model.ensemble_), by_name(covariates)
    others = set(range(len(names))) - {coordinates.x, coordinates.y}
    for j in sorted(others):
        if names[j] not in known:
            raise ValueError(
                f"The model has the input {names[j]!r}, which is not among the covariates. Give "
                f"it: covariates={{{names[j]!r}: DataArray}}, or a number."
            )
    places = places_of(model.ensemble_, coordinates)
    low, high = places.low, places.high
    areas = []
    for name, shape in zip(index, shapes, strict=True):
        across, up = _points_in(shape, spacing, name, given is not None and given.is_geographic)
        at_x, at_y = transform(across, up, given, coordinates.crs)
        # Where a turn leads to the same meridian, in the convention of the data.
        turned = low[0] + np.mod(at_x - low[0], 360.0) if coordinates.is_round else at_x
        inside = (turned >= low[0]) & (turned <= high[0]) & (at_y >= low[1]) & (at_y <= high[1])
        if not inside.any():
            raise ValueError(
                f"Polygon {name} (x from {turned.min():g} to {turned.max():g}, y from "
                f"{at_y.min():g} to {at_y.max():g}) lies outside of the data of the model (x from "
                f"{low[0]:g} to {high[0]:g}, y from {low[1]:g} to {high[1]:g}). Check the "
                "reference systems, or leave it out."
            )
        rows = np.empty((len(across), model.n_features_in_))
        rows[:, coordinates.x], rows[:, coordinates.y] = at_x, at_y
        for j in others:
            rows[:, j] = _sample(known[names[j]], across, up, given)
        rows = rows[~is_missing(rows).any(axis=1)]
        if not len(rows):
            raise ValueError(f"No point of polygon {name} has all covariates. Leave it out.")
        areas.append(rows)
    predicted = predict_average(model._ready(), areas, "auto", model._resources())
    targets = target_names(model.ensemble_)
    columns: dict[str, object] = {}
    for k, target in enumerate(targets):
        prefix = f"{target}_" if len(targets) > 1 else ""
        columns[f"{prefix}mean"] = columns_of(predicted.mean)[:, k]
        columns[f"{prefix}std"] = columns_of(predicted.std)[:, k]
    return pd.DataFrame({**columns, "n_points": [len(area) for area in areas]}, index=index)


def _read(polygons: Polygons) -> tuple[list[Polygon | MultiPolygon], pd.Index, CRS | None]:
    """Polygons, their index and their reference system."""
    if hasattr(polygons, "geometry") and hasattr(polygons, "to_crs"):
        series = polygons.geometry
        shapes, index, crs = list(series), series.index, read_crs(series.crs)
    else:
        shapes = [polygons] if hasattr(polygons, "geom_type") else list(polygons)
        index, crs = pd.RangeIndex(len(shapes)), None
    for name, shape in zip(index, shapes, strict=True):
        kind = getattr(shape, "geom_type", type(shape).__name__)
        if kind not in ("Polygon", "MultiPolygon"):
            raise ValueError(f"Polygon {name} is a {kind}. Give polygons, for example of buffer().")
        if shape.is_empty or not shape.area > 0:
            raise ValueError(f"Polygon {name} has no area. Leave it out.")
    return shapes, index, crs


def _points_in(
    shape: Polygon | MultiPolygon, spacing: float | None, name: object, is_degrees: bool
) -> tuple[Array, Array]:
    """Points of a regular grid inside of a polygon, each of which stands for the same area."""
    # Here, because polygons come with it, and maps of cells do without.
    import shapely

    west, south, east, north = shape.bounds
    side = math.sqrt(shape.area / TYPICAL_POINTS) if spacing is None else float(spacing)
    if spacing is not None and shape.area > MOST_POINTS * side**2:
        raise ValueError(
            f"Polygon {name} has some {shape.area / side**2:,.0f} points at spacing={spacing:g}, "
            f"and at most {MOST_POINTS:,} are predicted together. Increase the spacing."
        )
    for _ in range(MOST_HALVINGS):
        n = [max(1, round(length / side)) for length in (east - west, north - south)]
        x = west + (east - west) * (np.arange(n[0]) + 0.5) / n[0]
        steps = (np.arange(n[1]) + 0.5) / n[1]
        y = south + (north - south) * steps
        if is_degrees:
            # Meridians converge: zones of the same area are even in the sine of the latitude.
            low, high = np.sin(np.radians([south, north]))
            y = np.degrees(np.arcsin(low + (high - low) * steps))
        across, up = (part.reshape(-1) for part in np.meshgrid(x, y))
        inside = shapely.contains_xy(shape, across, up)
        if np.count_nonzero(inside) >= LEAST_POINTS:
            return across[inside], up[inside]
        side /= 2
    point = shape.representative_point()
    return np.array([point.x]), np.array([point.y])


def _sample(source: Any, x: Array, y: Array, crs: CRS | None) -> Array | float:
    """The values of the nearest cells of a covariate, or a constant."""
    if not isinstance(source, xr.DataArray):
        return float(source)
    x, y = transform(x, y, crs, read_crs(source.rio.crs))
    array = source.squeeze(drop=True)
    across, up = spatial_dims(array)
    at = {across: xr.DataArray(x, dims="point"), up: xr.DataArray(y, dims="point")}
    return np.asarray(array.sel(at, method="nearest").to_numpy(), dtype=float)
