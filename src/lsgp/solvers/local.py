# SPDX-License-Identifier: BSD-3-Clause
"""The local solver: a neighborhood for every query, and a small system of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lsgp.backends.contract import Plan, Resources, Systems, SystemSize, around
from lsgp.backends.host import noise_unit
from lsgp.backends.local_system import LocalSystem, solve_system
from lsgp.method.arrays import on_host
from lsgp.method.contract import Coefficients, LocalProblem, Predictions, QueryGradients
from lsgp.search.contract import NO_EXCLUSIONS, Exclusions, SearchRequest
from lsgp.solvers import errors
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block, Rows, RowValues, Smoothed, Smoother, Solver

Array = NDArray[np.float64]

#: Assumed number of rows within a fixed bandwidth in estimates of time.
GUESSED_WITHIN = 200


@dataclass(frozen=True, eq=False)
class LocalSolver(Solver):
    """Solves on the backend, from the neighborhoods that the index finds."""

    @property
    def units(self) -> LocalProblem:
        """The problem whose rows the neighborhoods number."""
        return self.problem

    def row_coefficients(self, units: Rows, beta: Array) -> tuple[Rows, csr_array]:
        """Training rows (r,) that contribute to any query, and their coefficients (q, r)."""
        return errors.sparse_coefficients(units, beta)

    def plan(self, n_queries: int, resources: Resources, gradient: bool = False) -> Plan:
        size = SystemSize.of(self.problem, self.n_neighbors, gradient)
        return self.backend.plan(size, n_queries, resources)

    def predict(self, queries: Array, block: Block, mean_only: bool = False) -> Predictions:
        return self._predict(queries, block, NO_EXCLUSIONS)

    def leave_out(self, rows: Rows, block: Block, groups: Rows | None = None) -> Predictions:
        queries = np.ascontiguousarray(self.problem.X[rows], dtype=float)
        return self._predict(queries, block, Exclusions.of_rows(rows, groups))

    def predict_without(self, queries: Array, rows: Rows, block: Block) -> Predictions:
        return self._predict(queries, block, Exclusions(rows))

    def _predict(self, queries: Array, block: Block, exclusions: Exclusions) -> Predictions:
        request = self._request(queries, exclusions, block)
        solved, neighbors = self.backend.predict_at(self.problem, self.index, request)
        block.note(solved.status, self.problem, neighbors)
        return solved

    def _request(
        self, queries: Array, exclusions: Exclusions, block: Block | None = None
    ) -> SearchRequest:
        limits = () if block is None else (block.plan.max_neighbors, block.first_query)
        return around(self.problem.model, queries, self.n_neighbors, exclusions, *limits)

    def neighborhoods(
        self, queries: Array, exclusions: Exclusions = NO_EXCLUSIONS, block: Block | None = None
    ) -> Rows:
        """Numbers of the units that each query is predicted from, (q, m), padded with -1."""
        return self.find(self._request(queries, exclusions, block))

    def find(self, request: SearchRequest) -> Rows:
        return self.backend.search(self.index, request)

    def _predict_found(self, queries: Array, block: Block, exclusions: Exclusions) -> Predictions:
        """Search first, then solve: for solvers that do not search on the backend."""
        here = on_host(queries)
        neighbors = self.neighborhoods(here, exclusions, block)
        return self._solve(here, neighbors, block).beside(queries)

    def _solve(self, queries: Array, neighbors: Rows, block: Block) -> Predictions:
        narrow = queries.astype(self.problem.X.dtype, copy=False)
        solved = self.backend.predict(Systems(self.units, narrow, neighbors))
        block.note(solved.status, self.units, neighbors)
        return solved

    def predict_areas(self, centers: Array, points: Array, block: Block) -> Predictions:
        neighbors, dtype = self.neighborhoods(centers, block=block), self.problem.X.dtype
        at, within = (np.ascontiguousarray(places, dtype) for places in (centers, points))
        solved = self.backend.predict(Systems(self.units, at, neighbors, within))
        block.note(solved.status, self.units, neighbors)
        return solved

    def coefficients(self, queries: Array, block: Block) -> tuple[Rows, Coefficients]:
        """Neighbors (q, m) of the queries, and the coefficients of their targets."""
        neighbors = self.neighborhoods(queries, block=block)
        solved = self.backend.coefficients(Systems(self.units, queries, neighbors))
        block.note(solved.status, self.units, neighbors)
        return neighbors, solved

    def covariance(self, queries: Array, block: Block) -> Array:
        neighbors, solved = self.coefficients(queries, block)
        return errors.error_covariance(self.units, queries, neighbors, solved.beta)

    def smoother(self, values_of: Callable[[Rows], RowValues]) -> Smoother:
        def smooth(queries: Array, block: Block) -> Smoothed:
            neighbors, solved = self.coefficients(queries, block)
            rows, B = self.row_coefficients(neighbors, solved.beta)
            values = values_of(rows)
            unit = np.sqrt(noise_unit(self.units, queries, neighbors))[:, None]
            return Smoothed(
                B @ values.function + unit * (B @ values.noise),
                errors.trend_errors(self.units, queries, neighbors, solved.beta),
                errors.error_variance(self.units, queries, neighbors, solved),
            )

        return smooth

    def differentiate(self, queries: Array, block: Block) -> tuple[Predictions, QueryGradients]:
        neighbors = self.neighborhoods(queries, block=block)
        narrow = queries.astype(self.problem.X.dtype, copy=False)
        solved, gradients = self.backend.differentiate(Systems(self.units, narrow, neighbors))
        block.note(solved.status, self.units, neighbors)
        return solved, gradients

    def systems(
        self,
        queries: Array,
        failures: Failures,
        left_out: Rows | None = None,
        groups: Rows | None = None,
    ) -> Iterator[tuple[Rows, LocalSystem]]:
        neighbors = self.neighborhoods(queries, Exclusions.of_rows(left_out, groups))
        for i, (query, rows) in enumerate(zip(queries, neighbors, strict=True)):
            rows = rows[rows >= 0]
            system = solve_system(self.units, query, rows, with_derivatives=False)
            failures.note(i, np.array([system.status]), self.units, neighbors[i : i + 1])
            yield rows, system

    def work(self, n_queries: int) -> float:
        n, d = self.problem.X.shape
        m = min(n, self.n_neighbors or GUESSED_WITHIN)
        return n_queries * (m**3 / 6 + m * m * d)

    def describe(self) -> str:
        if self.n_neighbors is None:
            return f"within {self.problem.model.bandwidth:.4g}"
        return str(self.n_neighbors)

    def describe_source(self) -> str:
        if self.n_neighbors is None:
            return f"all rows within {self.problem.model.bandwidth:.4g} of the query"
        return f"the {self.n_neighbors} nearest rows of the query"
