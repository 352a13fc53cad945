# SPDX-License-Identifier: BSD-3-Clause
"""A model to fall back on: the first start as it is, then after a short descent.

It takes a tenth of a second, so that there is something to use however little time there is.
"""

from __future__ import annotations

import time
from functools import partial

from lsgp.inputs.specification import DEFAULT_KERNEL
from lsgp.method.kernels import kernel_of
from lsgp.tuning.contender import Start
from lsgp.tuning.plan import first_effort
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import FIRST_STREAM, Found, Job, Runner


class First:
    stream = FIRST_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0 if problem.is_warm else first_effort(problem.efforts.ranking).work

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        previous = problem.starts if problem.is_warm else ()
        runner.run([partial(_as_it_is, start) for start in previous] or [_try], found.first)


def _as_it_is(start: Start, job: Job) -> None:
    """A model of a previous fit, which may be none the worse for the rows that there are now."""
    job.found.append(job.evaluate(start, time.monotonic()))


def _try(job: Job) -> None:
    start = first_start(job.problem)
    job.found.append(job.evaluate(start, time.monotonic()))
    if job.problem.integrated_share == 1.0:
        return  # the next stage is the last
    job.optimize(start, first_effort(job.problem.efforts.ranking))


def first_start(problem: TuningProblem) -> Start:
    """The default kernel's, where there are several."""
    usual = kernel_of(DEFAULT_KERNEL)
    return next((s for s in problem.starts if usual.is_like(s.model.kernel)), problem.starts[0])
