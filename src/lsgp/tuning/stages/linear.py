# SPDX-License-Identifier: BSD-3-Clause
"""Where labels are few: logistic regression in each input transform, as another member."""

from __future__ import annotations

from functools import partial

from lsgp.tuning.classes.linear import LinearCandidate, fit_logistic, held_out
from lsgp.tuning.classes.plan import RIDGES
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import LINEAR_STREAM, Found, Job, Runner


class Linear:
    stream = LINEAR_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if not problem.admits_linear:
            return
        spaces = {start.space.kinds: start.space for start in problem.starts}
        tasks = [partial(_fit, space, ridge) for space in spaces.values() for ridge in RIDGES]
        found.linear += runner.run(tasks, [])


def _fit(space: LeaveOneOut, ridge: float, job: Job) -> LinearCandidate:
    problem, labels = job.problem, job.problem.labels
    assert labels is not None, "linear candidates are of labels"
    problem.clock.check()
    known = (space.X, labels.codes, labels.weight, labels.prior, ridge)
    log_proba = held_out(*known, job.comparison.rows, space.groups)
    return LinearCandidate(space.transform, ridge, fit_logistic(*known), log_proba)
