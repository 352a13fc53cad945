# SPDX-License-Identifier: BSD-3-Clause
"""Where one radius serves all queries (``bandwidth="fixed"``): others, while they are better."""

from __future__ import annotations

from functools import partial

from lsgp.tuning.contender import Contender
from lsgp.tuning.plan import FIRST_N_NEIGHBORS, N_WIDENED, RADIUS_STEP, effort_of_larger
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import WIDEN_STREAM, Found, Job, Runner


class Widen:
    stream = WIDEN_STREAM

    def work(self, problem: TuningProblem) -> int:
        if not problem.specification.tunes_bandwidth:
            return 0
        return 2 * N_WIDENED * effort_of_larger(FIRST_N_NEIGHBORS, problem.n_tuning_points).work

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if problem.specification.tunes_bandwidth and not problem.is_warm:
            tasks = [
                partial(_walk, contender=contender, factor=factor)
                for contender in found.leaders[:N_WIDENED]
                for factor in (RADIUS_STEP, 1.0 / RADIUS_STEP)
            ]
            runner.run(tasks, found.enlarged)


def _walk(job: Job, contender: Contender, factor: float) -> None:
    """Radii in one direction, each with the optimum of the last as a start."""
    effort = effort_of_larger(FIRST_N_NEIGHBORS, job.problem.n_tuning_points)
    best = contender
    while True:
        radius = best.model.bandwidth
        assert radius is not None
        wider = job.problem.with_radius(best.space, best.model, factor * radius)
        if wider.bandwidth == radius:
            return  # it reaches all that it may
        tried = job.optimize(best.start._replace(model=wider), effort)
        if tried.loss >= best.loss:
            return
        best = tried
