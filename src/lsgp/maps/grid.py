# SPDX-License-Identifier: BSD-3-Clause
"""Grids to predict on, from a template or from bounds and a spacing, and reference systems."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, TypeAlias

import numpy as np
import xarray as xr
from affine import Affine
from numpy.typing import ArrayLike, DTypeLike, NDArray
from pyproj import CRS, Transformer
from pyproj.exceptions import CRSError

Array = NDArray[np.float64]
Window = dict[Hashable, slice]

#: Longitude and latitude, where nothing else is said of degrees.
DEGREES = "EPSG:4326"
#: How CF spells the units of geographic coordinates; xarray's own files have these.
DEGREE_UNITS = ("degrees_east", "degree_east", "degrees_north", "degree_north")
#: Names of dimensions that are coordinates, where no attribute says so.
X_NAMES = ("x", "lon", "longitude", "long", "lng", "easting", "east")
Y_NAMES = ("y", "lat", "latitude", "northing", "north")
#: Names of the axes as CF has them: the attribute ``axis``, and standard names.
CF_NAMES = {
    "X": ("longitude", "projection_x_coordinate"),
    "Y": ("latitude", "projection_y_coordinate"),
}

#: Rows and columns of the windows that are computed and written at a time: a million cells, whose
#: predictions take some 100 MB; a multiple of the tiles of GeoTIFF.
WINDOW_ROWS, WINDOW_COLUMNS = 256, 4096

#: Two coordinates are the same if they differ by less than this share of the spacing.
SAME = 1e-3


# -- reference systems -----------------------------------------------------------------------------


#: A code, WKT, a number of EPSG, or an object of pyproj or rasterio; None: not known.
GivenCRS: TypeAlias = Any


def read_crs(given: GivenCRS) -> CRS | None:
    if given is None or isinstance(given, CRS):
        return given
    try:
        # Objects of rasterio are read from their text.
        return CRS.from_user_input(given.to_wkt() if hasattr(given, "to_wkt") else given)
    except CRSError:
        raise ValueError(
            f"crs={given!r} is no coordinate reference system. Give a code such as 'EPSG:4326', "
            "WKT, or an object of pyproj or rasterio."
        ) from None


def is_same(a: CRS, b: CRS) -> bool:
    """Whether coordinates in both are the same numbers."""
    return bool(a.equals(b, ignore_axis_order=True))


def name_of(crs: CRS) -> str:
    """For messages: the code, or the name."""
    authority = crs.to_authority()
    return crs.name if authority is None else f"{':'.join(authority)} ({crs.name})"


def transform(x: Array, y: Array, start: CRS | None, end: CRS | None) -> tuple[Array, Array]:
    """Coordinates in another system; as they are where one is not known, or both are the same."""
    if start is None or end is None or is_same(start, end):
        return x, y
    moved = Transformer.from_crs(start, end, always_xy=True).transform(x, y)
    return np.asarray(moved[0], dtype=float), np.asarray(moved[1], dtype=float)


# -- grids -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells by the coordinates of their centers, in the order of the dimensions."""

    coords: xr.Dataset  # all coordinates of the template, and no data
    dims: tuple[Hashable, ...]
    x: Hashable
    y: Hashable
    crs: CRS | None
    affine: Affine | None  # from columns and rows to x and y; None: cells of several sizes
    chunks: tuple[tuple[int, ...], ...] | None = None  # of a template that is lazy

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.coords.sizes[dim] for dim in self.dims)

    @property
    def n_cells(self) -> int:
        return int(np.prod(self.shape))

    def axis(self, dim: Hashable) -> NDArray[Any]:
        return self.coords[dim].to_numpy()

    def windows(self) -> Iterator[Window]:
        """The grid in parts of bounded size, in the order of its cells."""
        return windows_of(self.dims, self.shape, self.y, self.x)

    def describe(self) -> str:
        x, y = self.axis(self.x), self.axis(self.y)
        return f"{self.x} from {x.min():g} to {x.max():g}, {self.y} from {y.min():g} to {y.max():g}"


def windows_of(
    dims: Sequence[Hashable], shape: Sequence[int], y: Hashable, x: Hashable
) -> Iterator[Window]:
    """Windows over an array of these dimensions: one step of each other dimension at a time."""
    steps = {y: WINDOW_ROWS, x: WINDOW_COLUMNS}
    chunks = {}
    for dim, size in zip(dims, shape, strict=True):
        step = steps.get(dim, 1)
        chunks[dim] = [min(step, size - start) for start in range(0, size, step)]
    return windows_of_chunks(chunks)


def windows_of_chunks(chunks: Mapping[Hashable, Sequence[int]]) -> Iterator[Window]:
    """Windows of one chunk each, from the sizes of the chunks along each dimension."""
    ends = [np.cumsum([0, *sizes]).tolist() for sizes in chunks.values()]
    for window in product(*([slice(*pair) for pair in pairwise(own)] for own in ends)):
        yield dict(zip(chunks, window, strict=True))


def collect(
    windows: Iterable[tuple[Window, ArrayLike]], grid: Grid, n: int, dtype: DTypeLike
) -> NDArray[Any]:
    """Values of n variables in all windows of a grid, in one array (n, ...)."""
    values = np.empty((n, *grid.shape), dtype)
    for window, part in windows:
        values[(slice(None), *(window[dim] for dim in grid.dims))] = part
    return values


# -- from a template -------------------------------------------------------------------------------


def grid_of(template: xr.DataArray | xr.Dataset, crs: GivenCRS = None) -> Grid:
    """The grid of an xarray object. ``crs`` is its reference system, if it has none itself."""
    array = without_single(spatial_array(template))
    x, y = spatial_dims(array)
    said = _said_affine(array)
    if said is not None and (said.b != 0 or said.d != 0):
        raise ValueError(
            f"The template is rotated: its transform is {tuple(said[:6])}, so its rows have no y "
            "of their own. Warp it first: template.rio.reproject(template.rio.crs)."
        )
    for dim in (x, y):
        if dim not in array.coords:
            raise ValueError(
                f"The dimension {dim!r} of the template has no coordinates. Assign the centers of "
                f"the cells: template.assign_coords({dim}=...)."
            )
        steps = np.diff(np.asarray(array[dim], dtype=float))
        # Not finite where a coordinate is not.
        if not (np.isfinite(steps).all() and ((steps > 0).all() or (steps < 0).all())):
            raise ValueError(
                f"The coordinates {dim!r} of the template neither rise nor fall all along. Sort "
                f"it: template.sortby({dim!r})."
            )
    found, given = read_crs(array.rio.crs), read_crs(crs)
    # In CF these units alone say it.
    if found is None and all(array[dim].attrs.get("units") in DEGREE_UNITS for dim in (x, y)):
        found = read_crs(DEGREES)
    if found is not None and given is not None and not is_same(found, given):
        raise ValueError(
            f"The template is in {name_of(found)}, but crs={name_of(given)}. Leave crs out, or "
            "reproject the template: template.rio.reproject(crs)."
        )
    coords = array.coords.to_dataset()
    return Grid(coords, array.dims, x, y, found or given, affine_of(array, x, y), array.chunks)


def spatial_array(template: object) -> xr.DataArray:
    """The array that a template is, or the first of a Dataset that lies on the map."""
    if isinstance(template, xr.DataArray):
        return template
    if not isinstance(template, xr.Dataset):
        raise TypeError(
            f"The template is of type {type(template).__name__}. Give a DataArray or a Dataset of "
            "xarray; rioxarray.open_rasterio reads one from a file."
        )
    for array in template.data_vars.values():
        if array.ndim >= 2:
            return array
    raise ValueError(
        "The template is a Dataset without a variable of two dimensions. Give one that has a map."
    )


def without_single(array: xr.DataArray) -> xr.DataArray:
    """The array without a single band or date, which is no dimension of a map."""
    axes = spatial_dims(array)
    return array.squeeze([d for d in array.dims if d not in axes and array.sizes[d] == 1])


def spatial_dims(array: xr.DataArray) -> tuple[Hashable, Hashable]:
    """Names of the dimensions of x and y: by attributes as CF has them, else by name."""
    found = []
    for (axis, standard), names in zip(CF_NAMES.items(), (X_NAMES, Y_NAMES), strict=True):
        attrs = {dim: array[dim].attrs if dim in array.coords else {} for dim in array.dims}
        said = [
            dim
            for dim, own in attrs.items()
            if own.get("axis") == axis or own.get("standard_name") in standard
        ]
        said += [dim for dim in array.dims if str(dim).lower() in names]
        if not said:
            raise ValueError(
                f"None of the dimensions {', '.join(map(str, array.dims))} is known to be "
                f"{axis.lower()}. Rename it: template.rename({{...: {axis.lower()!r}}})."
            )
        found.append(said[0])
    return found[0], found[1]


def _said_affine(array: xr.DataArray | xr.Dataset) -> Affine | None:
    """The transform that the object has as an attribute, if it has."""
    mapping = array.coords.get(array.rio.grid_mapping)
    said = None if mapping is None else mapping.attrs.get("GeoTransform")
    return None if said is None else Affine.from_gdal(*map(float, str(said).split()))


def affine_of(array: xr.DataArray | xr.Dataset, x: Hashable, y: Hashable) -> Affine | None:
    """The transform of an object: its attribute, or by its coordinates if they are even."""
    said = _said_affine(array)
    width, height = (_side_of(np.asarray(array[dim], dtype=float)) for dim in (x, y))
    if width is None or height is None:
        return said if min(array.sizes[x], array.sizes[y]) == 1 else None
    west, north = float(array[x][0]) - width / 2, float(array[y][0]) - height / 2
    found = Affine(width, 0.0, west, 0.0, height, north)
    # The attribute, where that is the same: it has all digits, which coordinates may have lost.
    is_said = said is not None and said.almost_equals(found, SAME * min(abs(width), abs(height)))
    return said if is_said else found


def _side_of(axis: Array) -> float | None:
    """The side of the cells along an axis, negative if it falls; None if not all are alike."""
    if len(axis) < 2:
        return None
    side = float(axis[-1] - axis[0]) / (len(axis) - 1)
    return side if np.abs(np.diff(axis) - side).max() <= SAME * abs(side) else None


# -- from bounds -----------------------------------------------------------------------------------


def grid_within(bounds: Sequence[float], spacing: object, crs: CRS | None) -> Grid:
    """Cells of this spacing that cover the bounds, from the north-west corner on."""
    ends = np.asarray(bounds, dtype=float)
    if ends.shape != (4,) or not np.isfinite(ends).all() or (ends[:2] >= ends[2:]).any():
        raise ValueError(
            f"bounds={tuple(np.ravel(ends).tolist())} is no rectangle. Give (xmin, ymin, xmax, "
            "ymax), the first two smaller than the last two."
        )
    sides = np.broadcast_to(np.asarray(spacing, dtype=float), 2)
    if not (np.isfinite(sides).all() and sides.min() > 0):
        raise ValueError(f"spacing={spacing!r} must be a positive number, or one for x and for y.")
    (width, height), (west, north) = sides.tolist(), (float(ends[0]), float(ends[3]))
    columns, rows = np.maximum(1, np.ceil(np.round((ends[2:] - ends[:2]) / sides, 6))).astype(int)
    x = west + width * (np.arange(columns) + 0.5)
    y = north - height * (np.arange(rows) + 0.5)
    coords = xr.Dataset(coords={"y": ("y", y), "x": ("x", x)})
    affine = Affine(width, 0.0, west, 0.0, -height, north)
    return Grid(coords, ("y", "x"), "x", "y", crs, affine)


def same_axis(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two axes have the same coordinates, but for rounding."""
    if a.dtype.kind not in "fiu" or b.dtype.kind not in "fiu":
        return bool(np.array_equal(a, b))
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=0.0, atol=tolerance_of(a)))


def tolerance_of(axis: NDArray[Any]) -> float:
    """How far apart coordinates may be that are the same but for rounding."""
    step = np.abs(np.diff(axis.astype(float))).min(initial=np.inf)
    return float(SAME * step) if np.isfinite(step) else SAME
