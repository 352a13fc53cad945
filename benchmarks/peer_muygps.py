# SPDX-License-Identifier: BSD-3-Clause
"""MuyGPyS: a GP on the nearest neighbors of each query, tuned by leave-one-out."""

from __future__ import annotations

import numpy as np
from MuyGPyS.gp import MuyGPS
from MuyGPyS.gp.deformation import Anisotropy, l2
from MuyGPyS.gp.hyperparameter import AnalyticScale, Parameter, VectorParameter
from MuyGPyS.gp.kernels import Matern
from MuyGPyS.gp.noise import HomoscedasticNoise
from MuyGPyS.neighbors import NN_Wrapper
from MuyGPyS.optimize import L_BFGS_B_optimize
from MuyGPyS.optimize.batch import sample_batch
from MuyGPyS.optimize.loss import lool_fn
from peers import Array, Predict, Task, standardized

from lsgp.method.distribution import PredictiveDistribution

N_NEIGHBORS, N_TUNED, N_ROUNDS = 30, 200, 2


@standardized
def fit_muygps(task: Task) -> Predict:
    """ARD Matérn 3/2 or 5/2 on 30 neighbors, by its leave-one-out likelihood (L-BFGS-B).

    Two rounds: the second searches neighbors with the lengthscales of the first. That likelihood
    takes the variance of the latent function for the whole; whether the noise is added to it in
    predictions is therefore decided by the same leave-one-out targets.
    """
    n, d = task.X.shape
    np.random.seed(task.seed)  # noqa: NPY002 (sample_batch draws from the global state)
    divisor, noise = np.full(d, np.sqrt(d)), 1e-2
    smoothnesses: tuple[float, ...] = (1.5, 2.5)
    for _ in range(N_ROUNDS):
        X = task.X / divisor
        lookup = NN_Wrapper(X, min(N_NEIGHBORS, n - 2), nn_method="exact", n_jobs=1)
        batch, neighbors = sample_batch(lookup, min(N_TUNED, n), n)
        tuned = []
        for smoothness in smoothnesses:
            model = _model(d, smoothness, noise)
            across, between, y, y_near = model.make_train_tensors(batch, neighbors, X, task.y)
            model = L_BFGS_B_optimize(model, y, y_near, across, between, loss_fn=lool_fn)
            model = model.optimize_scale(between, y_near)
            for noisy in (False, True):
                found = _predict(model, across, between, y_near, noisy)
                tuned.append((np.mean(found.logpdf(y)), smoothness, model, noisy))
        _, smoothness, model, noisy = max(tuned, key=lambda one: one[0])
        searched, smoothnesses, noise = divisor, (smoothness,), float(model.noise())
        divisor = divisor * model.kernel.deformation.length_scale()

    def predict(X_new: Array) -> PredictiveDistribution:
        Z = X_new / searched
        parts = []
        for rows in np.array_split(np.arange(len(Z)), max(1, len(Z) // 1000)):
            near, _ = lookup.get_nns(Z[rows])
            which = np.arange(len(rows))
            across, between, y_near = model.make_predict_tensors(which, near, Z[rows], X, task.y)
            parts.append(_predict(model, across, between, y_near, noisy))
        return PredictiveDistribution(
            np.concatenate([p.mean for p in parts]), np.concatenate([p.scale for p in parts])
        )

    return predict


def _model(d: int, smoothness: float, noise: float) -> MuyGPS:
    lengthscale = VectorParameter(*(Parameter(1.0, (0.02, 50.0)) for _ in range(d)))
    return MuyGPS(
        kernel=Matern(
            smoothness=Parameter(smoothness),
            deformation=Anisotropy(metric=l2, length_scale=lengthscale),
        ),
        noise=HomoscedasticNoise(noise, (1e-6, 1.0)),
        scale=AnalyticScale(),
    )


def _predict(
    model: MuyGPS, across: Array, between: Array, y_near: Array, noisy: bool
) -> PredictiveDistribution:
    K, k = model.kernel(between), model.kernel(across)
    variance = model.posterior_variance(K, k) + noisy * model.scale() * model.noise()
    return PredictiveDistribution(
        model.posterior_mean(K, k, y_near), np.sqrt(np.maximum(variance, 1e-12))
    )
