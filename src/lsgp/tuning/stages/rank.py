# SPDX-License-Identifier: BSD-3-Clause
"""A short optimization of every start ranks kernels and input transforms."""

from __future__ import annotations

from functools import partial

from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import RANK_STREAM, Found, Job, Runner


class Rank:
    stream = RANK_STREAM

    def work(self, problem: TuningProblem) -> int:
        return _n_ranked(problem) * problem.efforts.ranking.work

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        effort = problem.efforts.ranking
        starts = problem.starts[: _n_ranked(problem)]
        tasks = [partial(Job.optimize, start=start, effort=effort) for start in starts]
        runner.run(tasks, found.ranked)


def _n_ranked(problem: TuningProblem) -> int:
    """What one fit has learnt, and a single start, need no ranking."""
    is_ranked = len(problem.starts) > 1 and not problem.is_warm
    return len(problem.starts) if is_ranked else 0
