# SPDX-License-Identifier: BSD-3-Clause
"""Where queries lie beyond the rows: exact GPs, which return to one trend for all rows.

Their hyperparameters are the likeliest of part of the rows. Their kernels are made of several: what
varies over long distances, as part of a sum, is known far away, and what an input does by itself,
as part of a product, wherever others have any value. Only where somebody has said which kernel it
is, there is one with a slope and one without.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from lsgp.method.contract import LocalModel
from lsgp.search.arrays import numbered
from lsgp.solvers.exact_system import LARGEST_EXACT
from lsgp.tuning.beyond.plan import N_EVIDENCE_BEYOND
from lsgp.tuning.composite_plan import BENT_BEYOND, SUM_BEYOND
from lsgp.tuning.composites import (
    first_space,
    product_start,
    space_of,
    sum_start,
    tune_composite,
)
from lsgp.tuning.contender import Start
from lsgp.tuning.evidence import ExactGP, maximize_evidence
from lsgp.tuning.plan import FIRST_EVIDENCE_ITERATIONS, N_FIRST_EVIDENCE
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import WHOLE_STREAM, Found, Job, Runner


class Whole:
    stream = WHOLE_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        n = len(problem.y)
        if problem.exact_room == 0 or n > LARGEST_EXACT or not problem.backend.factors_once:
            return
        runner.report(0, "exact GPs of all rows")
        drawn = problem.random(self.stream).permutation(n)
        starts = _composites(problem)
        if starts:
            tasks = [partial(_tune_composite, start, drawn) for start in starts]
        else:
            starts = _singles(problem, drawn, runner)
            tasks = [partial(_tune, start, drawn[:N_EVIDENCE_BEYOND]) for start in starts]
        models = runner.run(tasks, [])

        def judge(start: Start, job: Job) -> None:
            # The evidence has set their scale.
            judged = problem.evaluate_exact(start, job.comparison, calibrates_scale=False)
            job.found.append(judged)

        pairs = zip(starts, models, strict=True)
        last = [start._replace(model=model) for start, model in pairs]
        runner.run([partial(judge, start) for start in last], found.exact)


def _composites(problem: TuningProblem) -> list[Start]:
    """A sum as it is, without a slope and in another transform of the inputs, and a product."""
    if not problem.admits_sum_beyond:
        return []
    first = first_space(problem)
    start = sum_start(problem, first, SUM_BEYOND)
    starts = [start]
    if start.model.slope_variance > 0:
        starts.append(start._replace(model=start.model.replace(slope_variance=0.0)))
    bent = (BENT_BEYOND,) * len(first.kinds)
    if bent in problem.specification.input_transforms:
        starts.append(start._replace(space=space_of(problem, bent)))
    if problem.admits_product_beyond:
        starts.append(product_start(problem, first))
    return starts


def _tune_composite(start: Start, drawn: NDArray[np.intp], job: Job) -> LocalModel:
    return tune_composite(job.problem, start, drawn)


def _singles(problem: TuningProblem, drawn: NDArray[np.intp], runner: Runner) -> list[Start]:
    """The likeliest kernel of few rows, with a slope and without."""
    space, model = first_space(problem), problem.make_exact(problem.specification.model)
    n, few = len(problem.y), drawn[:N_FIRST_EVIDENCE]
    exact = [Start(space, model.replace(kernel=kernel), n) for kernel in problem.kernels]

    def maximize(start: Start, job: Job) -> ExactGP:
        return _maximize(start, few, job)

    tuned = runner.run([partial(maximize, start) for start in exact], [])
    best = max(tuned, key=lambda found: found.log_evidence).model
    bests = [best]
    if best.slope_variance > 0:
        bests.append(best.replace(slope_variance=0.0))
    return [Start(space, model, n) for model in bests]


def _tune(start: Start, rows: NDArray[np.intp], job: Job) -> LocalModel:
    return _maximize(start, rows, job).model


def _maximize(start: Start, rows: NDArray[np.intp], job: Job) -> ExactGP:
    problem = job.problem
    return maximize_evidence(
        start.space.part(np.sort(numbered(rows, len(problem.y)))).problem(start.model),
        problem.exact_parameters,
        FIRST_EVIDENCE_ITERATIONS,
        problem.clock,
    )
