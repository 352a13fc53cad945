# SPDX-License-Identifier: BSD-3-Clause
"""Where queries lie beyond the rows: the best without the rules that it was tuned by.

Lengthscales may be shorter than the gaps, and there may be no slope to carry outward, or no trend
at all: far from the rows, predictions then return to the mean of the targets.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from lsgp.tuning.contender import Start
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import LOOSEN_STREAM, Found, Job, Runner


class Loosen:
    stream = LOOSEN_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 2 * problem.efforts.polishing.work

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        leader = found.leaders[0]
        starts = []
        space = _without_floor(leader.space)
        if leader.space.gap_width > 0:
            starts.append(leader.start._replace(space=space))
        model = leader.model
        if model.constant_variance > 0 or model.slope_variance > 0:
            bare = model.replace(constant_variance=0.0, slope_variance=0.0)
            starts.append(Start(space, bare, leader.n_neighbors))
        effort = problem.efforts.polishing
        tasks = [partial(Job.optimize, start=start, effort=effort) for start in starts]
        runner.run(tasks, found.varied)


def _without_floor(space: LeaveOneOut) -> LeaveOneOut:
    """The same rows, where lengthscales may be as short as they like."""
    if space.imitation is None:
        return space
    return replace(space, imitation=space.imitation._replace(gap_width=0.0))
