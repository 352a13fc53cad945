# SPDX-License-Identifier: BSD-3-Clause
"""Grids to predict on: from a template, or from bounds and a spacing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
import xarray as xr
from affine import Affine
from numpy.typing import ArrayLike, DTypeLike, NDArray
from pyproj import CRS

from lsgp.maps.crs import DEGREE_UNITS, DEGREES, GivenCRS, is_same, name_of, read_crs

Array = NDArray[np.float64]
Window = dict[Hashable, slice]

#: Names of dimensions that are coordinates, where no attribute says so.
X_NAMES = ("x", "lon", "longitude", "long", "lng", "easting", "east")
Y_NAMES = ("y", "lat", "latitude", "northing", "north")

#: Rows and columns of the windows that are computed and written at a time: a million cells, whose
#: predictions take some 100 MB; a multiple of the tiles of GeoTIFF.
WINDOW_ROWS, WINDOW_COLUMNS = 256, 4096

#: Two coordinates are the same if they differ by less than this share of the spacing.
SAME = 1e-3


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

    def bounds(self) -> tuple[float, float, float, float]:
        """Smallest and largest x and y of centers: west, south, east, north."""
        x, y = self.axis(self.x), self.axis(self.y)
        return float(x.min()), float(y.min()), float(x.max()), float(y.max())

    def windows(self) -> Iterator[Window]:
        """The grid in parts of bounded size, in the order of its cells."""
        yield from windows_of(self.dims, self.shape, self.y, self.x)

    def describe(self) -> str:
        west, south, east, north = self.bounds()
        return f"{self.x} from {west:g} to {east:g}, {self.y} from {south:g} to {north:g}"


def windows_of(
    dims: Sequence[Hashable], shape: Sequence[int], y: Hashable, x: Hashable
) -> Iterator[Window]:
    """Windows over an array of these dimensions: one step of each other dimension at a time."""
    steps = dict.fromkeys(dims, 1) | {y: WINDOW_ROWS, x: WINDOW_COLUMNS}
    chunks = {
        dim: [min(steps[dim], size - start) for start in range(0, size, steps[dim])]
        for dim, size in zip(dims, shape, strict=True)
    }
    return windows_of_chunks(chunks)


def windows_of_chunks(chunks: Mapping[Hashable, Sequence[int]]) -> Iterator[Window]:
    """Windows of one chunk each, from the sizes of the chunks along each dimension.

    Examples
    --------
    >>> from lsgp.maps.grid import windows_of_chunks
    >>> [window["x"] for window in windows_of_chunks({"y": [2], "x": [3, 1]})]
    [slice(0, 3, None), slice(3, 4, None)]
    """
    ends = {dim: np.cumsum([0, *sizes]).tolist() for dim, sizes in chunks.items()}
    sides = [[slice(*pair) for pair in pairwise(own)] for own in ends.values()]
    for window in product(*sides):
        yield dict(zip(chunks, window, strict=True))


def collect(
    windows: Iterable[tuple[Window, ArrayLike]], grid: Grid, n: int, dtype: DTypeLike
) -> NDArray[Any]:
    """Values of n variables in all windows of a grid, in one array (n, ...)."""
    values = np.empty((n, *grid.shape), dtype)
    for window, part in windows:
        values[(slice(None), *(window[dim] for dim in grid.dims))] = part
    return values


# -- from a template -----------------------------------------------------------------------------


def grid_of(template: xr.DataArray | xr.Dataset, crs: GivenCRS = None) -> Grid:
    """The grid of an xarray object. ``crs`` is its reference system, if it has none itself."""
    array = spatial_array(template)
    x, y = spatial_dims(array)
    _refuse_rotated(array)
    # A single band or date is no dimension of a map.
    array = array.squeeze(
        [dim for dim in array.dims if dim not in (x, y) and array.sizes[dim] == 1]
    )
    for dim in (x, y):
        _require_axis(array, dim)
    found = _crs_of(array, x, y)
    given = read_crs(crs)
    if found is not None and given is not None and not is_same(found, given):
        raise ValueError(
            f"The template is in {name_of(found)}, but crs={name_of(given)}. Leave crs out, or "
            "reproject the template: template.rio.reproject(crs)."
        )
    affine = affine_of(array, x, y)
    coords = array.coords.to_dataset()
    return Grid(coords, array.dims, x, y, found or given, affine, array.chunks)


def spatial_array(template: object) -> xr.DataArray:
    """The array that a template is, or the first of a Dataset that lies on the map."""
    if isinstance(template, xr.DataArray):
        return template
    if not isinstance(template, xr.Dataset):
        raise TypeError(
            f"The template is of type {type(template).__name__}. Give a DataArray or a Dataset of "
            "xarray; rioxarray.open_rasterio reads one from a file."
        )
    for name in template.data_vars:
        if template[name].ndim >= 2:
            return template[name]
    raise ValueError(
        "The template is a Dataset without a variable of two dimensions. Give one that has a map."
    )


def spatial_dims(array: xr.DataArray) -> tuple[Hashable, Hashable]:
    """Names of the dimensions of x and y: by attributes as CF has them, else by name."""
    found = []
    for axis, standard, names in (
        ("X", ("longitude", "projection_x_coordinate"), X_NAMES),
        ("Y", ("latitude", "projection_y_coordinate"), Y_NAMES),
    ):
        said = [
            dim
            for dim in array.dims
            if dim in array.coords
            and (
                array[dim].attrs.get("axis") == axis
                or array[dim].attrs.get("standard_name") in standard
            )
        ]
        named = [dim for dim in array.dims if str(dim).lower() in names]
        if not (said or named):
            raise ValueError(
                f"None of the dimensions {', '.join(map(str, array.dims))} is known to be "
                f"{axis.lower()}. Rename it: template.rename({{...: {axis.lower()!r}}})."
            )
        found.append((said or named)[0])
    return found[0], found[1]


def _said_affine(array: xr.DataArray | xr.Dataset) -> Affine | None:
    """The transform as the object has it in writing, if it has."""
    mapping = array.coords.get(array.rio.grid_mapping)
    said = None if mapping is None else mapping.attrs.get("GeoTransform")
    return None if said is None else Affine.from_gdal(*map(float, str(said).split()))


def _refuse_rotated(array: xr.DataArray) -> None:
    affine = _said_affine(array)
    if affine is not None and (affine.b != 0 or affine.d != 0):
        raise ValueError(
            f"The template is rotated: its transform is {tuple(affine[:6])}, so its rows have no y "
            "of their own. Warp it first: template.rio.reproject(template.rio.crs)."
        )


def affine_of(array: xr.DataArray | xr.Dataset, x: Hashable, y: Hashable) -> Affine | None:
    """The transform of an object: as said, or by its coordinates if they are even."""
    said = _said_affine(array)
    width, height = (side_of(np.asarray(array[dim], dtype=float)) for dim in (x, y))
    if width is None or height is None:
        return said if min(array.sizes[x], array.sizes[y]) == 1 else None
    west, north = float(array[x][0]) - width / 2, float(array[y][0]) - height / 2
    found = Affine(width, 0.0, west, 0.0, height, north)
    # As said, where that is the same: it has all digits, which coordinates may have lost.
    is_said = said is not None and said.almost_equals(found, SAME * min(abs(width), abs(height)))
    return said if is_said else found


def side_of(axis: Array) -> float | None:
    """The side of the cells along an axis, negative if it falls; None if not all are alike."""
    if len(axis) < 2:
        return None
    side = float(axis[-1] - axis[0]) / (len(axis) - 1)
    is_even = np.abs(np.diff(axis) - side).max() <= SAME * abs(side)
    return side if is_even else None


def _require_axis(array: xr.DataArray, dim: Hashable) -> None:
    if dim not in array.coords:
        raise ValueError(
            f"The dimension {dim!r} of the template has no coordinates. Assign the centers of the "
            f"cells: template.assign_coords({dim}=...)."
        )
    values = np.asarray(array[dim], dtype=float)
    steps = np.diff(values)
    if not (np.isfinite(values).all() and ((steps > 0).all() or (steps < 0).all())):
        raise ValueError(
            f"The coordinates {dim!r} of the template neither rise nor fall all along. Sort it: "
            f"template.sortby({dim!r})."
        )


def _crs_of(array: xr.DataArray, x: Hashable, y: Hashable) -> CRS | None:
    found = array.rio.crs
    if found is not None:
        return read_crs(found)
    # In CF these units alone say it.
    if all(array[dim].attrs.get("units") in DEGREE_UNITS for dim in (x, y)):
        return read_crs(DEGREES)
    return None


# -- from bounds -----------------------------------------------------------------------------------


def grid_within(bounds: Sequence[float], spacing: object, crs: CRS | None) -> Grid:
    """Cells of this spacing that cover the bounds, from the north-west corner on."""
    ends = np.asarray(bounds, dtype=float)
    if ends.shape != (4,) or not np.isfinite(ends).all() or (ends[:2] >= ends[2:]).any():
        raise ValueError(
            f"bounds={tuple(np.ravel(ends).tolist())} is no rectangle. Give (xmin, ymin, xmax, "
            "ymax), the first two smaller than the last two."
        )
    sides = np.broadcast_to(np.asarray(spacing, dtype=float), 2).tolist()
    if not (np.isfinite(sides).all() and min(sides) > 0):
        raise ValueError(f"spacing={spacing!r} must be a positive number, or one for x and for y.")
    west, south, east, north = ends.tolist()
    n = [
        max(1, int(np.ceil(round(length / side, 6))))
        for length, side in zip((east - west, north - south), sides, strict=True)
    ]
    x = west + sides[0] * (np.arange(n[0]) + 0.5)
    y = north - sides[1] * (np.arange(n[1]) + 0.5)
    coords = xr.Dataset(coords={"y": ("y", y), "x": ("x", x)})
    affine = Affine(sides[0], 0.0, west, 0.0, -sides[1], north)
    return Grid(coords, ("y", "x"), "x", "y", crs, affine)


def same_axis(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two axes have the same coordinates, but for rounding."""
    if a.shape != b.shape:
        return False
    if a.dtype.kind not in "fiu" or b.dtype.kind not in "fiu":
        return bool(np.array_equal(a, b))
    return bool(np.all(np.abs(a.astype(float) - b.astype(float)) <= tolerance_of(a)))


def tolerance_of(axis: NDArray[Any]) -> float:
    """How far apart coordinates may be that are the same but for rounding."""
    step = np.abs(np.diff(axis.astype(float))).min(initial=np.inf)
    return float(SAME * step) if np.isfinite(step) else SAME
