# SPDX-License-Identifier: BSD-3-Clause
"""Filling the missing cells of a grid from its known cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from lsgp.estimators.regressor import LSGPRegressor
from lsgp.maps.cells import Variable
from lsgp.maps.fitting import cells_as_columns, fit, target_array
from lsgp.maps.grid import GivenCRS, Grid, Window, collect, grid_of, without_single
from lsgp.maps.inputs import Covariates
from lsgp.maps.plan import MapPlan, plan_map

#: Missing cells that tuning is told of: it imitates how far they lie from the data, for which
#: these are plenty.
MOST_QUERIES = 50_000


def fill(
    data: xr.DataArray | xr.Dataset,
    variable: str | None = None,
    *,
    estimator: LSGPRegressor | None = None,
    covariates: Covariates | None = None,
    crs: GivenCRS = None,
    max_distance: float | None = None,
    kind: str = "observation",
    sphere: bool = True,
) -> xr.Dataset:
    """Fill the missing cells of a grid: a map with clouds in, a whole one out.

    A model is fitted to the cells that have a value, tuned for where the others lie, and predicts
    these. Cells that have a value keep it.

    Parameters
    ----------
    data : DataArray or Dataset
        With x and y among its dimensions; another one, such as time, is an input too.
    variable : str, default=None
        Which variable of a Dataset that has several.
    estimator : LSGPRegressor, default=None
        Not fitted, and left as it is. None: the defaults, with a fixed seed.
    covariates : Dataset, or mapping of names to DataArrays, default=None
        Further inputs on the same grid. Where one is missing, a cell stays missing.
    crs : default=None
        Reference system, where the data have none.
    max_distance : float, default=None
        Cells farther from the data stay missing: in kilometers for longitude and latitude, else
        in the units of the coordinates.
    kind : {"observation", "latent"}
        Whose standard deviation, as in `LSGPRegressor.predict`.
    sphere : bool
        Whether longitude and latitude lie on the sphere, as in `fit`.

    Returns
    -------
    xarray.Dataset
        The variable, filled, with its attributes; and ``<variable>_std``, the standard deviation
        of what was filled in, 0 where there was a value.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.maps import fill
    >>> x, y = np.arange(30.0), np.arange(20.0)
    >>> cloudy = xr.DataArray(
    ...     np.sin(x / 5) + y[:, None] / 10, coords={"y": y, "x": x}, dims=("y", "x"), name="t"
    ... )
    >>> cloudy[5:9, 10:16] = np.nan
    >>> filled = fill(cloudy, estimator=LSGPRegressor(objective=None))
    >>> int(filled["t"].isnull().sum()), int((filled["t_std"] > 0).sum())
    (0, 24)
    """
    plan = plan_fill(data, variable, estimator, covariates, crs, max_distance, kind, sphere)
    parts = collect(plan.fill_windows(), plan.grid, 2, plan.dtype)
    found, mapping = plan.skeleton, str(plan.array.rio.grid_mapping)
    for (name, attrs), part in zip(plan.variables, parts, strict=True):
        found[name] = (plan.array.dims, part, attrs)
        if mapping in plan.array.coords:
            found[name].encoding["grid_mapping"] = mapping
    return found


@dataclass(frozen=True, eq=False)
class FillPlan:
    """A grid with gaps, and the model that will fill them, if there are any."""

    array: xr.DataArray  # as given, missing cells as NaN
    grid: Grid
    map: MapPlan | None

    @property
    def dtype(self) -> np.dtype[Any]:
        own = self.array.dtype
        return own if own.kind == "f" else np.dtype(float)

    @property
    def variables(self) -> list[Variable]:
        """The variable with its attributes, and its standard deviation."""
        name = str(self.array.name or "values")
        own = {str(key): said for key, said in self.array.attrs.items() if key != "_FillValue"}
        std = {"long_name": f"standard deviation of {name} where it was filled in"}
        if "units" in own:
            std["units"] = own["units"]
        return [Variable(name, own), Variable(f"{name}_std", std)]

    @property
    def skeleton(self) -> xr.Dataset:
        """The coordinates as they were given."""
        return self.array.coords.to_dataset()

    @property
    def n_missing(self) -> int:
        wanted = None if self.map is None else self.map.wanted
        return 0 if wanted is None else int(np.count_nonzero(wanted))

    def fill_windows(
        self, advance: Callable[[int], None] | None = None
    ) -> Iterator[tuple[Window, list[NDArray[Any]]]]:
        """Values and standard deviations of windows."""
        if self.map is None:
            own = self.array.to_numpy().astype(self.dtype)
            window = {dim: slice(0, size) for dim, size in self.array.sizes.items()}
            yield window, [own, np.zeros_like(own)]
            return
        for window, (mean, std, *_) in self.map.predict_windows(advance):
            own = self.array.isel(window).to_numpy()
            is_known = np.isfinite(own)
            both = np.where(is_known, own, mean), np.where(is_known, 0.0, std)
            yield window, [values.astype(self.dtype) for values in both]


def plan_fill(
    data: xr.DataArray | xr.Dataset,
    variable: str | None = None,
    estimator: LSGPRegressor | None = None,
    covariates: Covariates | None = None,
    crs: GivenCRS = None,
    max_distance: float | None = None,
    kind: str = "observation",
    sphere: bool = True,
) -> FillPlan:
    """Fit the model that fills the gaps; as `fill`, of which this is all but the predictions."""
    array = without_single(target_array(data, variable))
    grid = grid_of(array, crs)
    if "band" in grid.dims:
        raise ValueError(
            f"The data have {array.sizes['band']} bands, which are not near each other as times "
            "are. Select one: data.sel(band=1)."
        )
    is_missing = ~np.isfinite(np.asarray(array.to_numpy(), dtype=float))
    numbered = array
    for dim in array.dims:
        if dim in array.coords and array[dim].dtype.kind == "M":
            # Days since the first date: a number has a distance in tuning and in search.
            days = (array[dim] - array[dim].min()) / np.timedelta64(1, "D")
            numbered = numbered.assign_coords({dim: days.to_numpy()})
    columns, is_complete = cells_as_columns(grid_of(numbered, crs), covariates, grid.crs)
    chosen = np.flatnonzero(is_missing.reshape(-1) & is_complete)
    if not len(chosen):
        return FillPlan(array, grid, None)
    if len(chosen) > MOST_QUERIES:
        rng = np.random.default_rng(0)
        chosen = np.sort(rng.choice(chosen, MOST_QUERIES, replace=False))
    queries = pd.DataFrame({name: column[chosen] for name, column in columns.items()})
    model = LSGPRegressor(random_state=0) if estimator is None else estimator._copy()
    fit(model, numbered, covariates=covariates, crs=crs, queries=queries, sphere=sphere)
    made = plan_map(
        model, numbered, covariates=covariates, crs=crs, max_distance=max_distance, kind=kind
    )
    return FillPlan(array, grid, replace(made, wanted=is_missing))
