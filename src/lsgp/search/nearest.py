# SPDX-License-Identifier: BSD-3-Clause
"""The nearest rows, in the forms that callers want, from the one search that an index has."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from lsgp.search.exclusions import NO_EXCLUSIONS, Exclusions
from lsgp.search.neighborhoods import Neighborhoods


class NearestSearch(ABC):
    """What every index can do that can find its nearest rows."""

    @abstractmethod
    def find_nearest(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        n_neighbors: int,
        exclusions: Exclusions,
        squared_distances: NDArray[np.float64] | None,  # (q, n_neighbors), written
    ) -> NDArray[np.int32]:
        """`nearest`, and the squares of the distances, by which rows are ordered, if wanted."""

    def nearest(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        n_neighbors: int,
        exclusions: Exclusions = NO_EXCLUSIONS,
    ) -> NDArray[np.int32]:
        return self.find_nearest(queries, lengthscale, n_neighbors, exclusions, None)

    def nearest_with_squares(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        n_neighbors: int,
        exclusions: Exclusions = NO_EXCLUSIONS,
    ) -> Neighborhoods:
        squared = np.empty((len(queries), max(n_neighbors, 0)))
        neighbors = self.find_nearest(queries, lengthscale, n_neighbors, exclusions, squared)
        return Neighborhoods(neighbors, squared)

    def nearest_with_distances(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        n_neighbors: int,
        exclusions: Exclusions = NO_EXCLUSIONS,
    ) -> Neighborhoods:
        found = self.nearest_with_squares(queries, lengthscale, n_neighbors, exclusions)
        return Neighborhoods(found.neighbors, np.sqrt(found.distances, out=found.distances))
