# SPDX-License-Identifier: BSD-3-Clause
"""The exact solver: all rows are neighbors of every query, and one factor serves them all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass, field

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Plan, Resources
from lsgp.backends.dense_host import TILE, are_finite, correlate_with_slopes, dense_for
from lsgp.backends.dense_single import SingleFactor
from lsgp.backends.local_system import SMALLEST_VARIANCE, Covariance, LocalSystem, unsolved
from lsgp.compute.blas import one_blas_thread
from lsgp.compute.threads import ForkableLock
from lsgp.method import contract
from lsgp.method.arrays import on_host
from lsgp.method.contract import Predictions, QueryGradients, concatenate_results, reorder_results
from lsgp.method.trend import TrendPosterior, trend_basis
from lsgp.solvers.exact_system import ExactSystem, LeftOut
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block, Rows, RowValues, Smoothed, Smoother, Solver

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ExactSolver(Solver):
    """Solves from one system of all rows, which is factored once: that takes seconds for many."""

    factored: InitVar[ExactSystem | None] = None  # the system of these rows, if it is known
    #: The systems that were factored, by whether they are (planned to be) in single precision.
    _systems: dict[bool, ExactSystem] = field(init=False, default_factory=dict)
    _last_left_out: list[LeftOut] = field(init=False, default_factory=list)
    _lock: ForkableLock = field(init=False, default_factory=ForkableLock)

    def __post_init__(self, factored: ExactSystem | None) -> None:
        if factored is not None:
            self._systems[self.problem.model.is_single] = factored

    def _factored(self, is_single: bool) -> ExactSystem:
        with self._lock:
            if is_single not in self._systems:
                model = self.problem.model.replace(is_single=is_single)
                problem = self.problem._replace(model=model)
                with one_blas_thread():
                    self._systems[is_single] = ExactSystem.solve(problem, self.backend.dense)
            return self._systems[is_single]

    @property
    def is_solved(self) -> bool:
        return self.problem.model.is_single in self._systems

    @property
    def system(self) -> ExactSystem:
        return self._factored(self.problem.model.is_single)

    @property
    def joint_system(self) -> ExactSystem:
        """The system in double precision, for covariances between queries.

        Differences of covariances need more digits than predictions.
        """
        return self._factored(is_single=False)

    def free_joint_system(self) -> None:
        """Free the memory of `joint_system`, if it is computed for covariances alone."""
        if self.problem.model.is_single:
            with self._lock:
                self._systems.pop(False, None)

    def extend(self, previous: ExactSolver) -> ExactSolver:
        """Return this solver with a factor extended from that of a solver of its first rows."""
        with one_blas_thread():
            system = previous.system.extend(self.problem)
        return ExactSolver(self.problem, self.index, self.n_neighbors, self.backend_name, system)

    @property
    def nbytes(self) -> int:
        whole = dense_for(self.problem.model, self.backend.dense).host_bytes(len(self.problem.X))
        is_single = self.problem.model.is_single
        if not is_single:
            return whole
        known = self._systems.get(True)  # in double precision if single turned out too coarse
        own = whole // 2 if known is None or isinstance(known.factor, SingleFactor) else whole
        return own + whole if False in self._systems else own

    @property
    def keeps_factor(self) -> bool:
        return True

    def plan(self, n_queries: int, resources: Resources, gradient: bool = False) -> Plan:
        return Plan(self.backend.dense.block_size, resources.n_threads, len(self.problem.X))

    def _note(self, solved: Predictions, block: Block) -> Predictions:
        n = len(self.problem.X)
        neighbors = np.broadcast_to(np.arange(n, dtype=np.int32), (len(solved.status), n))
        block.note(solved.status, self.problem, neighbors)
        return solved

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

    def leave_out(self, rows: Rows, block: Block, groups: Rows | None = None) -> Predictions:
        with one_blas_thread():
            if groups is None:
                return self._note(self.system.leave_out(rows), block)
            # Rows sorted by group, so that each group is left out once.
            order = np.argsort(groups[rows], kind="stable")
            edges = np.flatnonzero(np.diff(groups[rows[order]])) + 1
            parts = [
                self._leave_group_out(rows[places], groups)
                for places in (np.split(order, edges) if len(rows) else [order])
            ]
            solved = reorder_results(concatenate_results(parts), np.argsort(order))
            return self._note(solved, block)

    def _leave_group_out(self, rows: Rows, groups: Rows) -> Predictions:
        """Predict rows of one group from all other rows; of group -1, each row without itself."""
        members = np.flatnonzero(groups == groups[rows[0]]) if len(rows) else rows
        if len(members) < 2 or groups[rows[0]] < 0:
            return self.system.leave_out(rows)
        last = self._last_left_out  # kept, because a large group continues in the next block
        if not last or not np.array_equal(last[0].rows, members):
            last[:] = [self.system.without(members)]
        return self.system.leave_group_out(rows, last[0])

    def predict_without(self, queries: Array, rows: Rows, block: Block) -> Predictions:
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

    def smoother(self, values_of: Callable[[Rows], RowValues]) -> Smoother:
        """Smooth with the factor of all rows, without forming each query's coefficients.

        The trend's basis is smoothed beside the values; its error gives the factors of the trend.
        """
        of_rows = values_of(np.arange(len(self.problem.X), dtype=np.int32))
        values = of_rows.function + of_rows.noise
        with one_blas_thread():
            system = self.joint_system
            basis = np.column_stack([np.ones(system.n), system.z])
            system = system.with_targets(np.column_stack([values, basis]))
        edges = [values.shape[1], values.shape[1] + 1]

        def smooth(queries: Array, block: Block) -> Smoothed:
            solved = system.predict(queries)
            smoothed, constant, z = np.split(solved.mean, edges, axis=1)
            along = z - constant * system.scale(queries)
            by_trend = np.column_stack([1.0 - constant, -along])
            return Smoothed(smoothed, by_trend, solved.variance)

        return smooth

    def work(self, n_queries: int) -> float:
        n, d = self.problem.X.shape
        # A column of the inverse, and a row of correlations per query (an exponential is about 20).
        return float(n * n + n_queries * n * (3 * d + 20))

    def systems(
        self,
        queries: Array,
        failures: Failures,
        left_out: Rows | None = None,
        groups: Rows | None = None,
    ) -> Iterator[tuple[Rows, LocalSystem]]:
        rows = np.full(len(queries), -1) if left_out is None else left_out
        for i, (query, row) in enumerate(zip(queries, rows, strict=True)):
            without = np.array([row]) if row >= 0 else np.empty(0, np.int64)
            if row >= 0 and groups is not None and groups[row] >= 0:
                without = np.flatnonzero(groups == groups[row])
            with one_blas_thread():  # to the last digit as `predict`
                system = query_system(self.system, query, without)
            failures.note(i, np.array([system.status]), self.problem, system.rows[None])
            yield system.rows, system

    def describe(self) -> str:
        return "all rows"

    def describe_source(self) -> str:
        return "all rows"


def query_system(
    exact: ExactSystem, query: Array, left_out: NDArray[np.integer] | None = None
) -> LocalSystem:
    """Return the local system of one query (d,), without the rows ``left_out``.

    Explanations of a prediction need it.
    """
    problem = exact.problem
    point = exact.scale(query[None])
    if exact.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
        return unsolved(problem, exact.status)
    if not are_finite(point).all():
        return unsolved(problem, contract.STATUS_NOT_FINITE)
    correlation = exact.factor.correlate(point)[0]
    gram, moment = exact.gram, exact.moment
    solved = np.column_stack([exact.factor.solve(correlation), exact.alpha, exact.by_trend])
    rows, t = np.arange(exact.n, dtype=np.int32), exact.alpha.shape[1]
    is_whole = left_out is None or not len(left_out)
    if left_out is not None and not is_whole:
        columns = exact.factor.inverse_columns(left_out)
        by_block = np.linalg.solve(columns[left_out], solved[left_out])
        gram = gram - exact.by_trend[left_out].T @ by_block[:, 1 + t :]
        moment = moment - exact.by_trend[left_out].T @ by_block[:, 1 : 1 + t]
        solved -= columns @ by_block
        rows = np.delete(rows, left_out)
    by_k, alpha, by_trend = np.split(solved[rows], [1, 1 + t], axis=1)
    T = exact.centering(point)
    trend = exact.trend(T, gram, moment)
    by_trend, k = by_trend @ T[0], correlation[rows]
    rest = exact.at_center() - k @ by_trend
    explained = k @ by_k[:, 0]
    if is_whole and problem.model.is_single:
        # As in `ExactSystem.predict`, with the digits of single precision.
        explained = exact.products(point, mean_only=False)[0][0]
    variance = 1.0 - explained + trend.variance(rest[None])[0]
    theta, kappa = trend.mean[0], trend.solve(rest[None, :, None])[0, :, 0]
    is_determined = bool(trend.determines(rest[None])[0])
    z, none, a = exact.z[rows] - point, np.empty((len(rows), 0)), len(kappa)
    basis, unknown = trend_basis(problem.model, z), np.full((a, a), np.nan)
    return LocalSystem(
        rows=rows,
        y=problem.y[rows].astype(float),
        z=z,
        weight=np.ones(len(rows)),
        weight_by_log_lengthscale=none,
        weight_by_decay=np.zeros(len(rows)),
        noise=problem.noise[rows].astype(float),
        covariance=Covariance(np.empty((0, 0)), k, 1.0, np.empty((0, 0, 0)), none, np.empty(0)),
        factor=(np.empty((0, 0)), True),
        alpha=alpha - by_trend @ theta,
        beta=by_k[:, 0] + by_trend @ kappa,
        mean=k @ alpha + rest @ theta,
        variance=max(variance, SMALLEST_VARIANCE),
        misfit=(problem.y[rows] * alpha).sum(axis=0) - trend.explained[0],
        trend=TrendPosterior(basis, theta, kappa, float(rest @ kappa), unknown, np.nan, True),
        status=exact.status if is_determined else contract.STATUS_UNDETERMINED,
    )


def differentiate(system: ExactSystem, queries: Array) -> tuple[Predictions, QueryGradients]:
    """Predictions of queries (q, d), and their derivatives.

    The special case of `lsgp.backends.local_system` in which all weights are 1: only the
    correlations with the query and the center of the trend depend on the query.
    """
    solved = system.predict(queries)
    q, d = queries.shape
    gradients = QueryGradients.empty(q, system.alpha.shape[1], d)
    gradients.dof[:], gradients.noise_unit[:] = 0.0, 0.0
    z = system.scale(queries)
    z = np.where(are_finite(z)[:, None], z, 0.0)
    for start in range(0, q, TILE):
        part = slice(start, min(start + TILE, q))
        # The last tile is padded, so that results do not depend on the number of queries.
        tile = np.zeros((TILE, d))
        tile[: part.stop - start] = z[part]
        mean, variance, misfit = _differentiate_tile(system, tile)
        gradients.mean[part] = mean[: part.stop - start]
        gradients.variance[part] = variance[: part.stop - start]
        gradients.scale[part] = misfit[: part.stop - start]
    gradients.variance[solved.variance <= SMALLEST_VARIANCE] = 0.0
    if math.isinf(system.problem.model.scale_dof):
        gradients.scale[:] = 0.0
    else:
        gradients.scale[:] /= solved.dof[:, None, None]  # [E6]
    return solved, gradients


def _differentiate_tile(system: ExactSystem, z: Array) -> tuple[Array, Array, Array]:
    """Derivatives of mean (q, t, d), variance (q, d) and misfit (q, t, d) at scaled queries."""
    model, d = system.problem.model, z.shape[1]
    k, sum_slopes = correlate_with_slopes(model, z, system.z)
    T = system.centering(z)
    trend = system.trend(T, system.gram, system.moment)
    rest = system.at_center() - np.einsum("qp,qpa->qa", k @ system.by_trend, T)
    theta, kappa = trend.mean, trend.solve(rest[:, :, None])
    # [E10] alpha and beta of each query.
    alpha = system.alpha - system.by_trend @ (T @ theta)  # (q, n, t)
    beta = system.factor.solve(k.T).T[:, :, None] + system.by_trend @ (T @ kappa)  # (q, n, 1)
    slope = [theta[:, -d:], -kappa[:, -d:]]
    if model.slope_variance == 0:
        slope = [np.zeros((len(z), d, theta.shape[2])), np.zeros((len(z), d, 1))]
    sums = alpha.sum(axis=1), beta.sum(axis=1)  # (q, t) and (q, 1)

    def through_A(left: int, right: int) -> Array:
        """leftᵀ dA right, (q, t, d), through the center of the slope."""
        crossed = slope[left] * sums[right][:, None, :] + sums[left][:, None, :] * slope[right]
        return np.asarray(-crossed.transpose(0, 2, 1))

    # Solutions times the derivatives of the correlations [E1] are (q, t, d).
    mean = sum_slopes(alpha) - through_A(0, 1)
    variance = -2.0 * sum_slopes(beta) + through_A(1, 1)
    unit = 1.0 / model.lengthscale
    return mean * unit, variance[:, 0] * unit, -through_A(0, 0) * unit
