# SPDX-License-Identifier: BSD-3-Clause
"""Which inputs are Dask collections: data that are not there yet."""

from __future__ import annotations


def is_dask(X: object) -> bool:
    """Whether X is a Dask array, data frame or series, or an array of xarray with chunks.

    Neither is imported to find out.

    Examples
    --------
    >>> from lsgp.inputs.lazy import is_dask
    >>> is_dask([[1.0]])
    False
    """
    module = type(X).__module__.partition(".")[0]
    if module == "xarray":
        return bool(getattr(X, "chunks", None))
    return module in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")
