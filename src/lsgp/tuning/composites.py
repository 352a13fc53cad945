# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs whose kernel is made of several correlations: a product over inputs, or a sum of two.

A function of many inputs that is mostly a sum of functions of one or two needs far fewer rows than
one in which all interact, as in kernels of the distance. One that varies over long distances and,
less, over short ones has no lengthscale that suits both. The evidence says how much of each there
is; what that is worth, rows that are left out tell.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.projections import Kinds
from lsgp.method.contract import LocalModel
from lsgp.method.kernels import Composite
from lsgp.method.product_kernel import ProductKernel
from lsgp.method.sum_kernel import USUAL_LOG_RATIO, SumKernel
from lsgp.search.arrays import numbered
from lsgp.tuning.composite_plan import (
    COMPOSITE_ITERATIONS,
    FIRST_CONSTANT,
    N_COMPOSITE_EVIDENCE,
    PRODUCT_OF,
)
from lsgp.tuning.contender import Start
from lsgp.tuning.evidence import maximize_evidence
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.plan import (
    FIRST_EVIDENCE_ITERATIONS,
    N_FIRST_EVIDENCE,
    WARM_EVIDENCE_ITERATIONS,
)
from lsgp.tuning.problem import TuningProblem


def product_start(problem: TuningProblem, space: LeaveOneOut) -> Start:
    """An exact GP of all rows whose kernel is a product, to be tuned."""
    return _start(problem, space, ProductKernel(PRODUCT_OF, (1.0,) * space.X.shape[1]))


def sum_start(problem: TuningProblem, space: LeaveOneOut, names: tuple[str, str]) -> Start:
    """The same of a sum."""
    # As many as the inputs of models, which may be more than columns: three on a sphere for two.
    ratios = (math.exp(USUAL_LOG_RATIO),) * space.X.shape[1]
    return _start(problem, space, SumKernel(names, FIRST_CONSTANT, ratios))


def _start(problem: TuningProblem, space: LeaveOneOut, kernel: Composite) -> Start:
    model = problem.make_exact(problem.specification.model).replace(kernel=kernel)
    return Start(space, model, len(problem.y))


def first_space(problem: TuningProblem) -> LeaveOneOut:
    """The rows in the first transform of inputs."""
    return space_of(problem, problem.specification.input_transforms[0])


def space_of(problem: TuningProblem, kinds: Kinds) -> LeaveOneOut:
    """The rows in a transform of inputs."""
    space = next((s.space for s in problem.starts if s.space.kinds == kinds), None)
    return space or problem.space(kinds)


def tune_composite(problem: TuningProblem, start: Start, drawn: NDArray[np.intp]) -> LocalModel:
    """The likeliest of the first rows that are drawn, from where few of them lead."""
    if len(problem.y) <= N_FIRST_EVIDENCE:
        return _maximize(problem, start, drawn, COMPOSITE_ITERATIONS)
    few = drawn[:N_FIRST_EVIDENCE]
    start = start._replace(model=_maximize(problem, start, few, COMPOSITE_ITERATIONS))
    return _maximize(problem, start, drawn[:N_COMPOSITE_EVIDENCE], FIRST_EVIDENCE_ITERATIONS)


def tune_again(problem: TuningProblem, start: Start, drawn: NDArray[np.intp]) -> LocalModel:
    """The same from where a previous fit ended."""
    return _maximize(problem, start, drawn[:N_COMPOSITE_EVIDENCE], WARM_EVIDENCE_ITERATIONS)


def _maximize(
    problem: TuningProblem, start: Start, rows: NDArray[np.intp], n_iterations: int
) -> LocalModel:
    part = start.space.part(np.sort(numbered(rows, len(problem.y)))).problem(start.model)
    parameters, clock = problem.exact_parameters, problem.clock
    return maximize_evidence(part, parameters, n_iterations, clock).model
