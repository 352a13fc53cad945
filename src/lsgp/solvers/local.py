# SPDX-License-Identifier: BSD-3-Clause
"""The local solver: a neighborhood for every query, and a small system of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lsgp.backends import backend_named
from lsgp.backends.contract import Backend, Plan, Resources, Systems, SystemSize, around
from lsgp.backends.host import noise_unit
from lsgp.backends.local_system import LocalSystem, solve_system
from lsgp.method.arrays import on_host
from lsgp.method.contract import Coefficients, LocalProblem, Predictions, QueryGradients
from lsgp.search.contract import NO_EXCLUSIONS, Exclusions, SearchIndex, SearchRequest
from lsgp.solvers import errors
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block, RowValues, Smoothed, Smoother, Solver, UnitInfo

Array = NDArray[np.float64]

#: Assumed number of rows within a fixed bandwidth in estimates of time.
GUESSED_WITHIN = 200


@dataclass(frozen=True, eq=False)
class LocalSolver:
    """Solves on the backend, from the neighborhoods that the index finds."""

    problem: LocalProblem
    index: SearchIndex
    n_neighbors: int | None  # None with a fixed bandwidth
    backend_name: str  # a name, because modules cannot be pickled

    @property
    def backend(self) -> Backend:
        return backend_named(self.backend_name)

    @property
    def nbytes(self) -> int:
        return 0

    @property
    def units(self) -> LocalProblem:
        """The problem whose rows the neighborhoods number."""
        return self.problem

    def row_coefficients(
        self, units: NDArray[np.int32], beta: Array
    ) -> tuple[NDArray[np.int32], csr_array]:
        """Training rows (r,) that contribute to any query, and their coefficients (q, r)."""
        return errors.sparse_coefficients(units, beta)

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
        block.note(solved.status, self.units, neighbors)
        return solved

    def coefficients(self, queries: Array, block: Block) -> tuple[NDArray[np.int32], Coefficients]:
        """Neighbors (q, m) of the queries, and the coefficients of their targets."""
        neighbors = self._search(queries, block, NO_EXCLUSIONS)
        solved = self.backend.coefficients(Systems(self.units, queries, neighbors))
        block.note(solved.status, self.units, neighbors)
        return neighbors, solved

    def covariance(self, queries: Array, block: Block) -> Array:
        neighbors, solved = self.coefficients(queries, block)
        return errors.error_covariance(self.units, queries, neighbors, solved.beta)

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
        block.note(solved.status, self.problem, neighbors)
        return solved

    def _predict_found(self, queries: Array, block: Block, exclusions: Exclusions) -> Predictions:
        """Search first, then solve: for solvers that do not search on the backend."""
        here = on_host(queries)
        return self._solve(here, self._search(here, block, exclusions), block).beside(queries)

    def _solve(self, queries: Array, neighbors: NDArray[np.int32], block: Block) -> Predictions:
        narrow = queries.astype(self.problem.X.dtype, copy=False)
        solved = self.backend.predict(Systems(self.units, narrow, neighbors))
        block.note(solved.status, self.units, neighbors)
        return solved

    def differentiate(self, queries: Array, block: Block) -> tuple[Predictions, QueryGradients]:
        neighbors = self._search(queries, block, NO_EXCLUSIONS)
        narrow = queries.astype(self.problem.X.dtype, copy=False)
        solved, gradients = self.backend.differentiate(Systems(self.units, narrow, neighbors))
        block.note(solved.status, self.units, neighbors)
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

    def unit_info(self, units: NDArray[np.integer]) -> UnitInfo:
        return UnitInfo.of_rows(self.problem, units)

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
    """Smooths with the coefficients of each query's local system."""

    solver: LocalSolver
    values_of: Callable[[NDArray[np.int32]], RowValues]

    def smooth(self, queries: Array, block: Block) -> Smoothed:
        problem = self.solver.units
        neighbors, solved = self.solver.coefficients(queries, block)
        rows, B = self.solver.row_coefficients(neighbors, solved.beta)
        values = self.values_of(rows)
        unit = np.sqrt(noise_unit(problem, queries, neighbors))[:, None]
        return Smoothed(
            B @ values.function + unit * (B @ values.noise),
            errors.trend_errors(problem, queries, neighbors, solved.beta),
            errors.error_variance(problem, queries, neighbors, solved),
        )
