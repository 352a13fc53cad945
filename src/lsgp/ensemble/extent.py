# SPDX-License-Identifier: BSD-3-Clause
"""Where training rows lie, so that queries can be told to be far from them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.transforms import column_statistics, subsample
from lsgp.search.contract import NO_EXCLUSIONS, Exclusions, SearchRequest
from lsgp.solvers.solver import Solver

Array = NDArray[np.float64]

#: How far a query is from the data is its mean distance to this many training rows,
N_NEAREST = 5
#: relative to this quantile of that of the training rows,
TYPICAL_QUANTILE = 0.99
#: as estimated from this many of them.
N_TYPICAL = 1000


class Extent:
    """Facts on the rows of a solver, each computed when first asked for."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver

    @cached_property
    def input_spread(self) -> Array:
        """Standard deviation of each transformed input, 0 if constant, (d,)."""
        scale = column_statistics(self.solver.problem.X).scale
        return np.where(np.isinf(scale), 0.0, scale)

    @cached_property
    def input_range(self) -> tuple[Array, Array]:
        """Smallest and largest value of each transformed input, (d,) each."""
        X = self.solver.problem.X
        return X.min(axis=0), X.max(axis=0)

    @cached_property
    def _typical_distance(self) -> float:
        """What all but few training rows have as mean distance to the nearest others."""
        X = self.solver.problem.X
        sample = subsample(len(X), N_TYPICAL)
        rows = np.arange(len(X)) if sample is None else sample
        queries = np.ascontiguousarray(X[rows], dtype=float)
        distances = self._mean_distance(queries, Exclusions(rows.astype(np.int32)))
        return float(np.quantile(distances, TYPICAL_QUANTILE)) if len(X) > 1 else 0.0

    def _mean_distance(self, queries: Array, exclusions: Exclusions) -> Array:
        lengthscale = np.asarray(self.solver.problem.model.lengthscale, dtype=float)
        request = SearchRequest(queries, lengthscale, N_NEAREST, exclusions)
        found = self.solver.index.measure(request)
        is_there = found.neighbors >= 0
        total = np.where(is_there, found.distances, 0.0).sum(axis=1)
        return total / np.maximum(np.count_nonzero(is_there, axis=1), 1)

    def distance(self, queries: Array, exclusions: Exclusions = NO_EXCLUSIONS) -> Array:
        """How far transformed queries are from the training rows, (q,); 1 is still typical.

        The mean distance to the nearest training rows in the scaled metric, relative to the
        same of training rows without themselves. Where all of these are 0, any distance is
        infinite.
        """
        distances = self._mean_distance(queries, exclusions)
        if self._typical_distance > 0:
            return distances / self._typical_distance
        return np.where(distances > 0, np.inf, 0.0)
