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
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Dense, InverseFactor
from lsgp.backends.dense_host import HOST, are_finite, correlate, dense_for
from lsgp.backends.local_system import SMALLEST_VARIANCE
from lsgp.method import contract
from lsgp.method.contract import LocalProblem, Predictions
from lsgp.method.trend import QueryTrends

Array = NDArray[np.float64]

#: With more rows, factoring on the host takes too long, and the inverse factor too much memory.
LARGEST_EXACT = 10_000
#: The same limit on a device, which factors much faster.
LARGEST_EXACT_FAST = 40_000
#: Entries of the trends' matrices that are computed at a time, so that they stay in the cache.
NUMBERS_AT_A_TIME = 1 << 16
#: Largest distance of the trend's center from the rows, in lengthscales.
FARTHEST = 1e4
#: Solutions are refined if the least noise variance of a row, relative to the signal variance, is
#: below this. With more noise, the errors are negligible relative to its standard deviation.
REFINED_BELOW = 1e-7
#: Largest number of refinements. Each must reduce the residual norm of some column to less than
#: WORTHWHILE of it, or it is the last.
MOST_REFINEMENTS, WORTHWHILE = 3, 0.5


def largest_exact(dense: Dense) -> int:
    """Return the largest number of rows for which an exact GP is tried."""
    return LARGEST_EXACT_FAST if dense.is_fast else LARGEST_EXACT


class Sums(NamedTuple):
    """Sums over rows, from which the trend and the scale of predictions follow.

    If each query leaves out another row, the arrays have an axis of queries in front.
    """

    gram: Array  # (d + 1, d + 1) HᵀC H
    moment: Array  # (d + 1, t) HᵀC y
    misfit: Array  # (t,) yᵀC y
    n_rows: int


class LeftOut(NamedTuple):
    """The system without a group of rows, or without each of several; B is their block of C."""

    rows: NDArray[np.integer]  # (g,) ascending, of a group
    variance: Array  # (g,) diagonal of the inverse of B
    by_alpha: Array  # (g, t) B⁻¹ C y
    by_trend: Array  # (g, d + 1) B⁻¹ C H
    sums: Sums


@dataclass(frozen=True)
class ExactSystem:
    """A factored exact GP: C is the inverse of the correlations with noise, and H = (1, z)."""

    problem: LocalProblem
    dense: Dense
    center: Array  # (d,) subtracted from the rows, to lose fewer digits
    z: Array  # (n, d)
    factor: InverseFactor
    status: int
    jitter: float  # added to the diagonal
    alpha: Array = field(init=False)  # (n, t) C y
    by_trend: Array = field(init=False)  # (n, d + 1) C H
    gram: Array = field(init=False)  # (d + 1, d + 1) HᵀC H
    moment: Array = field(init=False)  # (d + 1, t) HᵀC y
    misfit: Array = field(init=False)  # (t,) yᵀC y
    #: (n, d + 1 + t) residuals of the solves for H and y, due to rounding.
    rest: Array = field(init=False)

    def __post_init__(self) -> None:
        y = np.asarray(self.problem.y, dtype=float)
        basis = np.column_stack([np.ones(len(self.z)), self.z])
        columns = np.column_stack([basis, y])
        solved, rest = solve_refined(self.factor, self.z, self._noise(), columns)
        by_trend, alpha = solved[:, : basis.shape[1]], solved[:, basis.shape[1] :]
        for name, value in {
            "alpha": alpha,
            "by_trend": by_trend,
            "gram": basis.T @ by_trend,
            "moment": basis.T @ alpha,
            "misfit": (y * alpha).sum(axis=0),
            "rest": rest,
        }.items():
            object.__setattr__(self, name, value)

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
                system = cls(problem, dense, center, z, *inverted)
                if system.is_consistent:
                    return system
                jitter = max(contract.FIRST_JITTER, 10.0 * system.jitter)
                del system, inverted  # memory may not suffice for two

    def extend(self, problem: LocalProblem) -> ExactSystem:
        """Return the system of a problem with more rows behind these, by extending the factor."""
        new = slice(self.n, len(problem.X))
        added = self.scale(problem.X[new])
        if self.status == contract.STATUS_OK and are_finite(added).all():
            factor = self.factor.extended(added, problem.noise[new].astype(float))
            if factor is not None:
                z = np.concatenate([self.z, added])
                found = replace(self, problem=problem, z=z, factor=factor, jitter=0.0)
                if found.is_consistent:
                    return found
        return ExactSystem.solve(problem, self.dense)

    def with_targets(self, y: Array) -> ExactSystem:
        """Return the system with other targets (n, t), which has the same factor."""
        return replace(self, problem=self.problem._replace(y=y))

    @property
    def n(self) -> int:
        return len(self.z)

    @property
    def sums(self) -> Sums:
        return Sums(self.gram, self.moment, self.misfit, self.n)

    def _noise(self, rows: Any = slice(None)) -> Array:
        """Noise and jitter on the diagonal of the correlations, of some rows."""
        noise = self.problem.noise[rows].astype(float)
        return np.asarray(self.problem.model.noise_variance * noise + self.jitter)

    @property
    def is_consistent(self) -> bool:
        """Whether rounding changes predictions of the rows by less than their noise.

        The noise is relative to the signal variance, or to the scale of the targets if that is
        larger. Always true if there is no factor.
        """
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE or not self.rest.any():
            return True
        T = self.centering(np.zeros((1, self.z.shape[1])))
        p, noise = T.shape[1], float(self._noise().mean())
        with np.errstate(over="ignore", invalid="ignore"):
            trend = self.trend(T, self.gram, self.moment)
            missed = self.rest[:, p:] - self.rest[:, :p] @ (T @ trend.mean)[0]
            scale = np.abs(self.misfit - trend.explained[0]) / self.n
            allowed = np.maximum(scale, self.problem.model.signal_variance)
            is_more = np.mean(missed**2, axis=0) > allowed * max(noise, SMALLEST_VARIANCE)
        return not is_more.any()  # also true for NaN, which no jitter would mend

    def predict(self, queries: Array, mean_only: bool = False) -> Predictions:
        """Predict queries from all rows, as `Backend.predict`; most of the time is the variance."""
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
            return self._unsolved(len(queries))
        z, is_finite = self._finite(queries)
        squares, k_by_alpha, k_by_trend = self.products(z, mean_only)
        T = self.centering(z)
        rest = self.at_center() - np.einsum("qp,qpa->qa", k_by_trend, T)
        return self._with_trend(T, rest, k_by_alpha, 1.0 - squares, self.sums, is_finite)

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
        half = self.factor.half(k)
        T = self.centering(z_center)
        at_area = np.concatenate([[1.0], (z - z_center).mean(axis=0)])[self._trend_variance > 0]
        rest = at_area - (k @ self.by_trend @ T[0])[None]
        variance = np.array([prior - half @ half])
        return self._with_trend(T, rest, (k @ self.alpha)[None], variance, self.sums)

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
        blocks = (rows[k : k + size] for k in range(0, len(rows), size))
        parts = [self._from_others(block, self._each_left_out(block)) for block in blocks]
        predictions: Predictions = contract.concatenate_results(parts)
        return predictions

    def leave_group_out(self, rows: NDArray[np.integer], left_out: LeftOut) -> Predictions:
        """Predict rows of a group, left out by `without`, from all rows outside the group."""
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
            return self._unsolved(len(rows))
        places = np.searchsorted(left_out.rows, rows)
        variance, by_alpha, by_trend = (part[places] for part in left_out[1:4])
        return self._from_others(rows, LeftOut(rows, variance, by_alpha, by_trend, left_out.sums))

    def _from_others(self, rows: NDArray[np.integer], left: LeftOut) -> Predictions:
        """Predict rows from the system without them."""
        T = self.centering(self.z[rows])
        rest = np.einsum("qp,qpa->qa", left.by_trend, T)
        mean = np.asarray(self.problem.y[rows], dtype=float) - left.by_alpha
        return self._with_trend(T, rest, mean, left.variance - self._noise(rows), left.sums)

    def _each_left_out(self, rows: NDArray[np.integer]) -> LeftOut:
        """The systems without each of the rows: B is a number, the row's diagonal element of C."""
        u, alpha = self.by_trend[rows], self.alpha[rows]
        diagonal = self.factor.diagonal(rows)[:, None]
        across = u[:, :, None]
        sums = Sums(
            self.gram - across * u[:, None, :] / diagonal[:, :, None],
            self.moment - across * alpha[:, None, :] / diagonal[:, :, None],
            self.misfit - alpha**2 / diagonal,
            self.n - 1,
        )
        return LeftOut(rows, 1.0 / diagonal[:, 0], alpha / diagonal, u / diagonal, sums)

    def without(self, members: NDArray[np.integer]) -> LeftOut:
        """Return the system without a group of rows, for `leave_group_out`."""
        columns = self.factor.columns(members)
        block, u, alpha = columns.T @ columns, self.by_trend[members], self.alpha[members]
        solved = np.linalg.solve(block, np.column_stack([np.eye(len(block)), alpha, u]))
        g, t = len(members), alpha.shape[1]
        inverse, by_alpha, by_trend = np.split(solved, [g, g + t], axis=1)
        sums = Sums(
            self.gram - u.T @ by_trend,
            self.moment - u.T @ by_alpha,
            self.misfit - (alpha * by_alpha).sum(axis=0),
            self.n - g,
        )
        return LeftOut(members, np.diag(inverse).copy(), by_alpha, by_trend, sums)

    def predict_without(self, queries: Array, rows: NDArray[np.integer]) -> Predictions:
        """Means at queries, each without one of the rows; variances are not valid."""
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
            return self._unsolved(len(queries))
        z, is_finite = self._finite(queries)
        k, left = self.factor.correlate(z), self._each_left_out(rows)
        distinct, position = np.unique(rows, return_inverse=True)
        columns = self.factor.inverse_columns(distinct)
        # Leaving the row out changes C y and C H by a rank-one term.
        share = np.einsum("qn,nq->q", k, columns[:, position])[:, None]
        k_by_trend = k @ self.by_trend - share * left.by_trend
        T = self.centering(z)
        rest = self.at_center() - np.einsum("qp,qpa->qa", k_by_trend, T)
        mean = k @ self.alpha - share * left.by_alpha
        return self._with_trend(T, rest, mean, np.ones(len(z)), left.sums, is_finite)

    def scale(self, queries: NDArray[np.floating]) -> Array:
        """Center and scale queries as the rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            return (np.asarray(queries, dtype=float) - self.center) / self.problem.model.lengthscale

    def _finite(self, queries: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Scaled queries, with zeros in place of infinite ones, and which ones are finite."""
        z = self.scale(queries)
        is_finite = are_finite(z)
        return np.where(is_finite[:, None], z, 0.0), is_finite

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
        T = np.broadcast_to(np.eye(1 + d), (q, 1 + d, 1 + d)).copy()
        T[:, 0, 1:] = -z * (FARTHEST / largest)
        return T[:, :, self._trend_variance > 0]

    def at_center(self) -> Array:
        """The trend's basis at its own center, (a,)."""
        return np.eye(1 + self.z.shape[1])[0, self._trend_variance > 0]

    def trend(self, T: Array, gram: Array, moment: Array) -> QueryTrends:
        """[E10] Posterior of the trend for the centering T, from HᵀC H and HᵀC y."""
        variance = self._trend_variance
        T_transposed = T.transpose(0, 2, 1)
        precision = T_transposed @ gram @ T
        precision += np.diag(1.0 / variance[variance > 0])
        return QueryTrends.of(precision, T_transposed @ moment, not np.isinf(variance).any())

    def _unsolved(self, q: int) -> Predictions:
        unknown = np.full(q, np.nan)
        columns = np.full((q, self.alpha.shape[1]), np.nan)
        status = np.full(q, self.status, np.int32)
        return Predictions(columns, unknown, columns, unknown, status, np.ones(q))

    def _with_trend(
        self,
        T: Array,
        rest: Array,
        mean: Array,
        variance: Array,
        sums: Sums,
        is_finite: NDArray[np.bool_] | bool = True,
    ) -> Predictions:
        """[E10] Add the trend to predictions of the correlations alone.

        ``rest`` (q, a) is the trend's basis at each query minus its prediction by the correlations.
        """
        model, trend = self.problem.model, self.trend(T, sums.gram, sums.moment)
        mean = mean + np.einsum("qa,qat->qt", rest, trend.mean)
        variance = np.maximum(variance + trend.variance(rest), SMALLEST_VARIANCE)
        if math.isinf(model.scale_dof):
            scale, dof = np.full_like(mean, model.signal_variance), math.inf
        else:
            dof = model.scale_dof + sums.n_rows
            misfit = sums.misfit - trend.explained
            scale = (model.scale_dof * model.signal_variance + misfit) / dof  # [E6]
        status = np.where(trend.determines(rest), self.status, contract.STATUS_UNDETERMINED)
        status = np.where(is_finite, status, contract.STATUS_NOT_FINITE).astype(np.int32)
        q = len(mean)
        return Predictions(mean, variance, scale, np.full(q, dof), status, np.ones(q))


def solve_refined(
    factor: InverseFactor, z: Array, diagonal: Array, columns: Array
) -> tuple[Array, Array]:
    """Solve for columns (n, c) with the factor of rows z (n, d) and their diagonal (n,).

    Returns C times the columns, and the residuals due to rounding, which are 0 without refinement.
    The inverse factor has rounding errors relative to its largest elements, of the order of one
    over the noise's standard deviation. They affect the smooth part of a solution, which the
    correlations multiply by up to the number of rows, so that all predictions are off by nearly
    the same amount. Leave-one-out predictions do not show this; the residuals at the rows do.
    """
    solved = factor.solve(columns)
    if diagonal.min(initial=np.inf) >= REFINED_BELOW or not np.isfinite(solved).all():
        return solved, np.zeros_like(columns)

    def residual(solution: Array) -> Array:
        return columns - factor.products(z, solution, True)[1] - diagonal[:, None] * solution

    rest = residual(solved)
    for _ in range(MOST_REFINEMENTS):
        further = solved + factor.solve(rest)
        left = residual(further)
        before, after = np.linalg.norm(rest, axis=0), np.linalg.norm(left, axis=0)
        is_better = after < before  # false for NaN
        solved, rest = np.where(is_better, further, solved), np.where(is_better, left, rest)
        if not (after < WORTHWHILE * before).any():
            break
    return solved, rest
