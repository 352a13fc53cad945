# SPDX-License-Identifier: BSD-3-Clause
"""Where rows are few: an exact GP whose kernel is a product over inputs, which need not interact.

It is a candidate like the others: what it is worth, rows that are left out tell.
"""

from __future__ import annotations

import numpy as np

from lsgp.tuning.composites import composite_start, product_of, tune_composite
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import PRODUCT_STREAM, Found, Job, Runner


class Products:
    stream = PRODUCT_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if problem.admits_product:
            runner.report(0, "exact GP of a product")
            runner.run([_fit], found.exact)


def _fit(job: Job) -> None:
    problem = job.problem
    start = composite_start(problem, product_of(problem))
    every = np.arange(len(problem.y))
    start = start._replace(model=tune_composite(problem, start, every))
    # The evidence has set its scale.
    job.found.append(problem.evaluate_exact(start, job.comparison, calibrates_scale=False))
