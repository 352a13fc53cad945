# SPDX-License-Identifier: BSD-3-Clause
"""A model on a grid, as an xarray Dataset: at once, by windows, or lazily by chunks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from lsgp.compute.blas import one_blas_thread
from lsgp.compute.text import count
from lsgp.ensemble.view import input_names
from lsgp.maps.cells import MapQuestion, Model, Variable, places_of, variables
from lsgp.maps.grid import (
    GivenCRS,
    Grid,
    Window,
    collect,
    grid_of,
    grid_within,
    name_of,
    read_crs,
    transform,
)
from lsgp.maps.inputs import Coordinates, Covariates, coordinates_of, expand, sources_of

if TYPE_CHECKING:
    import dask.array as da

#: Points along each side of a grid by which it is seen whether it meets the data.
N_CORNERS = 21


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
    where = like, bounds, spacing, covariates, crs, x, y
    plan = plan_map(model, *where, max_distance, block, block_points, level, kind, dtype)
    if plan.grid.chunks is not None:
        return plan.dataset(_lazy_values(plan, plan.grid.chunks))
    return plan.dataset(collect(plan.predict_windows(), plan.grid, len(plan.variables), dtype))


def _lazy_values(plan: MapPlan, chunks: tuple[tuple[int, ...], ...]) -> Any:
    """The variables of the map (v, ...) as a Dask array with the chunks of the template."""
    # Here, because the extra `maps` does not have Dask, but whoever gives such a template does.
    import dask.array as da
    from dask.base import tokenize

    from lsgp.distributed.transfer import transfer

    dims, sent = plan.grid.dims, transfer(plan.model)
    inputs: list[Any] = []
    for own in plan.inputs:
        places = tuple(dims.index(dim) for dim in own.dims)
        own = own.chunk({dim: chunks[place] for dim, place in zip(own.dims, places, strict=True)})
        inputs += [own.data, places]
    token = tokenize(*(part.name for part in inputs[::2]), plan.question, chunks, sent.token)
    return da.blockwise(
        _answer_chunk,
        (len(dims), *range(len(dims))),
        *inputs,
        question=plan.question,
        dims=dims,
        dims_of_inputs=tuple(own.dims for own in plan.inputs),
        model=sent.model,
        new_axes={len(dims): len(plan.variables)},
        dtype=np.dtype(plan.question.dtype),
        meta=np.empty((0,) * (len(dims) + 1), plan.question.dtype),
        name=f"lsgp-map-{token}",
    )


def _answer_chunk(
    *parts: NDArray[Any],
    question: MapQuestion,
    dims: tuple[Hashable, ...],
    dims_of_inputs: tuple[tuple[Hashable, ...], ...],
    model: object,
) -> NDArray[Any]:
    from lsgp.distributed.transfer import opened

    inputs = [expand(np.asarray(p), d, dims) for p, d in zip(parts, dims_of_inputs, strict=True)]
    with one_blas_thread():
        return question.answer(opened(model), inputs)


# -- plans -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MapPlan:
    """A model, a grid, the sources of its inputs, and the question."""

    model: Model
    grid: Grid
    sources: dict[int, xr.DataArray]  # inputs that are no coordinates, by column
    question: MapQuestion
    wanted: NDArray[np.bool_] | None = None  # which cells are asked for; None: all

    @cached_property
    def inputs(self) -> list[xr.Variable]:
        """The axes of the grid, then the other inputs, not as indexes, which are never lazy."""
        axes = [self.grid.coords[dim] for dim in self.grid.dims]
        return [own.variable.to_base_variable() for own in (*axes, *self.sources.values())]

    @cached_property
    def variables(self) -> list[Variable]:
        return variables(self.model.ensemble_, self.question)

    def predict_windows(
        self, advance: Callable[[int], None] | None = None
    ) -> Iterator[tuple[Window, NDArray[Any]]]:
        """The map in windows (v, ...). Raises ValueError in the end if no cell was predicted."""
        grid, n_predicted = self.grid, 0
        for window in grid.windows():
            parts = [own.isel({dim: window[dim] for dim in own.dims}) for own in self.inputs]
            inputs = [expand(part.to_numpy(), part.dims, grid.dims) for part in parts]
            place = tuple(window[dim] for dim in grid.dims)
            wanted = None if self.wanted is None else self.wanted[place]
            values = self.question.answer(self.model, inputs, wanted)
            n_predicted += int(np.count_nonzero(np.isfinite(values[0])))
            yield window, values
            if advance is not None:
                advance(values[0].size)
        if n_predicted == 0:
            self._explain_nothing()

    def _explain_nothing(self) -> None:
        """Raise the error that says why no cell has a prediction."""
        cells = count(self.grid.n_cells, "cell")
        for column, source in self.sources.items():
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
        return _georeferenced(found, self.grid)

    def skeleton(self) -> xr.Dataset:
        """The Dataset without its variables: coordinates and reference system."""
        # The mapping is written anew below; a band is no coordinate of predictions.
        kept = self.grid.coords.drop_vars(["spatial_ref", "band"], errors="ignore")
        found = xr.Dataset(coords=kept.coords, attrs={"Conventions": "CF-1.11"})
        return _georeferenced(found, self.grid)


def _georeferenced(found: xr.Dataset, grid: Grid) -> xr.Dataset:
    """With the reference system, as CF and GDAL have it, and the attributes of the axes."""
    found = found.rio.set_spatial_dims(grid.x, grid.y)
    if grid.crs is None:
        return found
    found = found.rio.write_crs(grid.crs.to_wkt()).rio.write_coordinate_system()
    return found if grid.affine is None else found.rio.write_transform(grid.affine)


def plan_map(
    model: Model,
    like: xr.DataArray | xr.Dataset | None = None,
    bounds: Sequence[float] | None = None,
    spacing: float | tuple[float, float] | None = None,
    covariates: Covariates | None = None,
    crs: GivenCRS = None,
    x: int | str | None = None,
    y: int | str | None = None,
    max_distance: float | None = None,
    block: tuple[float, float] | None = None,
    block_points: int = 4,
    level: float = 0.9,
    kind: str = "observation",
    dtype: str = "float64",
) -> MapPlan:
    """As `predict_grid`, of which this is all but the predictions."""
    check_is_fitted(model)
    if (bounds is None) != (spacing is None):
        raise ValueError("bounds and spacing go together. Give both, or a template: like=....")
    if like is not None and bounds is not None:
        raise ValueError("Both a template and bounds were given. Give one of them.")
    template = like
    if template is None and isinstance(covariates, xr.Dataset | xr.DataArray):
        template = covariates
    if bounds is not None:
        coordinates = coordinates_of(model, x, y)
        grid = grid_within(bounds, spacing, read_crs(crs) or coordinates.crs)
    elif template is not None:
        grid = grid_of(template, crs)
        coordinates = coordinates_of(model, x, y, (grid.x, grid.y))
    else:
        raise ValueError("There is no grid. Give a template, like=..., or bounds and spacing.")
    if grid.crs is None and coordinates.crs is not None:
        raise ValueError(
            f"The template has no reference system, and the model is in "
            f"{name_of(coordinates.crs)}. Give the template's: crs=..., or "
            "template.rio.write_crs(...)."
        )
    _require_overlap(model, grid, coordinates)
    sources = sources_of(model, grid, coordinates, covariates)
    axes = grid.dims.index(grid.x), grid.dims.index(grid.y)
    asked = kind, level, max_distance, block, block_points, dtype
    question = MapQuestion(coordinates, tuple(sources), axes, grid.crs, *asked)
    question.check(model)
    return MapPlan(model, grid, sources, question)


def _require_overlap(model: Model, grid: Grid, coordinates: Coordinates) -> None:
    """Refuse a grid that nowhere meets the data: nearly always of other units, or swapped."""
    places = places_of(model.ensemble_, coordinates)
    axes = [
        axis[np.linspace(0, len(axis) - 1, N_CORNERS).astype(int)]
        for axis in (grid.axis(grid.x).astype(float), grid.axis(grid.y).astype(float))
    ]
    x, y = (part.reshape(-1) for part in np.meshgrid(*axes))
    both = np.column_stack(transform(x, y, grid.crs, coordinates.crs))
    both = both[np.isfinite(both).all(axis=1)]
    least, most = both.min(axis=0, initial=np.inf), both.max(axis=0, initial=-np.inf)
    low, high = places.low, places.high
    for turn in [-360.0, 0.0, 360.0] if coordinates.is_round else [0.0]:
        moved = np.array([turn, 0.0])
        if (least + moved <= high).all() and (most + moved >= low).all():
            return
    raise ValueError(
        f"The grid ({grid.describe()}) does not meet the data of the model (x from {low[0]:g} to "
        f"{high[0]:g}, y from {low[1]:g} to {high[1]:g}). Check the reference systems, and which "
        "input is x."
    )
