# SPDX-License-Identifier: BSD-3-Clause
"""Tuning of a local model by a descent on the loss of a sample of targets."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.clock import Clock
from lsgp.compute.descent import descend_vector
from lsgp.method.contract import LocalModel
from lsgp.method.parameters import Parameters
from lsgp.solvers.objective import BAD_LOSS, Objective
from lsgp.tuning.space import Sample, Space, Value

Array = NDArray[np.float64]

#: An optimization ends when a step lowers the loss by less than this fraction, a small part of the
#: loss's standard error.
NEGLIGIBLE_GAIN = 2e-5
#: Largest number of evaluations of a descent, as a multiple of its iterations. Where single
#: precision makes losses noisy, a line search could take many and gain nothing.
EVALUATIONS_PER_ITERATION = 1.5
#: Optimizations use single precision if losses and gradients of the first N_CHECKED_IN_SINGLE
#: targets agree to SAME_IN_SINGLE, and if the noise is not so small that most systems would have to
#: be solved again in double precision.
SAME_IN_SINGLE, N_CHECKED_IN_SINGLE, LEAST_NOISE_IN_SINGLE = 1e-3, 64, 1e-4
#: Weight, in targets, of the prior of log lengthscales about their mean. It keeps lengthscales of
#: irrelevant inputs finite, and loses influence with more rows.
LENGTHSCALE_PRIOR = 40.0


def descend_on_sample(
    space: Space,
    sample: Sample,
    model: LocalModel,
    parameters: Parameters,
    objective: Objective,
    n_iterations: int,
    clock: Clock,
) -> LocalModel:
    """Tune a model by a descent on the loss of a sample with fixed neighborhoods."""
    start = parameters.pack(model)
    if not len(start):
        return model
    part, gathered = space.gather(sample)
    part = in_cheapest_precision(part, gathered, model, objective)
    n_lengthscales = parameters.n_lengthscales(model)
    strength: list[float] = []  # of the prior, relative to the loss at the start

    def function(vector: Array) -> tuple[float, Array]:
        clock.check()
        value = part.evaluate(parameters.unpack(vector, model), gathered, objective)
        if value.loss >= BAD_LOSS:
            return BAD_LOSS, np.zeros(len(vector))
        if not strength:
            strength.append(LENGTHSCALE_PRIOR / space.n_rows * objective.unit(value.loss))
        prior, by_prior = _lengthscale_deviation(vector, n_lengthscales)
        gradient = parameters.restrict(value.gradient, model)
        return value.loss + strength[0] * prior, gradient + strength[0] * by_prior

    def gain(value: float) -> float:
        return NEGLIGIBLE_GAIN * objective.unit(value)

    most = math.ceil(EVALUATIONS_PER_ITERATION * n_iterations)
    bounds = parameters.bounds(model)
    vector, _ = descend_vector(function, start, bounds, n_iterations, gain, most)
    return parameters.unpack(vector, model)


def _lengthscale_deviation(vector: Array, n_lengthscales: int) -> tuple[float, Array]:
    """Mean squared deviation of the log lengthscales, the first entries, and its gradient."""
    gradient = np.zeros(len(vector))
    if n_lengthscales < 2:
        return 0.0, gradient
    deviation = vector[:n_lengthscales] - vector[:n_lengthscales].mean()
    gradient[:n_lengthscales] = 2.0 * deviation / n_lengthscales
    return float((deviation**2).mean()), gradient


def in_cheapest_precision(
    space: Space, sample: Sample, model: LocalModel, objective: Objective
) -> Space:
    """Return the rows in single precision if that hardly changes the loss of the first targets.

    Single precision takes less than half of the time. Candidates are judged in double precision.
    """
    if space.backend.is_slow or model.noise_variance < LEAST_NOISE_IN_SINGLE:
        return space
    few = Sample(sample.targets[:N_CHECKED_IN_SINGLE], sample.neighbors[:N_CHECKED_IN_SINGLE])
    # Centered at the mean of the targets, which does not depend on how rows were gathered.
    single = space.in_single(space.X[sample.targets].mean(axis=0))
    value, other = (each.evaluate(model, few, objective) for each in (space, single))
    return single if _are_same(value, other, objective) else space


def _are_same(value: Value, other: Value, objective: Objective) -> bool:
    if BAD_LOSS in (value.loss, other.loss):
        return False
    unit = objective.unit(value.loss)
    deviation = np.abs(value.gradient - other.gradient).max()
    return abs(value.loss - other.loss) < SAME_IN_SINGLE * unit and deviation < (
        SAME_IN_SINGLE * (unit + float(np.abs(value.gradient).max()))
    )
