# SPDX-License-Identifier: BSD-3-Clause
"""The solver of rows that are not all at hand: it solves from those that a search brought."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import BACKENDS
from lsgp.backends.contract import Backend, Plan, Resources
from lsgp.backends.local_system import LocalSystem
from lsgp.method.contract import LocalProblem, Predictions, QueryGradients, join_targets
from lsgp.search.exclusions import NO_EXCLUSIONS, Exclusions
from lsgp.search.index import SearchIndex
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block, RowValues, Smoother, Solver

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FoundSolver:
    """Solves queries whose neighborhoods are known, and no others.

    Queries come in the order of the neighborhoods, in blocks.
    """

    problem: LocalProblem  # of rows at hand
    index: SearchIndex  # of some of the rows; not used
    neighbors: NDArray[np.int32]  # (q, m) places in the problem
    n_neighbors: int | None
    backend_name: str

    @property
    def backend(self) -> Backend:
        return BACKENDS[self.backend_name]

    @property
    def nbytes(self) -> int:
        return 0

    def parts(self) -> Sequence[tuple[NDArray[np.intp], Solver]]:
        return ((np.arange(self.problem.y.shape[1]), self),)

    def plan(self, n_queries: int, resources: Resources, gradient: bool = False) -> Plan:
        return self.backend.plan(self.problem, self.n_neighbors, n_queries, resources, gradient)

    def predict(self, queries: Array, block: Block, mean_only: bool = False) -> Predictions:
        own = self.neighbors[block.first_query : block.first_query + len(queries)]
        return solve(self.problem, queries, own, self.backend, block)

    def differentiate(self, queries: Array, block: Block) -> tuple[Predictions, QueryGradients]:
        raise AssertionError("nobody asks it for derivatives")

    def leave_out(
        self, rows: NDArray[np.int32], block: Block, groups: NDArray[np.int32] | None = None
    ) -> Predictions:
        raise AssertionError("its queries are not rows")

    def predict_without(self, queries: Array, rows: NDArray[np.int32], block: Block) -> Predictions:
        raise AssertionError("its queries are not rows")

    def predict_areas(self, centers: Array, points: Array, block: Block) -> Predictions:
        raise AssertionError("its queries are points")

    def covariance(self, queries: Array, block: Block) -> Array:
        raise AssertionError("nobody asks it for joint predictions")

    def smoother(self, values_of: Callable[[NDArray[np.int32]], RowValues]) -> Smoother:
        raise AssertionError("nobody asks it for joint predictions")

    def work(self, n_queries: int) -> float:
        raise AssertionError("nobody plans with it")

    def systems(
        self,
        queries: Array,
        failures: Failures,
        left_out: NDArray[np.int32] | None = None,
        groups: NDArray[np.int32] | None = None,
    ) -> Iterator[tuple[NDArray[np.int32], LocalSystem]]:
        raise AssertionError("nobody asks it for systems")

    def describe(self) -> str:
        return "all within" if self.n_neighbors is None else str(self.n_neighbors)

    def describe_source(self) -> str:
        return f"{self.describe()} rows of a cluster"


@dataclass(frozen=True, eq=False)
class ClusterSolver(FoundSolver):
    """Searches on the cluster, and solves here; its problem's arrays are `Columns`."""

    def predict(self, queries: Array, block: Block, mean_only: bool = False) -> Predictions:
        return self._predict(queries, block, NO_EXCLUSIONS)

    def leave_out(
        self, rows: NDArray[np.int32], block: Block, groups: NDArray[np.int32] | None = None
    ) -> Predictions:
        queries = np.ascontiguousarray(self.problem.X[rows], dtype=float)
        return self._predict(queries, block, Exclusions.of_rows(rows, groups))

    def _predict(self, queries: Array, block: Block, exclusions: Exclusions) -> Predictions:
        problem = self.problem
        neighbors = self.backend.search(
            self.index,
            problem.model,
            queries,
            self.n_neighbors,
            exclusions,
            block.plan.max_neighbors,
            block.first_query,
        )
        rows, places = np.unique(neighbors, return_inverse=True)
        n_pads = int(np.searchsorted(rows, 0))
        found = np.maximum(places.reshape(neighbors.shape) - n_pads, -1).astype(np.int32)
        X, y, noise = (column[rows[n_pads:]] for column in problem[:3])
        here = LocalProblem(X, y, noise, problem.model)
        return solve(here, queries, np.ascontiguousarray(found), self.backend, block)


def solve(
    problem: LocalProblem,
    queries: Array,
    neighbors: NDArray[np.int32],
    backend: Backend,
    block: Block,
) -> Predictions:
    """Solve local systems of rows at hand, for each level of noise."""
    narrow = np.ascontiguousarray(queries, dtype=problem.X.dtype)
    columns, solved = [], []
    for own, part in problem.by_noise_level():
        columns.append(own)
        solved.append(backend.predict(part, narrow, neighbors))
        block.failures.note(block.first_query, solved[-1].status, part, neighbors)
    return solved[0] if len(solved) == 1 else join_targets(columns, solved)
