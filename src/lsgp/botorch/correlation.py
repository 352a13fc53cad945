# SPDX-License-Identifier: BSD-3-Clause
"""Correlations [J1] of the errors of predictions (`lsgp.solvers.errors`), by torch's algebra.

What depends on the queries is differentiated by autograd; rows, and so their covariances with each
other, are constants. Neighborhoods are fixed, as in all gradients of lsgp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lsgp.backends.local_system import SMALLEST_WEIGHT
from lsgp.botorch.functions import Formula, as_tensor, elementwise, inputs_of
from lsgp.ensemble.ensemble import Ensemble
from lsgp.method import localizers
from lsgp.method.contract import LocalModel, LocalProblem, jitters
from lsgp.method.kernels import KERNELS, SumKernel
from lsgp.solvers.errors import trend_deviations
from lsgp.solvers.exact import ExactSolver
from lsgp.solvers.local import LocalSolver
from lsgp.solvers.solver import Solver

#: Scaled points (..., p, e) and (..., r, e) to their correlations (..., p, r).
Correlate = Callable[[Tensor, Tensor], Tensor]

#: Numbers in the largest tensor, for which batches are computed in parts: a quarter of a gigabyte.
LARGEST_TENSOR = 30_000_000
#: Of a trend without a prior, relative: rows need not determine what the query does not depend on.
RIDGE = 1e-12


def correlations(ensemble: Ensemble, X: Tensor) -> Tensor:
    """Of the errors at points that belong together, (b, q, q, t) for X (b, q, d)."""
    b, q, d = X.shape
    # Numbers in the largest tensors of one joint prediction: rows with rows, or with inputs.
    sizes = [1]
    for fitted in ensemble.models:
        n, e = fitted.problem.X.shape
        m = min(n, fitted.n_neighbors or n)
        is_exact = any(isinstance(part, ExactSolver) for _, part in fitted.solver.parts())
        sizes += [q * n * e] if is_exact else [q * m * m, min(n, q * m) ** 2, q * m * e]
    parts, step = [], max(1, LARGEST_TENSOR // max(sizes))
    for start in range(0, b, step):
        part = X[start : start + step]
        columns: list[Tensor] = [torch.zeros(()) for _ in range(ensemble.n_targets)]
        for fitted in ensemble.models:
            queries = inputs_of(fitted, part.reshape(-1, d)).reshape(*part.shape[:2], -1)
            for targets, solver in fitted.solver.parts():
                own = fitted.weight * _normalized(_covariance(solver, queries))
                for j in targets:
                    columns[j] = columns[j] + own
        parts.append(torch.stack(columns, dim=-1))
    return torch.cat(parts)


def _normalized(covariance: Tensor) -> Tensor:
    """With ones on the diagonal."""
    variance = torch.diagonal(covariance, dim1=-2, dim2=-1)
    unit = 1.0 / torch.sqrt(torch.where(variance > 0, variance, math.inf))
    found = covariance * unit[..., :, None] * unit[..., None, :]
    is_diagonal = torch.eye(covariance.shape[-1], dtype=torch.bool)
    return torch.where(is_diagonal, 1.0, found.clamp(-1.0, 1.0))


def _covariance(solver: Solver, queries: Tensor) -> Tensor:
    """[J1] of queries (b, q, e) in the solver's inputs, (b, q, q), relative to the scale."""
    kernel = solver.problem.model.correlation
    if isinstance(solver, ExactSolver) and isinstance(kernel, SumKernel):
        return _exact_covariance(solver, queries, partial(_correlate_sum, kernel))
    formula = kernel.formula
    if formula is None:
        raise ValueError(
            f"The kernel {solver.problem.model.kernel} has no formula of the distance, which the "
            "joint posterior of several points needs. Use q = 1, or a kernel by its name."
        )
    if isinstance(solver, ExactSolver):
        return _exact_covariance(solver, queries, partial(_correlate, formula))
    return _local_covariance(solver, queries, formula)


def _correlate(formula: Formula, left: Tensor, right: Tensor) -> Tensor:
    """Of scaled points (..., p, e) and (..., r, e), (..., p, r)."""
    r2 = ((left[..., :, None, :] - right[..., None, :, :]) ** 2).sum(dim=-1)
    return elementwise(formula, r2)


def _correlate_sum(kernel: SumKernel, left: Tensor, right: Tensor) -> Tensor:
    """As `_correlate`, of a sum of two correlations."""
    s, ratios = kernel.share, as_tensor(np.array(kernel.ratios))
    one, other = (KERNELS[name] for name in kernel.names)
    scaled = _correlate(other, left / ratios, right / ratios)
    return (1.0 - s) * _correlate(one, left, right) + s * scaled


def _trend_variance(model: LocalModel) -> NDArray[np.float64]:
    """Prior variances (1 + e,) of the constant and of the slopes."""
    slopes = [model.slope_variance] * len(model.lengthscale)
    return np.array([model.constant_variance, *slopes])


def _solve_trend(gram: Tensor, variance: NDArray[np.float64], rest: Tensor) -> Tensor:
    """kappa of [E10], (..., a)."""
    diagonal = torch.diagonal(gram, dim1=-2, dim2=-1).detach()
    ridge = torch.where(torch.from_numpy(np.isinf(variance)), RIDGE * diagonal, 0.0)
    P = gram + torch.diag_embed(ridge + as_tensor(1.0 / variance))
    solved: Tensor = torch.linalg.solve(P, rest[..., None])[..., 0]
    return solved


# ---- from one system of all rows ----


def _exact_covariance(solver: ExactSolver, queries: Tensor, correlate: Correlate) -> Tensor:
    """As `ExactSystem.covariance`."""
    system, model = solver.joint_system, solver.problem.model
    z = (queries - as_tensor(system.center)) / as_tensor(model.lengthscale)
    k = correlate(z, as_tensor(system.z))
    solved = k @ as_tensor(system.factor.to_host()).T
    total = correlate(z, z) - solved @ solved.transpose(-1, -2)
    variance = _trend_variance(model)
    is_there = variance > 0
    if not is_there.any():
        return total
    # The basis of the trend, (1, z), is centered at each query: H T.
    e = z.shape[-1]
    T = torch.eye(1 + e, dtype=torch.float64).expand(*z.shape[:-1], 1 + e, 1 + e).clone()
    T[..., 0, 1:] = -z
    T = T[..., is_there]
    at_center = as_tensor(np.eye(1 + e)[0, is_there])
    precision = T.transpose(-1, -2) @ as_tensor(system.gram) @ T
    along = (k @ as_tensor(system.by_trend))[..., None, :] @ T
    kappa = _solve_trend(precision, variance[is_there], at_center - along[..., 0, :])
    uncentered = (T @ kappa[..., None])[..., 0]
    by_prior = kappa / as_tensor(np.sqrt(variance[is_there]))
    by_rows = uncentered @ as_tensor(system.gram) @ uncentered.transpose(-1, -2)
    return total + by_rows + by_prior @ by_prior.transpose(-1, -2)


# ---- from a system for each query ----


def _local_covariance(solver: Solver, queries: Tensor, formula: Formula) -> Tensor:
    """As `lsgp.solvers.errors.error_covariance`, with the rows of each joint prediction."""
    assert isinstance(solver, LocalSolver), "an exact one has another covariance"
    problem, model = solver.units, solver.problem.model
    b, q, e = queries.shape
    found = solver.neighborhoods(queries.detach().numpy().reshape(-1, e))
    neighbors = found.reshape(b, q, -1)
    # Rows (b, u) that are neighbors in each joint prediction, and where neighbors are in them. Rows
    # that pad, and neighbors that do, are row 0: what is multiplied with them is 0.
    distinct = [np.unique(each, return_inverse=True) for each in neighbors]
    rows = np.zeros((b, max(len(own) for own, _ in distinct)), np.int32)
    places = np.empty(neighbors.shape, np.int64)
    K, blocks = np.empty((*rows.shape, rows.shape[1])), []
    for i, (own, where) in enumerate(distinct):
        rows[i, : len(own)] = np.maximum(own, 0)
        places[i] = where.reshape(neighbors.shape[1:])
        at_rows = problem.X[rows[i]].astype(float)
        z_own = at_rows / model.lengthscale
        K[i] = model.correlation.cross(at_rows, z_own, at_rows, z_own)
        blocks.append(K[i][places[i][:, :, None], places[i][:, None, :]])
    beta, unit = _coefficients(problem, queries, neighbors, as_tensor(np.stack(blocks)), formula)
    B = torch.zeros(b, q, rows.shape[1], dtype=torch.float64)
    B = B.scatter_add(2, torch.from_numpy(places), beta)
    scale = as_tensor(model.lengthscale)
    z_rows, z = as_tensor(problem.X[rows]) / scale, queries / scale
    across = B @ _correlate(formula, z_rows, z)
    total = _correlate(formula, z, z) - across - across.transpose(-1, -2)
    total = total + B @ as_tensor(K) @ B.transpose(-1, -2)
    noise = model.noise_variance * as_tensor(problem.noise[rows])
    noisy = B * torch.sqrt(noise)[:, None, :] * torch.sqrt(unit)[..., None]
    total = total + noisy @ noisy.transpose(-1, -2)
    offsets = as_tensor(problem.X[neighbors]) - queries[..., None, :]
    along = (beta[..., None] * offsets).sum(dim=-2) / scale
    by_trend = torch.cat([1.0 - beta.sum(dim=-1, keepdim=True), -along], dim=-1)
    by_trend = by_trend * as_tensor(trend_deviations(model))
    return total + by_trend @ by_trend.transpose(-1, -2)


def _coefficients(
    problem: LocalProblem,
    queries: Tensor,
    neighbors: NDArray[np.int32],
    K: Tensor,
    formula: Formula,
) -> tuple[Tensor, Tensor]:
    """beta [E3] of the neighbors (b, q, m), and the unit (b, q) of the noise [E7].

    ``K`` (b, q, m, m) are correlations of neighbors. The trend is always apart [E10], whatever its
    variance.
    """
    model = problem.model
    is_row = torch.from_numpy(neighbors >= 0)
    offsets = as_tensor(problem.X[neighbors]) - queries[..., None, :]
    weight, unit = _weigh(model, offsets, is_row)
    is_in = is_row & (weight > SMALLEST_WEIGHT)
    z = offsets / as_tensor(model.lengthscale)
    noise = model.noise_variance * as_tensor(problem.noise[neighbors])
    noise = noise / torch.where(is_in, weight, 1.0)
    K = K * is_in[..., :, None] * is_in[..., None, :]
    own = torch.where(is_in, noise, 0.0) + (~is_in).double()
    A, eye = K + torch.diag_embed(own), torch.eye(K.shape[-1], dtype=torch.float64)  # [E2]
    for jitter in jitters():
        L, failed = torch.linalg.cholesky_ex(A + jitter * eye)
        if not failed.any():
            break
    k = elementwise(formula, (z**2).sum(dim=-1)) * is_in
    variance = _trend_variance(model)
    is_there = variance > 0
    basis = torch.cat([torch.ones_like(z[..., :1]), z], dim=-1)[..., is_there]
    H = basis * is_in[..., None]
    solved = torch.cholesky_solve(torch.cat([k[..., None], H], dim=-1), L)
    by_k, by_H = solved[..., 0], solved[..., 1:]
    if not is_there.any():
        return by_k, unit
    at_query = as_tensor(np.eye(len(variance))[0, is_there])
    precision = H.transpose(-1, -2) @ by_H
    rest = at_query - (H.transpose(-1, -2) @ by_k[..., None])[..., 0]
    kappa = _solve_trend(precision, variance[is_there], rest)
    return by_k + (by_H @ kappa[..., None])[..., 0], unit


def _weigh(model: LocalModel, offsets: Tensor, is_row: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (b, q, m) of the localizer, and the unit (b, q) of the noise."""
    r2 = ((offsets / as_tensor(model.localizer_scale)) ** 2).sum(dim=-1)
    h2 = torch.full(r2.shape[:-1], model.scaled_bandwidth**2, dtype=torch.float64)
    if model.bandwidth is None and r2.shape[-1]:
        h2 = torch.where(is_row, r2, 0.0).max(dim=-1).values
    safe = torch.where(h2 > 0, h2, 1.0)

    def localize(s: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        return localizers.evaluate(model.localizer, s, model.localizer_decay)[:2]

    weight = elementwise(localize, r2 / safe[..., None])
    # All neighbors on top of the query: the bandwidth is 0, and each counts as one.
    weight = torch.where(h2[..., None] > 0, weight, 1.0)
    if not model.normalize:
        return weight, torch.ones_like(h2)
    unit = torch.sqrt(safe) * model.localizer_unit
    return weight / unit[..., None], unit
