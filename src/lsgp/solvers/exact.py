# SPDX-License-Identifier: BSD-3-Clause
"""The exact solver: all rows are neighbors of every query, and one factor serves them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import backend_named
from lsgp.backends.contract import Backend, Plan, Resources
from lsgp.backends.dense_host import dense_for
from lsgp.backends.dense_single import SingleFactor
from lsgp.backends.local_system import LocalSystem
from lsgp.compute.blas import one_blas_thread
from lsgp.compute.threads import ForkableLock
from lsgp.method.arrays import on_host
from lsgp.method.contract import (
    LocalProblem,
    Predictions,
    QueryGradients,
    concatenate_results,
    reorder_results,
)
from lsgp.search.contract import SearchIndex
from lsgp.solvers.exact_gradient import differentiate
from lsgp.solvers.exact_query import query_system
from lsgp.solvers.exact_system import ExactSystem, LeftOut
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block, RowValues, Smoothed, Smoother, Solver, UnitInfo

Array = NDArray[np.float64]


class ExactSolver:
    """Solves from one system of all rows, which is factored once, on first use.

    The factor is kept because it takes seconds for many rows. It is neither pickled nor copied,
    because it is large and can be computed again.
    """

    def __init__(
        self,
        problem: LocalProblem,
        index: SearchIndex,
        n_neighbors: int,
        backend_name: str,
        system: ExactSystem | None = None,
    ) -> None:
        self.problem = problem
        self.index = index
        self.n_neighbors = n_neighbors  # at least as many as there are rows
        self.backend_name = backend_name
        self._system = system
        self._joint_system: ExactSystem | None = None
        self._lock = ForkableLock()
        self._left_out: LeftOut | None = None  # the group that was left out last

    @property
    def backend(self) -> Backend:
        return backend_named(self.backend_name)

    @property
    def nbytes(self) -> int:
        dense = dense_for(self.problem.model, self.backend.dense)
        whole = dense.host_bytes(len(self.problem.X))
        single = whole // 2 if self._is_single else whole
        return single if self._joint_system is None else single + whole

    @property
    def _is_single(self) -> bool:
        """Whether the factor is, or is planned to be, in single precision."""
        if self._system is None:
            return self.problem.model.is_single
        return isinstance(self._system.factor, SingleFactor)

    @property
    def keeps_factor(self) -> bool:
        return True

    @property
    def is_solved(self) -> bool:
        return self._system is not None

    @property
    def system(self) -> ExactSystem:
        with self._lock:
            if self._system is None:
                with one_blas_thread():
                    self._system = ExactSystem.solve(self.problem, self.backend.dense)
            return self._system

    @property
    def joint_system(self) -> ExactSystem:
        """The system in double precision, for covariances between queries.

        Differences of covariances need more digits than predictions.
        """
        if not self.problem.model.is_single:
            return self.system
        with self._lock:
            if self._joint_system is None:
                problem = self.problem._replace(model=self.problem.model.replace(is_single=False))
                with one_blas_thread():
                    self._joint_system = ExactSystem.solve(problem, self.backend.dense)
            return self._joint_system

    def free_joint_system(self) -> None:
        """Free the memory of `joint_system`, which is computed again on its next use."""
        with self._lock:
            self._joint_system = None

    def extend(self, previous: ExactSolver) -> ExactSolver:
        """Return this solver with a factor extended from that of a solver of its first rows."""
        with one_blas_thread():
            system = previous.system.extend(self.problem)
        return ExactSolver(self.problem, self.index, self.n_neighbors, self.backend_name, system)

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: getattr(self, name)
            for name in ("problem", "index", "n_neighbors", "backend_name")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def parts(self) -> tuple[tuple[NDArray[np.intp], Solver]]:
        return ((np.arange(self.problem.y.shape[1]), self),)

    def plan(self, n_queries: int, resources: Resources, gradient: bool = False) -> Plan:
        return Plan(self.backend.dense.block_size, resources.n_threads, len(self.problem.X))

    def predict(self, queries: Array, block: Block, mean_only: bool = False) -> Predictions:
        # Blocks run in threads (n_jobs); one BLAS thread in each makes sums independent of n_jobs.
        with one_blas_thread():
            narrow = on_host(queries).astype(self.problem.X.dtype, copy=False)
            return self._note(self.system.predict(narrow, mean_only), block).beside(queries)

    def differentiate(self, queries: Array, block: Block) -> tuple[Predictions, QueryGradients]:
        with one_blas_thread():
            narrow = queries.astype(self.problem.X.dtype, copy=False)
            solved, gradients = differentiate(self.system, narrow)
            return self._note(solved, block), gradients

    def leave_out(
        self, rows: NDArray[np.int32], block: Block, groups: NDArray[np.int32] | None = None
    ) -> Predictions:
        with one_blas_thread():
            if groups is None:
                return self._note(self.system.leave_out(rows), block)
            parts = []
            # Rows sorted by group, so that each group is left out once.
            order = np.argsort(groups[rows], kind="stable")
            edges = np.flatnonzero(np.diff(groups[rows[order]])) + 1
            for places in np.split(order, edges) if len(rows) else [order]:
                parts.append(self._leave_group_out(rows[places], groups))
            solved = reorder_results(concatenate_results(parts), np.argsort(order))
            return self._note(solved, block)

    def _leave_group_out(self, rows: NDArray[np.int32], groups: NDArray[np.int32]) -> Predictions:
        """Predict rows of one group from all other rows; of group -1, each row without itself."""
        if not len(rows) or groups[rows[0]] < 0:
            return self.system.leave_out(rows)
        members = np.flatnonzero(groups == groups[rows[0]])
        if len(members) == 1:
            return self.system.leave_out(rows)
        kept = self._left_out
        if kept is None or not np.array_equal(kept.members, members):
            # Kept, because a large group continues in the next block.
            kept = self._left_out = self.system.without(members)
        return self.system.leave_group_out(rows, kept)

    def predict_without(self, queries: Array, rows: NDArray[np.int32], block: Block) -> Predictions:
        with one_blas_thread():
            narrow = queries.astype(self.problem.X.dtype, copy=False)
            return self._note(self.system.predict_without(narrow, rows), block)

    def predict_areas(self, centers: Array, points: Array, block: Block) -> Predictions:
        with one_blas_thread():
            return self._note(self.joint_system.predict_areas(centers, points), block)

    def covariance(self, queries: Array, block: Block) -> Array:
        with one_blas_thread():
            system = self.joint_system
            self._note(system.predict(queries, mean_only=True), block)
            return system.covariance(queries)

    def smoother(self, values_of: Callable[[NDArray[np.int32]], RowValues]) -> Smoother:
        rows = np.arange(len(self.problem.X), dtype=np.int32)
        with one_blas_thread():
            return ExactSmoother.build(self.joint_system, values_of(rows))

    def work(self, n_queries: int) -> float:
        n, d = self.problem.X.shape
        # A column of the inverse, and a row of correlations per query (an exponential is about 20).
        return float(n * n + n_queries * n * (3 * d + 20))

    def _note(self, solved: Predictions, block: Block) -> Predictions:
        n = len(self.problem.X)
        neighbors = np.broadcast_to(np.arange(n, dtype=np.int32), (len(solved.status), n))
        block.note(solved.status, self.problem, neighbors)
        return solved

    def systems(
        self,
        queries: Array,
        failures: Failures,
        left_out: NDArray[np.int32] | None = None,
        groups: NDArray[np.int32] | None = None,
    ) -> Iterator[tuple[NDArray[np.int32], LocalSystem]]:
        rows = np.full(len(queries), -1) if left_out is None else left_out
        for i, (query, row) in enumerate(zip(queries, rows, strict=True)):
            without = np.array([row]) if row >= 0 else np.empty(0, np.int64)
            if row >= 0 and groups is not None and groups[row] >= 0:
                without = np.flatnonzero(groups == groups[row])
            with one_blas_thread():  # to the last digit as `predict`
                system = query_system(self.system, query, without)
            failures.note(i, np.array([system.status]), self.problem, system.rows[None])
            yield system.rows, system

    def unit_info(self, units: NDArray[np.integer]) -> UnitInfo:
        return UnitInfo.of_rows(self.problem, units)

    def describe(self) -> str:
        return "all rows"

    def describe_source(self) -> str:
        return "all rows"


@dataclass(frozen=True)
class ExactSmoother:
    """Smooths with the factor of all rows, without forming each query's coefficients.

    The trend's basis is smoothed beside the values; its error gives the factors of the trend.
    """

    system: ExactSystem  # whose targets are the values, then the basis
    n_values: int

    @classmethod
    def build(cls, system: ExactSystem, row_values: RowValues) -> ExactSmoother:
        values = row_values.function + row_values.noise
        basis = np.column_stack([np.ones(system.n), system.z])
        return cls(system.with_targets(np.column_stack([values, basis])), values.shape[1])

    def smooth(self, queries: Array, block: Block) -> Smoothed:
        solved = self.system.predict(queries)
        values, constant, z = np.split(solved.mean, [self.n_values, self.n_values + 1], axis=1)
        along = z - constant * self.system.scale(queries)
        return Smoothed(values, np.column_stack([1.0 - constant, -along]), solved.variance)
