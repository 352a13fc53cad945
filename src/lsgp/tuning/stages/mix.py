# SPDX-License-Identifier: BSD-3-Clause
"""Other transforms for single inputs, where that alone makes leave-one-out predictions better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from lsgp.inputs.projections import Kinds
from lsgp.inputs.specification import TRANSFORMS
from lsgp.inputs.transforms import LINKED_KINDS
from lsgp.method.contract import LocalModel
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.descent import in_fewest_digits
from lsgp.tuning.leave_one_out import LeaveOneOut, Sample
from lsgp.tuning.objective import Objective
from lsgp.tuning.plan import (
    FEWEST_TARGETS,
    HOPELESS_MIXED,
    MIXED_LENGTHSCALE_FACTORS,
    MOST_MIXED,
    N_MIXED,
    N_MIXED_INPUTS,
    WORTH_MIXING,
)
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import MIX_STREAM, Found, Job, Runner


class Mix:
    stream = MIX_STREAM

    def work(self, problem: TuningProblem) -> int:
        return problem.efforts.polishing.work if _is_tried(problem) else 0

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if not _is_tried(problem):
            return
        best = found.leaders[0]
        if len(_free(best.space.kinds)) > 1:
            return  # a warm start is mixed already

        runner.run([lambda job: _mix(job, best)], found.polished)


def _is_tried(problem: TuningProblem) -> bool:
    is_wanted = problem.level.mixes_transforms and not problem.is_warm
    is_admitted = problem.specification.admits_mixing and not problem.is_in_gaps
    objective = problem.objective
    return (
        is_wanted and is_admitted and objective.breadth.mixes_transforms and not objective.is_slow
    )


def _mix(job: Job, best: Contender) -> None:
    problem, effort = job.problem, job.problem.efforts.polishing
    spaces = {start.space.kinds: start.space for start in problem.starts}
    of = {kind: problem.specification.kinds_of(kind) for kind in TRANSFORMS}
    data = {kind: spaces.get(of[kind]) or problem.space(of[kind]) for kind in TRANSFORMS}
    data = {kind: job.take(space) for kind, space in data.items()}
    (own,) = _free(best.space.kinds)
    n_targets = min(N_MIXED, max(FEWEST_TARGETS, N_MIXED_INPUTS // problem.rows.X.shape[1]))
    targets = problem.draw(min(n_targets, effort.n_targets), job.rng)
    sample = data[str(own)].sample(best.model, targets, best.n_neighbors)
    gathered = {kind: space.at_hand(sample) for kind, space in data.items()}
    parts = {kind: part for kind, (part, _) in gathered.items()}
    sample = gathered[str(own)][1]
    if (
        in_fewest_digits(parts[str(own)], sample, best.model, problem.objective)
        is not parts[str(own)]
    ):
        parts = {
            kind: part.in_single(part.X[sample.targets].mean(0)) for kind, part in parts.items()
        }
    kinds, model = mix_transforms(parts, str(own), best.model, sample, problem.objective)
    if len(_free(kinds)) > 1:
        # What is projected is the same in all of them.
        space = problem.mixed_space([data.get(str(kind), data[str(own)]) for kind in kinds])
        job.optimize(Start(space, model, best.n_neighbors), effort)


def _free(kinds: Kinds) -> set[str | None]:
    """The transforms of inputs that are not projected."""
    return set(kinds) - set(LINKED_KINDS)


def mix_transforms(
    data: Mapping[str, LeaveOneOut],
    kind: str,
    model: LocalModel,
    sample: Sample,
    objective: Objective,
) -> tuple[Kinds, LocalModel]:
    """The transform of each input that has the lowest loss, and the model for them.

    ``data`` holds the training rows in each transform; ``model`` and ``sample`` are of the one
    named ``kind``. Neighborhoods stay as they are, so no index is built: this finds what is worth
    optimizing.
    """
    # A new array for every trial: a backend may keep a copy of what it was given elsewhere.
    mixed = data[kind]
    lowest = mixed.evaluate(model, sample, objective).loss
    kinds = [str(each) for each in mixed.kinds]
    for j in np.sort(np.argsort(model.lengthscale, kind="stable")[:MOST_MIXED]).tolist():
        if kinds[j] in LINKED_KINDS:
            continue
        before, start = mixed, model
        for other in data:
            if other == kind:
                continue
            trial_space = _with_column(before, data[other], j)
            for factor in MIXED_LENGTHSCALE_FACTORS:
                trial = _stretch(start, j, factor)
                loss = trial_space.evaluate(trial, sample, objective).loss
                if loss < lowest - WORTH_MIXING * abs(lowest):
                    lowest, model, kinds[j], mixed = loss, trial, other, trial_space
                elif loss > lowest + HOPELESS_MIXED * abs(lowest):
                    break
    return tuple(kinds), model


def _with_column(space: LeaveOneOut, other: LeaveOneOut, j: int) -> LeaveOneOut:
    """The rows with input j as another space has it."""
    X = space.X.copy()
    X[:, j] = other.X[:, j]
    return replace(space, X=X)


def _stretch(model: LocalModel, j: int, factor: float) -> LocalModel:
    lengthscale = np.array(model.lengthscale)
    lengthscale[j] *= factor
    return model.replace(lengthscale=lengthscale)
