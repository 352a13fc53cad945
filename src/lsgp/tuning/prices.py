# SPDX-License-Identifier: BSD-3-Clause
"""How long predictions take on a nominal machine, and in which precision exact GPs are factored.

Nominal, because what is chosen must not depend on the machine that it is chosen on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lsgp.method.contract import LocalModel
from lsgp.tuning.admission import Admission
from lsgp.tuning.contender import Contender
from lsgp.tuning.plan import (
    FIRST_N_NEIGHBORS,
    LEAST_NOISE_IN_SINGLE,
    MOST_IN_DOUBLE,
    OPERATIONS_OF_COVARIANCE,
    OPERATIONS_PER_MILLISECOND,
    SPEED_OF_SINGLE,
)
from lsgp.tuning.weights import Toll


def price_of(n_rows: int, n_inputs: int) -> float:
    """Milliseconds of a prediction by a local model of so many rows."""
    covariances = n_rows * n_rows / 2 * (2 * n_inputs + OPERATIONS_OF_COVARIANCE)
    return (n_rows**3 / 3 + covariances) / OPERATIONS_PER_MILLISECOND


def price_of_exact(n_rows: int, is_single: bool) -> float:
    """The same of an exact GP, whose factor is there: a product with a triangle."""
    speed = SPEED_OF_SINGLE if is_single else 1.0
    return n_rows * n_rows / (speed * OPERATIONS_PER_MILLISECOND)


def price(problem: Admission, contender: Contender) -> float:
    """Milliseconds of a prediction by what tuning considers."""
    n, d = problem.rows.X.shape
    if contender.system is not None:
        return price_of_exact(n, contender.model.is_single)
    # Of a radius, nobody knows how many rows are within.
    return price_of(min(contender.n_neighbors or FIRST_N_NEIGHBORS, n), d)


def toll_of(problem: Admission, contenders: Sequence[Contender]) -> Toll:
    """What they must lower the loss by for the time that they take, as fractions of it."""
    level, worth = problem.level, problem.worth_of_millisecond
    costs = worth * np.array([price(problem, contender) for contender in contenders])
    most = level.worth_of_millisecond * level.most_milliseconds
    return Toll(costs, most if worth > 0 else math.inf)


def affords_several(problem: Admission, n_neighbors: int) -> bool:
    """Whether predictions may take the time of two local models of so many neighbors."""
    worth, level = problem.worth_of_millisecond, problem.level
    cost = 2.0 * worth * price_of(n_neighbors, problem.rows.X.shape[1])
    return worth == 0.0 or cost <= level.worth_of_millisecond * level.most_milliseconds


def in_due_precision(problem: Admission, model: LocalModel) -> LocalModel:
    """An exact GP's, with a factor in single precision where that changes next to nothing.

    Not where users have asked for the exact GP, and not where the time goes to a device.
    """
    n = len(problem.y)
    noise = model.noise_variance * float(problem.rows.noise.min())
    is_single = (
        not problem.level.factors_in_double
        and n > MOST_IN_DOUBLE
        and model.correlation.formula is not None
        and not problem.backend.dense.is_fast
        and not problem.is_exact_on_request
        and noise >= LEAST_NOISE_IN_SINGLE * math.sqrt(n)
    )
    return model.replace(is_single=is_single)
