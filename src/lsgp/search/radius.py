# SPDX-License-Identifier: BSD-3-Clause
"""How far neighborhoods reach, where one radius serves all queries."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lsgp.search.contract import SearchIndex, SearchRequest
from lsgp.search.exclusions import Exclusions

Array = NDArray[np.float64]

#: Neighbors that no query may have within a radius.
MOST_WITHIN = 512


def radii_of(
    index: SearchIndex,
    queries: Array,
    unit: Array,
    n_usual: int,
    n_others: int,
    exclusions: Exclusions,
) -> tuple[float, float]:
    """The radius in which half of the queries have ``n_usual`` rows, and the longest there may be.

    In units of the metric; ``n_others`` are the rows that a query can have, at most.
    """
    width = min(MOST_WITHIN, n_others)
    distances = index.measure(SearchRequest(queries, unit, width, exclusions)).distances
    # Queries of few other rows have those at infinity.
    longest = float(distances[:, -1].min()) if n_others >= MOST_WITHIN else math.inf
    return float(np.median(distances[:, min(n_usual, n_others) - 1])), longest
