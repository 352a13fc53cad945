# SPDX-License-Identifier: BSD-3-Clause
"""L-BFGS-B that ends where a step gains too little, or with the best so far when time is up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from lsgp.compute.clock import OutOfTimeError

Array = NDArray[np.float64]

#: Tolerances of L-BFGS-B, which are SciPy's own defaults.
LEAST_GAIN, LEAST_SLOPE = 2.2e-9, 1e-5
#: Length of the first step where values are steep, in logarithms of hyperparameters.
LONGEST_FIRST_STEP = 1.0


def descend_vector(
    function: Callable[[Array], tuple[float, Array]],
    start: Array,
    bounds: Sequence[tuple[float, float]],
    n_iterations: int,
    gain: Callable[[float], float] = lambda value: 0.0,
    most_evaluations: int = 15_000,
    is_steep: bool = False,
) -> tuple[Array, float]:
    """L-BFGS-B within bounds: the vector that it finds, and its value.

    It ends where a step gains less than ``gain``, a function of the value at the start, and with
    the step that comes to ``most_evaluations``. If time is up in between, the best so far.
    ``is_steep`` says that values differ by far more than at the start, as log evidences do.
    """
    start = np.clip(start, *np.transpose(bounds))
    first, first_gradient = function(start)
    known = [(first, first_gradient)]  # where L-BFGS-B begins
    lowest: list[tuple[float, Array]] = []
    least_gain, before = gain(first), first
    # Within bounds, its first step is the whole gradient: of a log evidence, that is to where the
    # bounds are, and what the line search makes of the values there may be no step at all.
    unit, tolerance = 1.0, max(least_gain / max(abs(first), 1.0), LEAST_GAIN)
    if is_steep:
        slope = max(float(np.linalg.norm(first_gradient)), 1e-300)
        unit = min(1.0, LONGEST_FIRST_STEP / slope)
        tolerance = unit * LEAST_GAIN

    def watched(vector: Array) -> tuple[float, Array]:
        value, gradient = known.pop() if known else function(vector)
        if not lowest or value < lowest[0][0]:
            lowest[:] = [(value, vector.copy())]
        return unit * value, unit * gradient

    def end_step(intermediate_result: OptimizeResult) -> None:
        # Not by `ftol`, which is relative to a value that may begin near 0 and end far from it.
        nonlocal before
        value = float(intermediate_result.fun) / unit
        gained, before = before - value, value
        if is_steep and gained < least_gain:
            raise StopIteration

    options = {
        "maxiter": n_iterations,
        "maxfun": most_evaluations,
        "ftol": tolerance,
        "gtol": unit * LEAST_SLOPE,
    }
    settings = {"jac": True, "method": "L-BFGS-B", "bounds": bounds, "options": options}
    try:
        found = minimize(watched, start, callback=end_step, **settings)
    except OutOfTimeError:
        if not lowest:
            raise
        value, vector = lowest[0]
        return vector, value
    return np.asarray(found.x), float(found.fun) / unit
