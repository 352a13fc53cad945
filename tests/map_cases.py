# SPDX-License-Identifier: BSD-3-Clause
"""Points, models and grids that the tests of maps share: nothing is tuned."""

from __future__ import annotations

import functools

import geopandas
import numpy as np
import xarray as xr

from lsgp import LSGPRegressor
from lsgp.maps import fit

DUTCH = "EPSG:28992"


def field(x, y):
    return np.sin(x / 150) + 0.002 * y


@functools.cache
def points(n=300, seed=0):
    """Points of a square of 1 km in the Netherlands, with a covariate and two targets."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, 1000, size=(2, n))
    columns = {
        "zinc": field(x, y),
        "lead": 2 * field(x, y) + 1,
        "height": x / 100,
        "kind": np.where(x > 500, "clay", "sand"),
    }
    places = geopandas.points_from_xy(155000.0 + x, 463000.0 + y)
    return geopandas.GeoDataFrame(columns, geometry=places, crs=DUTCH)


SETTINGS = {"objective": None, "hyperparameters__noise_variance": 1e-3, "n_neighbors": 30}


def regressor(**settings):
    return LSGPRegressor().set_params(**SETTINGS, **settings)


@functools.cache
def model(target="zinc", covariates=()):
    names = list(target) if isinstance(target, tuple) else target
    return fit(regressor(), points(), names, covariates=covariates)


#: The square, less a margin.
BOUNDS = (155100, 463100, 155900, 463700)


def template(spacing=50.0, crs=DUTCH, name="z"):
    """An empty map with reference system and transform, as rioxarray reads one."""
    west, south, east, north = BOUNDS
    x = np.arange(west + spacing / 2, east, spacing)
    y = np.arange(north - spacing / 2, south, -spacing)
    values = np.zeros((len(y), len(x)))
    array = xr.DataArray(values, coords={"y": y, "x": x}, dims=("y", "x"), name=name)
    return array if crs is None else array.rio.write_crs(crs).rio.write_transform()


def covariate():
    """The heights of the template's cells."""
    like = template(name="height")
    return (like + (like["x"] - 155000.0) / 100).rename("height").rio.write_crs(DUTCH)
