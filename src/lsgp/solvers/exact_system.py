# SPDX-License-Identifier: BSD-3-Clause
"""The system of all rows, factored once for all queries, if a local model is an exact GP.

With the rectangular localizer and all rows as neighbors, the local systems of all queries differ
in their trend alone, whose slope is centered at the query. The correlations are factored without
the trend, which is then added for each query [E10] by a system of d + 1 unknowns (universal
kriging, with a prior if that is proper). So the equations are those of the local solve, [E1] to
[E6], without approximation. Leaving out rows uses the same factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Dense, InverseFactor
from lsgp.backends.dense_host import HOST, are_finite, correlate, dense_for
from lsgp.backends.local_system import SMALLEST_VARIANCE
from lsgp.method import contract
from lsgp.method.contract import LocalProblem, Predictions
from lsgp.solvers.exact_trend import QueryTrends, solve_free, solve_with_prior
from lsgp.solvers.refinement import solve_refined

Array = NDArray[np.float64]

#: With more rows, factoring on the host takes too long, and the inverse factor too much memory.
LARGEST_EXACT = 10_000
#: The same limit on a device, which factors much faster.
LARGEST_EXACT_FAST = 40_000
#: Entries of the trends' matrices that are computed at a time, so that they stay in the cache.
NUMBERS_AT_A_TIME = 1 << 16
#: Largest distance of the trend's center from the rows, in lengthscales.
FARTHEST = 1e4


def largest_exact(dense: Dense) -> int:
    """Return the largest number of rows for which an exact GP is tried."""
    return LARGEST_EXACT_FAST if dense.is_fast else LARGEST_EXACT


@dataclass(frozen=True)
class ExactSystem:
    """A factored exact GP: C is the inverse of the correlations with noise, and H = (1, z)."""

    problem: LocalProblem
    center: Array  # (d,) subtracted from the rows, to lose fewer digits
    z: Array  # (n, d)
    factor: InverseFactor
    alpha: Array  # (n, t) C y
    by_trend: Array  # (n, d + 1) C H
    gram: Array  # (d + 1, d + 1) HᵀC H
    moment: Array  # (d + 1, t) HᵀC y
    misfit: Array  # (t,) yᵀC y
    status: int
    jitter: float  # added to the diagonal
    dense: Dense
    rest: Array  # (n, d + 1 + t) residuals of the solves for H and y, due to rounding

    @property
    def inverse_factor(self) -> Array:
        """The inverse of the Cholesky factor (n, n), lower triangular, on the host."""
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
                del system, inverted  # memory may not suffice for two

    def extend(self, problem: LocalProblem) -> ExactSystem:
        """Return the system of a problem with more rows behind these, by extending the factor."""
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
        """Whether rounding changes predictions of the rows by less than their noise.

        The noise is relative to the signal variance, or to the scale of the targets if that is
        larger. Always true if there is no factor.
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
        return not is_more.any()  # also true for NaN, which no jitter would mend

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
        """Predict queries from all rows, as `Backend.predict`; most of the time is the variance."""
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
            return self._unsolved(len(queries))
        z = self.scale(queries)
        is_finite = are_finite(z)
        z = np.where(is_finite[:, None], z, 0.0)
        k_by_factor2, k_by_alpha, k_by_trend = self.products(z, mean_only)
        T = self.centering(z)
        trend = self.trend(T, self.gram, self.moment)
        # The trend's basis at the query, minus its prediction by the correlations.
        rest = self.at_center() - np.einsum("qp,qpa->qa", k_by_trend, T)
        variance = 1.0 - k_by_factor2
        solved = self._with_trend(trend, rest, k_by_alpha, variance, self.misfit, self.n)
        status = np.where(is_finite, solved.status, np.int32(contract.STATUS_NOT_FINITE))
        return solved._replace(status=status)

    def with_targets(self, y: Array) -> ExactSystem:
        """Return the system with other targets (n, t), which has the same factor."""
        problem = self.problem._replace(y=y)
        state = self.dense, self.center, self.z, self.factor, self.status, self.jitter
        return self._of_factor(problem, *state)

    def predict_areas(self, centers: Array, points: Array) -> Predictions:
        """Predict averages over points (q, p, d), with the trend centered at ``centers``."""
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
        half = self.factor.half(k)
        variance = np.array([prior - half @ half])
        return self._with_trend(trend, rest, (k @ self.alpha)[None], variance, self.misfit, self.n)

    def covariance(self, queries: Array) -> Array:
        """[J1] Covariance of the errors of all pairs of queries, (q, q).

        With kappa of [E10], the correlations contribute rho - kᵀC k + kappaᵀHᵀC H kappa, and the
        trend contributes kappaᵀB⁻¹kappa.
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
        """Predict training rows, each from all other rows."""
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE or not len(rows):
            return self._unsolved(len(rows))
        # In blocks of rows, whose trends fit into the cache.
        size = max(1, NUMBERS_AT_A_TIME // self.gram.size)
        parts = [self._leave_out(rows[k : k + size]) for k in range(0, len(rows), size)]
        predictions: Predictions = contract.concatenate_results(parts)
        return predictions

    def _leave_out(self, rows: NDArray[np.integer]) -> Predictions:
        diagonal, alpha = self.factor.diagonal(rows)[:, None], self.alpha[rows]
        T = self.centering(self.z[rows])
        trend = self.trend(T, *self._without(rows))
        rest = np.einsum("qp,qpa->qa", self.by_trend[rows] / diagonal, T)
        mean = np.asarray(self.problem.y[rows], dtype=float) - alpha / diagonal
        noise = self.problem.model.noise_variance * self.problem.noise[rows].astype(float)
        variance = 1.0 / diagonal[:, 0] - noise - self.jitter
        misfit = self.misfit - alpha**2 / diagonal
        return self._with_trend(trend, rest, mean, variance, misfit, self.n - 1)

    def predict_without(self, queries: Array, rows: NDArray[np.integer]) -> Predictions:
        """Means at queries, each without one of the rows; variances are not valid."""
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
            return self._unsolved(len(queries))
        z = self.scale(queries)
        is_finite = are_finite(z)
        z = np.where(is_finite[:, None], z, 0.0)
        k = self.factor.correlate(z)
        distinct, position = np.unique(rows, return_inverse=True)
        columns = self.factor.inverse_columns(distinct)
        # Leaving the row out changes C y and C H by a rank-one term, as in `exact_query`.
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
        """Return the system without a group of rows, for `leave_group_out`."""
        columns = self.factor.columns(members)
        block = columns.T @ columns
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
        """Predict rows of a group from all rows outside the group.

        As `leave_out`, with the group's block of C in place of a diagonal element.
        """
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
            return self._unsolved(len(rows))
        places = np.searchsorted(left_out.members, rows)
        T = self.centering(self.z[rows])
        trend = self.trend(T, left_out.gram, left_out.moment)
        rest = np.einsum("qp,qpa->qa", left_out.by_trend[places], T)
        mean = np.asarray(self.problem.y[rows], dtype=float) - left_out.by_alpha[places]
        noise = self.problem.model.noise_variance * self.problem.noise[rows].astype(float)
        variance = left_out.variance[places] - noise - self.jitter
        n_left = self.n - len(left_out.members)
        return self._with_trend(trend, rest, mean, variance, left_out.misfit, n_left)

    def scale(self, queries: NDArray[np.floating]) -> Array:
        """Center and scale queries as the rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            return (np.asarray(queries, dtype=float) - self.center) / self.problem.model.lengthscale

    def _without(self, rows: NDArray[Any]) -> tuple[Array, Array]:
        """`gram` and `moment` without each of the rows, (q, d + 1, d + 1) and (q, d + 1, t)."""
        u, diagonal = self.by_trend[rows][:, :, None], self.factor.diagonal(rows)[:, None, None]
        gram = self.gram - u * u.transpose(0, 2, 1) / diagonal
        return gram, self.moment - u * self.alpha[rows][:, None, :] / diagonal

    def products(self, z: Array, mean_only: bool) -> tuple[Array, Array, Array]:
        """kᵀC k (q,), kᵀC y (q, t) and kᵀC H (q, d + 1), of the correlations k with the rows."""
        right = np.column_stack([self.alpha, self.by_trend])
        squares, products = self.factor.products(z, right, mean_only)
        t = self.alpha.shape[1]
        return squares, products[:, :t], products[:, t:]

    @cached_property
    def _trend_variance(self) -> Array:
        """Prior variances of the coefficients of H, (d + 1,)."""
        model = self.problem.model
        slopes = np.full(self.z.shape[1], model.slope_variance)
        return np.concatenate([[model.constant_variance], slopes])

    def centering(self, z: Array) -> Array:
        """Matrices (q, d + 1, a) that turn H into the trend's basis centered at points z (q, d)."""
        q, d = z.shape
        # A center farther away would change nothing except rounding.
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
        """[E10] Posterior of the trend for the centering T, from HᵀC H and HᵀC y."""
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

    def _with_trend(
        self,
        trend: QueryTrends,
        rest: Array,
        mean: Array,
        variance: Array,
        misfit: Array,
        n_rows: int,
    ) -> Predictions:
        """[E10] Add the trend to predictions of the correlations alone, from ``n_rows`` rows.

        ``rest`` (q, a) is the trend's basis at each query minus its prediction by the correlations.
        """
        mean = mean + np.einsum("qa,qat->qt", rest, trend.mean)
        status = np.where(trend.determines(rest), self.status, contract.STATUS_UNDETERMINED)
        misfit = misfit - trend.explained
        return self._predictions(mean, variance + trend.variance(rest), misfit, n_rows, status)

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
    """Noise and jitter on the diagonal of the correlations, (n,)."""
    return problem.model.noise_variance * problem.noise.astype(float) + jitter


class LeftOut(NamedTuple):
    """The system without a group of rows; B is the group's block of C."""

    members: NDArray[np.integer]  # (g,) rows, ascending
    variance: Array  # (g,) diagonal of the inverse of B
    by_alpha: Array  # (g, t) B⁻¹ C y
    by_trend: Array  # (g, d + 1) B⁻¹ C H
    gram: Array  # (d + 1, d + 1)
    moment: Array  # (d + 1, t)
    misfit: Array  # (t,)
