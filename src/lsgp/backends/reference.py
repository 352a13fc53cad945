# SPDX-License-Identifier: BSD-3-Clause
"""The reference backend: NumPy, one query at a time, equation by equation.

It is the oracle that every other backend is compared with, and the one that takes any
scikit-learn kernel. The labels [E1] to [E8] are those of the method page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from lsgp.backends.contract import Dense, ScoreRequest, Systems, SystemSize
from lsgp.backends.dense_host import HOST
from lsgp.backends.host import plan_blocks, predict_found
from lsgp.backends.host import prepare as prepare
from lsgp.backends.host import search as search
from lsgp.backends.local_system import (
    LocalSystem,
    differentiate_system,
    scale_and_dof,
    solve_system,
)
from lsgp.method import contract
from lsgp.method.contract import (
    Coefficients,
    LocalModel,
    LocalProblem,
    Predictions,
    QueryGradients,
    Scores,
)
from lsgp.method.kernels import Kernel
from lsgp.method.losses import LOSSES
from lsgp.search.coarse import search_units as search_units
from lsgp.search.contract import SearchIndex, SearchRequest

Array = NDArray[np.floating]

name = "reference"
is_device = False
#: The oracle solves each system anew.
factors_once = False
is_slow = True
device_name: str | None = None
takes_from: int | None = None
dense: Dense = HOST


def knows(kernel: Kernel) -> bool:
    return True


def knows_metric(localizer_metric: str) -> bool:
    return True


def predict(systems: Systems) -> Predictions:
    """Solve the local system of each query, or of the average over its points."""
    problem, queries, neighbors, points = systems
    predictions = Predictions.empty(len(queries), problem.y.shape[1])
    for q, (query, rows) in enumerate(zip(queries, neighbors, strict=True)):
        area = None if points is None else points[q]
        system = solve_system(problem, query, rows[rows >= 0], with_derivatives=False, area=area)
        _write(predictions, q, problem.model, system)
    return predictions


def predict_at(
    problem: LocalProblem, index: SearchIndex, request: SearchRequest
) -> tuple[Predictions, NDArray[np.int32]]:
    """As `Backend.predict_at`."""
    return predict_found(predict, problem, index, request)


def differentiate(systems: Systems) -> tuple[Predictions, QueryGradients]:
    """As `predict`, and the derivatives in the queries."""
    problem, queries, neighbors, _ = systems
    predictions = Predictions.empty(len(queries), problem.y.shape[1])
    gradients = QueryGradients.empty(len(queries), problem.y.shape[1], queries.shape[1])
    for q, (query, rows) in enumerate(zip(queries, neighbors, strict=True)):
        rows = rows[rows >= 0]
        system = solve_system(problem, query, rows, with_derivatives=False)
        _write(predictions, q, problem.model, system)
        own = differentiate_system(problem, query, rows, system)
        for all_of_them, value in zip(gradients, own, strict=True):
            all_of_them[q] = value
    return predictions, gradients


def _write(predictions: Predictions, q: int, model: LocalModel, system: LocalSystem) -> None:
    """What a system says of query ``q``, into the predictions of all."""
    assert predictions.noise_unit is not None
    predictions.mean[q] = system.mean
    predictions.variance[q] = system.variance
    predictions.scale[q], predictions.dof[q] = scale_and_dof(model, system)
    predictions.status[q], predictions.noise_unit[q] = system.status, system.noise_unit


def coefficients(systems: Systems) -> Coefficients:
    """What the mean of each query multiplies the targets of its neighbors by."""
    problem, queries, neighbors, _ = systems
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


def score(request: ScoreRequest) -> Scores:
    """Loss of predicting each target row from its neighbors, and its gradient [E8]."""
    problem, targets, neighbors, objective = request
    loss = partial(_loss_and_gradient, problem, objective)
    return _scores(problem, targets, neighbors, loss)


def score_many(requests: Sequence[ScoreRequest]) -> list[Scores]:
    """One after another."""
    return [score(request) for request in requests]


def marginal_likelihood(
    problem: LocalProblem, targets: NDArray[np.int32], neighbors: NDArray[np.int32]
) -> Scores:
    """Negative log marginal likelihood of each target's neighborhood (the paper's), per point.

    With the global scale s²; the gradient needs the inverse of A, unlike [E8].
    """
    return _scores(problem, targets, neighbors, partial(_marginal_likelihood, problem.model))


def _scores(
    problem: LocalProblem,
    targets: NDArray[np.int32],
    neighbors: NDArray[np.int32],
    of_system: Callable[[LocalSystem, int], tuple[float, Array]],
) -> Scores:
    """The loss of each target's system, and its gradient."""
    n_kernel = problem.model.correlation.n_parameters(problem.X.shape[1])
    scores = Scores(
        np.empty(len(targets)),
        np.empty((len(targets), n_kernel + len(contract.SHARED_PARAMETERS))),
        np.empty(len(targets), np.int32),
    )
    for q, (target, rows) in enumerate(zip(targets.tolist(), neighbors, strict=True)):
        system = solve_system(problem, problem.X[target], rows[rows >= 0])
        scores.loss[q], scores.gradient[q] = of_system(system, target)
        scores.status[q] = system.status
    return scores


def _loss_and_gradient(
    problem: LocalProblem, objective: str, system: LocalSystem, target: int
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


def _marginal_likelihood(
    model: LocalModel, system: LocalSystem, target: int
) -> tuple[float, Array]:
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


def workspace_bytes(size: SystemSize) -> int:
    """Memory that one thread needs beside its block's arrays: a few m by m matrices."""
    assert size.n_neighbors is not None
    return 8 * size.n_neighbors**2 * (6 + size.n_inputs)


plan = partial(plan_blocks, workspace_bytes)
