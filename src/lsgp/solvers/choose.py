# SPDX-License-Identifier: BSD-3-Clause
"""The choice of the solver for a model, and the time that a fit takes on the host."""

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
        # The limit of devices: a host can predict too, with more time and memory.
        and n <= min(n_neighbors, LARGEST_EXACT_FAST)
    )
    if is_exact:
        assert n_neighbors is not None
        return ExactSolver(problem, index, n_neighbors, backend.name)
    if model.is_coarse and n_neighbors is not None and n > n_neighbors:
        return CoarseSolver(problem, index, n_neighbors, backend.name, LazyNodes(problem))
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
