# SPDX-License-Identifier: BSD-3-Clause
"""Coordinate reference systems: of grids, of models, and the way from one to the other."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS, Transformer
from pyproj.exceptions import CRSError

Array = NDArray[np.float64]


class HasWKT(Protocol):
    """A reference system of another library, such as rasterio's."""

    def to_wkt(self) -> str: ...


#: What names a reference system: a code, WKT, a number of EPSG, or an object.
GivenCRS: TypeAlias = CRS | HasWKT | str | int | None

#: Longitude and latitude, where nothing else is said of degrees.
DEGREES = "EPSG:4326"
#: How CF spells the units of geographic coordinates; xarray's own files have these.
DEGREE_UNITS = ("degrees_east", "degree_east", "degrees_north", "degree_north")
#: Short names of units of length, as CF has them.
SHORT_UNITS = {"metre": "m", "meter": "m", "kilometre": "km", "kilometer": "km"}


def read_crs(given: GivenCRS) -> CRS | None:
    """A reference system from whatever names one: a code, WKT, or an object of another library."""
    if given is None or isinstance(given, CRS):
        return given
    try:
        # Those of rasterio are read from their text.
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


def length_unit(crs: CRS | None) -> str | None:
    """The unit of the coordinates of a projected system; None where it is not known."""
    if crs is None or not crs.axis_info:
        return None
    unit = crs.axis_info[0].unit_name
    return SHORT_UNITS.get(unit, unit)


def transform(x: Array, y: Array, start: CRS | None, end: CRS | None) -> tuple[Array, Array]:
    """Coordinates in another system; as they are where one is not known, or both are the same."""
    if start is None or end is None or is_same(start, end):
        return x, y
    moved = Transformer.from_crs(start, end, always_xy=True).transform(x, y)
    return np.asarray(moved[0], dtype=float), np.asarray(moved[1], dtype=float)
