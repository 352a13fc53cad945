# SPDX-License-Identifier: BSD-3-Clause
"""The coarse solver: local systems of near rows, and of nodes of rows that are far [E9]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.host import noise_unit
from lsgp.method.contract import LocalProblem, Predictions
from lsgp.search.coarse import UnitRequest
from lsgp.search.contract import SearchRequest
from lsgp.search.exclusions import Exclusions
from lsgp.solvers import errors
from lsgp.solvers.local import LocalSolver
from lsgp.solvers.nodes import LazyNodes, Nodes
from lsgp.solvers.solver import Block, RowValues, Smoothed, Smoother, Standing

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CoarseSolver(LocalSolver):
    """As the local solver, with nodes behind the rows."""

    lazy: LazyNodes

    @property
    def nodes(self) -> Nodes:
        return self.lazy.made[0]

    @property
    def units(self) -> LocalProblem:
        return self.lazy.made[1]

    def find(self, request: SearchRequest) -> NDArray[np.int32]:
        assert self.n_neighbors is not None
        reach = self.problem.model.reach
        queries = np.ascontiguousarray(request.queries, dtype=float)
        return self.backend.search_units(
            UnitRequest(
                self.nodes.tree, self.index, queries, self.n_neighbors, reach, request.exclusions
            )
        )

    def _predict(self, queries: Array, block: Block, exclusions: Exclusions) -> Predictions:
        return self._predict_found(queries, block, exclusions)

    def covariance(self, queries: Array, block: Block) -> Array:
        """[J1] with the noise that units of different queries share, because they share rows."""
        units, solved = self.coefficients(queries, block)
        apart = errors.error_covariance(self.units, queries, units, solved.beta)
        distinct, B = errors.sparse_coefficients(units, solved.beta)
        shares = self.nodes.shares_of(distinct)
        variance = self.problem.model.noise_variance * self.problem.noise.astype(float)
        own = shares.multiply(shares) @ variance
        by_row = (B @ shares).multiply(np.sqrt(variance)).tocsr()
        by_unit = B.multiply(np.sqrt(own)).tocsr()
        together = (by_row @ by_row.T - by_unit @ by_unit.T).toarray()
        unit = np.sqrt(noise_unit(self.units, queries, units))
        return np.asarray(apart + unit[:, None] * unit[None, :] * together)

    def smoother(self, values_of: Callable[[NDArray[np.int32]], RowValues]) -> Smoother:
        return CoarseSmoother(self, values_of)

    def stand_for(self, units: NDArray[np.integer]) -> Standing:
        n, nodes = len(self.problem.X), self.nodes
        y = np.asarray(self.problem.y[np.where(units < n, units, 0)], dtype=float)
        y[units >= n] = nodes.y[units[units >= n] - n]
        return Standing(nodes.middles(units), nodes.sizes(units), y)

    def describe(self) -> str:
        return f"{self.n_neighbors} units, reach {self.problem.model.reach:.3g}"

    def describe_source(self) -> str:
        return (
            f"{self.n_neighbors} units: the nearest rows of the query, and groups of rows up to "
            f"{self.problem.model.reach:.3g} times as far as its {self.n_neighbors} nearest"
        )


@dataclass(frozen=True)
class CoarseSmoother:
    """From the values of the rows that units stand for."""

    solver: CoarseSolver
    values_of: Callable[[NDArray[np.int32]], RowValues]

    def smooth(self, queries: Array, block: Block) -> Smoothed:
        problem = self.solver.units
        units, solved = self.solver.coefficients(queries, block)
        distinct, B = errors.sparse_coefficients(units, solved.beta)
        by_row = (B @ self.solver.nodes.shares_of(distinct)).tocsc()
        rows = np.flatnonzero(np.diff(by_row.indptr)).astype(np.int32)
        by_row, given = by_row[:, rows].tocsr(), self.values_of(rows)
        unit = np.sqrt(noise_unit(problem, queries, units))[:, None]
        return Smoothed(
            by_row @ given.function + unit * (by_row @ given.noise),
            errors.trend_errors(problem, queries, units, solved.beta),
            errors.error_variance(problem, queries, units, solved),
        )
