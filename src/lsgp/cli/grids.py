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

    opened: xr.DataArray | list[xr.Dataset] = rioxarray.open_rasterio(path, masked=True)
    if isinstance(opened, list):
        raise CommandError(f"{path} holds several maps. Extract one of them, e.g. with gdalwarp.")
    said = opened.attrs.get("long_name")
    names = [said] if isinstance(said, str) else list(said or ())
    stem = Path(path).stem
    found = {}
    for place in range(opened.sizes["band"]):
        default = stem if opened.sizes["band"] == 1 else f"band_{place + 1}"
        name = names[place] if place < len(names) and names[place] else default
        band = opened.isel(band=place, drop=True)
        # What is said of all bands at once says nothing of one.
        band.attrs = {k: v for k, v in band.attrs.items() if not isinstance(v, tuple | list)}
        band.attrs.pop("long_name", None)
        units = opened.attrs.get("units")
        if isinstance(units, Sequence) and not isinstance(units, str) and units[place]:
            band.attrs["units"] = units[place]
        found[str(name)] = band
    return xr.Dataset(found)


def read_covariates(given: Sequence[str]) -> dict[str, xr.DataArray] | None:
    """Inputs by name, from files, or from [NAME=]FILE with a single variable."""
    found: dict[str, xr.DataArray] = {}
    for text in given:
        name, separator, path = text.partition("=")
        dataset = open_grid(path if separator else text)
        if not separator:
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
