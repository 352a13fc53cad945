# SPDX-License-Identifier: BSD-3-Clause
"""The reference backend: NumPy, one query at a time, equation by equation.

It is the oracle that every other backend is compared with, and the one that takes any
scikit-learn kernel. The labels [E1] to [E8] are those of the method page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky

from lsgp.backends.contract import Plan, Resources
from lsgp.backends.host import prepare, search
from lsgp.backends.plan import plan_blocks
from lsgp.method import contract, localizers
from lsgp.method.contract import Coefficients, LocalModel, LocalProblem, Predictions, Scores
from lsgp.method.kernels import Kernel
from lsgp.method.losses import LOSSES
from lsgp.method.trend import TrendPosterior, solve_trend, trend_basis

__all__ = [
    "coefficients",
    "factors_once",
    "is_slow",
    "knows",
    "knows_metric",
    "name",
    "plan",
    "predict",
    "prepare",
    "score",
    "search",
    "workspace_bytes",
]

Array = NDArray[np.floating]

name = "reference"
#: The oracle solves each system anew.
factors_once = False
is_slow = True

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


def knows(kernel: Kernel) -> bool:
    return True


def knows_metric(localizer_metric: str) -> bool:
    return True


def predict(
    problem: LocalProblem,
    queries: Array,
    neighbors: NDArray[np.int32],
    points: Array | None = None,
) -> Predictions:
    """Solve the local system of each query, or of the average over its points (q, p, d).

    ``neighbors`` (q, m) is padded with -1.
    """
    n_queries, n_targets = len(queries), problem.y.shape[1]
    mean = np.empty((n_queries, n_targets))
    variance, dof = np.empty(n_queries), np.empty(n_queries)
    scale = np.empty((n_queries, n_targets))
    status, noise_unit = np.empty(n_queries, dtype=np.int32), np.empty(n_queries)
    for q, (query, rows) in enumerate(zip(queries, neighbors, strict=True)):
        area = None if points is None else points[q]
        system = solve_system(problem, query, rows[rows >= 0], with_derivatives=False, area=area)
        mean[q] = system.mean
        variance[q] = system.variance
        scale[q], dof[q] = scale_and_dof(problem.model, system)
        status[q], noise_unit[q] = system.status, system.noise_unit
    return Predictions(mean, variance, scale, dof, status, noise_unit)


def coefficients(
    problem: LocalProblem, queries: Array, neighbors: NDArray[np.int32]
) -> Coefficients:
    """What the mean of each query multiplies the targets of its neighbors by."""
    result = Coefficients(
        np.zeros(neighbors.shape),
        np.zeros(neighbors.shape),
        np.empty(len(queries)),
        np.empty(len(queries), np.int32),
    )
    for q, (query, rows) in enumerate(zip(queries, neighbors, strict=True)):
        system = solve_system(problem, query, rows[rows >= 0], with_derivatives=False)
        result.variance[q], result.status[q] = system.variance, system.status
        if system.status == contract.STATUS_NOT_FINITE:
            result.beta[q] = result.weight[q] = np.nan
            continue
        places = np.flatnonzero(np.isin(rows, system.rows))
        result.beta[q, places], result.weight[q, places] = system.beta, system.weight
    return result


def score(
    problem: LocalProblem,
    targets: NDArray[np.int32],
    neighbors: NDArray[np.int32],
    objective: str,
) -> Scores:
    """Loss of predicting each target row from its neighbors, and its gradient [E8]."""
    losses, gradients, statuses = [], [], []
    for target, rows in zip(targets, neighbors, strict=True):
        system = solve_system(problem, problem.X[target], rows[rows >= 0])
        loss, gradient = _loss_and_gradient(problem, system, int(target), objective)
        losses.append(loss)
        gradients.append(gradient)
        statuses.append(system.status)
    n_kernel = problem.model.correlation.n_parameters(problem.X.shape[1])
    n_parameters = n_kernel + len(contract.SHARED_PARAMETERS)
    return Scores(
        np.array(losses),
        np.array(gradients).reshape(-1, n_parameters),
        np.array(statuses, dtype=np.int32),
    )


def marginal_likelihood(
    problem: LocalProblem, targets: NDArray[np.int32], neighbors: NDArray[np.int32]
) -> Scores:
    """Negative log marginal likelihood of each target's neighborhood (the paper's), per point.

    With the global scale s²; the gradient needs the inverse of A, unlike [E8].
    """
    losses, gradients, statuses = [], [], []
    for target, rows in zip(targets, neighbors, strict=True):
        system = solve_system(problem, problem.X[target], rows[rows >= 0])
        loss, gradient = _marginal_likelihood(problem.model, system)
        losses.append(loss)
        gradients.append(gradient)
        statuses.append(system.status)
    return Scores(np.array(losses), np.array(gradients), np.array(statuses, dtype=np.int32))


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
    weights = _weigh(model, offsets)
    weight, by_log_lengthscale, by_decay = weights.weight, *weights[1:3]
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
    is_apart = model.has_large_trend or _mean_trend(model, z) > contract.LARGEST_TREND_IN_MATRIX
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
        noise_unit=weights.noise_unit,
        noise_unit_by_log_lengthscale=weights.noise_unit_by_log_lengthscale,
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


class _Weights(NamedTuple):
    weight: Array  # (m,)
    by_log_lengthscale: Array  # (m, d)
    by_decay: Array  # (m,)
    noise_unit: float
    noise_unit_by_log_lengthscale: Array  # (d,) of its logarithm


def _weigh(model: LocalModel, offsets: Array) -> _Weights:
    """Weights of the neighbors (m, d) from the query, and derivatives of them."""
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
    return _Weights(weight, by_log_lengthscale, by_decay, unit, log_unit)


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


def _mean_trend(model: LocalModel, z: Array) -> float:
    """Mean prior variance of the trend at the neighbors."""
    mean_r2 = float((z * z).sum()) / max(len(z), 1)
    return model.constant_variance + model.slope_variance * mean_r2


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


def _loss_and_gradient(
    problem: LocalProblem, system: LocalSystem, target: int, objective: str
) -> tuple[float, Array]:
    model, covariance = problem.model, system.covariance
    scale, dof = scale_and_dof(model, system)
    noise = model.noise_variance * float(problem.noise[target]) * system.noise_unit
    relative = system.variance + noise  # [E7]
    n_targets = len(scale)

    total = 0.0
    by_mean, by_misfit = np.zeros(n_targets), np.zeros(n_targets)
    by_variance = by_dof = by_signal = by_noise = by_scale_dof = 0.0
    for j in range(n_targets):
        error = float(problem.y[target, j] - system.mean[j])
        loss = LOSSES[objective](error, scale[j] * relative, dof)
        total += loss.value / n_targets
        by_mean[j] = -loss.by_error / n_targets
        by_variance += loss.by_variance * scale[j] / n_targets
        by_noise += loss.by_variance * scale[j] * noise / n_targets
        by_scale = loss.by_variance * relative / n_targets
        if math.isinf(dof):
            by_signal += by_scale * model.signal_variance
        else:
            through_dof = loss.by_dof / n_targets - by_scale * scale[j] / dof
            by_misfit[j] = by_scale / dof
            by_dof += through_dof
            by_signal += by_scale * model.scale_dof / dof * model.signal_variance
            by_scale_dof += (through_dof + by_scale * model.signal_variance / dof) * model.scale_dof

    # [E8] adjoints of k and A.
    alpha, beta = system.alpha, system.beta
    adjoint_k = alpha @ by_mean - 2.0 * by_variance * beta
    cross = np.outer(beta, alpha @ by_mean)
    adjoint_A = (
        -0.5 * (cross + cross.T)
        + by_variance * np.outer(beta, beta)
        - (alpha * by_misfit) @ alpha.T
    )

    diagonal = np.diag(adjoint_A)
    noise_over_weight = model.noise_variance * system.noise / system.weight
    by_weight = by_dof * (system.weight < 1.0) - diagonal * noise_over_weight / system.weight
    kernel = (
        np.einsum("ij,ijp->p", adjoint_A, covariance.dK)
        + adjoint_k @ covariance.dk
        + by_variance * covariance.dk00
    )
    if system.trend is None:
        by_constant = model.constant_variance * (adjoint_A.sum() + adjoint_k.sum() + by_variance)
        by_slopes = _in_matrix(model, system, adjoint_A)
    else:
        # [E11] HᵀA⁻¹y = B⁻¹theta and HᵀA⁻¹k = h0 - B⁻¹kappa, in the adjoints of [E8].
        theta, kappa = system.trend.theta, system.trend.kappa
        by_constant, by_slopes = system.trend.by_variance(
            kappa * (theta @ by_mean) + by_variance * kappa**2 - theta**2 @ by_misfit
        )
    by_metric = _through_metric(system, by_slopes, by_weight)
    if system.noise_unit_by_log_lengthscale is not None:
        by_metric += by_noise * system.noise_unit_by_log_lengthscale
    kernel += model.correlation.by_metric(by_metric)
    shared = np.array(
        [
            by_signal,
            by_noise + diagonal @ noise_over_weight,
            by_constant,
            by_slopes.sum(),
            model.localizer_decay * (by_weight @ system.weight_by_decay),
            by_scale_dof,
        ]
    )
    return total, np.concatenate([kernel, shared])


def _in_matrix(model: LocalModel, system: LocalSystem, adjoint_A: Array) -> Array:
    """Gradient in the log of each slope's variance (d,), of a trend in the matrix."""
    z = system.z
    return np.asarray(model.slope_variance * np.einsum("ij,ip,jp->p", adjoint_A, z, z))


def _through_metric(system: LocalSystem, by_slopes: Array, by_weight: Array) -> Array:
    """Gradient in the log lengthscales of the metric, but for the kernel: weights and slopes.

    A slope in z = x / l has the variance b / l² in x; ``by_slopes`` is empty without slopes.
    """
    through_slopes = -2.0 * by_slopes if by_slopes.size else 0.0
    return np.asarray(by_weight @ system.weight_by_log_lengthscale + through_slopes)


def _marginal_likelihood(model: LocalModel, system: LocalSystem) -> tuple[float, Array]:
    m, n_targets = system.y.shape
    s2, covariance = model.signal_variance, system.covariance
    misfit = float(system.misfit.sum()) / n_targets
    half_log_determinant = np.log(np.diag(system.factor[0])).sum()
    total = 0.5 * misfit / s2 + half_log_determinant + 0.5 * m * math.log(2.0 * math.pi * s2)
    inverse = cho_solve(system.factor, np.eye(m), check_finite=False)
    if system.trend is not None:
        total += system.trend.log_evidence_part(model.lengthscale)
        by_H = inverse @ system.trend.basis.H
        inverse -= by_H @ system.trend.inverse_precision @ by_H.T
    adjoint_A = 0.5 * (inverse - system.alpha @ system.alpha.T / (s2 * n_targets))
    diagonal = np.diag(adjoint_A)
    noise_over_weight = model.noise_variance * system.noise / system.weight
    by_weight = -diagonal * noise_over_weight / system.weight
    kernel = np.einsum("ij,ijp->p", adjoint_A, covariance.dK)
    if system.trend is None:
        by_constant = model.constant_variance * adjoint_A.sum()
        by_slopes = _in_matrix(model, system, adjoint_A)
    else:
        by_constant, by_slopes = system.trend.evidence_by_variance(s2)
    kernel += model.correlation.by_metric(_through_metric(system, by_slopes, by_weight))
    shared = np.array(
        [
            0.5 * (m - misfit / s2),
            diagonal @ noise_over_weight,
            by_constant,
            by_slopes.sum(),
            model.localizer_decay * (by_weight @ system.weight_by_decay),
            0.0,
        ]
    )
    return total / max(m, 1), np.concatenate([kernel, shared]) / max(m, 1)


def workspace_bytes(
    n_neighbors: int, n_inputs: int, n_targets: int, dtype: np.dtype, gradient: bool
) -> int:
    """Memory that one thread needs beside its block's arrays: a few m by m matrices."""
    return 8 * n_neighbors**2 * (6 + n_inputs)


def plan(
    problem: LocalProblem,
    n_neighbors: int | None,
    n_queries: int,
    resources: Resources,
    gradient: bool = False,
) -> Plan:
    return plan_blocks(workspace_bytes, problem, n_neighbors, n_queries, resources, gradient)
