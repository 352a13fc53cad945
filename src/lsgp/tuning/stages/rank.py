# SPDX-License-Identifier: BSD-3-Clause
"""Short optimizations rank kernels and input transforms.

First one kernel in each transform; then the others in the best of these, from the optimum of the
first on, which is most of the way.
"""

from __future__ import annotations

from functools import partial

from lsgp.inputs.specification import DEFAULT_KERNEL
from lsgp.method.kernels import kernel_of
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.plan import Effort
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import RANK_STREAM, Found, Job, Runner


class Rank:
    stream = RANK_STREAM

    def work(self, problem: TuningProblem) -> int:
        if not problem.is_ranked:
            return 0
        first, others = _first_of_each(problem)
        efforts = problem.efforts
        n_others = len(others) * min(1.0, efforts.n_relayed / len(first))
        return len(first) * efforts.ranking.work + int(n_others * efforts.relaying.work)

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if not problem.is_ranked:
            return
        first, others = _first_of_each(problem)
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


def _first_of_each(problem: TuningProblem) -> tuple[list[Start], list[Start]]:
    """The start of one kernel in each transform, the default one if it is there; the others."""
    if problem.is_in_gaps:
        # Of one transform, and the optima of kernels lie far apart: each for itself.
        return list(problem.starts), []
    usual = kernel_of(DEFAULT_KERNEL)
    of_kinds: dict[object, list[Start]] = {}
    for start in problem.starts:
        of_kinds.setdefault(start.space.kinds, []).append(start)
    first = [
        next((start for start in starts if usual.is_like(start.model.kernel)), starts[0])
        for starts in of_kinds.values()
    ]
    return first, [start for start in problem.starts if not any(start is one for one in first)]
