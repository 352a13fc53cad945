# SPDX-License-Identifier: BSD-3-Clause
"""The local solver: a neighborhood for every query, and a small system of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import backend_named
from lsgp.backends.contract import Backend, Plan, Resources, Systems, SystemSize, around
from lsgp.backends.host import noise_unit
from lsgp.backends.local_system import LocalSystem, solve_system
from lsgp.method.arrays import on_host
from lsgp.method.contract import Coefficients, LocalProblem, Predictions, QueryGradients
from lsgp.search.contract import SearchIndex, SearchRequest
from lsgp.search.exclusions import NO_EXCLUSIONS, Exclusions
from lsgp.solvers import errors
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block, RowValues, Smoothed, Smoother, Solver, Standing

Array = NDArray[np.float64]

#: Rows within a fixed bandwidth, before anyone has looked.
GUESSED_WITHIN = 200


@dataclass(frozen=True, eq=False)
class LocalSolver:
    """Solves by the backend, from the neighborhoods that the index finds."""

    problem: LocalProblem
    index: SearchIndex
    n_neighbors: int | None  # None with a fixed bandwidth
    backend_name: str  # a name can be pickled, a module cannot

    @property
    def backend(self) -> Backend:
        return backend_named(self.backend_name)

    @property
    def nbytes(self) -> int:
        return 0

    @property
    def units(self) -> LocalProblem:
        """What neighborhoods are numbers into: the rows."""
        return self.problem

    @property
    def keeps_factor(self) -> bool:
        return False

    def parts(self) -> tuple[tuple[NDArray[np.intp], Solver]]:
        return ((np.arange(self.problem.y.shape[1]), self),)

    def plan(self, n_queries: int, resources: Resources, gradient: bool = False) -> Plan:
        size = SystemSize.of(self.problem, self.n_neighbors, gradient)
        return self.backend.plan(size, n_queries, resources)

    def predict(self, queries: Array, block: Block, mean_only: bool = False) -> Predictions:
        return self._predict(queries, block, NO_EXCLUSIONS)

    def leave_out(
        self, rows: NDArray[np.int32], block: Block, groups: NDArray[np.int32] | None = None
    ) -> Predictions:
        queries = np.ascontiguousarray(self.problem.X[rows], dtype=float)
        return self._predict(queries, block, Exclusions.of_rows(rows, groups))

    def predict_without(self, queries: Array, rows: NDArray[np.int32], block: Block) -> Predictions:
        return self._predict(queries, block, Exclusions(rows))

    def predict_areas(self, centers: Array, points: Array, block: Block) -> Predictions:
        neighbors, dtype = self._search(centers, block, NO_EXCLUSIONS), self.problem.X.dtype
        at, within = (np.ascontiguousarray(places, dtype) for places in (centers, points))
        solved = self.backend.predict(Systems(self.units, at, neighbors, within))
        block.failures.note(block.first_query, solved.status, self.units, neighbors)
        return solved

    def coefficients(self, queries: Array, block: Block) -> tuple[NDArray[np.int32], Coefficients]:
        """Neighbors (q, m) of the queries, and what their targets are multiplied by."""
        neighbors = self._search(queries, block, NO_EXCLUSIONS)
        solved = self.backend.coefficients(Systems(self.units, queries, neighbors))
        block.failures.note(block.first_query, solved.status, self.units, neighbors)
        return neighbors, solved

    def covariance(self, queries: Array, block: Block) -> Array:
        rows, solved = self.coefficients(queries, block)
        return errors.error_covariance(self.units, queries, rows, solved.beta)

    def smoother(self, values_of: Callable[[NDArray[np.int32]], RowValues]) -> Smoother:
        return LocalSmoother(self, values_of)

    def work(self, n_queries: int) -> float:
        n, d = self.problem.X.shape
        m = min(n, self.n_neighbors or GUESSED_WITHIN)
        return n_queries * (m**3 / 6 + m * m * d)

    def _search(self, queries: Array, block: Block, exclusions: Exclusions) -> NDArray[np.int32]:
        return self.find(self._request(queries, block, exclusions))

    def _request(self, queries: Array, block: Block, exclusions: Exclusions) -> SearchRequest:
        model, limits = self.problem.model, (block.plan.max_neighbors, block.first_query)
        return around(model, queries, self.n_neighbors, exclusions, *limits)

    def neighborhoods(
        self, queries: Array, exclusions: Exclusions = NO_EXCLUSIONS
    ) -> NDArray[np.int32]:
        """Numbers of the units that each query is predicted from, (q, m), padded with -1."""
        return self.find(around(self.problem.model, queries, self.n_neighbors, exclusions))

    def find(self, request: SearchRequest) -> NDArray[np.int32]:
        """As `neighborhoods`, within the limits of a block."""
        return self.backend.search(self.index, request)

    def _predict(self, queries: Array, block: Block, exclusions: Exclusions) -> Predictions:
        request = self._request(queries, block, exclusions)
        solved, neighbors = self.backend.predict_at(self.problem, self.index, request)
        block.failures.note(block.first_query, solved.status, self.problem, neighbors)
        return solved

    def _predict_found(self, queries: Array, block: Block, exclusions: Exclusions) -> Predictions:
        """In two steps, for those whose search or rows are not the backend's."""
        own = on_host(queries)
        return self._solve(own, self._search(own, block, exclusions), block).beside(queries)

    def _solve(self, queries: Array, neighbors: NDArray[np.int32], block: Block) -> Predictions:
        narrow = queries.astype(self.problem.X.dtype, copy=False)
        solved = self.backend.predict(Systems(self.units, narrow, neighbors))
        block.failures.note(block.first_query, solved.status, self.units, neighbors)
        return solved

    def differentiate(self, queries: Array, block: Block) -> tuple[Predictions, QueryGradients]:
        neighbors = self._search(queries, block, NO_EXCLUSIONS)
        narrow = queries.astype(self.problem.X.dtype, copy=False)
        solved, gradients = self.backend.differentiate(Systems(self.units, narrow, neighbors))
        block.failures.note(block.first_query, solved.status, self.units, neighbors)
        return solved, gradients

    def systems(
        self,
        queries: Array,
        failures: Failures,
        left_out: NDArray[np.int32] | None = None,
        groups: NDArray[np.int32] | None = None,
    ) -> Iterator[tuple[NDArray[np.int32], LocalSystem]]:
        neighbors = self.neighborhoods(queries, Exclusions.of_rows(left_out, groups))
        for i, (query, rows) in enumerate(zip(queries, neighbors, strict=True)):
            rows = rows[rows >= 0]
            system = solve_system(self.units, query, rows, with_derivatives=False)
            failures.note(i, np.array([system.status]), self.units, neighbors[i : i + 1])
            yield rows, system

    def stand_for(self, units: NDArray[np.integer]) -> Standing:
        return Standing.of_rows(self.problem, units)

    def describe(self) -> str:
        if self.n_neighbors is None:
            return f"within {self.problem.model.bandwidth:.4g}"
        return str(self.n_neighbors)

    def describe_source(self) -> str:
        if self.n_neighbors is None:
            return f"all rows within {self.problem.model.bandwidth:.4g} of the query"
        return f"the {self.n_neighbors} nearest rows of the query"


@dataclass(frozen=True)
class LocalSmoother:
    """From the coefficients of each query's own system."""

    solver: LocalSolver
    values_of: Callable[[NDArray[np.int32]], RowValues]

    def smooth(self, queries: Array, block: Block) -> Smoothed:
        problem = self.solver.problem
        rows, solved = self.solver.coefficients(queries, block)
        distinct, B = errors.sparse_coefficients(rows, solved.beta)
        given = self.values_of(distinct)
        unit = np.sqrt(noise_unit(problem, queries, rows))[:, None]
        return Smoothed(
            B @ given.function + unit * (B @ given.noise),
            errors.trend_errors(problem, queries, rows, solved.beta),
            errors.error_variance(problem, queries, rows, solved),
        )
