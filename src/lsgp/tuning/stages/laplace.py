# SPDX-License-Identifier: BSD-3-Clause
"""Where labels are few: GP classification in each input transform, averaged by its evidence."""

from __future__ import annotations

from functools import partial

from lsgp.tuning.evidence import maximize_evidence
from lsgp.tuning.laplace import LaplaceCandidate, fit_laplace
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.plan import FIRST_EVIDENCE_ITERATIONS, LAPLACE_KERNELS
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import LAPLACE_STREAM, Found, Job, Runner


class Laplace:
    stream = LAPLACE_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        runner.report(0, "GP classification")
        spaces = {start.space.kinds: start.space for start in problem.starts}
        kernels = problem.specification.kernels
        tried = [kernel for kernel in LAPLACE_KERNELS if kernel in kernels] or kernels[:1]
        tasks = [partial(_fit, space, kernel) for space in spaces.values() for kernel in tried]
        found.laplace += runner.run(tasks, [])


def _fit(space: LeaveOneOut, kernel: str, job: Job) -> LaplaceCandidate:
    problem, labels = job.problem, job.problem.labels
    assert labels is not None, "GP classification is of labels"
    model = problem.make_exact(problem.specification.model.replace(kernel=kernel))
    tuned = maximize_evidence(
        space.problem(model), problem.exact_parameters, FIRST_EVIDENCE_ITERATIONS, problem.clock
    )
    return fit_laplace(tuned.model, space.X, space.transform, labels, problem.clock)
