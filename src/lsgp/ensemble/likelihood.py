# SPDX-License-Identifier: BSD-3-Clause
"""How likely a model makes the targets of a neighborhood: the paper's marginal likelihood."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.local_system import solve_system
from lsgp.ensemble.ensemble import Ensemble
from lsgp.solvers.failures import Failures

Array = NDArray[np.float64]


def local_log_marginal_likelihood(ensemble: Ensemble, X: Array) -> Array:
    """Of the neighborhood of each query under the heaviest model, (q,) or (q, t), in units of y.

    log p(y) = -½ yᵀ A⁻¹ y / s² - ½ log |s² A| - ½ m log 2π with [E2] A of the m neighbors.
    """
    fitted, failures = ensemble.heaviest, Failures()
    queries = fitted.inputs_of(X)
    s2, values = fitted.model.signal_variance, np.empty((len(X), ensemble.n_targets))
    for columns, solver in fitted.solver.parts():
        for i, (rows, system) in enumerate(solver.systems(queries, failures)):
            if len(system.factor[0]) != len(system.rows):
                # The system of all rows keeps no factor of its own.
                system = solve_system(solver.problem, queries[i], rows, False)
            m = len(system.rows)
            misfit = system.misfit / s2
            log_determinant = 2.0 * float(np.log(np.diag(system.factor[0])).sum())
            if system.trend is not None:
                log_determinant += 2.0 * system.trend.log_evidence_part(fitted.model.lengthscale)
            constant = log_determinant + m * math.log(2.0 * math.pi * s2)
            unit = m * np.log(ensemble.target_scaler.std[columns])
            values[i, columns] = -0.5 * (misfit + constant) - unit
    failures.raise_if_any(len(X), fitted.model)
    return ensemble.in_shape(values)
