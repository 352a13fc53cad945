# SPDX-License-Identifier: BSD-3-Clause
"""Maps in files, as commands read and write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from lsgp.cli.errors import CommandError
from lsgp.cli.files import check_output, missing_file
from lsgp.maps.files import format_of


def open_grid(path: str) -> xr.Dataset:
    """The variables of a file, or its bands by their names; read when they are needed."""
    if not Path(path).exists():
        raise missing_file(path)
    kind = format_of(path)
    if kind == "GeoTIFF":
        return _open_bands(path)
    if kind == "Zarr":
        return xr.open_zarr(path, chunks=None, decode_coords="all")
    try:
        return xr.open_dataset(path, decode_coords="all")
    except (OSError, ValueError) as error:
        raise CommandError(
            f"{path} cannot be read as NetCDF: {str(error).splitlines()[0]}"
        ) from None


def _open_bands(path: str) -> xr.Dataset:
    import rioxarray

    opened = rioxarray.open_rasterio(path, masked=True, band_as_variable=True)
    if isinstance(opened, list):
        raise CommandError(f"{path} holds several maps. Extract one of them, e.g. with gdalwarp.")
    stem = Path(path).stem if len(opened.data_vars) == 1 else None
    names = {key: band.attrs.pop("long_name", stem or key) for key, band in opened.items()}
    return opened.rename(names)


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


def check_map_output(path: str, inputs: tuple[str | None, ...]) -> None:
    """Raise CommandError before the work if the map cannot be written there."""
    check_output(path, inputs, is_folder=format_of(path) == "Zarr")
