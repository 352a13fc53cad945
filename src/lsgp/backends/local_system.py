# SPDX-License-Identifier: BSD-3-Clause
"""One query's local system, solved in NumPy, equation by equation, and its derivatives.

The labels [E1] to [E7] are those of the method page. Derivatives in the query keep the rows of the
neighborhood; everything that [E1] to [E7] compute from the query moves: the cross-covariance, the
slope of the trend, which is centered at the query, the weights and the adaptive bandwidth. With the
smooth and the Epanechnikov localizer the prediction is continuous, and this is its derivative
wherever no two rows compete for the last place of the neighborhood.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky

from lsgp.method import contract, localizers
from lsgp.method.contract import LocalModel, LocalProblem, QueryGradients
from lsgp.method.trend import TrendPosterior, solve_trend, trend_basis

Array = NDArray[np.floating]

#: Below this a weight is as good as zero: the point is out of the system.
SMALLEST_WEIGHT = 1e-100
#: Floor of the latent variance, relative to the prior's.
SMALLEST_VARIANCE = 16 * np.finfo(float).eps
#: A pivot below this, relative to the mean diagonal of the covariance, is but rounding.
SMALLEST_PIVOT = 16 * np.finfo(float).eps


class Covariance(NamedTuple):
    """[E1] of m points and the query, with derivatives of rho in the kernel's log parameters.

    With the trend in it, or without if that is kept apart [E10].
    """

    K: Array  # (m, m)
    k: Array  # (m,)
    k00: float
    dK: Array  # (m, m, p)
    dk: Array  # (m, p)
    dk00: Array  # (p,)


class LocalSystem(NamedTuple):
    """One query's local system, solved."""

    rows: NDArray[np.int32]  # (m,) training rows in it: those of positive weight
    y: Array  # (m, t)
    z: Array  # (m, d)
    weight: Array  # (m,)
    weight_by_log_lengthscale: Array  # (m, d)
    weight_by_decay: Array  # (m,)
    noise: Array  # (m,)
    covariance: Covariance
    factor: tuple[Array, bool]  # of A, as scipy's cho_solve takes it
    alpha: Array  # (m, t)
    beta: Array  # (m,)
    mean: Array  # (t,) [E4]
    variance: float  # [E5]
    misfit: Array  # (t,) yᵀα of [E6]
    trend: TrendPosterior | None  # None if the trend is in the matrix
    status: int
    noise_unit: float = 1.0  # what the noise of an observation at the query is multiplied by
    noise_unit_by_log_lengthscale: Array | None = None  # (d,) of its logarithm; None: 0

    def slopes(self, model: LocalModel) -> tuple[Array, Array]:
        """b zᵀα (d, t), the slope that the targets show at the query, and b zᵀβ (d,)."""
        if self.trend is None:
            b = model.slope_variance
            return b * self.z.T @ self.alpha, b * self.z.T @ self.beta
        d = self.z.shape[1]
        return self.trend.slopes(self.trend.theta, d), -self.trend.slopes(self.trend.kappa, d)


def solve_system(
    problem: LocalProblem,
    query: Array,
    rows: NDArray[np.int32],
    with_derivatives: bool = True,
    area: Array | None = None,
) -> LocalSystem:
    """The local system of one query and the training rows near it, solved.

    Without derivatives, those of the covariance are empty, which saves most of the time. With an
    area (p, d), of which there are no derivatives, the query stands for the average over its
    points.
    """
    model = problem.model
    with np.errstate(over="ignore", invalid="ignore"):
        offsets = problem.X[rows].astype(float) - query
        z = offsets / model.lengthscale
        is_finite = np.isfinite((z * z).sum(axis=1)).all()
    if not is_finite:
        return unsolved(problem, contract.STATUS_NOT_FINITE)
    weight, by_log_lengthscale, by_decay, unit, unit_by_log_lengthscale = _weigh(model, offsets)
    inside = weight > SMALLEST_WEIGHT
    rows, z, weight = rows[inside], z[inside], weight[inside]
    y = problem.y[rows].astype(float)
    noise = problem.noise[rows].astype(float)
    noise_over_weight = model.noise_variance * noise / weight
    near = problem.X[rows].astype(float)
    center: Array | None = None
    if area is None:
        rho = correlate(model, near, query, z, with_derivatives)
    else:
        rho, center = _correlate_area(model, near, query, z, area)
    # Mean prior variance of the trend at the neighbors.
    mean_r2 = float((z * z).sum()) / max(len(z), 1)
    mean_trend = model.constant_variance + model.slope_variance * mean_r2
    is_apart = model.has_large_trend or mean_trend > contract.LARGEST_TREND_IN_MATRIX
    trend: TrendPosterior | None = None
    if not is_apart:
        covariance = add_trend(model, rho, z, center)
        A = covariance.K + np.diag(noise_over_weight)  # [E2]
        # With a trend in the matrix no jitter: it would be relative to the trend.
        has_trend = model.constant_variance != 0 or model.slope_variance != 0
        levels = [0.0] if has_trend else contract.jitters()
        status, factor = _factor(A, np.trace(covariance.K) / max(len(rows), 1), levels)
        is_apart = has_trend and status == contract.STATUS_NOT_POSITIVE_DEFINITE
    if is_apart:
        covariance = rho
        A = rho.K + np.diag(noise_over_weight)
        mean_diagonal = np.trace(rho.K) / max(len(rows), 1)
        status, factor = _factor(A, mean_diagonal, contract.jitters())
    solved = cho_solve(factor, np.column_stack([covariance.k, y]), check_finite=False)  # [E3]
    beta, alpha = solved[:, 0], solved[:, 1:]
    variance = covariance.k00 - covariance.k @ beta  # [E5]
    variance = max(variance, SMALLEST_VARIANCE * covariance.k00)
    misfit = (y * alpha).sum(axis=0)
    mean = covariance.k @ alpha  # [E4]
    if is_apart:  # [E10]
        basis = trend_basis(model, z, center)
        by_H = cho_solve(factor, basis.H, check_finite=False)
        trend = solve_trend(basis, basis.H.T @ by_H, by_H.T @ y, by_H.T @ covariance.k)
        alpha = alpha - by_H @ trend.theta
        beta = beta + by_H @ trend.kappa
        mean = basis.at_query @ trend.theta + covariance.k @ alpha
        variance += trend.variance
        misfit = ((y - basis.H @ trend.theta) * alpha).sum(axis=0) + trend.explained
        if status <= contract.STATUS_JITTERED and not trend.is_determined:
            status = contract.STATUS_UNDETERMINED
    return LocalSystem(
        rows=rows,
        y=y,
        z=z,
        weight=weight,
        weight_by_log_lengthscale=by_log_lengthscale[inside],
        weight_by_decay=by_decay[inside],
        noise=noise,
        covariance=covariance,
        factor=factor,
        alpha=alpha,
        beta=beta,
        mean=mean,
        variance=variance,
        misfit=misfit,
        trend=trend,
        status=status,
        noise_unit=unit,
        noise_unit_by_log_lengthscale=unit_by_log_lengthscale,
    )


def unsolved(problem: LocalProblem, status: int) -> LocalSystem:
    """A system of one point, of which nothing is known."""
    d, t = problem.X.shape[1], problem.y.shape[1]
    p = problem.model.correlation.n_parameters(d)

    def unknown(*shape: int) -> Array:
        return np.full(shape, np.nan)

    return LocalSystem(
        rows=np.full(1, -1, np.int32),
        y=unknown(1, t),
        z=unknown(1, d),
        weight=unknown(1),
        weight_by_log_lengthscale=unknown(1, d),
        weight_by_decay=unknown(1),
        noise=unknown(1),
        covariance=Covariance(
            unknown(1, 1), unknown(1), math.nan, unknown(1, 1, p), unknown(1, p), unknown(p)
        ),
        factor=(unknown(1, 1), True),
        alpha=unknown(1, t),
        beta=unknown(1),
        mean=unknown(t),
        variance=math.nan,
        misfit=unknown(t),
        trend=None,
        status=status,
    )


def _weigh(model: LocalModel, offsets: Array) -> tuple[Array, Array, Array, float, Array]:
    """Weights of neighbors (m, d) from the query, and the unit of the noise, with derivatives.

    Weights (m,), by the log lengthscales (m, d), by the decay (m,); the unit, and the derivatives
    of its logarithm in the log lengthscales (d,).
    """
    m, d = offsets.shape
    z = offsets / model.localizer_scale
    r2 = (z * z).sum(axis=1)
    if model.bandwidth is None:
        h2 = r2.max(initial=0.0)
        h2_by_log_lengthscale = -2.0 * z[r2.argmax()] ** 2 if m else np.zeros(d)
    else:
        h2 = model.scaled_bandwidth**2
        h2_by_log_lengthscale = np.full(d, -2.0 / d * h2)
    # All neighbors on top of the query: the bandwidth is 0, and each counts as one.
    safe_h2 = h2 if h2 > 0 else 1.0
    s = r2 / safe_h2
    s_by_log_lengthscale = (-2.0 * z * z - np.outer(s, h2_by_log_lengthscale)) / safe_h2
    weight, by_s, by_decay = localizers.evaluate(model.localizer, s, model.localizer_decay)
    by_log_lengthscale = by_s[:, None] * s_by_log_lengthscale
    if h2 == 0:
        weight = np.ones(m)
    unit, log_unit = 1.0, np.zeros(d)
    if model.normalize:
        unit = math.sqrt(safe_h2) * model.localizer_unit
        log_unit = 0.5 * h2_by_log_lengthscale / safe_h2 + 1.0 / d
        by_log_lengthscale = (by_log_lengthscale - np.outer(weight, log_unit)) / unit
        weight, by_decay = weight / unit, by_decay / unit
    if model.localizer_metric != "scaled":
        by_log_lengthscale, log_unit = np.zeros((m, d)), np.zeros(d)
    return weight, by_log_lengthscale, by_decay, unit, log_unit


def correlate(
    model: LocalModel, X: Array, query: Array, z: Array, with_derivatives: bool = True
) -> Covariance:
    """[E1] without trend."""
    m = len(z)
    points = np.vstack([X, query]), np.vstack([z, np.zeros_like(query)])
    K, dK = model.correlation.correlate(*points, with_derivatives)
    return Covariance(K[:m, :m], K[:m, m], K[m, m], dK[:m, :m], dK[:m, m], dK[m, m])


def _correlate_area(
    model: LocalModel, X: Array, query: Array, z: Array, area: Array
) -> tuple[Covariance, Array]:
    """[E1] without trend, averaged over the points of an area (p, d); and their scaled center."""
    m, offsets = len(z), (area - query) / model.lengthscale
    K, _ = model.correlation.correlate(np.vstack([X, area]), np.vstack([z, offsets]), False)
    averaged = Covariance(
        K[:m, :m],
        K[:m, m:].mean(axis=1),
        float(K[m:, m:].mean()),
        np.empty((m, m, 0)),
        np.empty((m, 0)),
        np.empty(0),
    )
    return averaged, offsets.mean(axis=0)


def add_trend(
    model: LocalModel, rho: Covariance, z: Array, center: Array | None = None
) -> Covariance:
    """[E1]; the slope is centered at the query, so it drops out of k and k00.

    Not so where the query stands for an area with another ``center`` (d,), relative to it.
    """
    c, b = model.constant_variance, model.slope_variance
    at = np.zeros(z.shape[1]) if center is None else center
    return rho._replace(
        K=rho.K + c + b * z @ z.T,
        k=rho.k + c + b * (z @ at),
        k00=rho.k00 + c + b * float(at @ at),
    )


def _factor(
    A: Array, mean_diagonal: float, jitters: Iterable[float]
) -> tuple[int, tuple[Array, bool]]:
    """Cholesky factor, with jitter if need be, and a status code if even that fails."""
    unknown = np.full_like(A, np.nan), True
    if not np.isfinite(A).all():
        return contract.STATUS_NOT_FINITE, unknown
    for jitter in jitters:
        try:
            factor = cholesky(A + jitter * mean_diagonal * np.eye(len(A)), lower=True)
        except LinAlgError:
            continue
        if (np.diag(factor) ** 2 > SMALLEST_PIVOT * mean_diagonal).all():
            status = contract.STATUS_JITTERED if jitter else contract.STATUS_OK
            return status, (factor, True)
    return contract.STATUS_NOT_POSITIVE_DEFINITE, unknown


def scale_and_dof(model: LocalModel, system: LocalSystem) -> tuple[Array, float]:
    """[E6], for each target column."""
    if math.isinf(model.scale_dof):
        return np.full(len(system.misfit), model.signal_variance), math.inf
    dof = model.scale_dof + np.minimum(system.weight, 1.0).sum()
    return (model.scale_dof * model.signal_variance + system.misfit) / dof, dof


def differentiate_system(
    problem: LocalProblem, query: Array, rows: NDArray[np.int32], system: LocalSystem
) -> QueryGradients:
    """Derivatives of one local solve in the query's inputs; ``rows`` are its neighborhood."""
    model = problem.model
    alpha, beta, z, weight = (
        np.asarray(part, dtype=float)
        for part in (system.alpha, system.beta, system.z, system.weight)
    )
    z_by_query = -1.0 / model.lengthscale  # (d,), of z in its own input
    X = problem.X[system.rows].astype(float)
    by_weight, by_unit = _differentiate_weights(
        model, problem.X[rows].astype(float) - query, X - query, system
    )
    by_k, by_k00 = model.correlation.differentiate(X, query, z, model.lengthscale)  # [E1]
    # [E2] The noise over the weight, per alpha beta, which vanish with the weight.
    by_noise = -model.noise_variance * system.noise[:, None] * by_weight

    slope_by_alpha, slope_by_beta = (  # (d, t) and (d,)
        np.asarray(part, dtype=float) for part in system.slopes(model)
    )

    def through_A(left: Array, left_slope: Array, right: Array, right_slope: Array) -> Array:
        """leftᵀ dA right, (d,): noise and the slope's b zᵢ·zⱼ depend on the query."""
        slope = left_slope * right.sum() + left.sum() * right_slope
        noise = (left / weight) * (right / weight) @ by_noise
        return np.asarray(noise + slope * z_by_query)

    targets = list(zip(alpha.T, slope_by_alpha.T, strict=True))
    mean = np.array([a @ by_k - through_A(a, s, beta, slope_by_beta) for a, s in targets])
    variance = np.asarray(by_k00 - 2.0 * beta @ by_k)
    variance += through_A(beta, slope_by_beta, beta, slope_by_beta)
    if system.variance <= SMALLEST_VARIANCE * system.covariance.k00:
        variance = np.zeros_like(variance)
    if np.isinf(model.scale_dof):
        flat = np.zeros_like(mean), np.zeros_like(variance)
        return QueryGradients(mean, variance, *flat, by_unit)
    scale, nu = scale_and_dof(model, system)
    dof = (weight < 1.0) @ by_weight
    misfit = np.array([-through_A(a, s, a, s) for a, s in targets])
    return QueryGradients(mean, variance, (misfit - np.outer(scale, dof)) / nu, dof, by_unit)


def _differentiate_weights(
    model: LocalModel, neighborhood: Array, offsets: Array, system: LocalSystem
) -> tuple[Array, Array]:
    """Derivatives (m, d) of the weights of the system, and (d,) of the logarithm of its noise unit.

    ``neighborhood`` and ``offsets`` are all neighbors, and those in the system, from the query.
    """
    unit = model.localizer_scale
    z = offsets / unit
    r2_by_query = -2.0 * z / unit
    h2, h2_by_query = model.scaled_bandwidth**2, np.zeros(len(unit))
    if model.bandwidth is None:
        all_z = neighborhood / unit
        r2 = (all_z**2).sum(axis=1)
        h2 = r2.max(initial=0.0)
        if h2 == 0:
            return np.zeros_like(r2_by_query), h2_by_query
        h2_by_query = -2.0 * all_z[r2.argmax()] / unit
    s = (z**2).sum(axis=1) / h2
    by_s = localizers.evaluate(model.localizer, s, model.localizer_decay)[1]
    by_query = by_s[:, None] * (r2_by_query - np.outer(s, h2_by_query)) / h2
    if not model.normalize:
        return by_query, np.zeros(len(unit))
    by_unit = 0.5 * h2_by_query / h2
    return by_query / system.noise_unit - np.outer(system.weight, by_unit), by_unit
