# SPDX-License-Identifier: BSD-3-Clause
"""The system of all rows, factored once for all queries: where a local model is an exact GP.

With the rectangular localizer and all rows as neighbors, the local systems of all queries differ
in their trend alone, whose slope is centered at the query. The correlations are factored without
it, and the trend is put back for each query [E10], which is a system of d + 1 unknowns (universal
kriging, with a prior if that is proper). So the equations are those of the local solve, [E1] to
[E6], and not an approximation of them; leaving out a row needs no other factor either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.dense import Dense, InverseFactor, matrix_bytes
from lsgp.backends.dense_host import HOST, are_finite, correlate, dense_for
from lsgp.backends.local_system import SMALLEST_VARIANCE
from lsgp.method import contract
from lsgp.method.contract import LocalProblem, Predictions
from lsgp.solvers.exact_trend import QueryTrends, solve_free, solve_with_prior
from lsgp.solvers.refinement import solve_refined

Array = NDArray[np.float64]

#: With more rows, factoring takes too long, and the inverse factor too much memory: on a host,
LARGEST_EXACT = 10_000
#: and on a device, which does n³ two hundred times as fast.
LARGEST_EXACT_FAST = 40_000
#: Entries of the trends' matrices that are worked on at a time: a few hundred kilobytes.
NUMBERS_AT_A_TIME = 1 << 16
#: The trend is centered no farther from the rows, in lengthscales.
FARTHEST = 1e4

exact_bytes = matrix_bytes


def largest_exact(dense: Dense) -> int:
    """Rows up to which an exact GP is worth trying."""
    return LARGEST_EXACT_FAST if dense.is_fast else LARGEST_EXACT


@dataclass(frozen=True)
class ExactSystem:
    """C is the inverse of the correlations with noise; H the trend's basis, (1, z)."""

    problem: LocalProblem
    center: Array  # (d,) of z, for the sake of rounding
    z: Array  # (n, d)
    factor: InverseFactor
    alpha: Array  # (n, t) C y
    by_trend: Array  # (n, d + 1) C H
    gram: Array  # (d + 1, d + 1) HᵀC H
    moment: Array  # (d + 1, t) HᵀC y
    misfit: Array  # (t,) yᵀC y
    status: int
    jitter: float  # on the diagonal
    dense: Dense
    rest: Array  # (n, d + 1 + t) what rounding leaves of H and of y

    @property
    def inverse_factor(self) -> Array:
        """(n, n), lower triangular."""
        return self.factor.to_host()

    @property
    def n(self) -> int:
        return len(self.z)

    @classmethod
    def solve(cls, problem: LocalProblem, dense: Dense = HOST) -> ExactSystem:
        X = np.asarray(problem.X, dtype=float)
        with np.errstate(over="ignore", invalid="ignore"):
            center = X.mean(axis=0)
            z = (X - center) / problem.model.lengthscale
            dense = dense_for(problem.model, dense)
            jitter = 0.0
            while True:
                inverted = dense.invert(z, problem, jitter)
                system = cls._of_factor(problem, dense, center, z, *inverted)
                if system.is_consistent:
                    return system
                jitter = max(contract.FIRST_JITTER, 10.0 * system.jitter)
                del system, inverted  # there may be no room for two

    def extend(self, problem: LocalProblem) -> ExactSystem:
        """The system of these rows and of more behind them, from the factor that there is."""
        new = slice(self.n, len(problem.X))
        added = self.scale(problem.X[new])
        factor = None
        if self.status == contract.STATUS_OK and are_finite(added).all():
            factor = self.factor.extended(added, problem.noise[new].astype(float))
        if factor is None:
            return ExactSystem.solve(problem, self.dense)
        z = np.concatenate([self.z, added])
        found = self._of_factor(problem, self.dense, self.center, z, factor, self.status, 0.0)
        return found if found.is_consistent else ExactSystem.solve(problem, self.dense)

    @property
    def is_consistent(self) -> bool:
        """Whether rounding changes predictions of the rows by less than their noise; or no factor.

        That is relative to the scale that the targets have, if the signal's is smaller.
        """
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE or not self.rest.any():
            return True
        T = self.centering(np.zeros((1, self.z.shape[1])))
        p, noise = T.shape[1], float(_on_diagonal(self.problem, self.jitter).mean())
        with np.errstate(over="ignore", invalid="ignore"):
            trend = self.trend(T, self.gram, self.moment)
            missed = self.rest[:, p:] - self.rest[:, :p] @ (T @ trend.mean)[0]
            scale = np.abs(self.misfit - trend.explained[0]) / self.n
            allowed = np.maximum(scale, self.problem.model.signal_variance)
            is_more = np.mean(missed**2, axis=0) > allowed * max(noise, SMALLEST_VARIANCE)
        return not is_more.any()  # nor of what is not finite, which no jitter mends

    @classmethod
    def _of_factor(
        cls,
        problem: LocalProblem,
        dense: Dense,
        center: Array,
        z: Array,
        factor: InverseFactor,
        status: int,
        jitter: float,
    ) -> ExactSystem:
        y = np.asarray(problem.y, dtype=float)
        basis = np.column_stack([np.ones(len(z)), z])
        diagonal = _on_diagonal(problem, jitter)
        solved, rest = solve_refined(factor, z, diagonal, np.column_stack([basis, y]))
        by_trend, alpha = solved[:, : basis.shape[1]], solved[:, basis.shape[1] :]
        return cls(
            problem,
            center,
            z,
            factor,
            alpha,
            by_trend,
            basis.T @ by_trend,
            basis.T @ alpha,
            (y * alpha).sum(axis=0),
            status,
            jitter,
            dense,
            rest,
        )

    def predict(self, queries: Array, mean_only: bool = False) -> Predictions:
        """As `predict` of a backend, from all rows; the variance is what takes the time."""
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
            return self._unsolved(len(queries))
        z = self.scale(queries)
        is_finite = are_finite(z)
        z = np.where(is_finite[:, None], z, 0.0)
        k_by_factor2, k_by_alpha, k_by_trend = self.products(z, mean_only)
        T = self.centering(z)
        trend = self.trend(T, self.gram, self.moment)
        # How far the trend's basis at the query is from what the correlations predict of it.
        rest = self.at_center() - np.einsum("qp,qpa->qa", k_by_trend, T)
        mean = k_by_alpha + np.einsum("qa,qat->qt", rest, trend.mean)
        variance = 1.0 - k_by_factor2 + trend.variance(rest)
        status = np.where(trend.determines(rest), self.status, contract.STATUS_UNDETERMINED)
        status = np.where(is_finite, status, contract.STATUS_NOT_FINITE)
        misfit = self.misfit - trend.explained
        return self._predictions(mean, variance, misfit, self.n, status)

    def with_targets(self, y: Array) -> ExactSystem:
        """The same system of other targets (n, t)."""
        problem = self.problem._replace(y=y)
        state = self.dense, self.center, self.z, self.factor, self.status, self.jitter
        return self._of_factor(problem, *state)

    def predict_areas(self, centers: Array, points: Array) -> Predictions:
        """As `predict`, of averages over points (q, p, d), with the trend centered at centers."""
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
            return self._unsolved(len(centers))
        parts = [self._predict_area(*area) for area in zip(centers, points, strict=True)]
        return contract.concatenate_results(parts)

    def _predict_area(self, center: Array, points: Array) -> Predictions:
        z_center, z = self.scale(center[None]), self.scale(points)
        if not (are_finite(z).all() and are_finite(z_center).all()):
            return self._unsolved(1)._replace(status=np.array([contract.STATUS_NOT_FINITE]))
        k = self.factor.correlate(z).mean(axis=0)
        prior = float(correlate(self.problem.model, z, z).mean())
        T = self.centering(z_center)
        trend = self.trend(T, self.gram, self.moment)
        at_area = np.concatenate([[1.0], (z - z_center).mean(axis=0)])[self._trend_variance > 0]
        rest = at_area - (k @ self.by_trend @ T[0])[None]
        mean = (k @ self.alpha)[None] + np.einsum("qa,qat->qt", rest, trend.mean)
        solved = self.factor.half(k)
        variance = np.array([prior - solved @ solved]) + trend.variance(rest)
        status = np.where(trend.determines(rest), self.status, contract.STATUS_UNDETERMINED)
        return self._predictions(mean, variance, self.misfit - trend.explained, self.n, status)

    def covariance(self, queries: Array) -> Array:
        """[J1] of all pairs of queries (q, q): what is left of the prior, and of the trend.

        With kappa of [E10], the correlations have rho - kᵀC k + kappaᵀHᵀC H kappa of it, and the
        trend has kappaᵀB⁻¹kappa.
        """
        z = self.scale(queries)
        k = self.factor.correlate(z)
        solved = self.factor.half(k.T)
        T = self.centering(z)
        trend = self.trend(T, self.gram, self.moment)
        rest = self.at_center() - np.einsum("qp,qpa->qa", k @ self.by_trend, T)
        kappa = trend.solve(rest[:, :, None])[:, :, 0]
        uncentered = np.einsum("qpa,qa->qp", T, kappa)
        variance = self._trend_variance
        by_prior = kappa / np.sqrt(variance[variance > 0])
        total = correlate(self.problem.model, z, z) - solved.T @ solved
        return np.asarray(total + uncentered @ self.gram @ uncentered.T + by_prior @ by_prior.T)

    def leave_out(self, rows: NDArray[np.integer]) -> Predictions:
        """Predictions of training rows, each from all of the others."""
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE or not len(rows):
            return self._unsolved(len(rows))
        # The trends of a block of rows fit into the cache; those of all rows would not.
        size = max(1, NUMBERS_AT_A_TIME // self.gram.size)
        parts = [self._leave_out(rows[k : k + size]) for k in range(0, len(rows), size)]
        predictions: Predictions = contract.concatenate_results(parts)
        return predictions

    def _leave_out(self, rows: NDArray[np.integer]) -> Predictions:
        own, alpha = self.factor.diagonal(rows)[:, None], self.alpha[rows]
        T = self.centering(self.z[rows])
        trend = self.trend(T, *self._without(rows))
        rest = np.einsum("qp,qpa->qa", self.by_trend[rows] / own, T)
        y = np.asarray(self.problem.y[rows], dtype=float)
        mean = y - alpha / own + np.einsum("qa,qat->qt", rest, trend.mean)
        noise = self.problem.model.noise_variance * self.problem.noise[rows].astype(float)
        variance = 1.0 / own[:, 0] - noise - self.jitter + trend.variance(rest)
        misfit = self.misfit - alpha**2 / own - trend.explained
        status = np.where(trend.determines(rest), self.status, contract.STATUS_UNDETERMINED)
        return self._predictions(mean, variance, misfit, self.n - 1, status)

    def predict_without(self, queries: Array, rows: NDArray[np.integer]) -> Predictions:
        """Means at queries, each without one of the rows; variances mean nothing."""
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
            return self._unsolved(len(queries))
        z = self.scale(queries)
        is_finite = are_finite(z)
        z = np.where(is_finite[:, None], z, 0.0)
        k = self.factor.correlate(z)
        distinct, position = np.unique(rows, return_inverse=True)
        columns = self.factor.inverse_columns(distinct)
        # What leaving the row out takes from C y and C H, as in `exact_query`.
        share = np.einsum("qn,nq->q", k, columns[:, position]) / self.factor.diagonal(rows)
        k_by_alpha = k @ self.alpha - share[:, None] * self.alpha[rows]
        k_by_trend = k @ self.by_trend - share[:, None] * self.by_trend[rows]
        T = self.centering(z)
        trend = self.trend(T, *self._without(rows))
        rest = self.at_center() - np.einsum("qp,qpa->qa", k_by_trend, T)
        mean = k_by_alpha + np.einsum("qa,qat->qt", rest, trend.mean)
        status = np.where(is_finite, self.status, contract.STATUS_NOT_FINITE)
        return self._predictions(mean, np.ones(len(z)), np.zeros_like(mean), self.n - 1, status)

    def without(self, members: NDArray[np.integer]) -> LeftOut:
        """What predictions of these rows, all of them left out, need (`leave_group_out`)."""
        own = self.factor.columns(members)
        block = own.T @ own
        solved = np.linalg.solve(
            block,
            np.column_stack([np.eye(len(block)), self.alpha[members], self.by_trend[members]]),
        )
        g, t = len(members), self.alpha.shape[1]
        inverse, by_alpha, by_trend = np.split(solved, [g, g + t], axis=1)
        return LeftOut(
            members,
            np.diag(inverse).copy(),
            by_alpha,
            by_trend,
            self.gram - self.by_trend[members].T @ by_trend,
            self.moment - self.by_trend[members].T @ by_alpha,
            self.misfit - (self.alpha[members] * by_alpha).sum(axis=0),
        )

    def leave_group_out(self, rows: NDArray[np.integer], left_out: LeftOut) -> Predictions:
        """Predictions of rows of a group, from all rows that are not in it.

        As in `leave_out`, with the block of C of the group in place of its diagonal element.
        """
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
            return self._unsolved(len(rows))
        places = np.searchsorted(left_out.members, rows)
        T = self.centering(self.z[rows])
        trend = self.trend(T, left_out.gram, left_out.moment)
        rest = np.einsum("qp,qpa->qa", left_out.by_trend[places], T)
        y = np.asarray(self.problem.y[rows], dtype=float)
        mean = y - left_out.by_alpha[places] + np.einsum("qa,qat->qt", rest, trend.mean)
        noise = self.problem.model.noise_variance * self.problem.noise[rows].astype(float)
        variance = left_out.variance[places] - noise - self.jitter + trend.variance(rest)
        misfit = left_out.misfit - trend.explained
        status = np.where(trend.determines(rest), self.status, contract.STATUS_UNDETERMINED)
        return self._predictions(mean, variance, misfit, self.n - len(left_out.members), status)

    # -- parts of them ---------------------------------------------------------------------

    def scale(self, queries: NDArray[np.floating]) -> Array:
        """Queries in the metric of the system, around its center."""
        with np.errstate(over="ignore", invalid="ignore"):
            return (np.asarray(queries, dtype=float) - self.center) / self.problem.model.lengthscale

    def multiply(self, column: Array) -> Array:
        """C times a column, or several."""
        return self.factor.solve(column)

    def _without(self, rows: NDArray[Any]) -> tuple[Array, Array]:
        """`gram` and `moment` without each of the rows, (q, d + 1, d + 1) and (q, d + 1, t)."""
        u, own = self.by_trend[rows][:, :, None], self.factor.diagonal(rows)[:, None, None]
        gram = self.gram - u * u.transpose(0, 2, 1) / own
        return gram, self.moment - u * self.alpha[rows][:, None, :] / own

    def products(self, z: Array, mean_only: bool) -> tuple[Array, Array, Array]:
        """Of the correlations k with the rows: kᵀC k (q,), kᵀC y (q, t), kᵀC H (q, d + 1)."""
        right = np.column_stack([self.alpha, self.by_trend])
        squares, products = self.factor.products(z, right, mean_only)
        t = self.alpha.shape[1]
        return squares, products[:, :t], products[:, t:]

    @cached_property
    def _trend_variance(self) -> Array:
        """Prior variance of the coefficient of each column of H, (d + 1,)."""
        model = self.problem.model
        slopes = np.full(self.z.shape[1], model.slope_variance)
        return np.concatenate([[model.constant_variance], slopes])

    def centering(self, z: Array) -> Array:
        """What turns H into the trend's basis centered at the points z, (q, d + 1, a)."""
        q, d = z.shape
        # Farther away nothing changes any more, but for rounding.
        largest = np.abs(z).max(axis=1, keepdims=True, initial=FARTHEST)
        z = z * (FARTHEST / largest)
        T = np.broadcast_to(np.eye(1 + d), (q, 1 + d, 1 + d)).copy()
        T[:, 0, 1:] = -z
        return T[:, :, self._trend_variance > 0]

    def at_center(self) -> Array:
        """The trend's basis at its own center, (a,)."""
        at_center = np.zeros(1 + self.z.shape[1])
        at_center[0] = 1.0
        return at_center[self._trend_variance > 0]

    def trend(self, T: Array, gram: Array, moment: Array) -> QueryTrends:
        variance = self._trend_variance
        T_transposed = T.transpose(0, 2, 1)
        precision = T_transposed @ gram @ T
        precision += np.diag(1.0 / variance[variance > 0])
        moment = T_transposed @ moment
        solve = solve_free if np.isinf(variance).any() else solve_with_prior
        mean = solve(precision, moment)
        return QueryTrends(precision, mean, (moment * mean).sum(axis=1), solve)

    def _unsolved(self, q: int) -> Predictions:
        unknown = np.full(q, np.nan)
        columns = np.full((q, self.alpha.shape[1]), np.nan)
        status = np.full(q, self.status, np.int32)
        return Predictions(columns, unknown, columns, unknown, status, np.ones(q))

    def _predictions(
        self, mean: Array, variance: Array, misfit: Array, m: int, status: NDArray[Any]
    ) -> Predictions:
        model, q = self.problem.model, len(mean)
        variance = np.maximum(variance, SMALLEST_VARIANCE)
        if math.isinf(model.scale_dof):
            scale, dof = np.full_like(mean, model.signal_variance), math.inf
        else:
            dof = model.scale_dof + m
            scale = (model.scale_dof * model.signal_variance + misfit) / dof  # [E6]
        return Predictions(
            mean, variance, scale, np.full(q, dof), status.astype(np.int32), np.ones(q)
        )


def _on_diagonal(problem: LocalProblem, jitter: float) -> Array:
    """What is added to the correlations there, (n,)."""
    return problem.model.noise_variance * problem.noise.astype(float) + jitter


class LeftOut(NamedTuple):
    """A group of rows that is left out, and the system without it; B is its block of C."""

    members: NDArray[np.integer]  # (g,) rows, ascending
    variance: Array  # (g,) diagonal of the inverse of B
    by_alpha: Array  # (g, t) B⁻¹ C y
    by_trend: Array  # (g, d + 1) B⁻¹ C H
    gram: Array  # (d + 1, d + 1)
    moment: Array  # (d + 1, t)
    misfit: Array  # (t,)
