# SPDX-License-Identifier: BSD-3-Clause
"""An exact GP by lsgp's own solver: the peer of predictions beyond the data."""

from __future__ import annotations

import numpy as np
from peers import Array, Predict, Task, standardized

from lsgp.compute.clock import Clock
from lsgp.inputs.transforms import fit_transform_kind
from lsgp.inputs.transforms.warping import WarpableRows
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.distribution import PredictiveDistribution
from lsgp.method.parameters import Parameters
from lsgp.solvers.evidence import FLAT, NOT_TUNED, EvidenceProblem, ExactGP
from lsgp.solvers.exact_system import ExactSystem

KERNELS = ("matern12", "matern32", "matern52")
#: Rows of which the likelihood is maximized, from lengthscales of these.
N_TUNED, STARTS, N_ITERATIONS = 1000, (1.0, 4.0), 40
#: A step of the log likelihood gains this much, or is the last.
LEAST_GAIN = 1e-3


@standardized
def fit_exact(task: Task) -> Predict:
    """ARD Matérn of smoothness 1/2, 3/2 or 5/2 with a constant mean, by maximum likelihood of
    1,000 of the rows from two starts each; then of all rows.
    """
    X, y, noise = task.X, task.y[:, None], np.ones(len(task.y))
    some = np.random.default_rng(task.seed).permutation(len(y))[:N_TUNED]
    parameters, as_it_is = Parameters(NOT_TUNED | {"slope_variance"}), fit_transform_kind(X, None)

    def tune(kernel: str, lengthscale: float) -> ExactGP:
        model = LocalModel(
            kernel=kernel,
            localizer="rectangular",
            lengthscale=np.full(X.shape[1], lengthscale),
            signal_variance=1.0,
            noise_variance=0.1,
            constant_variance=FLAT,
            slope_variance=0.0,
            localizer_decay=1.0,
            scale_dof=np.inf,
        )
        rows = WarpableRows.of(X[some], X[some], y[some], noise[some], as_it_is)
        evidence = EvidenceProblem(rows, parameters, Clock(None), has_prior=False)
        return evidence.maximize(ExactGP(model, np.empty(0), -np.inf), N_ITERATIONS, LEAST_GAIN)

    tuned = [tune(kernel, length) for kernel in KERNELS for length in STARTS]
    best = max(tuned, key=lambda found: found.log_evidence).model
    system = ExactSystem.solve(LocalProblem(X, y, noise, best))

    def predict(queries: Array) -> PredictiveDistribution:
        solved = system.predict(queries)
        variance = best.signal_variance * (solved.variance + best.noise_variance)
        return PredictiveDistribution(solved.mean[:, 0], np.sqrt(variance))

    return predict
