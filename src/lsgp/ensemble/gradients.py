# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of predictions with respect to the query, at a fixed neighborhood.

The rows of the neighborhood stay; everything that [E1] to [E7] compute from the query moves: the
cross-covariance, the slope of the trend, which is centered at the query, the weights and the
adaptive bandwidth. With the smooth and the Epanechnikov localizer the prediction is continuous,
and this is its derivative wherever no two rows compete for the last place of the neighborhood.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.backends import reference
from lsgp.backends.reference import LocalSystem
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.predictions import PredictionMixin, check_kind
from lsgp.method import localizers
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.kernels import KERNELS
from lsgp.solvers.local_solves import Failures

Array = NDArray[np.floating]

#: Step of the central differences of scikit-learn kernels, relative to the lengthscale.
STEP = 1e-5


class PredictionGradient(NamedTuple):
    """Derivatives of one model's predictions of one query, in its inputs."""

    mean: Array  # (t, d) of [E4]
    variance: Array  # (d,) of [E5]
    scale: Array  # (t, d) of [E6]
    dof: Array  # (d,) of [E6]


class GradientMixin(PredictionMixin):
    """Derivatives of the predictions of a fitted estimator."""

    def predict_gradient(
        self, X: ArrayLike, return_std: bool = False, kind: str = "observation"
    ) -> Any:
        """Derivative of the predicted mean, and of the standard deviation, in the inputs.

        In the units of y per unit of each input, at a fixed neighborhood. An input that is
        constant in the training data has derivative 0. The derivative of a standard deviation
        that is infinite (2 degrees of freedom or fewer) is NaN. "matern12" has a kink at every
        training point, where the mean of both sides is given. Kernel objects of scikit-learn
        have no derivative of their own: theirs is by central differences, the rest is not.

        Parameters
        ----------
        X : array-like of shape (q, d)
        return_std : bool
        kind : {"observation", "latent"}
            Which standard deviation, as in `predict`.

        Returns
        -------
        mean_gradient : array of shape (q, d), or (q, t, d) for several targets
        std_gradient : array of the same shape, if ``return_std``

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None, lengthscale=0.5, noise_variance=1e-4)
        >>> model.fit(X, np.sin(6 * X[:, 0])).predict_gradient([[0.25], [0.5]]).round(1)
        array([[ 0.4],
               [-5.9]])
        """
        check_kind(kind)
        X = self._check_queries(X)
        failures = Failures()
        total = _Combination(
            len(X), len(self.target_scaler_.mean), X.shape[1], kind == "observation"
        )
        for fitted in self.fitted_:
            total.add(fitted, X, failures)
        failures.raise_if_any(len(X), self.fitted_[0].model)
        shape = (len(X), *self._y_shape, X.shape[1])
        unit = self.target_scaler_.std[:, None]
        mean = (total.mean_gradient * unit).reshape(shape)
        if not return_std:
            return mean
        return mean, (total.std_gradient() * unit * self.scale_factor_).reshape(shape)


class _Combination:
    """The combination of several models [`lsgp.method.combination`], and its derivative."""

    def __init__(self, q: int, t: int, d: int, with_noise: bool) -> None:
        self.with_noise = with_noise
        self.means: list[tuple[float, Array, Array]] = []
        self.mean_gradient = np.zeros((q, t, d))
        self.log_scale, self.log_scale_gradient = np.zeros((q, t)), np.zeros((q, t, d))
        self.inverse_dof, self.inverse_dof_gradient = np.zeros(q), np.zeros((q, d))

    def add(self, fitted: FittedModel, X: Array, failures: Failures) -> None:
        q, t, d = self.mean_gradient.shape
        queries = np.ascontiguousarray(fitted.transform.transform(X))
        by_input = fitted.transform.derivative(X)
        noise = fitted.model.noise_variance if self.with_noise else 0.0
        mean, gradient = np.empty((q, t)), np.empty((q, t, d))
        for i, (rows, system) in enumerate(fitted.solve_systems(queries, failures)):
            by_query = differentiate(fitted.problem, queries[i], rows, system)
            scale, dof = reference.scale_and_dof(fitted.model, system)
            relative = system.variance + noise
            mean[i] = system.covariance.k @ system.alpha  # [E4]
            gradient[i] = by_query.mean * by_input[i]
            self.log_scale[i] += 0.5 * fitted.weight * np.log(scale * relative)  # [E7]
            self.log_scale_gradient[i] += (0.5 * fitted.weight * by_input[i]) * (
                by_query.scale / scale[:, None] + by_query.variance / relative
            )
            self.inverse_dof[i] += fitted.weight / dof
            self.inverse_dof_gradient[i] -= fitted.weight * by_query.dof * by_input[i] / dof**2
        self.mean_gradient += fitted.weight * gradient
        self.means.append((fitted.weight, mean, gradient))

    def std_gradient(self) -> Array:
        """Derivative of scale sqrt(nu / (nu - 2)).

        The squared scale is exp(2 log_scale), plus the variance of the models' means.
        """
        center = np.asarray(sum(w * mean for w, mean, _ in self.means))
        spread, by_spread = np.zeros(center.shape), np.zeros(self.mean_gradient.shape)
        for w, mean, gradient in self.means:
            offset = mean - center
            spread += w * offset**2
            by_spread += w * offset[:, :, None] * (gradient - self.mean_gradient)
        geometric = np.exp(2.0 * self.log_scale)
        scale = np.sqrt(geometric + spread)[:, :, None]
        by_scale = (geometric[:, :, None] * self.log_scale_gradient + by_spread) / scale
        # sqrt(nu / (nu - 2)) is (1 - 2 / nu)^(-1/2).
        rest = 1.0 - 2.0 * self.inverse_dof
        rest = np.where(rest > 0, rest, np.nan)[:, None, None]
        return (by_scale + scale * self.inverse_dof_gradient[:, None, :] / rest) / np.sqrt(rest)


def differentiate(
    problem: LocalProblem, query: Array, rows: NDArray[np.int32], system: LocalSystem
) -> PredictionGradient:
    """Derivatives of one local solve in the query's inputs; ``rows`` are its neighborhood."""
    model = problem.model
    alpha, beta, z, weight = system.alpha, system.beta, system.z, system.weight
    z_by_query = -1.0 / model.lengthscale  # (d,), of z in its own input
    by_weight = _differentiate_weights(model, problem.X[rows].astype(float) - query, system)
    by_k, by_k00 = _differentiate_covariance(problem, query, system)
    # [E2] The noise over the weight, per alpha beta, which vanish with the weight.
    by_noise = -model.noise_variance * system.noise[:, None] * by_weight

    def through_A(left: Array, right: Array) -> Array:
        """leftᵀ dA right, (d,): noise and the slope's b zᵢ·zⱼ depend on the query."""
        slope = (left @ z) * right.sum() + left.sum() * (right @ z)
        noise = (left / weight) * (right / weight) @ by_noise
        return np.asarray(noise + model.slope_variance * slope * z_by_query)

    mean = np.array([a @ by_k - through_A(a, beta) for a in alpha.T])
    variance = by_k00 - 2.0 * beta @ by_k + through_A(beta, beta)
    if system.variance <= reference.SMALLEST_VARIANCE * system.covariance.k00:
        variance = np.zeros_like(variance)
    if np.isinf(model.scale_dof):
        return PredictionGradient(mean, variance, np.zeros_like(mean), np.zeros_like(variance))
    scale, nu = reference.scale_and_dof(model, system)
    dof = (weight < 1.0) @ by_weight
    misfit = np.array([-through_A(a, a) for a in alpha.T])
    return PredictionGradient(mean, variance, (misfit - np.outer(scale, dof)) / nu, dof)


def _differentiate_weights(model: LocalModel, offsets: Array, system: LocalSystem) -> Array:
    """Derivatives (m, d) of the weights of the system; ``offsets`` of all of the neighborhood."""
    r2_by_query = -2.0 * system.z / model.lengthscale
    h2, h2_by_query = model.scaled_bandwidth**2, np.zeros(len(model.lengthscale))
    if model.bandwidth is None:
        z = offsets / model.lengthscale
        r2 = (z**2).sum(axis=1)
        h2 = r2.max(initial=0.0)
        if h2 == 0:
            return np.zeros_like(r2_by_query)
        h2_by_query = -2.0 * z[r2.argmax()] / model.lengthscale
    s = (system.z**2).sum(axis=1) / h2
    by_s = localizers.evaluate(model.localizer, s, model.localizer_decay)[1]
    by_query = by_s[:, None] * (r2_by_query - np.outer(s, h2_by_query)) / h2
    if model.normalize:
        factor = 1.0 / (np.sqrt(h2) * np.exp(np.mean(np.log(model.lengthscale))))
        by_query = factor * by_query - np.outer(system.weight, 0.5 * h2_by_query / h2)
    return by_query


def _differentiate_covariance(
    problem: LocalProblem, query: Array, system: LocalSystem
) -> tuple[Array, Array]:
    """Derivatives of k (m, d) and of k00 (d,) in the query [E1]."""
    model, d = problem.model, len(query)
    if isinstance(model.kernel, str):
        by_r2 = KERNELS[model.kernel]((system.z**2).sum(axis=1))[1]
        return by_r2[:, None] * (-2.0 * system.z / model.lengthscale), np.zeros(d)
    steps = STEP * np.diag(np.broadcast_to(model.lengthscale, d))
    X, above, below = problem.X[system.rows].astype(float), query + steps, query - steps
    width = 2.0 * np.diag(steps)
    by_k = (model.kernel(X, above) - model.kernel(X, below)) / width
    return by_k, (model.kernel.diag(above) - model.kernel.diag(below)) / width
