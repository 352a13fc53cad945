# SPDX-License-Identifier: BSD-3-Clause
"""More neighbors, while they pay, with the optimum for fewer as a start."""

from __future__ import annotations

import time
from functools import partial

from lsgp.tuning.contender import Contender
from lsgp.tuning.plan import FIRST_N_NEIGHBORS, effort_of_larger
from lsgp.tuning.prices import affords_several, price_of
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import (
    ENLARGE_MORE_STREAM,
    ENLARGE_STREAM,
    Found,
    Job,
    Runner,
    resized,
)


class Enlarge:
    """Where exact GPs may be tried as well, no more than twice the first size.

    If that pays, all rows may pay most, and one factor for all of them costs less.
    """

    stream = ENLARGE_STREAM

    def work(self, problem: TuningProblem) -> int:
        if problem.specification.n_neighbors is not None or problem.is_warm:
            return 0
        return (
            problem.level.n_enlarged
            * effort_of_larger(2 * FIRST_N_NEIGHBORS, problem.n_tuning_points).work
        )

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if problem.is_warm:
            return
        most = problem.most_neighbors
        if problem.admits_large_exact:
            most = min(2 * FIRST_N_NEIGHBORS, most)
        leaders = found.enlargeable[: problem.level.n_enlarged]
        found.frontier += enlarge_all(problem, leaders, most, runner, found.enlarged)


class EnlargeMore:
    """Where more neighbors paid, and exact GPs were tried and are no better, still more."""

    stream = ENLARGE_MORE_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # seldom, and not known before the others are done

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if not problem.admits_large_exact or not found.enlarged:
            return
        lowest = min(c.loss for c in found.frontier)
        pays = lowest < found.leaders[0].loss
        if pays and all(exact.loss > lowest for exact in found.exact):
            larger = [c for c in found.frontier if c in found.enlarged]
            enlarge_all(problem, larger, problem.most_neighbors, runner, found.enlarged)


def enlarge_all(
    problem: TuningProblem,
    contenders: list[Contender],
    most: int,
    runner: Runner,
    keep: list[Contender],
) -> list[Contender]:
    """Each of them, while that pays; the best alone where predictions have no time for two.

    Then a smaller one of another kind beside it does as much, and tuning has time to be thorough.
    """
    is_alone = len(contenders) <= 1
    tasks = [partial(enlarge, contender=c, most=most, is_alone=is_alone) for c in contenders]
    enlarged = runner.run(tasks, keep)
    if is_alone:
        return enlarged
    best = min(enlarged, key=lambda c: c.loss)
    if best.n_neighbors is None or affords_several(problem, _doubled(best.n_neighbors, most)):
        return enlarged  # it was left at the size that is best
    task = partial(enlarge, contender=best, most=most, is_alone=True)
    (further,) = runner.run([task], keep, first_number=len(tasks))
    return [further if c is best else c for c in enlarged]


def _doubled(n_neighbors: int, most: int) -> int:
    return min(2 * n_neighbors, most)


def enlarge(job: Job, contender: Contender, most: int, is_alone: bool) -> Contender:
    """Double the neighborhood while that pays, and tune each on fewer targets: solves cost m³."""
    problem = job.problem
    if problem.specification.n_neighbors is not None or contender.n_neighbors is None:
        return contender
    # No more than the memory budget allows, on one thread: more threads must not change it.
    plan = problem.backend.plan(
        contender.space.problem(contender.model),
        None,
        1,
        problem.resources._replace(n_threads=1),
        gradient=True,
    )
    largest = min(most, len(problem.y) - 1, plan.max_neighbors)
    best = contender
    while best.n_neighbors is not None and best.n_neighbors < largest:
        n_neighbors = _doubled(best.n_neighbors, largest)
        if not (is_alone or affords_several(problem, n_neighbors)):
            break
        larger = job.evaluate(resized(problem, best.start, n_neighbors), time.monotonic())
        d = problem.rows.X.shape[1]
        dearer = price_of(n_neighbors, d) - price_of(best.n_neighbors, d)
        cost = problem.worth_of_millisecond * dearer
        if not problem.objective.is_worthwhile(larger.loss, best.loss, cost):
            break
        job.found.append(larger)
        effort = effort_of_larger(n_neighbors, problem.n_tuning_points, problem.is_in_gaps)
        tuned = job.optimize(larger.start, effort)
        best = min(larger, tuned, key=lambda c: c.loss)
    return best
