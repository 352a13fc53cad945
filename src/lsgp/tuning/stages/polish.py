# SPDX-License-Identifier: BSD-3-Clause
"""The best of the ranking are optimized on the full sample."""

from __future__ import annotations

from functools import partial

from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import POLISH_STREAM, Found, Job, Runner, resized


class Polish:
    stream = POLISH_STREAM

    def work(self, problem: TuningProblem) -> int:
        return _n_polished(problem) * problem.efforts.polishing.work

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        ranked = sorted([*found.ranked, *found.outlined], key=lambda c: c.loss)
        m = problem.starts[0].n_neighbors
        starts = [resized(problem, c.start, m) for c in ranked] or list(problem.starts)
        effort = problem.efforts.polishing
        tasks = [
            partial(Job.optimize, start=start, effort=effort)
            for start in starts[: _n_polished(problem)]
        ]
        runner.run(tasks, found.polished)


def _n_polished(problem: TuningProblem) -> int:
    most = problem.n_heavy if problem.is_warm else problem.efforts.n_polished
    return min(len(problem.starts), most)
