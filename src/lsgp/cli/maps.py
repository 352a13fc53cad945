# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp map`` and ``lsgp fill``: cells of grids of any size, window by window."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import lsgp.maps  # noqa: F401  (says how to get what it needs)
from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError, check_output, did_you_mean, require_file
from lsgp.cli.models import asked_of_spread, load_model, make_estimator
from lsgp.compute.text import count
from lsgp.maps.files import Layout, Part, format_of, write_map
from lsgp.maps.gaps import plan_fill
from lsgp.maps.plan import plan_map

if TYPE_CHECKING:
    import xarray as xr

#: Digits enough for a map, in half the space.
DTYPE = "float32"


def run_map(options: argparse.Namespace, voice: Voice) -> None:
    """Predict the cells of a grid."""
    if (options.like is None) == (options.bounds is None):
        raise CommandError("Say what to predict: either --like FILE, or --bounds and --spacing.")
    check_map_output(options, (options.like, options.model))
    model = load_model(options)
    # An input is given by its name, or its number.
    x, y = (int(own) if own and own.isdecimal() else own for own in (options.x, options.y))
    plan = plan_map(
        model,
        None if options.like is None else open_grid(options.like),
        bounds=options.bounds,
        spacing=None if options.spacing is None else (options.spacing[0], options.spacing[-1]),
        covariates=read_covariates(options.covariates),
        max_distance=options.max_distance,
        block=None if options.block is None else tuple(options.block),
        crs=options.crs,
        x=x,
        y=y,
        dtype=DTYPE,
        **asked_of_spread(model, options),
    )
    grid, n_predicted = plan.grid, 0
    variables = [(variable.name, variable.attrs) for variable in plan.variables]
    layout = Layout(plan.skeleton(), grid.dims, grid.x, grid.y, variables, np.dtype(DTYPE))

    def counted(part: Part) -> Part:
        nonlocal n_predicted
        n_predicted += int(np.count_nonzero(np.isfinite(part[1][0])))
        return part

    with voice.progress("Predicting", grid.n_cells) as advance:
        write_map(options.output, layout, map(counted, plan.predict_windows(advance)))
    names = [name for name, _ in variables]
    shape = " × ".join(f"{size:,}" for size in grid.shape)
    voice.summarize(
        {
            "n_cells": grid.n_cells,
            "n_predicted": n_predicted,
            "variables": names,
            "crs": None if grid.crs is None else grid.crs.to_string(),
        },
        [
            ("Map", options.output),
            ("Cells", f"{shape}, {count(n_predicted, 'cell')} predicted"),
            ("Variables", ", ".join(names)),
            ("Reference system", "not known" if grid.crs is None else grid.crs.name),
            ("Time", f"{voice.seconds:.1f} s"),
        ],
    )


def run_fill(options: argparse.Namespace, voice: Voice) -> None:
    """Fill the missing cells of a grid from its known cells."""
    check_map_output(options, (options.data,))
    data = open_grid(options.data)
    names = [str(name) for name in data.data_vars]
    listed, variable = ", ".join(names), options.variable
    if variable is None and len(names) == 1:
        variable = names[0]
    if variable is None:
        raise CommandError(
            f"{options.data} has several variables: {listed}. Say which: --variable NAME."
        )
    if variable not in names:
        raise CommandError(
            f"{options.data} has no variable {variable!r}.{did_you_mean(variable, names)} It has: "
            f"{listed}."
        )
    plan = plan_fill(
        data,
        variable,
        make_estimator(options, voice),
        read_covariates(options.covariates),
        options.crs,
        options.max_distance,
        options.kind or "observation",
        options.as_sphere,
    )
    if plan.map is not None:
        plan.map.model.verbose = 0
    grid = plan.grid
    variables = plan.variables
    names = [name for name, _ in variables]
    layout = Layout(plan.skeleton, grid.dims, grid.x, grid.y, variables, plan.dtype)
    with voice.progress("Filling", grid.n_cells) as advance:
        write_map(options.output, layout, plan.fill_windows(advance))
    voice.summarize(
        {"n_cells": grid.n_cells, "n_missing": plan.n_missing, "variables": names},
        [
            ("Map", options.output),
            ("Cells", f"{count(grid.n_cells, 'cell')}, {plan.n_missing:,} of them filled in"),
            ("Variables", ", ".join(names)),
            ("Time", f"{voice.seconds:.1f} s"),
        ],
    )


def open_grid(path: str) -> xr.Dataset:
    """The variables of a file, or its bands by their names; read when they are needed."""
    import xarray as xr

    require_file(path)
    kind = format_of(path)
    if kind == "GeoTIFF":
        import rioxarray

        opened = rioxarray.open_rasterio(path, masked=True, band_as_variable=True)
        if isinstance(opened, list):
            raise CommandError(
                f"{path} holds several maps. Extract one of them, e.g. with gdalwarp."
            )
        stem = Path(path).stem if len(opened.data_vars) == 1 else None
        names = {key: band.attrs.pop("long_name", stem or key) for key, band in opened.items()}
        return opened.rename(names)
    if kind == "Zarr":
        return xr.open_zarr(path, chunks=None, decode_coords="all")
    try:
        return xr.open_dataset(path, decode_coords="all")
    except (OSError, ValueError) as error:
        fact = str(error).splitlines()[0]
        raise CommandError(f"{path} cannot be read as NetCDF: {fact}") from None


def read_covariates(given: Sequence[tuple[str, str]]) -> dict[str, xr.DataArray] | None:
    """Inputs by name, from files; a file with a name before it has one variable, or that one."""
    found: dict[str, xr.DataArray] = {}
    for name, path in given:
        dataset = open_grid(path)
        if not name:
            found |= {str(key): dataset[key] for key in dataset.data_vars}
        elif len(dataset.data_vars) == 1:
            found[name] = dataset[next(iter(dataset.data_vars))].rename(name)
        elif name in dataset.data_vars:
            found[name] = dataset[name]
        else:
            listed = ", ".join(map(str, dataset.data_vars))
            raise CommandError(f"{path} has no variable {name!r}. It has: {listed}.")
    return found or None


def check_map_output(options: argparse.Namespace, inputs: Sequence[str | None]) -> None:
    """Raise CommandError before the work if the map cannot be written to its place."""
    files = [*inputs, *(path for _, path in options.covariates)]
    check_output(options.output, files, is_folder=format_of(options.output) == "Zarr")
