# SPDX-License-Identifier: BSD-3-Clause
"""Where the coordinates of a model lie, as a record of its file and back."""

from __future__ import annotations

from lsgp.ensemble.georeference import Georeference
from lsgp.storage.records import Record, require


def georeference_record(found: Georeference | None) -> Record | None:
    if found is None:
        return None
    units = None if found.units is None else list(found.units)
    return {"x": found.x, "y": found.y, "crs": found.crs, "units": units}


def read_georeference(record: Record | None, n_columns: int, n_targets: int) -> Georeference | None:
    """What the record says; None where there is none."""
    if record is None:
        return None
    x, y, crs, units = (record[name] for name in ("x", "y", "crs", "units"))
    for column in (x, y):
        is_column = type(column) is int and 0 <= column < n_columns
        require(is_column, f"{column!r} is a coordinate of {n_columns} columns")
    require(x != y, f"both coordinates are column {x}")
    require(crs is None or isinstance(crs, str), f"the reference system is {crs!r}")
    if units is not None:
        is_list = isinstance(units, list) and len(units) == n_targets
        is_texts = is_list and all(isinstance(unit, str) for unit in units)
        require(is_texts, f"units {units!r} of {n_targets} targets")
    return Georeference(x, y, crs, None if units is None else tuple(units))
