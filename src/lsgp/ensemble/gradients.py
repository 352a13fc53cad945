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
from numpy.typing import NDArray

from lsgp.backends import reference
from lsgp.backends.reference import LocalSystem
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.predict import check_kind
from lsgp.inputs.encoding.encodings import LeftOut, Number
from lsgp.method import localizers
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.solvers.failures import Failures

Array = NDArray[np.float64]


class PredictionGradient(NamedTuple):
    """Derivatives of one model's predictions of one query, in its inputs."""

    mean: Array  # (t, d) of [E4]
    variance: Array  # (d,) of [E5]
    scale: Array  # (t, d) of [E6]
    dof: Array  # (d,) of [E6]
    noise_unit: Array  # (d,) of the logarithm of what an observation's noise is multiplied by [E7]


def predict_gradient(
    ensemble: Ensemble, X: Array, return_std: bool = False, kind: str = "observation"
) -> Any:
    """Derivative of the predicted mean, and of the standard deviation, in the inputs."""
    check_kind(kind)
    failures = Failures()
    total = _Combination(len(X), ensemble.n_targets, X.shape[1], kind == "observation")
    for fitted in ensemble.models:
        total.add(fitted, X, failures)
    failures.raise_if_any(len(X), ensemble.heaviest.model)
    failures.warn_if_jittered(len(X), ensemble.heaviest.model)
    shape = (len(X), *ensemble.target_shape, ensemble.n_columns)
    unit = ensemble.target_scaler.std[:, None]
    mean = _by_column(ensemble, X, total.mean_gradient * unit).reshape(shape)
    if not return_std:
        return mean
    std = total.std_gradient() * unit * ensemble.scale_factor
    return mean, _by_column(ensemble, X, std).reshape(shape)


def _by_column(ensemble: Ensemble, X: Array, gradient: Array) -> Array:
    """Derivatives (q, t, d) in the columns of a table from those (q, t, e) in the inputs.

    Columns that are no input have derivative 0, categories and dates none: NaN.
    """
    if ensemble.encoder is None:
        return gradient
    out = np.full((*gradient.shape[:2], ensemble.n_columns), np.nan)
    for j, (each, span) in enumerate(zip(ensemble.encoder.encodings, ensemble.spans, strict=True)):
        if isinstance(each, Number):
            is_there = ~each.is_filled(X[:, span])
            out[is_there, :, j] = gradient[is_there, :, span.start]
        elif isinstance(each, LeftOut):
            out[:, :, j] = 0.0
    return out


class _Combination:
    """The combination of several models (`lsgp.method.combination`), and its derivative."""

    def __init__(self, q: int, t: int, d: int, with_noise: bool) -> None:
        self.with_noise = with_noise
        self.means: list[tuple[float, Array, Array]] = []
        self.mean_gradient = np.zeros((q, t, d))
        self.log_scale, self.log_scale_gradient = np.zeros((q, t)), np.zeros((q, t, d))
        self.inverse_dof, self.inverse_dof_gradient = np.zeros(q), np.zeros((q, d))

    def add(self, fitted: FittedModel, X: Array, failures: Failures) -> None:
        q, t, _ = self.mean_gradient.shape
        queries = fitted.inputs_of(X)
        e = queries.shape[1]  # of the model's own inputs
        mean, by_mean = np.empty((q, t)), np.empty((q, t, e))
        by_log_scale, by_inverse_dof = np.empty((q, t, e)), np.zeros((q, e))
        for number, (columns, solver) in enumerate(fitted.solver.parts()):
            noise = solver.problem.model.noise_variance if self.with_noise else 0.0
            for i, (rows, system) in enumerate(solver.systems(queries, failures)):
                by_query = differentiate(solver.problem, queries[i], rows, system)
                scale, dof = reference.scale_and_dof(fitted.model, system)
                own_noise = noise * system.noise_unit
                relative = system.variance + own_noise
                by_relative = by_query.variance + own_noise * by_query.noise_unit
                mean[i, columns] = system.mean
                by_mean[i, columns] = by_query.mean
                self.log_scale[i, columns] += 0.5 * fitted.weight * np.log(scale * relative)  # [E7]
                by_log_scale[i, columns] = (0.5 * fitted.weight) * (
                    by_query.scale / scale[:, None] + by_relative / relative
                )
                if number == 0:  # the degrees of freedom are those of all targets
                    self.inverse_dof[i] += fitted.weight / dof
                    by_inverse_dof[i] = -fitted.weight * by_query.dof / dof**2
        gradient = fitted.transform.pull_back(X, by_mean)
        self.log_scale_gradient += fitted.transform.pull_back(X, by_log_scale)
        self.inverse_dof_gradient += fitted.transform.pull_back(X, by_inverse_dof)
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
    if system.variance <= reference.SMALLEST_VARIANCE * system.covariance.k00:
        variance = np.zeros_like(variance)
    if np.isinf(model.scale_dof):
        flat = np.zeros_like(mean), np.zeros_like(variance)
        return PredictionGradient(mean, variance, *flat, by_unit)
    scale, nu = reference.scale_and_dof(model, system)
    dof = (weight < 1.0) @ by_weight
    misfit = np.array([-through_A(a, s, a, s) for a, s in targets])
    return PredictionGradient(mean, variance, (misfit - np.outer(scale, dof)) / nu, dof, by_unit)


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
