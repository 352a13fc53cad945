# SPDX-License-Identifier: BSD-3-Clause
"""How predictions belong together: their covariance, for as many queries as it fits in memory.

Each model says how the errors of its predictions are correlated [J1]; an ensemble has the weighted
mean of that. With it go the standard deviations that are predicted, so that the diagonal of the
covariance is what `predict` says.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Resources
from lsgp.compute import blas
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.predict import check_kind, predict_distribution
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block, Solver

Array = NDArray[np.float64]

#: Matrices of all pairs of queries that are there at once.
N_MATRICES = 4
#: Eigenvalues of correlations that are negative by this much are 0.
ROUNDING = 1e-10


def predict_covariance(
    ensemble: Ensemble, X: Array, kind: str, resources: Resources
) -> tuple[Array, Array]:
    """Means (q,) or (q, t), and covariances (q, q) or (q, q, t)."""
    check_kind(kind)
    latent = predict_distribution(ensemble, X, "latent", resources)
    std = ensemble.in_columns(latent.std)
    covariance = correlations(ensemble, X, resources)
    with np.errstate(invalid="ignore"):
        covariance *= std[:, None, :] * std[None, :, :]
    if kind == "observation":
        observed = predict_distribution(ensemble, X, kind, resources)
        noise = np.square(ensemble.in_columns(observed.std)) - np.square(std)
        covariance[np.diag_indices(len(X))] += np.maximum(noise, 0.0)
    return latent.mean, covariance.reshape(len(X), len(X), *ensemble.target_shape)


def correlations(ensemble: Ensemble, X: Array, resources: Resources) -> Array:
    """Of the errors of predictions, for each target, (q, q, t)."""
    q, t = len(X), ensemble.n_targets
    needed = 8 * q * q * (t + N_MATRICES)
    if needed > resources.memory_budget:
        raise ValueError(
            f"The covariance of {q} queries needs {needed} bytes, more than memory_budget="
            f"{resources.memory_budget}. Increase memory_budget, or draw samples with sample_y, "
            "which takes any number of queries."
        )
    total = np.zeros((q, q, t))
    for fitted in ensemble.models:
        for columns, solver in fitted.solver.parts():
            own = correlation_of_errors(fitted, solver, X, resources)
            total[:, :, columns] += fitted.weight * own[:, :, None]
    # Weights sum to 1, but for rounding.
    total[np.diag_indices(q)] = 1.0
    return total


def correlation_of_errors(
    fitted: FittedModel, solver: Solver, X: Array, resources: Resources
) -> Array:
    """[J1] of one model, (q, q), with ones on the diagonal."""
    failures = Failures()
    plan = solver.plan(max(len(X), 1), resources)
    covariance = solver.covariance(fitted.inputs_of(X), Block(plan, 0, failures))
    failures.raise_if_any(len(X), solver.problem.model)
    variance = np.diag(covariance).copy()
    unit = 1.0 / np.sqrt(np.where(variance > 0, variance, np.inf))
    covariance = 0.5 * (covariance + covariance.T)
    correlation = np.clip(covariance * np.outer(unit, unit), -1.0, 1.0)
    correlation[np.diag_indices(len(X))] = 1.0
    return nearest_correlation(correlation)


def nearest_correlation(matrix: Array) -> Array:
    """A matrix with ones on the diagonal, without what rounding has made negative of it.

    Variances of functions without noise are differences of much larger numbers, and what is left of
    these may be no covariance. Eigenvalues below 0 become 0, and the diagonal is 1 again.
    """
    shifted = matrix.copy()
    shifted[np.diag_indices(len(matrix))] += ROUNDING
    if not np.isfinite(matrix).all() or blas.factor(shifted):
        return matrix
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    root /= np.sqrt((root**2).sum(axis=1, keepdims=True))
    mended = root @ root.T
    mended[np.diag_indices(len(matrix))] = 1.0
    return np.asarray(mended)
