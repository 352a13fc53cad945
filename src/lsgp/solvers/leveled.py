# SPDX-License-Identifier: BSD-3-Clause
"""The solver of several targets whose noise differs: one solver for each noise level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Backend, Plan, Resources
from lsgp.backends.local_system import LocalSystem
from lsgp.method.contract import (
    LocalProblem,
    Predictions,
    QueryGradients,
    join_gradients,
    join_targets,
)
from lsgp.search.contract import SearchIndex
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block, RowValues, Smoother, Solver, UnitInfo

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LeveledSolver:
    """One solver per noise level: the matrix [E2] has one noise, and so has its factor.

    Neighborhoods and weights are the same for all levels.
    """

    problem: LocalProblem  # of all targets
    levels: tuple[tuple[NDArray[np.intp], Solver], ...]  # columns of y, and their solver

    def parts(self) -> tuple[tuple[NDArray[np.intp], Solver], ...]:
        return self.levels

    @property
    def _first(self) -> Solver:
        return self.levels[0][1]

    @property
    def index(self) -> SearchIndex:
        return self._first.index

    @property
    def backend(self) -> Backend:
        return self._first.backend

    @property
    def n_neighbors(self) -> int | None:
        return self._first.n_neighbors

    @property
    def nbytes(self) -> int:
        return sum(solver.nbytes for _, solver in self.levels)

    @property
    def keeps_factor(self) -> bool:
        return self._first.keeps_factor

    def plan(self, n_queries: int, resources: Resources, gradient: bool = False) -> Plan:
        # Levels are solved in turn; the one with the most targets needs the most memory.
        _, solver = max(self.levels, key=lambda level: len(level[0]))
        return solver.plan(n_queries, resources, gradient)

    def predict(self, queries: Array, block: Block, mean_only: bool = False) -> Predictions:
        return self._join([s.predict(queries, block, mean_only) for _, s in self.levels])

    def differentiate(self, queries: Array, block: Block) -> tuple[Predictions, QueryGradients]:
        found = [solver.differentiate(queries, block) for _, solver in self.levels]
        columns = [columns for columns, _ in self.levels]
        solved, gradients = zip(*found, strict=True)
        return join_targets(columns, solved), join_gradients(columns, gradients)

    def leave_out(
        self, rows: NDArray[np.int32], block: Block, groups: NDArray[np.int32] | None = None
    ) -> Predictions:
        return self._join([s.leave_out(rows, block, groups) for _, s in self.levels])

    def predict_without(self, queries: Array, rows: NDArray[np.int32], block: Block) -> Predictions:
        return self._join([s.predict_without(queries, rows, block) for _, s in self.levels])

    def predict_areas(self, centers: Array, points: Array, block: Block) -> Predictions:
        return self._join([s.predict_areas(centers, points, block) for _, s in self.levels])

    def covariance(self, queries: Array, block: Block) -> Array:
        raise AssertionError("use the solvers in parts(): errors differ between noise levels")

    def smoother(self, values_of: Callable[[NDArray[np.int32]], RowValues]) -> Smoother:
        raise AssertionError("use the solvers in parts(): errors differ between noise levels")

    def work(self, n_queries: int) -> float:
        return sum(solver.work(n_queries) for _, solver in self.levels)

    def _join(self, predictions: list[Predictions]) -> Predictions:
        return join_targets([columns for columns, _ in self.levels], predictions)

    def systems(
        self,
        queries: Array,
        failures: Failures,
        left_out: NDArray[np.int32] | None = None,
        groups: NDArray[np.int32] | None = None,
    ) -> Iterator[tuple[NDArray[np.int32], LocalSystem]]:
        raise AssertionError("use the solvers in parts(): systems differ between noise levels")

    def unit_info(self, units: NDArray[np.integer]) -> UnitInfo:
        y = np.empty((len(units), self.problem.y.shape[1]))
        for columns, solver in self.levels:
            info = solver.unit_info(units)
            y[:, columns] = info.y
        return info._replace(y=y)

    def describe(self) -> str:
        return self._first.describe()

    def describe_source(self) -> str:
        return self._first.describe_source()
