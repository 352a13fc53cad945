# SPDX-License-Identifier: BSD-3-Clause
"""The descent: L-BFGS-B from a model to a better one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from lsgp.method.contract import LocalModel
from lsgp.tuning.clock import Clock, OutOfTimeError
from lsgp.tuning.leave_one_out import LeaveOneOut, Sample, Value
from lsgp.tuning.objective import Objective
from lsgp.tuning.parameters import Parameters
from lsgp.tuning.plan import (
    BAD_LOSS,
    EVALUATIONS_PER_ITERATION,
    LEAST_NOISE_OF_DESCENT_IN_SINGLE,
    N_CHECKED_IN_SINGLE,
    NEGLIGIBLE_GAIN,
    SAME_IN_SINGLE,
)
from lsgp.tuning.priors import LENGTHSCALE_PRIOR, lengthscale_deviation

Array = NDArray[np.float64]

#: Those of SciPy.
LEAST_GAIN, LEAST_SLOPE = 2.2e-9, 1e-5
MOST_EVALUATIONS = 15_000
#: Of logarithms of hyperparameters, together.
LONGEST_FIRST_STEP = 1.0


def descend(
    function: Callable[[Array], tuple[float, Array]],
    parameters: Parameters,
    model: LocalModel,
    n_iterations: int,
    shortest_lengthscale: float = 0.0,
    gain: Callable[[float], float] = lambda value: 0.0,
    most_evaluations: int = MOST_EVALUATIONS,
) -> tuple[LocalModel, float]:
    """L-BFGS-B within the bounds, from a model on: the model that it finds, and its value.

    It ends where a step gains less than ``gain``, a function of the value at the start, and with
    the step that comes to ``most_evaluations``. If time is up in between, the best so far.
    """
    start = parameters.pack(model)
    if not len(start):
        return model, function(start)[0]
    bounds = parameters.bounds(model, shortest_lengthscale)
    vector, value = descend_vector(function, start, bounds, n_iterations, gain, most_evaluations)
    return parameters.unpack(vector, model), value


def descend_vector(
    function: Callable[[Array], tuple[float, Array]],
    start: Array,
    bounds: Sequence[tuple[float, float]],
    n_iterations: int,
    gain: Callable[[float], float] = lambda value: 0.0,
    most_evaluations: int = MOST_EVALUATIONS,
    is_steep: bool = False,
) -> tuple[Array, float]:
    """The same of a vector; ``is_steep`` says that values differ by far more than at the start."""
    start = np.clip(start, *np.transpose(bounds))
    first = function(start)
    known = [first]  # where L-BFGS-B begins
    lowest: list[tuple[float, Array]] = []
    # Within bounds, its first step is the whole gradient: of a log evidence, that is to where the
    # bounds are, and what the line search makes of the values there may be no step at all.
    unit = (
        1.0
        if not is_steep
        else min(1.0, LONGEST_FIRST_STEP / max(float(np.linalg.norm(first[1])), 1e-300))
    )
    least_gain, before = gain(first[0]), [first[0]]
    relative_gain = max(least_gain / max(abs(first[0]), 1.0), LEAST_GAIN)

    def watched(vector: Array) -> tuple[float, Array]:
        value, gradient = known.pop() if known else function(vector)
        if not lowest or value < lowest[0][0]:
            lowest[:] = [(value, vector.copy())]
        return unit * value, unit * gradient

    def end_step(intermediate_result: OptimizeResult) -> None:
        # Not by `ftol`, which is relative to a value that may begin near 0 and end far from it.
        value = float(intermediate_result.fun) / unit
        gained, before[0] = before[0] - value, value
        if is_steep and gained < least_gain:
            raise StopIteration

    try:
        found = minimize(
            watched,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=end_step,
            options={
                "maxiter": n_iterations,
                "maxfun": most_evaluations,
                "ftol": unit * LEAST_GAIN if is_steep else relative_gain,
                "gtol": unit * LEAST_SLOPE,
            },
        )
    except OutOfTimeError:
        if not lowest:
            raise
        value, vector = lowest[0]
        return vector, value
    return np.asarray(found.x), float(found.fun) / unit


def descend_on_sample(
    space: LeaveOneOut,
    sample: Sample,
    model: LocalModel,
    parameters: Parameters,
    objective: Objective,
    n_iterations: int,
    clock: Clock,
) -> LocalModel:
    """The descent on the loss of one sample with fixed neighborhoods."""
    if not len(parameters.pack(model)):
        return model
    part, gathered = space.gather(sample)
    part = in_fewest_digits(part, gathered, model, objective)
    n_lengthscales = parameters.n_lengthscales(model)
    strength: list[float] = []  # of the prior, relative to the loss at the start

    def function(vector: Array) -> tuple[float, Array]:
        clock.check()
        value = part.evaluate(parameters.unpack(vector, model), gathered, objective)
        if value.loss >= BAD_LOSS:
            return BAD_LOSS, np.zeros(len(vector))
        if not strength:
            strength.append(LENGTHSCALE_PRIOR / space.n_rows * objective.unit(value.loss))
        prior, by_prior = lengthscale_deviation(vector, n_lengthscales)
        gradient = parameters.restrict(value.gradient, model)
        return value.loss + strength[0] * prior, gradient + strength[0] * by_prior

    def gain(value: float) -> float:
        return NEGLIGIBLE_GAIN * objective.unit(value)

    most = math.ceil(EVALUATIONS_PER_ITERATION * n_iterations)
    return descend(function, parameters, model, n_iterations, space.gap_width, gain, most)[0]


def in_fewest_digits(
    space: LeaveOneOut, sample: Sample, model: LocalModel, objective: Objective
) -> LeaveOneOut:
    """The rows in single precision, where that says the same of the first targets.

    A solve takes less than half of the time. Candidates are judged in double precision.
    """
    if space.backend.is_slow or model.noise_variance < LEAST_NOISE_OF_DESCENT_IN_SINGLE:
        return space
    few = Sample(sample.targets[:N_CHECKED_IN_SINGLE], sample.neighbors[:N_CHECKED_IN_SINGLE])
    # Around the mean of the targets, which is the same however the rows are gathered.
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
