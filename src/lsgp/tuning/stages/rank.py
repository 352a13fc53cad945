# SPDX-License-Identifier: BSD-3-Clause
"""Short optimizations of every start rank kernels and input transforms.

After the first round the worse half is dropped. Or, where that is enough: first one kernel in each
transform, then the others in the best of these, from the optimum of the first on.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from lsgp.tuning.comparison import Comparison
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.plan import (
    FIRST_N_NEIGHBORS,
    MOST_RANKED_WITH_FEWER,
    N_OUTLINED_KEPT,
    N_RANKED_ON,
    RANKED_N_NEIGHBORS,
    Effort,
)
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import RANK_STREAM, Found, Job, Runner, resized


class Rank:
    stream = RANK_STREAM

    def work(self, problem: TuningProblem) -> int:
        if not problem.is_ranked:
            return 0
        first, others = _parts(problem)
        efforts = problem.efforts
        n_others = len(others) * min(1.0, efforts.n_relayed / len(first))
        n_again = _n_kept(len(first)) * (efforts.ranking.n_rounds - 1)
        in_rounds = (len(first) + n_again) * _round_of(efforts.ranking).work
        return in_rounds + int(n_others * efforts.relaying.work)

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if not problem.is_ranked:
            return
        few = _on_fewer(problem, runner.comparison)
        if few is None:
            _rank(problem, runner, found.ranked)
            return
        try:
            _rank(problem, Runner(problem, few, runner.stream, runner.report), found.outlined)
        finally:
            # One of them is there, whatever comes next.
            if found.outlined:
                best = min(found.outlined, key=lambda c: c.loss)
                space = best.space.suited(best.model)
                start = best.start._replace(space=space)
                judged = problem.evaluate(start, runner.comparison, time.monotonic())
                found.first.append(judged._replace(space=best.space))
        # The others that are polished next are judged when they are.
        first = max(1, problem.efforts.n_polished)
        others = sorted(found.outlined, key=lambda c: c.loss)[first:N_OUTLINED_KEPT]
        tasks = [partial(_judge, problem.starts[0].n_neighbors, each) for each in others]
        found.first += runner.run(tasks, [])


def _judge(n_neighbors: int | None, outlined: Contender, job: Job) -> Contender:
    """On all points that are compared, with as many neighbors as the others."""
    start = resized(job.problem, outlined.start, n_neighbors)
    return job.evaluate(start, time.monotonic())


def _rank(problem: TuningProblem, runner: Runner, ranked: list[Contender]) -> None:
    """Fill in the best of each start."""
    first, others = _parts(problem)
    efforts = problem.efforts
    roughly = [_with_fewer(problem, start) for start in first]
    leading = _optimize(runner, roughly, _round_of(efforts.ranking), ranked)
    n_run = len(first)
    for _ in range(efforts.ranking.n_rounds - 1):
        kept = sorted(leading, key=lambda c: c.loss)[: _n_kept(len(first))]
        again: list[Contender] = []
        try:
            starts = [resized(problem, c.start, first[0].n_neighbors) for c in kept]
            further = _optimize(runner, starts, _round_of(efforts.ranking), again, n_run)
        except BaseException:
            ranked += again  # what was found until then
            raise
        leading = [min(pair, key=lambda c: c.loss) for pair in zip(kept, further, strict=True)]
        for before, after in zip(kept, leading, strict=True):
            ranked[next(k for k, c in enumerate(ranked) if c is before)] = after
        n_run += len(kept)
    leading = sorted(leading, key=lambda c: c.loss)[: efforts.n_relayed]
    relayed = [
        Start(c.space, c.model.replace(kernel=start.model.kernel), c.n_neighbors)
        for c in leading
        for start in others
        if start.space.kinds == c.space.kinds
    ]
    _optimize(runner, relayed, efforts.relaying, ranked)


def _optimize(
    runner: Runner, starts: list[Start], effort: Effort, keep: list[Contender], number: int = 0
) -> list[Contender]:
    tasks = [partial(Job.optimize, start=start, effort=effort) for start in starts]
    return runner.run(tasks, keep, number)


def _with_fewer(problem: TuningProblem, start: Start) -> Start:
    """With fewer neighbors, where nobody has chosen them: a solve takes a fifth of the time."""
    is_given = problem.specification.n_neighbors is not None
    is_large = len(problem.y) > MOST_RANKED_WITH_FEWER
    if start.n_neighbors != FIRST_N_NEIGHBORS or is_given or is_large:
        return start
    return resized(problem, start, RANKED_N_NEIGHBORS)


def _round_of(effort: Effort) -> Effort:
    return effort._replace(n_rounds=1)


def _n_kept(n_starts: int) -> int:
    """Of those that have had a round, how many have another."""
    return -(-n_starts // 2)


def _on_fewer(problem: TuningProblem, comparison: Comparison) -> Comparison | None:
    """Part of the points, if there are many: to rank takes fewer than to choose."""
    n_compared = len(comparison.rows)
    if n_compared < 2 * N_RANKED_ON or comparison.regions is not None or problem.labels is not None:
        return None
    step = -(-n_compared // N_RANKED_ON)
    return problem.compare_on(np.ascontiguousarray(comparison.rows[::step]))


def _parts(problem: TuningProblem) -> tuple[list[Start], list[Start]]:
    """Starts of their own, and those that go on from these."""
    return problem.first_of_each() if problem.efforts.n_relayed else (list(problem.starts), [])
