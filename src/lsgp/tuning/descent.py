# SPDX-License-Identifier: BSD-3-Clause
"""The descent: L-BFGS-B from a model to a better one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lsgp.method.contract import LocalModel
from lsgp.tuning.clock import Clock, OutOfTimeError
from lsgp.tuning.leave_one_out import LeaveOneOut, Sample
from lsgp.tuning.objective import Objective
from lsgp.tuning.parameters import Parameters
from lsgp.tuning.plan import BAD_LOSS
from lsgp.tuning.priors import LENGTHSCALE_PRIOR, lengthscale_deviation

Array = NDArray[np.float64]


def descend(
    function: Callable[[Array], tuple[float, Array]],
    parameters: Parameters,
    model: LocalModel,
    n_iterations: int,
    shortest_lengthscale: float = 0.0,
) -> tuple[LocalModel, float]:
    """L-BFGS-B within the bounds, from a model on: the model that it finds, and its value.

    If time is up in between, the best so far.
    """
    start = parameters.pack(model)
    if not len(start):
        return model, function(start)[0]
    bounds = parameters.bounds(model, shortest_lengthscale)
    lowest: list[tuple[float, Array]] = []

    def watched(vector: Array) -> tuple[float, Array]:
        value, gradient = function(vector)
        if not lowest or value < lowest[0][0]:
            lowest[:] = [(value, vector.copy())]
        return value, gradient

    try:
        found = minimize(
            watched,
            np.clip(start, *np.transpose(bounds)),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": n_iterations},
        )
    except OutOfTimeError:
        if not lowest:
            raise
        value, vector = lowest[0]
        return parameters.unpack(vector, model), value
    return parameters.unpack(found.x, model), float(found.fun)


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

    return descend(function, parameters, model, n_iterations, space.gap_width)[0]
