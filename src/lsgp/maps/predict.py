# SPDX-License-Identifier: BSD-3-Clause
"""A model on a grid, as an xarray Dataset: at once, or lazily where the template is chunked."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from lsgp.maps.cells import Model
from lsgp.maps.crs import GivenCRS
from lsgp.maps.grid import collect
from lsgp.maps.inputs import Covariates
from lsgp.maps.plan import plan_map


def predict_grid(
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
) -> xr.Dataset:
    """Predict the cells of a grid, with their uncertainty and their distance to the data.

    Parameters
    ----------
    model : fitted LSGPRegressor or LSGPClassifier
        Its inputs are found by name: two are coordinates; others are covariates, or further
        coordinates of the template, such as time.
    like : DataArray or Dataset, default=None
        A template with the grid to predict, whose coordinates are centers of cells. Where it is
        chunked, the result is lazy, with its chunks, and has the same bits. In another reference
        system than the model's, its cells are predicted where they lie.
    bounds : (xmin, ymin, xmax, ymax), default=None
        Instead of a template, with ``spacing``.
    spacing : float or pair of floats, default=None
        Sides of the cells in x and y.
    covariates : Dataset, or mapping of names to DataArrays or numbers, default=None
        The inputs of the model that are no coordinates, on the same grid. A Dataset is the
        template too, if there is no other.
    max_distance : float, default=None
        Cells farther from the data are NaN: in kilometers for longitude and latitude, else in the
        units of the coordinates.
    block : (width, height), default=None
        Predict averages over areas of this size around the centers, instead of points. In the
        units of the grid's coordinates.
    block_points : int
        Points along each side of an area that stand for it.
    level : float
        Probability of the interval from ``low`` to ``high``.
    kind : {"observation", "latent"}
        Whose standard deviation and interval, as in `LSGPRegressor.predict`; of averages, always
        those of the average of the latent function.
    crs : default=None
        Reference system of the grid, where the template has none; of bounds, that of the model
        unless given.
    x, y : int or str, default=None
        Which inputs of the model are coordinates, where their names do not say it.
    dtype : {"float64", "float32"}
        Of the result.

    Returns
    -------
    xarray.Dataset
        ``mean``, ``std``, ``low``, ``high``, for several targets each with its name in front; of a
        classifier ``probability_<label>``; and ``distance`` to the nearest data. Predictions are
        NaN beyond ``max_distance`` and where a covariate is missing.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.maps import predict_grid
    >>> rng = np.random.default_rng(0)
    >>> stations = pd.DataFrame(rng.uniform(0, 100, size=(200, 2)), columns=["x", "y"])
    >>> model = LSGPRegressor(objective=None).fit(stations, stations["x"])
    >>> grid = predict_grid(model, bounds=(0, 0, 100, 50), spacing=10, max_distance=15)
    >>> dict(grid.sizes), list(grid)
    ({'y': 5, 'x': 10}, ['mean', 'std', 'low', 'high', 'distance'])
    """
    plan = plan_map(
        model,
        like,
        bounds=bounds,
        spacing=spacing,
        covariates=covariates,
        max_distance=max_distance,
        block=block,
        block_points=block_points,
        level=level,
        kind=kind,
        crs=crs,
        x=x,
        y=y,
        dtype=dtype,
    )
    if plan.grid.chunks is not None:
        # Here, because it imports Dask, which whoever gives such a template has.
        from lsgp.maps.lazy import lazy_values

        return plan.dataset(lazy_values(plan))
    n, dtype = len(plan.variables), plan.question.dtype
    return plan.dataset(collect(plan.predict_windows(), plan.grid, n, dtype))
