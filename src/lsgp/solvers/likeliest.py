# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs of all rows, tuned by the evidence: the marginal likelihood and a prior.

Held-out scores of few rows are too noisy to tune many hyperparameters by. The marginal likelihood
makes more of the rows where a GP is about right, and its maxima order models before any row is held
out. The noise is bounded in units of the targets: relative to a signal that may be thousands of
times as large, as that of smooth functions, a bound would be most of the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.dense import Dense
from lsgp.backends.dense_host import HOST
from lsgp.compute.clock import Clock
from lsgp.compute.descent import descend_vector
from lsgp.method.contract import SHARED_PARAMETERS, LocalModel, LocalProblem
from lsgp.method.kernels import Composite, Groups, first_of_groups
from lsgp.method.parameters import LENGTHSCALE_BOUNDS, SHARED_BOUNDS, Parameters, finds_no_noise
from lsgp.solvers.evidence import BAD_EVIDENCE, FLAT, evidence_of

Array = NDArray[np.float64]

#: Hyperparameters that an exact GP has no use for, or that stay as they are.
NOT_TUNED = frozenset({"constant_variance", "localizer_decay", "scale_dof"})
#: Bounds of the log noise variance, relative to the variance of the targets, and of the largest log
#: signal variance: smooth functions are part of ones that vary far more.
NOISE_BOUNDS, LARGEST_SIGNAL = (math.log(1e-10), 3.0), 16.0
#: The noise is at least this, relative to the signal's variance, times the rows: with less,
#: rounding decides whether there is a factor.
ROUNDING_NOISE = 1e-15
#: A step of a log evidence must gain this much; where another descent follows, this much.
NEGLIGIBLE_GAIN, LITTLE_GAIN = 0.02, 0.2
#: How much less likely than the best so far a point without a factor is taken for. From a value
#: beyond all others, the line search would come back and take that for the end.
FAILED_EVIDENCE = 100.0
#: A descent that met such points goes on while it gains this much, but no more often than this.
WORTH_DESCENT, MOST_DESCENTS = 1.0, 3
#: A start without a factor has so many times the noise, until it has one, but no more often than
#: this: what few rows have found may be too little noise for more of them.
MORE_NOISE, MOST_RAISED = 10.0, 6
#: A descent that finds no noise is tried again from so much of it.
LESS_NOISE = 0.01
#: Normal priors of logarithms, median and standard deviation: of each lengthscale about their mean
#: and of that mean, in standard deviations of an input times the root of their number; of the own
#: numbers of a kernel that is a sum, about usual ones. That of the noise, in units of the targets,
#: is a Student-t: functions without noise are many decades away, and likely.
LENGTHSCALE_SPREAD, MEAN_LENGTHSCALE_SPREAD = 1.5, 1.0
USUAL_NOISE, NOISE_SPREAD, NOISE_DOF = 0.03, 2.5, 3.0
CONSTANT_SPREAD = 1.0


class Rows(Protocol):
    """The rows of an exact GP, whose inputs may be warped, by so much at the most."""

    @property
    def X(self) -> Array: ...  # (n, d)

    @property
    def y(self) -> Array: ...  # (n, t)

    @property
    def noise(self) -> Array: ...  # (n,)

    @property
    def largest_warp(self) -> float: ...

    def warped(self, warps: Array) -> tuple[Array, Array]:
        """The inputs (n, d) of these warps, and their derivatives in the warps (n, d)."""

    def negative_log_prior(self, warps: Array) -> tuple[float, Array]:
        """Of the warps, but for a constant, and its gradient."""


class ExactGP(NamedTuple):
    """An exact GP: its model, the warps of its inputs, and how likely it makes the rows."""

    model: LocalModel
    warps: Array  # (d,), or empty if inputs are as they are
    log_evidence: float  # with the priors' density at the maximum


def make_exact(
    model: LocalModel, given: frozenset[str] = frozenset(), has_constant: bool = False
) -> LocalModel:
    """The model without localizing, which is an exact GP if all rows are neighbors.

    ``has_constant`` says that its constant is the kernel's, and to be tuned.
    """
    constant = model.constant_variance
    if constant > 0 and "constant_variance" not in given and not has_constant:
        constant = FLAT
    return model.replace(
        localizer="rectangular", localizer_decay=1.0, scale_dof=np.inf, constant_variance=constant
    )


def with_noise_of_targets(parameters: Parameters) -> Parameters:
    """With the noise in units of the targets, which may be next to none."""
    signal = (SHARED_BOUNDS["signal_variance"][0], LARGEST_SIGNAL)
    own = {"noise_variance": np.array([NOISE_BOUNDS]), "signal_variance": np.array([signal])}
    return replace(parameters, own_bounds=own)


def with_shortest(parameters: Parameters, shortest: Array) -> Parameters:
    """With lengthscales that are no shorter than these (d,); a shared one, than the least."""
    low, high = LENGTHSCALE_BOUNDS
    groups = np.array(parameters.groups or range(len(shortest))) * (not parameters.is_isotropic)
    each = [shortest[groups == k].min() for k in range(int(groups.max()) + 1)]
    lowest = np.log(np.maximum(each, math.exp(low)))
    bounds = np.column_stack([lowest, np.full(len(lowest), high)])
    return replace(parameters, own_bounds={**(parameters.own_bounds or {}), "lengthscale": bounds})


@dataclass(frozen=True, eq=False)
class EvidenceProblem:
    """Rows whose evidence is maximized, and what is free."""

    rows: Rows
    parameters: Parameters
    clock: Clock
    dense: Dense = HOST
    has_prior: bool = True  # whether the priors hold: for standardized inputs, and our own bounds

    def maximize(self, start: ExactGP, n_steps: int, least_gain: float) -> ExactGP:
        """Tune from ``start`` on, warps too if it has any, until a step gains too little.

        What is found has the noise that it was evaluated with.
        """
        parameters, n_own = self.parameters, len(self.parameters.pack(start.model))
        vector = np.concatenate([parameters.pack(start.model), start.warps])
        lowest, n_failed = [BAD_EVIDENCE], [0]

        def function(vector: Array) -> tuple[float, Array]:
            self.clock.check()
            value, gradient = self._value(start.model, vector, n_own)
            if not math.isfinite(value) or not np.isfinite(gradient).all():
                n_failed[0] += 1
                return lowest[0] + FAILED_EVIDENCE, np.zeros(len(vector))
            lowest[0] = min(lowest[0], value)
            return value, gradient

        bounds = parameters.bounds(start.model)
        bounds += [(-self.rows.largest_warp, self.rows.largest_warp)] * len(start.warps)
        if not len(vector):
            return start._replace(log_evidence=-function(vector)[0])

        def descend(vector: Array) -> tuple[Array, float]:
            n_failed[0] = 0
            return descend_vector(
                function, vector, bounds, n_steps, lambda _: least_gain, is_steep=True
            )

        best, value = descend(vector)
        for _ in range(MOST_RAISED):
            if lowest[0] < BAD_EVIDENCE or "noise_variance" not in parameters.free_of(start.model):
                break
            best, value = descend(self._with_noise(start.model, best, n_own, MORE_NOISE))
        for _ in range(MOST_DESCENTS - 1):
            if not n_failed[0]:
                break
            before = value
            best, value = descend(best)
            if before - value < WORTH_DESCENT:
                break
        for _ in range(MOST_DESCENTS if n_steps else 0):
            if not finds_no_noise(parameters.unpack(best[:n_own], start.model)):
                break
            # Functions have several maxima in the noise, and the highest has little of it.
            other, lower = descend(self._with_noise(start.model, best, n_own, LESS_NOISE))
            if value - lower < WORTH_DESCENT:
                break
            best, value = other, lower
        model = self._rounded(parameters.unpack(best[:n_own], start.model))
        return ExactGP(model, best[n_own:], -value)

    def _with_noise(self, model: LocalModel, vector: Array, n_own: int, factor: float) -> Array:
        changed = self._rounded(self.parameters.unpack(vector[:n_own], model))
        changed = changed.replace(noise_variance=factor * changed.noise_variance)
        return np.concatenate([self.parameters.pack(changed), vector[n_own:]])

    def _rounded(self, model: LocalModel) -> LocalModel:
        """With no less noise than rounding needs."""
        least = ROUNDING_NOISE * len(self.rows.X)
        return model.replace(noise_variance=max(model.noise_variance, least))

    def _value(self, model: LocalModel, vector: Array, n_own: int) -> tuple[float, Array]:
        """The negative log evidence with the priors, and its gradient."""
        warps = vector[n_own:]
        free = self.parameters.unpack(vector[:n_own], model)
        changed = self._rounded(free)
        X, by_warps = self.rows.warped(warps) if len(warps) else (self.rows.X, None)
        found = evidence_of(LocalProblem(X, self.rows.y, self.rows.noise, changed), self.dense)
        value, gradient = found.value, found.gradient
        if changed is not free and changed.noise_variance != free.noise_variance:
            gradient[NOISE_ENTRY] = 0.0  # where rounding sets the noise, nothing changes it
        if self.has_prior:
            prior, by_prior = negative_log_prior(changed, self.parameters.groups)
            value, gradient = value + prior, gradient + by_prior
        gradient = self.parameters.restrict(gradient, changed)
        if by_warps is None:
            return value, gradient
        prior, by_prior = self.rows.negative_log_prior(warps)
        by_warp = np.einsum("ij,ij->j", found.by_rows, by_warps) + by_prior
        return value + prior, np.concatenate([gradient, by_warp])


#: Places of the signal and noise variances in a gradient, from its end.
SIGNAL_ENTRY, NOISE_ENTRY = (
    SHARED_PARAMETERS.index(name) - len(SHARED_PARAMETERS)
    for name in ("signal_variance", "noise_variance")
)


def negative_log_prior(model: LocalModel, groups: Groups | None = None) -> tuple[float, Array]:
    """Of an exact GP's lengthscales, noise and own numbers, but for a constant; its gradient.

    A lengthscale that a group of inputs shares counts once: the gradient is in its first.
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
    own = np.zeros(len(model.correlation.own_logarithms))
    if isinstance(model.correlation, Composite):
        kernel, counted = model.correlation, model.correlation.counted(groups)
        own[counted] = (kernel.own_logarithms - kernel.usual_logarithms)[counted] / CONSTANT_SPREAD
    value = 0.5 * (float(deviation @ deviation) + shift**2 + float(own @ own))
    value += 0.5 * (NOISE_DOF + 1.0) * math.log(tail)
    gradient = np.zeros(d + len(own) + len(SHARED_PARAMETERS))
    by_mean = shift / (MEAN_LENGTHSCALE_SPREAD * len(first))
    gradient[first] = deviation / LENGTHSCALE_SPREAD + by_mean
    gradient[d : d + len(own)] = own / CONSTANT_SPREAD
    # The noise of the targets is a product of both.
    by_noise = (1.0 + 1.0 / NOISE_DOF) * noise / tail / NOISE_SPREAD
    gradient[NOISE_ENTRY] = gradient[SIGNAL_ENTRY] = by_noise
    return value, gradient
