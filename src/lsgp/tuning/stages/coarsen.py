# SPDX-License-Identifier: BSD-3-Clause
"""Far rows that stand together [E9], where noise is so large that more of them pay."""

from __future__ import annotations

import time
from functools import partial

from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.descent import descend_on_sample
from lsgp.tuning.plan import (
    COARSE_FACTORS,
    FIRST_COARSE_FACTOR,
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
            tasks = [
                partial(coarsen, contender=c) for c in found.leaders[: problem.level.n_enlarged]
            ]
            runner.run(tasks, found.coarse)
            every = [c.candidate for c in found.coarse]
            found.coarse[:] = [
                c for c in found.coarse if not runner.comparison.is_outreached(c.candidate, every)
            ]


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
    every = [c.candidate for c in tried.values()]
    kept = [c for c in tried.values() if not job.comparison.is_outreached(c.candidate, every)]
    start = max(kept, key=lambda c: c.model.reach).start
    _optimize(job, start)
    # Few rows of much noise say little of lengthscales: from where tuning began, too.
    own, given = problem.specification.model, problem.parameters.given
    fresh = own.replace(reach=start.model.reach, scale_dof=start.model.scale_dof)
    if "noise_variance" not in given:
        fresh = fresh.replace(noise_variance=max(own.noise_variance, start.model.noise_variance))
    _optimize(job, start._replace(model=fresh))


def _optimize(job: Job, start: Start) -> None:
    """As `Job.optimize`, with nodes as targets, where nothing is left out but themselves."""
    problem, effort, began = job.problem, job.problem.efforts.polishing, time.monotonic()
    space, model = start.space.with_share(job.share), start.model
    if space.groups is not None or space.imitation is not None:
        job.optimize(start, effort)
        return
    assert start.n_neighbors is not None
    for _ in range(effort.n_rounds):
        problem.clock.check()
        space = space.suited(model)
        sample = space.sample_nodes(model, effort.n_targets, start.n_neighbors, job.rng)
        model = descend_on_sample(
            space,
            sample,
            model,
            problem.parameters,
            problem.objective,
            effort.n_iterations,
            problem.clock,
        )
    found = job.evaluate(start._replace(model=model), began)
    job.found.append(found)
    job.report(effort.work, found)


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
    worth = WORTH_COARSE * job.problem.objective.unit(plain.loss)
    doubt = job.comparison.doubt(coarse.candidate, plain.candidate)
    return plain.loss - coarse.loss > max(worth, doubt)
