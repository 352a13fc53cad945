# SPDX-License-Identifier: BSD-3-Clause
"""Chunked xarray arrays of queries: answers keep the chunks, the coordinates and the names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dask.array as da

if TYPE_CHECKING:
    from xarray import DataArray


def is_labeled(X: object) -> bool:
    """Whether X is an array of xarray."""
    return type(X).__module__.partition(".")[0] == "xarray"


def plain(X: DataArray) -> da.Array:
    """The Dask array of queries (q, d)."""
    if not hasattr(X, "dims") or not hasattr(X, "data"):
        raise TypeError(
            f"X is a {type(X).__name__} of xarray. Give a DataArray of queries and inputs, or see "
            "lsgp.maps.predict_grid for grids."
        )
    data: da.Array = X.data
    return data


def labeled(answer: da.Array, X: DataArray, columns: list[str], part: str) -> DataArray:
    """A part of the answer, (q,) or (q, t), as an array with the labels of the queries."""
    import xarray

    along = X.dims[0]
    coords = {name: own for name, own in X.coords.items() if own.dims == (along,)}
    if answer.ndim == 1:
        name = columns[0] if part in ("mean", "label", "probability") else f"{columns[0]}_{part}"
        return xarray.DataArray(answer, coords, (along,), name=name)
    behind = "target" if part not in ("probability", "log_probability") else "class"
    return xarray.DataArray(answer, {**coords, behind: columns}, (along, behind), name=part)
