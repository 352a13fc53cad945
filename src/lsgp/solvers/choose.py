# SPDX-License-Identifier: BSD-3-Clause
"""The choice of the solver for a model, and the time that a fit takes on the host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import reference
from lsgp.backends.contract import Backend, Plan, Resources
from lsgp.method.contract import (
    LocalProblem,
    Predictions,
    QueryGradients,
    join_gradients,
    join_targets,
)
from lsgp.search.contract import SearchIndex
from lsgp.solvers.coarse import CoarseSolver
from lsgp.solvers.exact import ExactSolver
from lsgp.solvers.exact_system import LARGEST_EXACT, LARGEST_EXACT_FAST
from lsgp.solvers.local import LocalSolver
from lsgp.solvers.solver import Block, Rows, Solver, UnitInfo

Array = NDArray[np.float64]

#: Seconds on one core that local models take in a default fit of MANY_ROWS rows or more.
SECONDS_OF_LOCAL, MANY_ROWS = 40.0, 4000
#: Cubed number of rows per second of factorizations on the host, which use one thread.
CUBED_PER_SECOND = 5.4e10


def choose_solver(
    problem: LocalProblem, index: SearchIndex, n_neighbors: int | None, backend: Backend
) -> Solver:
    """Return the solver for a model.

    The exact solver if all rows are neighbors of every query with weight 1, the coarse one if far
    rows enter as groups, and one solver per noise level if targets differ in it.
    """
    model, n = problem.model, len(problem.X)
    if model.noise_levels is not None:
        levels = tuple(
            (columns, choose_solver(part, index, n_neighbors, backend))
            for columns, part in problem.by_noise_level()
        )
        return LeveledSolver(problem, index, n_neighbors, backend.name, levels)
    is_exact = (
        backend.factors_once
        and model.correlation.is_stationary
        and model.localizer == "rectangular"
        and model.bandwidth is None
        and not model.normalize
        and n_neighbors is not None
        # The limit of devices: a host can predict too, with more time and memory.
        and n <= min(n_neighbors, LARGEST_EXACT_FAST)
    )
    if is_exact:
        return ExactSolver(problem, index, n_neighbors, backend.name)
    if model.is_coarse and n_neighbors is not None and n > n_neighbors:
        return CoarseSolver(problem, index, n_neighbors, backend.name)
    # Only exact GPs have sums of kernels natively, and updates may add rows beyond their limit.
    name = backend.name if backend.knows(model.correlation) else reference.name
    return LocalSolver(problem, index, n_neighbors, name)


def change_rows(
    solver: Solver,
    problem: LocalProblem,
    index: SearchIndex,
    n_neighbors: int | None,
    may_extend: bool,
) -> Solver:
    """Return the solver for a model whose rows changed.

    ``may_extend`` allows an exact solver to extend its factor by rows that were appended.
    """
    changed = choose_solver(problem, index, n_neighbors, solver.backend)
    if not (isinstance(changed, ExactSolver) and isinstance(solver, ExactSolver)):
        return changed
    is_longer = len(problem.X) > len(solver.problem.X)
    return changed.extend(solver) if may_extend and is_longer and solver.is_solved else changed


def change_backend(solver: Solver, backend: Backend) -> Solver:
    """Return a solver of the same model with this backend."""
    if solver.backend is backend:
        return solver
    problem = backend.prepare(solver.problem)
    return choose_solver(problem, solver.index, solver.n_neighbors, backend)


def seconds_on_host(n: int, work: float, n_threads: int) -> float:
    """Estimate the seconds of a fit on the host: a device does not pay off for short fits."""
    local = SECONDS_OF_LOCAL * work * min(1.0, n / MANY_ROWS) / n_threads
    # With more rows, no exact GP is tried.
    return local if n > work * LARGEST_EXACT else local + n**3 / CUBED_PER_SECOND


@dataclass(frozen=True, eq=False)
class LeveledSolver(Solver):
    """One solver per noise level: the matrix [E2] has one noise, and so has its factor.

    Neighborhoods and weights are the same for all levels.
    """

    levels: tuple[tuple[NDArray[np.intp], Solver], ...]  # columns of y, and their solver

    def parts(self) -> tuple[tuple[NDArray[np.intp], Solver], ...]:
        return self.levels

    @property
    def nbytes(self) -> int:
        return sum(solver.nbytes for _, solver in self.levels)

    @property
    def keeps_factor(self) -> bool:
        return self.levels[0][1].keeps_factor

    def plan(self, n_queries: int, resources: Resources, gradient: bool = False) -> Plan:
        # Levels are solved in turn; the one with the most targets needs the most memory.
        _, solver = max(self.levels, key=lambda level: len(level[0]))
        return solver.plan(n_queries, resources, gradient)

    def _join(self, predictions: list[Predictions]) -> Predictions:
        return join_targets([columns for columns, _ in self.levels], predictions)

    def predict(self, queries: Array, block: Block, mean_only: bool = False) -> Predictions:
        return self._join([s.predict(queries, block, mean_only) for _, s in self.levels])

    def differentiate(self, queries: Array, block: Block) -> tuple[Predictions, QueryGradients]:
        found = [solver.differentiate(queries, block) for _, solver in self.levels]
        solved, gradients = zip(*found, strict=True)
        columns = [columns for columns, _ in self.levels]
        return join_targets(columns, solved), join_gradients(columns, gradients)

    def leave_out(self, rows: Rows, block: Block, groups: Rows | None = None) -> Predictions:
        return self._join([s.leave_out(rows, block, groups) for _, s in self.levels])

    def predict_without(self, queries: Array, rows: Rows, block: Block) -> Predictions:
        return self._join([s.predict_without(queries, rows, block) for _, s in self.levels])

    def predict_areas(self, centers: Array, points: Array, block: Block) -> Predictions:
        return self._join([s.predict_areas(centers, points, block) for _, s in self.levels])

    def work(self, n_queries: int) -> float:
        return sum(solver.work(n_queries) for _, solver in self.levels)

    def unit_info(self, units: NDArray[np.integer]) -> UnitInfo:
        y = np.empty((len(units), self.problem.y.shape[1]))
        for columns, solver in self.levels:
            info = solver.unit_info(units)
            y[:, columns] = info.y
        return info._replace(y=y)

    def describe(self) -> str:
        return self.levels[0][1].describe()

    def describe_source(self) -> str:
        return self.levels[0][1].describe_source()
