# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs whose kernel is made of several correlations (`lsgp.tuning.composites`).

Of few rows, a product over inputs, which need not interact. Of more, sums of what varies over long
and over short distances, in the transforms of inputs that suit the best of the other models. They
are candidates like the others: what they are worth, rows that are left out tell.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from lsgp.tuning.composites import (
    first_space,
    product_start,
    sum_start,
    tune_again,
    tune_composite,
)
from lsgp.tuning.contender import Start
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import COMPOSE_STREAM, Found, Job, Runner


class Compose:
    stream = COMPOSE_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if found.unseen is not None:
            return  # nothing else has a share
        if problem.is_warm:
            # Which of them pay, a previous fit has seen; whether they may be, these settings say.
            n_admitted = problem.exact_room if problem.admits_composites else 0
            starts = problem.composite_starts[:n_admitted]
            runner.run([partial(_again, start) for start in starts], found.exact)
            return
        cold: list[Start] = []
        if problem.admits_product:
            cold.append(product_start(problem, first_space(problem)))
        if problem.admits_sum:
            spaces, sums = _spaces(problem, found), problem.level.sums
            cold += [sum_start(problem, space, names) for space in spaces for names in sums]
        if cold:
            runner.report(0, "exact GPs of products and sums")
            drawn = problem.random(runner.stream).permutation(len(problem.y))
            runner.run([partial(_fit, start, drawn) for start in cold], found.exact)


def _spaces(problem: TuningProblem, found: Found) -> list[LeaveOneOut]:
    """The rows in the first transform, in that of the best local model, and of the likeliest GP."""
    spaces = [first_space(problem), *(c.space for c in found.leaders[:1])]
    spaces += [c.space for c, _ in sorted(found.likely, key=lambda pair: -pair[1])[:1]]
    return list({space.kinds: space for space in spaces}.values())


def _fit(start: Start, drawn: NDArray[np.intp], job: Job) -> None:
    problem = job.problem
    start = start._replace(model=tune_composite(problem, start, drawn))
    # The evidence has set its scale.
    job.found.append(problem.evaluate_exact(start, job.comparison, calibrates_scale=False))


def _again(start: Start, job: Job) -> None:
    """One of a previous fit, of the rows that there are now."""
    problem, rng = job.problem, job.rng
    model = tune_again(problem, start, rng.permutation(len(problem.y)))
    start = start._replace(model=model)
    job.found.append(problem.evaluate_exact(start, job.comparison, calibrates_scale=False))
