# SPDX-License-Identifier: BSD-3-Clause
"""Tables of other libraries: what is lazy, what is refused, and results as data frames."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

LIBRARIES = ("pandas", "polars")


def is_dask(X: object) -> bool:
    """Whether X is a Dask array, data frame or series, or an array of xarray with chunks.

    Neither is imported to find out.
    """
    module = type(X).__module__.partition(".")[0]
    if module == "xarray":
        return bool(getattr(X, "chunks", None))
    return module in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def refuse_geometries(X: object) -> None:
    """Raise TypeError for a table of points: its geometries are coordinates, not categories."""
    if hasattr(X, "geometry") and hasattr(X, "to_crs"):
        raise TypeError(
            f"X is a {type(X).__name__}, whose geometries have a reference system to keep. Fit it "
            "with lsgp.maps.fit(estimator, X, target), or give its coordinates as columns."
        )


def make_frame(columns: dict[str, object], library: str = "pandas") -> Any:
    """A data frame of these columns; the library is only imported here."""
    if library not in LIBRARIES:
        raise ValueError(f"library={library!r} is not one of {', '.join(map(repr, LIBRARIES))}.")
    try:
        module = import_module(library)
    except ImportError:
        other = LIBRARIES[library == LIBRARIES[0]]
        raise ImportError(
            f"{library} is not installed. Install it, or ask for library={other!r}."
        ) from None
    return module.DataFrame(columns)


def name_columns(name: str, values: NDArray[Any], suffixes: list[str]) -> dict[str, NDArray[Any]]:
    """One column of (k,) values, or one for each target of (k, t): ``name_target``."""
    if values.ndim == 1:
        return {name: values}
    pairs = zip(suffixes, values.T, strict=True)
    return {f"{name}_{suffix}": np.ascontiguousarray(column) for suffix, column in pairs}
