# SPDX-License-Identifier: BSD-3-Clause
"""Which solver a model needs, and what a fit takes without a device: asked here alone."""

from __future__ import annotations

from lsgp.backends import reference
from lsgp.backends.contract import Backend
from lsgp.method.contract import LocalProblem
from lsgp.search.contract import SearchIndex
from lsgp.solvers.coarse import CoarseSolver
from lsgp.solvers.exact import ExactSolver
from lsgp.solvers.exact_system import LARGEST_EXACT, LARGEST_EXACT_FAST
from lsgp.solvers.leveled import LeveledSolver
from lsgp.solvers.local import LocalSolver
from lsgp.solvers.nodes import LazyNodes
from lsgp.solvers.solver import Solver

#: Seconds that local models take one core in a default fit of this many rows, and of more.
SECONDS_OF_LOCAL, MANY_ROWS = 40.0, 4000
#: Cubed rows that the host factors in a second, which several threads do not share.
CUBED_PER_SECOND = 5.4e10


def choose_solver(
    problem: LocalProblem, index: SearchIndex, n_neighbors: int | None, backend: Backend
) -> Solver:
    """The exact solver where all rows are neighbors of every query with weight 1.

    The coarse one where units reach for more rows than they are. One for each level of noise where
    targets differ in it.
    """
    if problem.model.noise_levels is not None:
        return LeveledSolver(
            problem,
            tuple(
                (columns, choose_solver(part, index, n_neighbors, backend))
                for columns, part in problem.by_noise_level()
            ),
        )
    model, n = problem.model, len(problem.X)
    is_exact = (
        backend.factors_once
        and model.correlation.is_stationary
        and model.localizer == "rectangular"
        and model.bandwidth is None
        and not model.normalize
        and n_neighbors is not None
        # What was fitted on a device is predicted anywhere, if it takes long and much memory.
        and n <= min(n_neighbors, LARGEST_EXACT_FAST)
    )
    if is_exact:
        assert n_neighbors is not None
        return ExactSolver(problem, index, n_neighbors, backend.name)
    if model.is_coarse and n_neighbors is not None and n > n_neighbors:
        return CoarseSolver(problem, index, n_neighbors, backend.name, LazyNodes(problem))
    # What only exact GPs have natively may be of more rows than these take, after updates.
    name = backend.name if backend.knows(model.correlation) else reference.name
    return LocalSolver(problem, index, n_neighbors, name)


def change_rows(
    solver: Solver,
    problem: LocalProblem,
    index: SearchIndex,
    n_neighbors: int | None,
    may_extend: bool,
) -> Solver:
    """The solver that a model needs with other rows; ``may_extend`` a factor by rows behind."""
    changed = choose_solver(problem, index, n_neighbors, solver.backend)
    if not (isinstance(changed, ExactSolver) and isinstance(solver, ExactSolver)):
        return changed
    is_longer = len(problem.X) > len(solver.problem.X)
    return changed.extend(solver) if may_extend and is_longer and solver.is_solved else changed


def change_backend(solver: Solver, backend: Backend) -> Solver:
    """The same model solved by another backend; itself if that is the one it has."""
    if solver.backend is backend:
        return solver
    problem = backend.prepare(solver.problem)
    return choose_solver(problem, solver.index, solver.n_neighbors, backend)


def seconds_on_host(n: int, work: float, n_threads: int) -> float:
    """What a fit takes without a device, roughly: short ones are not worth one."""
    local = SECONDS_OF_LOCAL * work * min(1.0, n / MANY_ROWS) / n_threads
    # Of more rows, no exact GP is tried.
    return local if n > work * LARGEST_EXACT else local + n**3 / CUBED_PER_SECOND
