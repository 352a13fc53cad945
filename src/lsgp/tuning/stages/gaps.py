# SPDX-License-Identifier: BSD-3-Clause
"""Where queries lie in gaps of a map: models that are tuned on gaps like theirs.

Kernels are ranked with few neighbors. The best is tried along other directions than the axes, since
what a map shows is seldom alike along and across. Then the best kernels are tuned with more
neighbors, from the nearest rows alone and with units all around the gaps [E9]; what is combined
of them, other rows of the gaps say (`lsgp.tuning.beyond`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import numpy as np

from lsgp.inputs.transforms import Rotation
from lsgp.method.contract import LocalModel
from lsgp.tuning.angle import choose_angle
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.descent import descend_on_sample
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.plan import (
    FACTORS_IN_GAPS,
    MOST_UNLIKE_UNITS,
    N_COMBINED_IN_GAPS,
    N_KERNELS_IN_GAPS,
    N_TRIED_IN_GAPS,
    WORTH_TURNING,
    Effort,
)
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.regions import Regions
from lsgp.tuning.stages.stage import GAPS_STREAM, Found, Job, Runner, resized


class Gaps:
    stream = GAPS_STREAM

    def work(self, problem: TuningProblem) -> int:
        quick, effort = problem.efforts.ranking, problem.efforts.polishing
        n_last = min(N_KERNELS_IN_GAPS, len(problem.starts)) * len(FACTORS_IN_GAPS)
        return len(problem.starts) * quick.work + n_last * effort.work

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        m = _n_neighbors(problem, N_TRIED_IN_GAPS)
        starts = [Start(_bare(s.space), s.model, m) for s in problem.starts]
        quick, effort = problem.efforts.ranking, problem.efforts.polishing
        tasks = [partial(_tune, start=start, effort=quick) for start in starts]
        runner.run(tasks, found.ranked)
        ranked = sorted(found.ranked, key=lambda c: c.loss)[:N_KERNELS_IN_GAPS]
        space = _turned(problem, ranked[0], runner)
        m = _n_neighbors(problem, N_COMBINED_IN_GAPS)
        starts = [
            Start(space, _reaching(problem, _carried(c, space), factor), m)
            for c in ranked
            for factor in (FACTORS_IN_GAPS if problem.specification.admits_coarse else (1,))
        ]
        tasks = [partial(_tune_and_enlarge, start=start, effort=effort) for start in starts]
        runner.run(tasks, found.polished, first_number=len(problem.starts))


def _n_neighbors(problem: TuningProblem, wanted: int) -> int:
    return min(problem.specification.n_neighbors or wanted, len(problem.y) - 1)


def _bare(space: LeaveOneOut) -> LeaveOneOut:
    """Gaps are cut into it as a whole: no radius is left out around a row."""
    return replace(space, imitation=None)


def _tune(job: Job, start: Start, effort: Effort) -> Contender:
    """As `Job.optimize`, by the rows of gaps that are for tuning."""
    began, model = time.monotonic(), start.model
    for _ in range(effort.n_rounds):
        model = _descend(job, start._replace(model=model), effort)
    found = job.evaluate(start._replace(model=model), began)
    job.found.append(found)
    job.report(effort.work, found)
    return found


def _tune_and_enlarge(job: Job, start: Start, effort: Effort) -> Contender:
    """And the same with twice the neighbors, as far as they may be chosen."""
    found, problem = _tune(job, start, effort), job.problem
    n_neighbors = found.n_neighbors
    if problem.specification.n_neighbors is None and n_neighbors is not None:
        larger = min(2 * n_neighbors, problem.level.most_in_gaps, len(problem.y) - 1)
        job.found.append(job.evaluate(resized(problem, found.start, larger), time.monotonic()))
    return found


def _descend(job: Job, start: Start, effort: Effort) -> LocalModel:
    problem, regions = job.problem, job.problem.gaps_to_tune_on
    assert regions is not None
    problem.clock.check()
    space = job.take(start.space).suited(start.model)
    few = _thinned(regions, effort.n_targets)
    return descend_on_sample(
        space,
        space.sample_regions(start.model, few, start.n_neighbors),
        start.model,
        problem.parameters,
        problem.objective,
        effort.n_iterations,
        problem.clock,
    )


def _thinned(regions: Regions, n_targets: int) -> Regions:
    """With about so many targets, of all gaps."""
    step = -(-len(regions.targets) // n_targets)
    layers = [layer._replace(targets=layer.targets[::step].copy()) for layer in regions.layers]
    return Regions(tuple(layers))


def _reaching(problem: TuningProblem, model: LocalModel, factor: int) -> LocalModel:
    return model.replace(reach=float(factor ** (1.0 / problem.rows.X.shape[1])))


def _turned(problem: TuningProblem, best: Contender, runner: Runner) -> LeaveOneOut:
    """The rows along the direction that suits the best, or as they are if none does."""
    if not _may_turn(problem):
        return best.space
    found: dict[float, tuple[float, LeaveOneOut]] = {}
    effort = problem.efforts.ranking

    def loss_of(angle: float, job: Job) -> float:
        specification = problem.specification
        turned = replace(
            problem,
            queries=None,
            specification=specification._replace(projection=Rotation(0, 1, angle)),
        )
        space = turned.space((Rotation.kind, Rotation.kind))
        start = Start(space, _carried(best, space, is_round=True), best.n_neighbors)
        tuned = job.evaluate(start._replace(model=_descend(job, start, effort)), time.monotonic())
        job.report(effort.work, tuned)
        found[angle] = tuned.loss, space
        return tuned.loss

    def loss(angle: float) -> float:
        return runner.run([partial(loss_of, angle)], [], first_number=2000)[0]

    chosen = choose_angle(loss)
    if chosen not in found:
        loss(chosen)
    lowest, space = found[chosen]
    return space if lowest < found[0.0][0] - WORTH_TURNING else best.space


def _may_turn(problem: TuningProblem) -> bool:
    """Whether there are two inputs of like units, and nobody has said how far each goes."""
    specification = problem.specification
    if problem.rows.X.shape[1] != 2 or specification.projection is not None:
        return False
    spread = problem.rows.X.std(axis=0)
    return (
        set(problem.starts[0].space.kinds) == {"standardize"}
        and not specification.is_isotropic
        and specification.bounds is None
        and "lengthscale" not in specification.given
        and problem.objective.judges_predictions
        and 0 < spread.max() < MOST_UNLIKE_UNITS * spread.min()
    )


def _carried(contender: Contender, space: LeaveOneOut, is_round: bool = False) -> LocalModel:
    """The model in the units of another space; round, if its directions are to be found."""
    model, own = contender.model, contender.space
    if space is own:
        return model
    lengths = np.asarray(model.lengthscale) * own.transform.scale
    if is_round or space.transform.projection != own.transform.projection:
        lengths = np.full(len(lengths), np.exp(np.log(lengths).mean()))
    return model.replace(lengthscale=lengths / space.transform.scale)
