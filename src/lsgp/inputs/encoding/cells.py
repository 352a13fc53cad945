# SPDX-License-Identifier: BSD-3-Clause
"""From what users give to columns of cells: frames of any library, arrays, lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import warn_user
from lsgp.inputs.encoding.text import is_missing, level_of

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

Array = NDArray[np.float64]


class Cells(NamedTuple):
    """One column as it came, with its type where it has one."""

    name: str
    type: str  # "number", "flag", "date", "time", "duration", or "object": of any types
    values: Array  # (n,) NaN is missing; places in `distinct`, where there are any
    distinct: tuple[Any, ...] | None = None  # each once: always of objects
    order: tuple[str, ...] | None = None  # of an ordered category, from low to high
    zone: str | None = None  # of dates whose wall clock this is

    def numbered(self) -> Cells:
        """The same column with its distinct cells, and the place of each cell among them."""
        if self.distinct is not None:
            return self
        present = ~np.isnan(self.values)
        distinct, places = np.unique(self.values[present], return_inverse=True)
        values = np.full(len(self.values), np.nan)
        values[present] = places.reshape(-1)
        return self._replace(values=values, distinct=tuple(distinct.tolist()))


def is_frame(X: object) -> TypeGuard[IntoDataFrame]:
    return bool(nw.dependencies.is_into_dataframe(X))


def columns_by_name(X: Any, names: list[str], optional: set[str]) -> Any:
    """The columns of a data frame with these names, in their order; others are ignored.

    Optional ones may be missing.
    """
    frame = nw.from_native(X, eager_only=True)
    found = [str(name) for name in frame.columns]
    missing = [name for name in names if name not in found and name not in optional]
    if missing:
        more = f", nor {len(missing) - 1} others" if len(missing) > 1 else ""
        raise ValueError(
            f"X has no column {missing[0]!r}{more} that the model was fitted with. It has "
            f"{', '.join(found[:8])}."
        )
    others = [name for name in found if name not in names]
    if others:
        listed = ", ".join(map(repr, others[:4])) + (", ..." if len(others) > 4 else "")
        warn_user(f"X has columns that the model was not fitted with, which are ignored: {listed}.")
    wanted = [name for name in names if name in found]
    return X if wanted == found else frame.select(wanted).to_native()


def column_number(column: object, names: Sequence[str], setting: str) -> int:
    """The number of a column that a setting gives by its name, or by its number."""
    if isinstance(column, str) and column in names:
        return names.index(column)
    is_number = isinstance(column, int | np.integer) and not isinstance(column, bool)
    if is_number and 0 <= column < len(names):  # type: ignore[operator]
        return int(column)  # type: ignore[call-overload]
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise ValueError(
        f"{setting} has {column!r}, which is not a column of X. Its columns are {listed}: give "
        f"names, or numbers from 0 to {len(names) - 1}."
    )


def needs_encoding(X: object) -> bool:
    """Whether X is more than numbers: has texts, dates, missing values.

    What is not is for scikit-learn to check, as ever.
    """
    if is_frame(X):
        return any(map(_is_odd, nw.from_native(X, eager_only=True).iter_columns()))
    array = _as_array(X)
    if array is None or array.ndim != 2:
        return False
    if array.dtype.kind == "f":
        return bool(np.isnan(array).any())
    if array.dtype.kind == "O":
        # Objects that are no numbers are refused by scikit-learn, in its words.
        known = str | np.datetime64 | np.timedelta64
        return any(
            is_missing(cell)
            or isinstance(cell, known)
            or hasattr(cell, "isoformat")
            or hasattr(cell, "total_seconds")
            for cell in array.flat
        )
    return array.dtype.kind in "mMUS"


def _is_odd(series: nw.Series[Any]) -> bool:
    dtype = series.dtype
    if dtype == nw.Decimal or not (dtype.is_numeric() or dtype == nw.Boolean):
        return True
    return series.null_count() > 0 or bool(dtype.is_float() and np.isnan(_floats(series)).any())


def cells_of(X: object) -> list[Cells]:
    """The columns of a frame or of a two-dimensional array."""
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        return [_of_series(series, str(series.name)) for series in frame.iter_columns()]
    array = _as_array(X)
    if array is None or array.ndim != 2:
        shape = "no array" if array is None else f"of shape {array.shape}"
        raise ValueError(f"X is {shape}. Give a table of rows and columns.")
    d = array.shape[1]
    names = ["x"] if d == 1 else [f"x{j}" for j in range(d)]
    return [_of_array(column, name) for column, name in zip(array.T, names, strict=True)]


def _as_array(X: object) -> NDArray[Any] | None:
    if hasattr(X, "dtype") and hasattr(X, "shape"):
        return np.asarray(X)
    if not hasattr(X, "__len__") and not hasattr(X, "__array__"):
        return None
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different length
        return None
    # Beside a text, NumPy would make texts of all numbers.
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def _floats(series: nw.Series[Any]) -> Array:
    numbers = series.cast(nw.Float64)
    if series.null_count():
        numbers = numbers.fill_null(float("nan"))
    return np.asarray(numbers.to_numpy(), dtype=np.float64)


def _of_series(series: nw.Series[Any], name: str) -> Cells:
    dtype = series.dtype
    if dtype == nw.Boolean:
        return Cells(name, "flag", _floats(series))
    if dtype.is_numeric() or dtype == nw.Decimal:
        return Cells(name, "number", _floats(series))
    if dtype in (nw.Date, nw.Datetime):
        zone = getattr(dtype, "time_zone", None)
        if dtype == nw.Date:
            series = series.cast(nw.Datetime("us"))
        elif zone is not None:
            series = series.dt.replace_time_zone(None)
        return Cells(name, "date", 1e-6 * _floats(series.dt.timestamp("us")), zone=zone)
    if dtype == nw.Duration:
        return Cells(name, "duration", 1e-6 * _floats(series.dt.total_microseconds()))
    if dtype in (nw.List, nw.Array, nw.Struct):
        raise TypeError(
            f"Column {name!r} holds {dtype}: a cell must be a number, a text, a date or nothing. "
            "Make columns of its parts, or leave it out."
        )
    order = tuple(map(level_of, dtype.categories)) if isinstance(dtype, nw.Enum) else None
    return _of_objects(series.to_list(), name)._replace(order=order)


def _of_array(column: NDArray[Any], name: str) -> Cells:
    kind = column.dtype.kind
    if kind in "mM":
        word, type = ("datetime64", "date") if kind == "M" else ("timedelta64", "duration")
        seconds = column.astype(f"{word}[us]").astype(np.int64) * 1e-6
        return Cells(name, type, np.where(np.isnat(column), np.nan, seconds))
    if kind in "OUS":
        return _of_objects(column.tolist() if kind != "O" else list(column), name)
    if kind == "c":
        raise ValueError("Complex data not supported: give real and imaginary parts as columns.")
    return Cells(name, "flag" if kind == "b" else "number", column.astype(np.float64))


def key_of(cell: object) -> Any:
    """What tells a cell from others in a dictionary."""
    # True is 1 to a dictionary, but not to people.
    return (True, cell) if isinstance(cell, bool | np.bool_) else cell


def _of_objects(cells: Sequence[object], name: str) -> Cells:
    """Number the distinct cells, so that each is read once."""
    places: dict[Any, int] = {}
    distinct: list[object] = []
    values = np.full(len(cells), np.nan)
    try:
        for row, cell in enumerate(cells):
            key = key_of(cell)
            place = places.get(key)
            # NaN is not equal to itself, and would be there as often as it occurs.
            if place is None and not is_missing(cell):
                place = places[key] = len(distinct)
                distinct.append(cell)
            if place is not None:
                values[row] = place
    except TypeError:
        raise TypeError(
            f"Column {name!r} has a {type(cell).__name__} in row {row}: a cell must be a number, a "
            "text, a date or nothing, and an argument must be a string or a number."
        ) from None
    return Cells(name, "object", values, tuple(distinct))
