# SPDX-License-Identifier: BSD-3-Clause
"""Where rows are very few: exact GPs, integrated over their hyperparameters."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lsgp.inputs.transforms import LINKED_KINDS
from lsgp.method.kernels import KernelSetting
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.evidence import make_exact
from lsgp.tuning.integration import Choices, integrate
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.plan import INTEGRATED_KERNELS, INTEGRATED_TRANSFORMS, transform_weight
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import INTEGRATE_STREAM, Found, Job, Runner


class Integrate:
    stream = INTEGRATE_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if problem.integrated_share > 0:
            runner.report(0, "exact GPs, integrated over hyperparameters")
            runner.run([_integrate], found.integrated)


def _integrate(job: Job) -> None:
    problem, n = job.problem, len(job.problem.y)
    spaces = spaces_of_few(problem)
    kernels = tuple(k for k in problem.specification.kernels if k in INTEGRATED_KERNELS)
    choices = choices_of(problem, spaces, kernels or problem.specification.kernels)
    members = integrate(choices, problem.y, problem.rows.noise, job.rng, problem.clock)
    for transform, model in members:
        judged = _judge(job, Start(spaces[transform], model, n))
        job.found.append(judged._replace(candidate=replace(judged.candidate, is_integrated=True)))


def choices_of(
    problem: TuningProblem, spaces: list[LeaveOneOut], kernels: tuple[KernelSetting, ...]
) -> Choices:
    """What hyperparameters are drawn from, as far as the settings leave them open."""
    specification = problem.specification
    return Choices(
        model=make_exact(specification.model, specification.given),
        given=specification.given,
        is_isotropic=specification.is_isotropic,
        kernels=kernels,
        inputs=[space.X for space in spaces],
        input_weights=[1.0, transform_weight(len(problem.y))][: len(spaces)],
        groups=specification.groups,
    )


def spaces_of_few(problem: TuningProblem) -> list[LeaveOneOut]:
    """The rows in each transform that is open, of those that few rows can tell apart."""
    kinds = list(problem.specification.input_transforms)
    if len(kinds) > 1:
        kinds = [own for own in kinds if set(own) - set(LINKED_KINDS) <= INTEGRATED_TRANSFORMS]
    made = {start.space.kinds: start.space for start in problem.starts}
    return [made.get(own) or problem.space(own) for own in kinds]


def _judge(job: Job, start: Start) -> Contender:
    """With the scale that the posterior has set."""
    problem = job.problem
    judged = problem.evaluate_exact(start, job.comparison, calibrates_scale=False)
    is_gaussian = problem.scale == "global" and start.model.is_local_scale
    if not is_gaussian or judged.system is None:
        return judged
    # Asked for a global scale: that of the posterior, as if it were known.
    scale = float(np.mean(judged.system.predict(start.space.X[:1]).scale))
    model = start.model.replace(signal_variance=scale, scale_dof=math.inf)
    return problem.evaluate_exact(start._replace(model=model), job.comparison, False)
