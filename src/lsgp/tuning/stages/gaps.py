# SPDX-License-Identifier: BSD-3-Clause
"""Where queries lie in gaps of a map: models that are tuned on gaps like theirs.

Kernels are ranked with few neighbors. The best is tried along other directions than the axes, since
what a map shows is seldom alike along and across. Then the best kernels are tuned with more
neighbors, each on other rows, as what varies within gaps, and one as what varies across them; what
is combined of them, `lsgp.tuning.beyond.competition` says.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.transforms import Rotation
from lsgp.method.contract import LocalModel
from lsgp.method.kernels import kernel_of
from lsgp.tuning.angle import choose_angle
from lsgp.tuning.beyond.plan import (
    FACTOR_IN_GAPS,
    MOST_UNLIKE_UNITS,
    N_COMBINED_IN_GAPS,
    N_KERNELS_IN_GAPS,
    N_MIRRORED_TARGETS,
    N_TARGETS_TRIED_IN_GAPS,
    N_TRIED_IN_GAPS,
    RELAYED_NOISE,
    ROUGH_KERNEL,
    SHORT_IN_GAPS,
    STRETCH_ALONG,
    WORTH_TURNING,
)
from lsgp.tuning.beyond.regions import Layer, Regions
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.descent import descend_on_sample
from lsgp.tuning.leave_one_out import LeaveOneOut, Sample
from lsgp.tuning.plan import Effort
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import GAPS_STREAM, Found, Job, Runner, resized

Array = NDArray[np.float64]


class Gaps:
    stream = GAPS_STREAM

    def work(self, problem: TuningProblem) -> int:
        n_kernels = len(problem.starts)
        n_last = 2 * min(N_KERNELS_IN_GAPS, n_kernels) + 1
        return 2 * n_kernels * _trying(problem).work + n_last * problem.efforts.polishing.work

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        try:
            every = _rank(problem, found, runner)
            along = _turned(problem, every[0], runner)
            rough = kernel_of(ROUGH_KERNEL)
            roughest = next((c for c in every if rough.is_like(c.model.kernel)), every[0])
            kinds = [roughest, *(c for c in every if c is not roughest)][:N_KERNELS_IN_GAPS]
            starts = [
                start for contender in kinds for start in _within_gaps(problem, contender, along)
            ]
            starts += _across_gaps(problem, roughest, along)
            effort = problem.efforts.polishing
            tasks = [
                partial(_tune_and_enlarge, start=start, effort=effort, part=k)
                for k, start in enumerate(starts)
            ]
            runner.run(tasks, found.polished, first_number=2 * len(problem.starts))
        finally:
            # When time is up or on Ctrl-C, what there is.
            if not found.polished and found.outlined:
                found.first.append(min(found.outlined, key=lambda c: c.loss))


def _rank(problem: TuningProblem, found: Found, runner: Runner) -> list[Contender]:
    """All kernels, best first, each from its own start, or short from the optimum of the best."""
    m, effort = _n_neighbors(problem, N_TRIED_IN_GAPS), _trying(problem)
    starts = [Start(_bare(s.space), s.model, m) for s in problem.starts]
    tasks = [partial(_tune, start=start, effort=effort) for start in starts]
    first = runner.run(tasks, found.outlined)
    best = min(first, key=lambda c: c.loss)
    again = [best.start._replace(model=_relayed(problem, best.model, c.model)) for c in first]
    tasks = [partial(_tune, start=start, effort=effort) for start in again]
    second = runner.run(tasks, found.outlined, first_number=len(starts))
    of_each = [min(pair, key=lambda c: c.loss) for pair in zip(first, second, strict=True)]
    return sorted(of_each, key=lambda c: c.loss)


def _relayed(problem: TuningProblem, best: LocalModel, other: LocalModel) -> LocalModel:
    """The best with the kernel of another, short, where that may go on from."""
    width = problem.starts[0].space.gap_width
    short = _sized(problem, best, SHORT_IN_GAPS * width, np.minimum)
    if "noise_variance" not in problem.parameters.given:
        short = short.replace(noise_variance=max(best.noise_variance, RELAYED_NOISE))
    return short.replace(kernel=other.kernel)


def _sized(
    problem: TuningProblem, model: LocalModel, wanted: float, bound: Callable[[float, float], float]
) -> LocalModel:
    """As steep as before, with lengthscales of at most, or at least, what is wanted."""
    if problem.parameters.given & {"lengthscale", "signal_variance"}:
        return model
    growth = float(bound(wanted / np.exp(np.log(model.lengthscale).mean()), 1.0))
    return model.replace(
        lengthscale=growth * np.asarray(model.lengthscale),
        signal_variance=growth * model.signal_variance,
    )


def _within_gaps(problem: TuningProblem, contender: Contender, along: Start) -> list[Start]:
    """Short, from the nearest rows, and from units all around."""
    m, space = _n_neighbors(problem, N_COMBINED_IN_GAPS), _bare(along.space)
    longest = SHORT_IN_GAPS * along.space.gap_width  # in the scale of this space
    model = _sized(problem, _carried(contender, along), longest, np.minimum)
    starts = [Start(space, model, m)]
    if problem.specification.admits_coarse:
        reach = float(FACTOR_IN_GAPS ** (1.0 / problem.rows.X.shape[1]))
        starts.append(Start(space, model.replace(reach=reach), m))
    return starts


def _across_gaps(problem: TuningProblem, contender: Contender, along: Start) -> list[Start]:
    """With lengthscales no shorter than the gaps.

    What varies within gaps and what varies across them seldom have one lengthscale. Whether what
    was found first is short or long is chance: there are models of both kinds in any case.
    """
    if problem.parameters.given & {"lengthscale", "signal_variance"}:
        return []
    model = _sized(problem, _carried(contender, along), along.space.gap_width, np.maximum)
    return [Start(along.space, model, _n_neighbors(problem, N_COMBINED_IN_GAPS))]


def _trying(problem: TuningProblem) -> Effort:
    n_targets = min(N_TARGETS_TRIED_IN_GAPS, problem.n_tuning_points)
    return problem.efforts.ranking._replace(n_targets=n_targets, n_rounds=1)


def _n_neighbors(problem: TuningProblem, wanted: int) -> int:
    return min(problem.specification.n_neighbors or wanted, len(problem.y) - 1)


def _bare(space: LeaveOneOut) -> LeaveOneOut:
    """Gaps are cut into it as a whole: no radius is left out around a row."""
    return replace(space, imitation=None)


def _tune(job: Job, start: Start, effort: Effort, part: int = 0) -> Contender:
    """As `Job.optimize`, by a part of the rows of gaps that are for tuning."""
    began, model = time.monotonic(), start.model
    for _ in range(effort.n_rounds):
        model = _descend(job, start._replace(model=model), effort, part)
    found = job.evaluate(start._replace(model=model), began)
    job.found.append(found)
    job.report(effort.work, found)
    return found


def _tune_and_enlarge(job: Job, start: Start, effort: Effort, part: int) -> Contender:
    """With twice the neighbors if that is better, and they may be chosen."""
    found, problem = _tune(job, start, effort, part), job.problem
    n_neighbors = found.n_neighbors
    if problem.specification.n_neighbors is None and n_neighbors is not None:
        larger = min(2 * n_neighbors, problem.level.most_in_gaps, len(problem.y) - 1)
        tried = job.evaluate(resized(problem, found.start, larger), time.monotonic())
        job.found[-1] = min(found, tried, key=lambda c: c.loss)
    return job.found[-1]


def _descend(job: Job, start: Start, effort: Effort, part: int) -> LocalModel:
    problem = job.problem
    problem.clock.check()
    space, sample = _sample(job, start, effort.n_targets, part)
    n_iterations, clock = effort.n_iterations, problem.clock
    parameters, objective = problem.parameters, problem.objective
    return descend_on_sample(space, sample, start.model, parameters, objective, n_iterations, clock)


def _sample(job: Job, start: Start, n_targets: int, part: int = 0) -> tuple[LeaveOneOut, Sample]:
    """Rows of gaps that are for tuning, and what they are predicted from."""
    regions = job.problem.gaps_to_tune_on
    assert regions is not None
    space = job.take(start.space).suited(start.model)
    few = _thinned(regions, n_targets, part)
    return space, space.sample_regions(start.model, few, start.n_neighbors)


def _thinned(regions: Regions, n_targets: int, part: int) -> Regions:
    """With about so many targets, of all gaps: of parts of them, the one of this number."""
    step = -(-len(regions.targets) // n_targets)
    layers = []
    for number, targets in regions.layers:
        first = part % min(step, len(targets))
        layers.append(Layer(number, targets[first::step].copy()))
    return Regions(tuple(layers))


def _turned(problem: TuningProblem, best: Contender, runner: Runner) -> Start:
    """The best along the direction that suits it, or as it is if none does.

    Its lengthscales are first made one, then longer along a direction than across.
    """
    as_it_is = next(s.space for s in problem.starts if s.space.kinds == best.space.kinds)
    if not _may_turn(problem):
        return Start(as_it_is, best.model, best.n_neighbors)
    length = float(np.exp(np.log(_lengths(best.start)).mean()))

    def turned(angle: float, stretch: float) -> Start:
        specification = problem.specification._replace(projection=Rotation(0, 1, angle))
        space = replace(problem, specification=specification).space((Rotation.kind, Rotation.kind))
        lengths = np.array([stretch * length, length / stretch])
        model = best.model.replace(lengthscale=lengths / space.transform.scale)
        return Start(space, model, best.n_neighbors)

    def loss(start: Start, job: Job) -> float:
        space, sample = _sample(job, start, N_MIRRORED_TARGETS)
        return space.evaluate(start.model, sample, problem.objective).loss

    def loss_of(angle: float, stretch: float = STRETCH_ALONG) -> float:
        return runner.run([partial(loss, turned(angle, stretch))], [])[0]

    angle = choose_angle(loss_of, period=180.0)
    gain = loss_of(0.0, 1.0) - loss_of(angle)
    if gain > WORTH_TURNING * problem.objective.unit(best.loss):
        return turned(angle, STRETCH_ALONG)
    return Start(as_it_is, best.model, best.n_neighbors)


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


def _lengths(start: Start) -> Array:
    """Lengthscales in the units of the inputs."""
    return np.asarray(start.model.lengthscale) * start.space.transform.scale


def _carried(contender: Contender, to: Start) -> LocalModel:
    """The model in another space, with directions as there, and lengthscales of its own size."""
    model = contender.model
    if to.space.transform is contender.space.transform:
        return model
    lengths, there = _lengths(contender.start), _lengths(to)
    size = float(np.exp(np.mean(np.log(lengths) - np.log(there))))
    return model.replace(lengthscale=size * np.asarray(to.model.lengthscale))
