# SPDX-License-Identifier: BSD-3-Clause
"""What a search gives back, and how large it may be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class TooManyNeighborsError(ValueError):
    """A radius reaches more points than a local system may have in the memory there is."""


class Neighborhoods(NamedTuple):
    """Neighbors of each query, nearest first, and their distances in the scaled metric."""

    neighbors: NDArray[np.int32]  # (q, w), -1 where there are fewer
    distances: NDArray[np.float64]  # (q, w), infinite where there are fewer


def require_few(
    counts: NDArray[np.int64],
    max_neighbors: int,
    radius: float,
    lengthscale: NDArray[np.float64],
    first_query: int,
) -> None:
    """Refuse a radius in which a query has more points than a local system may have."""
    too_many = np.flatnonzero(counts > max_neighbors)
    if too_many.size:
        bandwidth = radius * np.exp(np.mean(np.log(lengthscale)))  # see scaled_bandwidth
        raise TooManyNeighborsError(
            f"bandwidth={bandwidth:.6g} reaches {counts[too_many[0]]} training points at query "
            f"{first_query + too_many[0]}, more than the {max_neighbors} that a local system may "
            "have. Reduce the bandwidth, or use bandwidth='adaptive'."
        )
