# SPDX-License-Identifier: BSD-3-Clause
"""Far rows that stand together [E9], where noise is so large that more of them pay."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from lsgp.method.contract import LocalModel
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.descent import descend_on_sample
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.plan import COARSE_FACTORS, FIRST_COARSE_FACTORS, WORTH_COARSE
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import COARSEN_STREAM, Found, Job, Runner


class Coarsen:
    """Leave-one-out decides: where noise is small, one evaluation says so."""

    stream = COARSEN_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # seldom, and not known before the others are done

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        # A previous fit has seen whether they pay, and its models are polished as they are.
        if problem.admits_coarse and not problem.is_warm:
            for k, contender in enumerate(found.leaders[: problem.level.n_enlarged]):
                coarsen(runner, contender, found.coarse, first_number=2 * k)
                if not found.coarse:  # what does not pay for the best seldom does for others
                    break
            every = [c.candidate for c in found.coarse]
            found.coarse[:] = [
                c for c in found.coarse if not runner.comparison.is_outreached(c.candidate, every)
            ]


def coarsen(runner: Runner, contender: Contender, keep: list[Contender], first_number: int) -> None:
    """The reach that suits a contender best, and its optimum, if that pays.

    Its lengthscales are what few rows of much noise have told: so another model is tried beside it,
    of those that tuning began with, and of its noise.
    """
    problem, m = runner.problem, contender.n_neighbors
    factors = [f for f in COARSE_FACTORS if m is not None and f * m <= len(problem.y)]
    if not factors:
        return
    models = (contender.model, _fresh(problem, contender.model))
    first = [f for f in FIRST_COARSE_FACTORS if f in factors]
    # The nodes of a metric are made once for all reaches: of a million rows, that takes a while.
    spaces = runner.run(
        [partial(_with_nodes, contender=contender, model=own, factor=first[0]) for own in models],
        [],
    )

    def evaluate(which: list[tuple[int, int]]) -> list[Contender]:
        tasks = [
            partial(_reach_for, contender=contender, model=models[k], factor=f, space=spaces[k])
            for k, f in which
        ]
        return runner.run(tasks, [])

    tried = evaluate([(k, f) for k in range(len(models)) for f in first])
    best = min(tried, key=lambda c: c.loss)
    if best.loss >= contender.loss:
        return
    k = tried.index(best) // len(first)
    tried += evaluate([(k, f) for f in factors if f not in first])
    if not _pays(runner, min(tried, key=lambda c: c.loss), contender):
        return
    every = [c.candidate for c in tried]
    kept = [c for c in tried if not runner.comparison.is_outreached(c.candidate, every)]
    farthest = max(kept, key=lambda c: c.model.reach).start
    starts = [
        farthest._replace(model=_with_reach(problem, model, farthest.model.reach))
        for model in models
    ]
    runner.run(
        [
            partial(_optimize, start=start, space=space)
            for start, space in zip(starts, spaces, strict=True)
        ],
        keep,
        first_number,
    )


def _fresh(problem: TuningProblem, model: LocalModel) -> LocalModel:
    """Where tuning began, with the noise of a model."""
    own = problem.specification.model
    fresh = own.replace(scale_dof=model.scale_dof)
    if problem.parameters.given & {"noise_variance", "signal_variance"}:
        return fresh
    # Of the variance of the targets, which is 1, what is not noise is signal.
    noise = float(np.clip(model.noise_variance * model.signal_variance, 0.05, 0.95))
    return fresh.replace(noise_variance=noise / (1.0 - noise))


def _with_reach(problem: TuningProblem, model: LocalModel, reach: float) -> LocalModel:
    if "localizer_decay" in problem.parameters.given:
        return model.replace(reach=reach)
    # The same weights at the same distances.
    return model.replace(reach=reach, localizer_decay=model.localizer_decay * reach**2)


def _reaching(problem: TuningProblem, model: LocalModel, factor: int) -> LocalModel:
    """The model with units for so many times as many rows, about."""
    return _with_reach(problem, model, float(factor ** (1.0 / problem.rows.X.shape[1])))


def _with_nodes(job: Job, contender: Contender, model: LocalModel, factor: int) -> LeaveOneOut:
    return job.take(contender.space).suited(_reaching(job.problem, model, factor))


def _reach_for(
    job: Job, contender: Contender, model: LocalModel, factor: int, space: LeaveOneOut
) -> Contender:
    coarse = _reaching(job.problem, model, factor)
    found = job.evaluate(Start(space, coarse, contender.n_neighbors), time.monotonic())
    return found._replace(space=contender.space)


def _optimize(job: Job, start: Start, space: LeaveOneOut) -> None:
    """As `Job.optimize`, with nodes as targets, where nothing is left out but themselves.

    ``space`` is the start's, with the nodes of its metric.
    """
    problem, effort, began = job.problem, job.problem.efforts.polishing, time.monotonic()
    space, model = job.take(space), start.model
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


def _pays(runner: Runner, coarse: Contender, plain: Contender) -> bool:
    """Whether the loss is lower by more than chance, and by enough to matter."""
    worth = WORTH_COARSE * runner.problem.objective.unit(plain.loss)
    doubt = runner.comparison.doubt(coarse.candidate, plain.candidate)
    return plain.loss - coarse.loss > max(worth, doubt)
