# SPDX-License-Identifier: BSD-3-Clause
"""The local system of one query of an exact GP, which explanations of a prediction need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.dense_host import are_finite
from lsgp.backends.local_system import SMALLEST_VARIANCE, Covariance, LocalSystem, unsolved
from lsgp.method import contract
from lsgp.method.trend import TrendPosterior, trend_basis
from lsgp.solvers.exact_system import ExactSystem

Array = NDArray[np.float64]


def query_system(
    exact: ExactSystem, query: Array, left_out: NDArray[np.integer] | None = None
) -> LocalSystem:
    """Return the local system of one query (d,), without the rows ``left_out``."""
    problem = exact.problem
    point = exact.scale(query[None])
    if exact.status >= contract.STATUS_NOT_POSITIVE_DEFINITE:
        return unsolved(problem, exact.status)
    if not are_finite(point).all():
        return unsolved(problem, contract.STATUS_NOT_FINITE)
    correlation = exact.factor.correlate(point)[0]
    T = exact.centering(point)
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
    trend = exact.trend(T, gram, moment)
    by_trend, k = by_trend @ T[0], correlation[rows]
    rest = exact.at_center() - k @ by_trend
    explained = k @ by_k[:, 0]
    if is_whole and problem.model.is_single:
        # As in `ExactSystem.predict`, with the digits of single precision.
        explained = exact.products(point, mean_only=False)[0][0]
    variance = 1.0 - explained + trend.variance(rest[None])[0]
    theta, kappa = trend.mean[0], trend.solve(rest[None, :, None])[0, :, 0]
    status = np.where(trend.determines(rest[None]), exact.status, contract.STATUS_UNDETERMINED)
    none = np.empty((len(rows), 0))
    return LocalSystem(
        rows=rows,
        y=problem.y[rows].astype(float),
        z=exact.z[rows] - point,
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
        trend=_posterior(exact, exact.z[rows] - point, theta, kappa, rest),
        status=int(status[0]),
    )


def _posterior(
    exact: ExactSystem, z: Array, theta: Array, kappa: Array, rest: Array
) -> TrendPosterior:
    a, unknown = len(kappa), np.full((len(kappa), len(kappa)), np.nan)
    basis = trend_basis(exact.problem.model, z)
    assert len(basis.precision) == a
    return TrendPosterior(basis, theta, kappa, float(rest @ kappa), unknown, np.nan, True)
