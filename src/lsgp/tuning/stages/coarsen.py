# SPDX-License-Identifier: BSD-3-Clause
"""Far rows that stand together [E9], where noise is so large that more of them pay."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.plan import (
    COARSE_FACTORS,
    FIRST_COARSE_FACTOR,
    N_VARIED,
    SURE_COARSE,
    WORTH_COARSE,
)
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import COARSEN_STREAM, Found, Job, Runner


class Coarsen:
    """Leave-one-out decides: where noise is small, one evaluation says so."""

    stream = COARSEN_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # seldom, and not known before the others are done

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if problem.admits_coarse:
            tasks = [partial(coarsen, contender=c) for c in found.leaders[:N_VARIED]]
            runner.run(tasks, found.coarse)


def coarsen(job: Job, contender: Contender) -> None:
    """The reach that suits a contender best, and its optimum, if that pays."""
    problem, m = job.problem, contender.n_neighbors
    if m is None:
        return
    factors = [f for f in COARSE_FACTORS if f * m <= len(problem.y)]
    first = min(FIRST_COARSE_FACTOR, max(factors, default=1))
    if first == 1:
        return
    tried = {first: _reach_for(job, contender, first)}
    if tried[first].loss >= contender.loss:
        return
    tried |= {f: _reach_for(job, contender, f) for f in factors if f != first}
    best = min(tried.values(), key=lambda c: c.loss)
    if not _pays(job, best, contender):
        return
    job.found.append(best)
    job.optimize(best.start, problem.efforts.polishing)


def _reach_for(job: Job, contender: Contender, factor: int) -> Contender:
    """The contender with units for so many times as many rows, about."""
    problem, model = job.problem, contender.model
    reach = float(factor ** (1.0 / problem.rows.X.shape[1]))
    changes = {"reach": reach}
    if "localizer_decay" not in problem.parameters.given:
        # The same weights at the same distances.
        changes["localizer_decay"] = model.localizer_decay * reach**2
    start = Start(contender.space, model.replace(**changes), contender.n_neighbors)
    return job.evaluate(start, time.monotonic())


def _pays(job: Job, coarse: Contender, plain: Contender) -> bool:
    """Whether the loss is lower by more than chance, and by enough to matter."""
    objective, y = job.problem.objective, job.comparison.y
    losses = [objective.losses(c.candidate.predicted, y) for c in (plain, coarse)]
    gain = losses[0] - losses[1]
    error = float(np.std(gain)) / np.sqrt(len(gain))
    least = max(WORTH_COARSE * objective.unit(plain.loss), SURE_COARSE * error)
    return plain.loss - coarse.loss > least
