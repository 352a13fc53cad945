# SPDX-License-Identifier: BSD-3-Clause
"""Where queries lie beyond the rows: exact GPs, which return to one trend for all rows.

Their hyperparameters are the likeliest of part of the rows, and their kernel that of fewer. One has
a slope, one a constant alone, and one a kernel that is a product over inputs, which need not
interact: what an input does by itself is known wherever others have any value.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from lsgp.method.contract import LocalModel
from lsgp.method.kernels import Composite
from lsgp.search.arrays import numbered
from lsgp.solvers.exact_system import LARGEST_EXACT
from lsgp.tuning.beyond_plan import N_EVIDENCE_BEYOND
from lsgp.tuning.composites import (
    composite_start,
    first_space,
    product_of,
    sums_of,
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
        few, rows = (
            np.sort(numbered(drawn[:most], n)) for most in (N_FIRST_EVIDENCE, N_EVIDENCE_BEYOND)
        )
        # Ranks and powers of inputs say little beyond those that were seen.
        space = first_space(problem)
        model = problem.make_exact(problem.specification.model)
        exact = [Start(space, model.replace(kernel=kernel), n) for kernel in problem.kernels]

        def maximize(start: Start, part: NDArray[np.int32], job: Job) -> ExactGP:
            return maximize_evidence(
                start.space.part(part).problem(start.model),
                problem.exact_parameters,
                FIRST_EVIDENCE_ITERATIONS,
                problem.clock,
            )

        def maximize_composite(kernel: Composite, job: Job) -> LocalModel:
            return tune_composite(problem, composite_start(problem, kernel), drawn)

        # Which kernel is likeliest, fewer rows tell.
        tuned = runner.run([partial(maximize, start, few) for start in exact], [])
        best = max(tuned, key=lambda found: found.log_evidence).model
        bests = [best]
        if best.slope_variance > 0:
            bests.append(best.replace(slope_variance=0.0))
        tasks = [partial(maximize, Start(space, model, n), rows) for model in bests]
        models = [one.model for one in runner.run(tasks, [])]
        kernels: list[Composite] = []
        if problem.admits_product_beyond:
            kernels.append(product_of(problem))
        if problem.admits_sum_beyond:
            kernels += sums_of(problem)
        models += runner.run([partial(maximize_composite, kernel) for kernel in kernels], [])

        def judge(start: Start, job: Job) -> None:
            # The evidence has set their scale.
            judged = problem.evaluate_exact(start, job.comparison, calibrates_scale=False)
            job.found.append(judged)

        last = [Start(space, model, n) for model in models]
        runner.run([partial(judge, start) for start in last], found.exact)
