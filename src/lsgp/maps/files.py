# SPDX-License-Identifier: BSD-3-Clause
"""Maps in files: GeoTIFF, NetCDF and Zarr, window by window, under their name when complete."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import h5netcdf
import numpy as np
import rasterio
import xarray as xr
import zarr
from numpy.typing import NDArray
from rasterio.io import DatasetWriter
from rasterio.windows import Window as RasterWindow

from lsgp.compute.files import replace_file, replace_folder
from lsgp.compute.progress import progress_bar
from lsgp.maps.grid import (
    WINDOW_COLUMNS,
    WINDOW_ROWS,
    Window,
    affine_of,
    spatial_array,
    spatial_dims,
    windows_of,
)

AnyPath = str | os.PathLike[str]

#: Formats by the endings of names.
FORMATS = {".tif": "GeoTIFF", ".tiff": "GeoTIFF", ".nc": "NetCDF", ".zarr": "Zarr"}
#: Sides of the tiles of a GeoTIFF.
TILE = 256


class MapWriter(Protocol):
    """Takes a map window by window."""

    def write(self, window: Window, values: Sequence[NDArray[Any]]) -> None:
        """Values of the window, one array for each variable."""


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
    variables = [(str(name), _plain_attrs(array)) for name, array in own.items()]
    dtype = np.result_type(*(array.dtype for array in own.values()))
    skeleton = dataset.drop_vars(list(own))
    shape = tuple(first.sizes[dim] for dim in first.dims)
    n_cells = math.prod(shape)
    with (
        open_map(path, Layout(skeleton, first.dims, x, y, variables, dtype)) as writer,
        progress_bar("Writing", n_cells, verbose > 0) as advance,
    ):
        for window in _windows(first, x, y):
            part = dataset[list(own)].isel(window).compute()
            arrays = [part[name].to_numpy() for name in own]
            writer.write(window, arrays)
            advance(arrays[0].size)


def _plain_attrs(array: xr.DataArray) -> dict[str, str]:
    return {str(name): value for name, value in array.attrs.items() if isinstance(value, str)}


def _windows(array: xr.DataArray, x: Hashable, y: Hashable) -> Iterator[Window]:
    """The windows of files, or of many whole chunks where an array is lazy."""
    if array.chunks is None:
        shape = tuple(array.sizes[dim] for dim in array.dims)
        yield from windows_of(array.dims, shape, y, x)
        return
    # Rows of chunks together, so that threads have several to work on.
    steps = dict(zip(array.dims, array.chunks, strict=True))
    across = {dim: slice(0, array.sizes[dim]) for dim in array.dims}
    others = [dim for dim in array.dims if dim != x]

    def walk(place: int) -> Iterator[Window]:
        if place == len(others):
            yield {}
            return
        start = 0
        for size in steps[others[place]]:
            for more in walk(place + 1):
                yield {others[place]: slice(start, start + size), **more}
            start += size

    for found in walk(0):
        yield {**across, **found}


# -- formats ---------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """What a file of a map holds, whatever its format: variables over the cells of a skeleton."""

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


@contextmanager
def open_map(path: AnyPath, layout: Layout) -> Iterator[MapWriter]:
    """A writer of the format of the name; values are floats, NaN where nothing is known."""
    kind = format_of(path)
    if kind == "Zarr":
        if os.path.isfile(path) or (
            os.path.isdir(path) and os.listdir(path) and not _is_zarr(Path(path))
        ):
            raise ValueError(f"{path!s} holds something else. Give the path of a new folder.")
        with replace_folder(path) as folder:
            yield _ZarrWriter(folder, layout)
            zarr.consolidate_metadata(str(folder), zarr_format=2)
        return
    with replace_file(path) as temporary:
        if kind == "NetCDF":
            with _NetcdfWriter.open(temporary, layout) as netcdf:
                yield netcdf
        else:
            with _TiffWriter.open(temporary, layout) as tiff:
                yield tiff


def _is_zarr(path: Path) -> bool:
    return any((path / name).exists() for name in (".zgroup", "zarr.json"))


class _TiffWriter:
    """Bands of a GeoTIFF."""

    def __init__(self, file: DatasetWriter, x: Hashable, y: Hashable, is_transposed: bool) -> None:
        self.file, self.x, self.y, self.is_transposed = file, x, y, is_transposed

    @classmethod
    @contextmanager
    def open(cls, path: Path, layout: Layout) -> Iterator[_TiffWriter]:
        skeleton, dims, x, y, variables, dtype = layout
        if len(dims) != 2:
            raise ValueError(
                f"A GeoTIFF has two dimensions, and the map has {', '.join(map(str, dims))}. "
                "Select one of the others, or write NetCDF (.nc) or Zarr (.zarr)."
            )
        affine = affine_of(_as_array(skeleton, dims), x, y)
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
            count=len(variables),
            dtype=np.dtype(dtype).name,
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
            for band, (name, attrs) in enumerate(variables, start=1):
                file.set_band_description(band, name)
                if attrs.get("units"):
                    file.set_band_unit(band, attrs["units"])
                file.update_tags(band, long_name=attrs.get("long_name", name))
            yield cls(file, x, y, tuple(dims) == (x, y))

    def write(self, window: Window, values: Sequence[NDArray[Any]]) -> None:
        rows, columns = window[self.y], window[self.x]
        where = RasterWindow.from_slices((rows.start, rows.stop), (columns.start, columns.stop))
        for band, array in enumerate(values, start=1):
            self.file.write(array.T if self.is_transposed else array, band, window=where)


def _as_array(skeleton: xr.Dataset, dims: Sequence[Hashable]) -> xr.DataArray:
    """A DataArray of the skeleton's coordinates, for what asks one for its transform."""
    shape = tuple(skeleton.sizes[dim] for dim in dims)
    values = np.broadcast_to(np.zeros((), dtype=np.int8), shape)
    return xr.DataArray(values, dims=tuple(dims), coords=skeleton.coords)


class _NetcdfWriter:
    """Variables of a NetCDF file, which xarray has made with its coordinates."""

    def __init__(self, file: h5netcdf.File, dims: Sequence[Hashable], names: Sequence[str]) -> None:
        self.file, self.dims, self.names = file, dims, names

    @classmethod
    @contextmanager
    def open(cls, path: Path, layout: Layout) -> Iterator[_NetcdfWriter]:
        skeleton, dims, variables = layout.skeleton, layout.dims, layout.variables
        skeleton.to_netcdf(path, engine="h5netcdf")
        with h5netcdf.File(path, "a") as file:
            for name, attrs in variables:
                made = file.create_variable(
                    name,
                    tuple(map(str, dims)),
                    dtype=layout.dtype,
                    chunks=layout.chunks,
                    compression="gzip",
                    compression_opts=1,
                    shuffle=True,
                    fillvalue=np.nan,
                )
                made.attrs.update(_with_mapping(attrs, skeleton))
            yield cls(file, dims, [name for name, _ in variables])

    def write(self, window: Window, values: Sequence[NDArray[Any]]) -> None:
        where = tuple(window[dim] for dim in self.dims)
        for name, array in zip(self.names, values, strict=True):
            self.file.variables[name][where] = array


class _ZarrWriter:
    """Arrays of a Zarr group, which xarray has made with its coordinates."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        skeleton, dims = layout.skeleton, layout.dims
        # The second format, which every reader knows.
        skeleton.to_zarr(folder, mode="w", consolidated=False, zarr_format=2)
        group = zarr.open_group(str(folder), mode="a", zarr_format=2)
        self.dims = dims
        self.arrays: list[Any] = []
        for name, attrs in layout.variables:
            made = group.create_array(
                name,
                shape=layout.shape,
                chunks=layout.chunks,
                dtype=layout.dtype,
                fill_value=np.nan,
            )
            made.attrs.update(
                {"_ARRAY_DIMENSIONS": list(map(str, dims)), **_with_mapping(attrs, skeleton)}
            )
            self.arrays.append(made)

    def write(self, window: Window, values: Sequence[NDArray[Any]]) -> None:
        where = tuple(window[dim] for dim in self.dims)
        for array, own in zip(self.arrays, values, strict=True):
            array[where] = own


def _with_mapping(attrs: dict[str, str], skeleton: xr.Dataset) -> dict[str, str]:
    """With the name of the variable that holds the reference system, as CF asks."""
    mapping = skeleton.rio.grid_mapping
    return {**attrs, "grid_mapping": mapping} if mapping in skeleton.coords else dict(attrs)
