# SPDX-License-Identifier: BSD-3-Clause
"""A short optimization of every start ranks kernels and input transforms.

Or, where that is enough: first one kernel in each transform, then the others in the best of these,
from the optimum of the first on.
"""

from __future__ import annotations

from functools import partial

from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.plan import Effort
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import RANK_STREAM, Found, Job, Runner


class Rank:
    stream = RANK_STREAM

    def work(self, problem: TuningProblem) -> int:
        if not problem.is_ranked:
            return 0
        first, others = _parts(problem)
        efforts = problem.efforts
        n_others = len(others) * min(1.0, efforts.n_relayed / len(first))
        return len(first) * efforts.ranking.work + int(n_others * efforts.relaying.work)

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if not problem.is_ranked:
            return
        first, others = _parts(problem)
        leading = _optimize(runner, first, problem.efforts.ranking, found)
        leading = sorted(leading, key=lambda c: c.loss)[: problem.efforts.n_relayed]
        relayed = [
            Start(c.space, c.model.replace(kernel=start.model.kernel), c.n_neighbors)
            for c in leading
            for start in others
            if start.space.kinds == c.space.kinds
        ]
        _optimize(runner, relayed, problem.efforts.relaying, found)


def _optimize(runner: Runner, starts: list[Start], effort: Effort, found: Found) -> list[Contender]:
    tasks = [partial(Job.optimize, start=start, effort=effort) for start in starts]
    return runner.run(tasks, found.ranked)


def _parts(problem: TuningProblem) -> tuple[list[Start], list[Start]]:
    """Starts of their own, and those that go on from these."""
    return problem.first_of_each() if problem.efforts.n_relayed else (list(problem.starts), [])
