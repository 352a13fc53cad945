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
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.predict import check_kind, predict_distribution
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block, Solver

Array = NDArray[np.float64]

#: Matrices of all pairs of queries that are there at once.
N_MATRICES = 4


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
    correlation = np.clip(covariance * unit[:, None] * unit[None, :], -1.0, 1.0)
    correlation[np.diag_indices(len(X))] = 1.0
    return correlation
