# SPDX-License-Identifier: BSD-3-Clause
"""Where on Earth the coordinates of a model lie: what maps need to know of it."""

from __future__ import annotations

import re
from typing import NamedTuple


class Georeference(NamedTuple):
    """Which columns are coordinates, and in which coordinate reference system."""

    x: int  # number of the column: easting or longitude
    y: int  # northing or latitude
    crs: str | None  # as WKT, which any library reads; None: not known
    units: tuple[str, ...] | None = None  # of the targets; None: not known

    @property
    def crs_name(self) -> str | None:
        """What people call the reference system: the first name in its text."""
        found = None if self.crs is None else re.match(r'\w+\["([^"]+)"', self.crs)
        return self.crs if found is None else found[1]
