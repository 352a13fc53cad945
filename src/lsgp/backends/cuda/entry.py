# SPDX-License-Identifier: BSD-3-Clause
"""Queries as a search on the device takes them, from the host or from the device itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.method.arrays import beside, is_on_device
from lsgp.search.contract import SearchRequest
from lsgp.search.index import NeighborIndex
from lsgp.search.metric import factor_between


def enter(
    index: NeighborIndex, request: SearchRequest
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """As `NeighborIndex.enter`; what is on the device is divided and checked there."""
    queries = request.queries
    if not is_on_device(queries):
        return index.enter(request)
    in_units = queries / beside(index.unit, queries)
    if not bool(np.isfinite(in_units).all()):
        raise ValueError("queries divided by the unit are not finite. Remove NaN and inf.")
    request.exclusions.require_fit(len(queries), index.n)
    return in_units, factor_between(index.unit, request.lengthscale)
