# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs of all rows, fitted by maximizing the evidence (marginal likelihood) with priors.

Held-out scores of few rows are too noisy to tune many hyperparameters. The evidence uses the rows
better where a GP is about right, and its maxima rank models without holding out rows. The noise is
bounded in units of the targets: the signal variance of a smooth function may be thousands of times
as large, and a bound relative to it would allow no small noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Dense
from lsgp.backends.dense_host import HOST, dense_for
from lsgp.compute.clock import Clock
from lsgp.compute.descent import descend_vector
from lsgp.method.contract import SHARED_PARAMETERS, LocalModel, LocalProblem
from lsgp.method.kernels import Groups, SumKernel, first_of_groups
from lsgp.method.parameters import LENGTHSCALE_BOUNDS, SHARED_BOUNDS, Parameters, finds_no_noise
from lsgp.method.trend import solve_trend, trend_basis

Array = NDArray[np.float64]

#: Negative log evidence of a matrix that has no factor.
BAD_EVIDENCE = 1e10
#: Variance of an exact GP's constant, relative to the signal variance. Its slope is centered at the
#: mean of the rows, and that of a local model at the query; a nearly flat prior of the constant
#: makes both models agree.
FLAT = 50.0
#: Hyperparameters that an exact GP does not have, or that are not tuned.
NOT_TUNED = frozenset({"constant_variance", "localizer_decay", "scale_dof"})
#: Bounds of the log noise variance, relative to the variance of the targets, and the largest log
#: signal variance, which is large for smooth functions.
NOISE_BOUNDS, LARGEST_SIGNAL = (math.log(1e-10), 3.0), 16.0
#: The noise variance, relative to the signal variance, is at least this times the number of rows.
#: With less, rounding decides whether the matrix has a factor.
ROUNDING_NOISE = 1e-15
#: A step must gain this much log evidence, or the descent ends: the usual limit, and the one of a
#: descent that another one follows.
NEGLIGIBLE_GAIN, LITTLE_GAIN = 0.02, 0.2
#: The log evidence of a point without a factor is set to this much below the best so far. With a
#: much lower value, the line search would return to the best point and stop there.
FAILED_EVIDENCE = 100.0
#: A descent that met such points is repeated while it gains this much, at most so many times.
WORTH_DESCENT, MOST_DESCENTS = 1.0, 3
#: If a start has no factor, its noise is multiplied by MORE_NOISE, at most MOST_RAISED times. The
#: noise found with few rows may be too little for more rows.
MORE_NOISE, MOST_RAISED = 10.0, 6
#: If a descent finds no noise, another one starts from this fraction of it.
LESS_NOISE = 0.01
#: Standard deviations of the normal priors of log lengthscales: of each about their mean, and of
#: the mean about the root of the number of inputs, in standard deviations of an input.
LENGTHSCALE_SPREAD, MEAN_LENGTHSCALE_SPREAD = 1.5, 1.0
#: Median, spread and degrees of freedom of the Student-t prior of the log noise, in units of the
#: targets. Its heavy tails allow functions without noise, many decades away.
USUAL_NOISE, NOISE_SPREAD, NOISE_DOF = 0.03, 2.5, 3.0
#: Standard deviation of the normal priors of the parameters of a sum of kernels, about usual ones.
CONSTANT_SPREAD = 1.0
#: Indices, from the end, of the signal and noise variances in a gradient.
SIGNAL_ENTRY, NOISE_ENTRY = (
    SHARED_PARAMETERS.index(name) - len(SHARED_PARAMETERS)
    for name in ("signal_variance", "noise_variance")
)


class Evidence(NamedTuple):
    """The negative log marginal likelihood of all rows, mean over the targets, and derivatives."""

    value: float
    gradient: Array  # in log hyperparameters, in the order of `Scores`
    by_rows: Array  # (n, d) in the inputs of the rows


def negative_log_evidence(problem: LocalProblem, dense: Dense = HOST) -> Evidence:
    """Compute the negative log evidence of a problem, with the trend centered at the row mean."""
    X, y, noise, model = problem
    n, n_targets = y.shape
    s2 = model.signal_variance
    z = (X - X.mean(axis=0)) / model.lengthscale
    is_apart = model.has_large_trend
    dense = dense_for(model, dense)
    with dense.alone():
        A = dense.covariance(z, model, noise)
        if A is None:
            n_own = model.correlation.n_parameters(X.shape[1])
            nothing = np.zeros(n_own + len(SHARED_PARAMETERS))
            return Evidence(math.inf, nothing, np.zeros_like(z))
        alpha = A.solve(y)
        misfit = float((y * alpha).sum()) / n_targets
        half_log_determinant = A.half_log_determinant
        by_basis = None
        if is_apart:  # [E10]
            basis = trend_basis(model, z)
            by_H = A.solve(basis.H)
            trend = solve_trend(basis, basis.H.T @ by_H, by_H.T @ y, basis.at_query)
            alpha = alpha - by_H @ trend.theta
            misfit = float(((y - basis.H @ trend.theta) * alpha).sum() + trend.explained.sum())
            misfit /= n_targets
            half_log_determinant += trend.log_evidence_part(model.lengthscale)
            by_basis = by_H @ trend.inverse_precision, by_H
        value = 0.5 * (misfit / s2 + n * math.log(2.0 * math.pi * s2)) + half_log_determinant
        sums = A.adjoint_sums(alpha, s2 * n_targets, by_basis)
    by_kernel, by_z = sums.by_logarithms, sums.by_rows
    if by_basis is not None:
        by_constant, by_slopes = trend.evidence_by_variance(s2)
        if by_slopes.size:
            # Derivative in H through A = C⁻¹ + H B Hᵀ: A⁻¹H B = C H P⁻¹, minus the misfit's part.
            by_H = by_basis[0] - alpha @ trend.theta.T / (s2 * n_targets)
            by_z += by_H[:, basis.inputs >= 0]
    else:
        by_constant = model.constant_variance * sums.total
        by_slopes = model.slope_variance * np.einsum("ij,ij->j", z, sums.by_z)
        by_z += 2.0 * model.slope_variance * sums.by_z
    if by_slopes.size:
        by_kernel[: X.shape[1]] -= 2.0 * by_slopes
    shared = [
        0.5 * (n - misfit / s2),
        model.noise_variance * float(sums.diagonal @ noise),
        by_constant,
        float(by_slopes.sum()),
        0.0,
        0.0,
    ]
    # The mean of the rows is subtracted, so each row also shifts all others.
    by_rows = (by_z - by_z.mean(axis=0)) / model.lengthscale
    return Evidence(value, np.concatenate([by_kernel, shared]), by_rows)


class Rows(Protocol):
    """The rows of an exact GP, whose inputs may be warped."""

    @property
    def X(self) -> Array: ...  # (n, d)

    @property
    def y(self) -> Array: ...  # (n, t)

    @property
    def noise(self) -> Array: ...  # (n,)

    @property
    def largest_warp(self) -> float: ...  # bound of the absolute value of a warp

    def warped(self, warps: Array) -> tuple[Array, Array]:
        """Warp the inputs; returns them (n, d) and their derivatives in the warps (n, d)."""

    def negative_log_prior(self, warps: Array) -> tuple[float, Array]:
        """Negative log prior of the warps up to a constant, and its gradient."""


class ExactGP(NamedTuple):
    """An exact GP: its model, the warps of its inputs, and its evidence."""

    model: LocalModel
    warps: Array  # (d,), or empty if inputs are not warped
    log_evidence: float  # plus the log density of the priors


def make_exact(
    model: LocalModel, given: frozenset[str] = frozenset(), has_constant: bool = False
) -> LocalModel:
    """Return the model with weights of 1, which is an exact GP if all rows are neighbors.

    Its constant gets a nearly flat prior, unless ``has_constant``: the constant is then part of
    the kernel, and tuned.
    """
    constant = model.constant_variance
    if constant > 0 and "constant_variance" not in given and not has_constant:
        constant = FLAT
    return model.replace(
        localizer="rectangular", localizer_decay=1.0, scale_dof=np.inf, constant_variance=constant
    )


def with_noise_of_targets(parameters: Parameters) -> Parameters:
    """Return parameters with the bounds of an exact GP, the noise in units of the targets."""
    signal = (SHARED_BOUNDS["signal_variance"][0], LARGEST_SIGNAL)
    bounds = {"noise_variance": np.array([NOISE_BOUNDS]), "signal_variance": np.array([signal])}
    return replace(parameters, own_bounds=bounds)


def with_shortest(parameters: Parameters, shortest: Array) -> Parameters:
    """Return parameters whose lengthscales are at least ``shortest`` (d,).

    The bound of a shared lengthscale is the smallest of its inputs.
    """
    low, high = LENGTHSCALE_BOUNDS
    groups = np.array(parameters.groups or range(len(shortest))) * (not parameters.is_isotropic)
    each = [shortest[groups == k].min() for k in range(int(groups.max()) + 1)]
    lowest = np.log(np.maximum(each, math.exp(low)))
    bounds = np.column_stack([lowest, np.full(len(lowest), high)])
    return replace(parameters, own_bounds={**(parameters.own_bounds or {}), "lengthscale": bounds})


@dataclass(frozen=True, eq=False)
class EvidenceProblem:
    """The maximization of the evidence of rows over the free parameters."""

    rows: Rows
    parameters: Parameters
    clock: Clock
    dense: Dense = HOST
    has_prior: bool = True  # priors need standardized inputs, and no bounds of users

    def maximize(self, start: ExactGP, n_steps: int, least_gain: float) -> ExactGP:
        """Tune from ``start``, its warps too if it has any, until a step gains too little."""
        parameters, n_own = self.parameters, len(self.parameters.pack(start.model))
        vector = np.concatenate([parameters.pack(start.model), start.warps])
        bounds = parameters.bounds(start.model)
        bounds += [(-self.rows.largest_warp, self.rows.largest_warp)] * len(start.warps)
        lowest, n_failed = BAD_EVIDENCE, 0

        def function(vector: Array) -> tuple[float, Array]:
            nonlocal lowest, n_failed
            self.clock.check()
            value, gradient = self._value(start.model, vector, n_own)
            if not math.isfinite(value) or not np.isfinite(gradient).all():
                n_failed += 1
                return lowest + FAILED_EVIDENCE, np.zeros(len(vector))
            lowest = min(lowest, value)
            return value, gradient

        def descend(vector: Array) -> tuple[Array, float]:
            nonlocal n_failed
            n_failed = 0
            return descend_vector(
                function, vector, bounds, n_steps, lambda _: least_gain, is_steep=True
            )

        def descend_with_noise(vector: Array, factor: float) -> tuple[Array, float]:
            changed = self._rounded(parameters.unpack(vector[:n_own], start.model))
            changed = changed.replace(noise_variance=factor * changed.noise_variance)
            return descend(np.concatenate([parameters.pack(changed), vector[n_own:]]))

        if not len(vector):
            return start._replace(log_evidence=-function(vector)[0])
        best, value = descend(vector)
        for _ in range(MOST_RAISED):
            if lowest < BAD_EVIDENCE or "noise_variance" not in parameters.free_of(start.model):
                break
            best, value = descend_with_noise(best, MORE_NOISE)
        for _ in range(MOST_DESCENTS - 1):
            if not n_failed:
                break
            before = value
            best, value = descend(best)
            if before - value < WORTH_DESCENT:
                break
        for _ in range(MOST_DESCENTS if n_steps else 0):
            if not finds_no_noise(parameters.unpack(best[:n_own], start.model)):
                break
            # The evidence of a function without noise has several maxima in the noise; the highest
            # has little of it.
            other, lower = descend_with_noise(best, LESS_NOISE)
            if value - lower < WORTH_DESCENT:
                break
            best, value = other, lower
        model = self._rounded(parameters.unpack(best[:n_own], start.model))
        return ExactGP(model, best[n_own:], -value)

    def _rounded(self, model: LocalModel) -> LocalModel:
        """Return the model with at least the noise that a factor needs."""
        least = ROUNDING_NOISE * len(self.rows.X)
        return model.replace(noise_variance=max(model.noise_variance, least))

    def _value(self, model: LocalModel, vector: Array, n_own: int) -> tuple[float, Array]:
        """The negative log evidence with the priors, and its gradient."""
        warps = vector[n_own:]
        free = self.parameters.unpack(vector[:n_own], model)
        changed = self._rounded(free)
        X, by_warps = self.rows.warped(warps) if len(warps) else (self.rows.X, None)
        problem = LocalProblem(X, self.rows.y, self.rows.noise, changed)
        value, gradient, by_rows = negative_log_evidence(problem, self.dense)
        if changed is not free and changed.noise_variance != free.noise_variance:
            gradient[NOISE_ENTRY] = 0.0  # the noise is the constant least one
        if self.has_prior:
            prior, by_prior = negative_log_prior(changed, self.parameters.groups)
            value, gradient = value + prior, gradient + by_prior
        gradient = self.parameters.restrict(gradient, changed)
        if by_warps is None:
            return value, gradient
        prior, by_prior = self.rows.negative_log_prior(warps)
        by_warp = np.einsum("ij,ij->j", by_rows, by_warps) + by_prior
        return value + prior, np.concatenate([gradient, by_warp])


def negative_log_prior(model: LocalModel, groups: Groups | None = None) -> tuple[float, Array]:
    """Negative log prior of lengthscales, noise and kernel parameters, and its gradient.

    It is up to a constant. A lengthscale that a group of inputs shares counts once, and its
    derivative is at the group's first input.
    """
    d = len(model.lengthscale)
    first = list(range(d)) if groups is None else first_of_groups(groups)
    logarithms = np.log(model.lengthscale)[first]
    mean = float(logarithms.mean())
    deviation = (logarithms - mean) / LENGTHSCALE_SPREAD
    shift = (mean - 0.5 * math.log(d)) / MEAN_LENGTHSCALE_SPREAD
    size = model.noise_variance * model.signal_variance
    noise = 0.0 if size <= 0 else (math.log(size) - math.log(USUAL_NOISE)) / NOISE_SPREAD
    tail = 1.0 + noise**2 / NOISE_DOF
    of_kernel = np.zeros(len(model.correlation.own_logarithms))
    if isinstance(model.correlation, SumKernel):
        kernel, counted = model.correlation, [0, *(1 + j for j in first)]
        deviations = kernel.own_logarithms - kernel.usual_logarithms
        of_kernel[counted] = deviations[counted] / CONSTANT_SPREAD
    value = 0.5 * (float(deviation @ deviation) + shift**2 + float(of_kernel @ of_kernel))
    value += 0.5 * (NOISE_DOF + 1.0) * math.log(tail)
    gradient = np.zeros(d + len(of_kernel) + len(SHARED_PARAMETERS))
    by_mean = shift / (MEAN_LENGTHSCALE_SPREAD * len(first))
    gradient[first] = deviation / LENGTHSCALE_SPREAD + by_mean
    gradient[d : d + len(of_kernel)] = of_kernel / CONSTANT_SPREAD
    # The noise in units of the targets is the product of both variances.
    by_noise = (1.0 + 1.0 / NOISE_DOF) * noise / tail / NOISE_SPREAD
    gradient[NOISE_ENTRY] = gradient[SIGNAL_ENTRY] = by_noise
    return value, gradient
