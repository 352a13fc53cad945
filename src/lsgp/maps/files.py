# SPDX-License-Identifier: BSD-3-Clause
"""Maps in files: GeoTIFF, NetCDF and Zarr, window by window, under their name when complete."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import h5netcdf
import numpy as np
import rasterio
import xarray as xr
import zarr
from numpy.typing import NDArray
from rasterio.windows import Window as RasterWindow

from lsgp.compute.files import AnyPath, replace_file, replace_folder
from lsgp.compute.progress import progress_bar
from lsgp.maps.grid import (
    WINDOW_COLUMNS,
    WINDOW_ROWS,
    Window,
    affine_of,
    spatial_array,
    spatial_dims,
    windows_of,
    windows_of_chunks,
)

#: A window of a map, with one array for each variable.
Part: TypeAlias = tuple[Window, Sequence[NDArray[Any]] | NDArray[Any]]

#: Formats by the endings of names.
FORMATS = {".tif": "GeoTIFF", ".tiff": "GeoTIFF", ".nc": "NetCDF", ".zarr": "Zarr"}
#: Sides of the tiles of a GeoTIFF.
TILE = 256


def format_of(path: AnyPath) -> str:
    """The format by the ending of the name; ValueError if it is not known."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(
            f"The format of {path!s} is unknown: its name ends neither in .tif (GeoTIFF), .nc "
            "(NetCDF) nor .zarr."
        )
    return FORMATS[suffix]


def write_grid(dataset: xr.Dataset | xr.DataArray, path: AnyPath, verbose: int = 0) -> None:
    """Write a map to a GeoTIFF (.tif), NetCDF (.nc) or Zarr (.zarr) file.

    Window by window, so that a lazy map may be larger than memory. The file has its name when it
    is complete: if anything fails, what was there is untouched. Reference system, transform,
    units and missing cells (NaN) are kept.

    Parameters
    ----------
    dataset : Dataset or DataArray
        As `predict_grid` and `fill` give it. Variables of a GeoTIFF are its bands, and have two
        dimensions.
    path : str or path
    verbose : int
        1 shows progress.

    Examples
    --------
    >>> import os, tempfile
    >>> import rioxarray
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.maps import predict_grid, write_grid
    >>> model = LSGPRegressor(objective=None).fit([[0, 0], [4, 0], [0, 4]], [0, 1, 2])
    >>> grid = predict_grid(model, bounds=(0, 0, 4, 4), spacing=1, crs="EPSG:32632")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_grid(grid, os.path.join(folder, "map.tif"))
    ...     with rioxarray.open_rasterio(os.path.join(folder, "map.tif")) as read:
    ...         read.long_name[0], read.rio.crs.to_epsg(), read.shape
    ('mean', 32632, (5, 4, 4))
    """
    format_of(path)
    if isinstance(dataset, xr.DataArray):
        dataset = dataset.to_dataset(name=dataset.name or "values")
    first = spatial_array(dataset)
    x, y = spatial_dims(first)
    own = {name: array for name, array in dataset.data_vars.items() if array.dims == first.dims}
    rest = [str(name) for name in dataset.data_vars if name not in own]
    if rest:
        raise ValueError(
            f"The variable {rest[0]!r} has the dimensions {dataset[rest[0]].dims}, and "
            f"{first.name!r} has {first.dims}. Write variables of one shape to a file."
        )
    variables = [
        (str(name), {str(key): text for key, text in array.attrs.items() if isinstance(text, str)})
        for name, array in own.items()
    ]
    dtype = np.result_type(*(array.dtype for array in own.values()))
    layout = Layout(dataset.drop_vars(list(own)), first.dims, x, y, variables, dtype)
    windows = windows_of(first.dims, first.shape, y, x)
    if first.chunks is not None:
        # Rows of chunks together, so that threads have several to work on.
        chunks = dict(zip(first.dims, first.chunks, strict=True)) | {x: (first.sizes[x],)}
        windows = windows_of_chunks(chunks)
    with progress_bar("Writing", first.size, verbose > 0) as advance:

        def compute(window: Window) -> Part:
            part = dataset[list(own)].isel(window).compute()
            advance(part[first.name].size)
            return window, [part[name].to_numpy() for name in own]

        write_map(path, layout, map(compute, windows))


# -- formats ---------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """The contents of a file of a map, whatever its format: variables over a skeleton's cells."""

    skeleton: xr.Dataset  # coordinates, and no data
    dims: Sequence[Hashable]
    x: Hashable
    y: Hashable
    variables: Sequence[tuple[str, dict[str, str]]]  # names and attributes
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.skeleton.sizes[dim] for dim in self.dims)

    @property
    def chunks(self) -> tuple[int, ...]:
        """Chunks of a file: the windows that are written, so that none is written twice."""
        sides = {self.y: WINDOW_ROWS, self.x: WINDOW_COLUMNS}
        cells = zip(self.dims, self.shape, strict=True)
        return tuple(min(size, sides.get(dim, 1)) for dim, size in cells)

    def attributes(self, attrs: dict[str, str]) -> dict[str, str]:
        """With the name of the variable of the reference system, as CF asks."""
        name = self.skeleton.rio.grid_mapping
        return {**attrs, "grid_mapping": name} if name in self.skeleton.coords else attrs


def write_map(path: AnyPath, layout: Layout, parts: Iterable[Part]) -> None:
    """Write a file in the format of its name, which appears when all windows are written.

    Values are floats, one array (...) for each variable in a window; NaN where nothing is known.
    """
    kind = format_of(path)
    if kind != "Zarr":
        with replace_file(path) as temporary:
            (_write_netcdf if kind == "NetCDF" else _write_tiff)(temporary, layout, parts)
        return
    target = Path(path)
    names = {entry.name for entry in target.iterdir()} if target.is_dir() else set()
    if target.is_file() or (names and not names & {".zgroup", "zarr.json"}):
        raise ValueError(f"{path!s} holds something else. Give the path of a new folder.")
    with replace_folder(path) as folder:
        _write_zarr(folder, layout, parts)


def _write_netcdf(path: Path, layout: Layout, parts: Iterable[Part]) -> None:
    layout.skeleton.to_netcdf(path, engine="h5netcdf")
    with h5netcdf.File(path, "a") as file:
        arrays = []
        for name, attrs in layout.variables:
            made = file.create_variable(
                name,
                tuple(map(str, layout.dims)),
                dtype=layout.dtype,
                chunks=layout.chunks,
                compression="gzip",
                compression_opts=1,
                shuffle=True,
                fillvalue=np.nan,
            )
            made.attrs.update(layout.attributes(attrs))
            arrays.append(made)
        _fill(arrays, layout, parts)


def _write_zarr(folder: Path, layout: Layout, parts: Iterable[Part]) -> None:
    # The second format, which every reader knows.
    layout.skeleton.to_zarr(folder, mode="w", consolidated=False, zarr_format=2)
    group = zarr.open_group(str(folder), mode="a", zarr_format=2)
    shape, arrays = {"shape": layout.shape, "chunks": layout.chunks}, []
    for name, attrs in layout.variables:
        made = group.create_array(name, **shape, dtype=layout.dtype, fill_value=np.nan)
        made.attrs.update({"_ARRAY_DIMENSIONS": list(map(str, layout.dims))})
        made.attrs.update(layout.attributes(attrs))
        arrays.append(made)
    _fill(arrays, layout, parts)
    zarr.consolidate_metadata(str(folder), zarr_format=2)


def _fill(arrays: Sequence[Any], layout: Layout, parts: Iterable[Part]) -> None:
    """Write windows to the arrays of a NetCDF file or of a Zarr group."""
    for window, values in parts:
        where = tuple(window[dim] for dim in layout.dims)
        for array, own in zip(arrays, values, strict=True):
            array[where] = own


def _write_tiff(path: Path, layout: Layout, parts: Iterable[Part]) -> None:
    """Write a GeoTIFF with a band for each variable."""
    skeleton, dims, x, y = layout.skeleton, layout.dims, layout.x, layout.y
    if len(dims) != 2:
        raise ValueError(
            f"A GeoTIFF has two dimensions, and the map has {', '.join(map(str, dims))}. "
            "Select one of the others, or write NetCDF (.nc) or Zarr (.zarr)."
        )
    affine = affine_of(skeleton, x, y)
    if affine is None:
        raise ValueError(
            "The cells of the map have different sizes, which a GeoTIFF cannot say. Write "
            "NetCDF (.nc) or Zarr (.zarr)."
        )
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=skeleton.sizes[x],
        height=skeleton.sizes[y],
        count=len(layout.variables),
        dtype=np.dtype(layout.dtype).name,
        crs=skeleton.rio.crs,
        transform=affine,
        nodata=math.nan,
        tiled=True,
        blockxsize=TILE,
        blockysize=TILE,
        compress="deflate",
        interleave="band",
        bigtiff="if_safer",
    ) as file:
        for band, (name, attrs) in enumerate(layout.variables, start=1):
            file.set_band_description(band, name)
            if attrs.get("units"):
                file.set_band_unit(band, attrs["units"])
            file.update_tags(band, long_name=attrs.get("long_name", name))
        for window, values in parts:
            where = RasterWindow.from_slices(window[y], window[x])
            for band, array in enumerate(values, start=1):
                file.write(array.T if tuple(dims) == (x, y) else array, band, window=where)
