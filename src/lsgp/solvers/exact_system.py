# SPDX-License-Identifier: BSD-3-Clause
"""The system of all rows, factored once for all queries: where a local model is an exact GP.

With the rectangular localizer and all rows as neighbors, the local systems of all queries differ
in their trend alone, whose slope is centered at the query. The correlations are factored without
it, and the trend is put back for each query, which is a system of d + 1 unknowns (universal
kriging with a proper prior). So the equations are those of the local solve, [E1] to [E6], and not
an approximation of them (but for the jitter of systems that need it, which is relative to the
correlations); leaving out a row needs no other factor either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from lsgp.backends import reference
from lsgp.compute import lapack
from lsgp.method import contract
from lsgp.method.contract import LocalModel, LocalProblem, Predictions

Array = NDArray[np.float64]

#: With more rows, factoring takes too long, and the inverse factor too much memory.
LARGEST_EXACT = 10_000
#: The trend is centered no farther from the rows, in lengthscales.
FARTHEST = 1e4
#: Rows of the covariance that are computed at a time: they stay in the cache.
_ROWS_AT_A_TIME = 32
#: Queries are solved in tiles of this size, the last one padded, so that a prediction does not
#: depend on how many others are made with it.
_TILE = 64
#: Far below the rounding of a correlation of 1.
_TINY = 1e-20
#: Products of factors' elements above this are no denormal numbers.
_TINIER = 1e-150
#: Parts of the inverse factor, each multiplied without most of the zeros above the diagonal.
_N_PARTS = 8


def exact_bytes(n: int) -> int:
    """Memory of the inverse factor of n rows, and of what it takes to make it."""
    return 8 * n * (n + 4 * _ROWS_AT_A_TIME)


@dataclass(frozen=True)
class ExactSystem:
    """C is the inverse of the correlations with noise; H the trend's basis, (1, z)."""

    problem: LocalProblem
    center: Array  # (d,) of z, for the sake of rounding
    z: Array  # (n, d)
    inverse_factor: Array  # (n, n), lower triangular
    alpha: Array  # (n, t) C y
    by_trend: Array  # (n, d + 1) C H
    diagonal: Array  # (n,) of C
    gram: Array  # (d + 1, d + 1) HᵀC H
    moment: Array  # (d + 1, t) HᵀC y
    misfit: Array  # (t,) yᵀC y
    status: int
    jitter: float  # on the diagonal

    @property
    def n(self) -> int:
        return len(self.z)

    @classmethod
    def solve(cls, problem: LocalProblem) -> ExactSystem:
        X = np.asarray(problem.X, dtype=float)
        with np.errstate(over="ignore", invalid="ignore"):
            center = X.mean(axis=0)
            z = (X - center) / problem.model.lengthscale
            return cls._of_factor(problem, center, z, *_invert_factor(z, problem))

    def extend(self, problem: LocalProblem) -> ExactSystem:
        """The system of these rows and of more behind them, by bordering the factor."""
        model, n = problem.model, len(problem.X)
        new = slice(self.n, n)
        added = self._scale(problem.X[new])
        if self.status != contract.STATUS_OK or not _is_finite(added).all():
            return ExactSystem.solve(problem)
        solved = self.inverse_factor @ self._correlate(added).T
        rest = _correlate(model, added, added) - solved.T @ solved
        rest[np.diag_indices(len(rest))] += model.noise_variance * problem.noise[new].astype(float)
        inverse = _invert_positive(rest, 1.0 + model.constant_variance)
        if inverse is None:
            return ExactSystem.solve(problem)
        factor = np.zeros((n, n))
        factor[: self.n, : self.n] = self.inverse_factor
        factor[new, : self.n] = _clean(-inverse @ (solved.T @ self.inverse_factor))
        factor[new, new] = inverse
        z = np.concatenate([self.z, added])
        return self._of_factor(problem, self.center, z, factor, self.status, 0.0)

    @classmethod
    def _of_factor(
        cls,
        problem: LocalProblem,
        center: Array,
        z: Array,
        inverse_factor: Array,
        status: int,
        jitter: float,
    ) -> ExactSystem:
        y = np.asarray(problem.y, dtype=float)
        basis = np.column_stack([np.ones(len(z)), z])
        solved = inverse_factor.T @ (inverse_factor @ np.column_stack([basis, y]))
        by_trend, alpha = solved[:, : basis.shape[1]], solved[:, basis.shape[1] :]
        return cls(
            problem,
            center,
            z,
            inverse_factor,
            alpha,
            by_trend,
            np.einsum("ij,ij->j", inverse_factor, inverse_factor),
            basis.T @ by_trend,
            basis.T @ alpha,
            (y * alpha).sum(axis=0),
            status,
            jitter,
        )

    def predict(self, queries: Array, mean_only: bool = False) -> Predictions:
        """As `predict` of a backend, from all rows; the variance is what takes the time."""
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
            return self._unsolved(len(queries))
        z = self._scale(queries)
        is_finite = _is_finite(z)
        z = np.where(is_finite[:, None], z, 0.0)
        k_by_factor2, k_by_alpha, k_by_trend = self._products(z, mean_only)
        T = self._centering(z)
        trend = self._trend(T, self.gram, self.moment)
        # How far the trend's basis at the query is from what the correlations predict of it.
        rest = self._at_center() - np.einsum("qp,qpa->qa", k_by_trend, T)
        mean = k_by_alpha + np.einsum("qa,qat->qt", rest, trend.mean)
        variance = 1.0 - k_by_factor2 + trend.variance(rest)
        solved = self._predictions(mean, variance, self.misfit - trend.explained, self.n)
        status = np.where(is_finite, self.status, contract.STATUS_NOT_FINITE)
        return solved._replace(status=status.astype(np.int32))

    def leave_out(self, rows: NDArray[np.integer]) -> Predictions:
        """Predictions of training rows, each from all of the others."""
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
            return self._unsolved(len(rows))
        own, alpha = self.diagonal[rows, None], self.alpha[rows]
        T = self._centering(self.z[rows])
        trend = self._trend(T, *self._without(rows))
        rest = np.einsum("qp,qpa->qa", self.by_trend[rows] / own, T)
        y = np.asarray(self.problem.y[rows], dtype=float)
        mean = y - alpha / own + np.einsum("qa,qat->qt", rest, trend.mean)
        noise = self.problem.model.noise_variance * self.problem.noise[rows].astype(float)
        variance = 1.0 / own[:, 0] - noise - self.jitter + trend.variance(rest)
        misfit = self.misfit - alpha**2 / own - trend.explained
        return self._predictions(mean, variance, misfit, self.n - 1)

    def local_system(self, query: Array, left_out: int = -1) -> reference.LocalSystem:
        """The system of one query, as the reference backend solves it, perhaps without a row."""
        problem, model = self.problem, self.problem.model
        point = self._scale(query[None])
        if self.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
            return reference.unsolved(problem, self.status)
        if not _is_finite(point).all():
            return reference.unsolved(problem, contract.STATUS_NOT_FINITE)
        correlation = self._correlate(point)[0]
        T = self._centering(point)
        gram, moment = self.gram, self.moment
        by_k = self._multiply(correlation)
        solved = np.column_stack([by_k, self.alpha, self.by_trend])
        rows = np.arange(self.n, dtype=np.int32)
        if left_out >= 0:
            unit = np.zeros(self.n)
            unit[left_out] = 1.0
            solved -= np.outer(self._multiply(unit), solved[left_out] / self.diagonal[left_out])
            gram, moment = self._without(np.array([left_out]))
            rows = np.delete(rows, left_out)
        t = self.alpha.shape[1]
        by_k, alpha, by_trend = np.split(solved[rows], [1, 1 + t], axis=1)
        trend = self._trend(T, gram, moment)
        by_trend, k = by_trend @ T[0], correlation[rows]
        rest = self._at_center() - k @ by_trend
        variance = 1.0 - k @ by_k[:, 0] + trend.variance(rest[None])[0]
        c, none = model.constant_variance, np.empty((len(rows), 0))
        return reference.LocalSystem(
            rows=rows,
            y=problem.y[rows].astype(float),
            z=self.z[rows] - point,
            weight=np.ones(len(rows)),
            weight_by_log_lengthscale=none,
            weight_by_decay=np.zeros(len(rows)),
            noise=problem.noise[rows].astype(float),
            covariance=reference.Covariance(
                np.empty((0, 0)), k + c, 1.0 + c, np.empty((0, 0, 0)), none, np.empty(0)
            ),
            factor=(np.empty((0, 0)), True),
            alpha=alpha - by_trend @ trend.mean[0],
            beta=by_k[:, 0] + by_trend @ _solve(trend.precision, rest[None, :, None])[0, :, 0],
            variance=max(variance, reference.SMALLEST_VARIANCE * (1.0 + c)),
            status=self.status,
        )

    # -- parts of them ---------------------------------------------------------------------

    def _scale(self, queries: NDArray[np.floating]) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return (np.asarray(queries, dtype=float) - self.center) / self.problem.model.lengthscale

    def _correlate(self, z: Array) -> Array:
        return _correlate(self.problem.model, z, self.z)

    def _multiply(self, column: Array) -> Array:
        """C times a column."""
        return np.asarray(self.inverse_factor.T @ (self.inverse_factor @ column))

    def _without(self, rows: NDArray[Any]) -> tuple[Array, Array]:
        """`gram` and `moment` without each of the rows, (q, d + 1, d + 1) and (q, d + 1, t)."""
        u, own = self.by_trend[rows][:, :, None], self.diagonal[rows, None, None]
        gram = self.gram - u * u.transpose(0, 2, 1) / own
        return gram, self.moment - u * self.alpha[rows][:, None, :] / own

    def _products(self, z: Array, mean_only: bool) -> tuple[Array, Array, Array]:
        """Of the correlations k with the rows: kᵀC k (q,), kᵀC y (q, t), kᵀC H (q, d + 1).

        With ``mean_only`` the first are zeros.
        """
        n, q = self.n, len(z)
        squares = np.empty(q)
        products = np.empty((q, self.alpha.shape[1] + self.by_trend.shape[1]))
        right = np.column_stack([self.alpha, self.by_trend])
        edges = [] if mean_only else np.linspace(0, n, min(_N_PARTS, n) + 1).astype(int).tolist()
        for start in range(0, q, _TILE):
            tile = np.zeros((_TILE, z.shape[1]))
            size = min(_TILE, q - start)
            tile[:size] = z[start : start + size]
            k = self._correlate(tile)
            total = np.zeros(_TILE)
            for low, high in pairwise(edges):
                part = self.inverse_factor[low:high, :high] @ k[:, :high].T
                total += np.einsum("ij,ij->j", part, part)
            squares[start : start + size] = total[:size]
            products[start : start + size] = (k @ right)[:size]
        t = self.alpha.shape[1]
        return squares, products[:, :t], products[:, t:]

    @cached_property
    def _trend_variance(self) -> Array:
        """Prior variance of the coefficient of each column of H, (d + 1,)."""
        model = self.problem.model
        slopes = np.full(self.z.shape[1], model.slope_variance)
        return np.concatenate([[model.constant_variance], slopes])

    def _centering(self, z: Array) -> Array:
        """What turns H into the trend's basis centered at the points z, (q, d + 1, a)."""
        q, d = z.shape
        # Farther away nothing changes any more, but for rounding.
        largest = np.abs(z).max(axis=1, keepdims=True, initial=FARTHEST)
        z = z * (FARTHEST / largest)
        T = np.broadcast_to(np.eye(1 + d), (q, 1 + d, 1 + d)).copy()
        T[:, 0, 1:] = -z
        return T[:, :, self._trend_variance > 0]

    def _at_center(self) -> Array:
        """The trend's basis at its own center, (a,)."""
        at_center = np.zeros(1 + self.z.shape[1])
        at_center[0] = 1.0
        return at_center[self._trend_variance > 0]

    def _trend(self, T: Array, gram: Array, moment: Array) -> _Trend:
        variance = self._trend_variance
        T_transposed = T.transpose(0, 2, 1)
        precision = T_transposed @ gram @ T
        precision += np.diag(1.0 / variance[variance > 0])
        moment = T_transposed @ moment
        mean = _solve(precision, moment)
        return _Trend(precision, mean, (moment * mean).sum(axis=1))

    def _unsolved(self, q: int) -> Predictions:
        unknown = np.full(q, np.nan)
        columns = np.full((q, self.alpha.shape[1]), np.nan)
        return Predictions(columns, unknown, columns, unknown, np.full(q, self.status, np.int32))

    def _predictions(self, mean: Array, variance: Array, misfit: Array, m: int) -> Predictions:
        model, q = self.problem.model, len(mean)
        k00 = 1.0 + model.constant_variance
        variance = np.maximum(variance, reference.SMALLEST_VARIANCE * k00)
        if math.isinf(model.scale_dof):
            scale, dof = np.full_like(mean, model.signal_variance), math.inf
        else:
            dof = model.scale_dof + m
            scale = (model.scale_dof * model.signal_variance + misfit) / dof  # [E6]
        status = np.full(q, self.status, np.int32)
        return Predictions(mean, variance, scale, np.full(q, dof), status)


@dataclass(frozen=True)
class _Trend:
    """Posterior of the trend's coefficients, for each query."""

    precision: Array  # (q, a, a)
    mean: Array  # (q, a, t)
    explained: Array  # (q, t) what the trend takes from the misfit

    def variance(self, basis: Array) -> Array:
        """Of the linear combinations (q, a) of the coefficients."""
        solved = _solve(self.precision, basis[:, :, None])[:, :, 0]
        return np.asarray((basis * solved).sum(axis=1))


def _solve(precision: Array, right: Array) -> Array:
    """Solutions of many small systems, the shortest ones where rounding made one singular."""
    try:
        return np.asarray(np.linalg.solve(precision, right), dtype=float)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(precision, hermitian=True) @ right, dtype=float)


def _is_finite(z: Array) -> NDArray[np.bool_]:
    """Whether squared distances of points are, (q,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.isfinite((z * z).sum(axis=1))


def _correlate(model: LocalModel, left: Array, right: Array) -> Array:
    formula = model.correlation.formula
    assert formula is not None, "an exact system is one of correlations of the scaled distance"
    rho = np.asarray(formula(cdist(left, right, "sqeuclidean"))[0], dtype=float)
    return _drop_below(_TINY, rho)


def _clean(matrix: Array) -> Array:
    for start in range(0, len(matrix), _ROWS_AT_A_TIME):
        _drop_below(_TINIER, matrix[start : start + _ROWS_AT_A_TIME])
    return matrix


def _clear_above(matrix: Array) -> None:
    """Zeros above the diagonal, where LAPACK has left what was there."""
    for i in range(len(matrix)):
        matrix[i, i + 1 :] = 0.0


def _drop_below(least: float, values: Array) -> Array:
    """Zeros, in place, for what is smaller, of which products would be denormal numbers.

    Many processors take a hundred times as long for these.
    """
    values[np.abs(values) < least] = 0.0
    return values


def _invert_factor(z: Array, problem: LocalProblem) -> tuple[Array, int, float]:
    """Inverse of the Cholesky factor of [E2] without trend, its status, and its jitter."""
    n, model = len(z), problem.model
    if not _is_finite(z).all():
        return np.full((n, n), np.nan), contract.STATUS_NOT_FINITE, 0.0
    noise = model.noise_variance * problem.noise.astype(float)
    mean_diagonal = 1.0 + model.constant_variance
    covariance = np.empty((n, n))
    for jitter in contract.jitters():
        for start in range(0, n, _ROWS_AT_A_TIME):
            rows = slice(start, min(start + _ROWS_AT_A_TIME, n))
            # The lower triangle alone: LAPACK reads no other.
            covariance[rows, : rows.stop] = _correlate(model, z[rows], z[: rows.stop])
        covariance[np.diag_indices(n)] = 1.0 + noise + jitter * mean_diagonal
        inverse = _invert_positive(covariance, mean_diagonal)
        if inverse is not None:
            status = contract.STATUS_JITTERED if jitter else contract.STATUS_OK
            return inverse, status, jitter * mean_diagonal
    return np.full((n, n), np.nan), contract.STATUS_NOT_POSITIVE_DEFINITE, 0.0


def _invert_positive(matrix: Array, mean_diagonal: float) -> Array | None:
    """Inverse Cholesky factor, in place of the lower triangle; None if there is no such factor."""
    matrix = np.ascontiguousarray(matrix)
    smallest = reference.SMALLEST_PIVOT * mean_diagonal
    if not lapack.factor(matrix) or (np.diag(matrix) ** 2 <= smallest).any():
        return None
    _clear_above(matrix)
    lapack.invert_factor(_clean(matrix))
    return _clean(matrix)
