# SPDX-License-Identifier: BSD-3-Clause
"""Where labels are few: GP classification in each input transform, averaged by its evidence."""

from __future__ import annotations

from functools import partial

from lsgp.method.kernels import KernelSetting
from lsgp.tuning.classes.integration import integrate_labels
from lsgp.tuning.classes.laplace import LaplaceCandidate, fit_laplace
from lsgp.tuning.classes.plan import LAPLACE_KERNELS
from lsgp.tuning.evidence import maximize_evidence
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.plan import FIRST_EVIDENCE_ITERATIONS
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.integrate import choices_of, spaces_of_few
from lsgp.tuning.stages.stage import LAPLACE_STREAM, Found, Job, Runner


class Laplace:
    stream = LAPLACE_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        runner.report(0, "GP classification")
        spaces = {start.space.kinds: start.space for start in problem.starts}
        for candidates in runner.run([partial(_fit, space) for space in spaces.values()], []):
            found.laplace += candidates
        if problem.integrated_label_share > 0:
            found.integrated_laplace += runner.run([_integrate], [])[0]


def _fit(space: LeaveOneOut, job: Job) -> list[LaplaceCandidate]:
    """With the lengthscales of the first kernel, stretched for each."""
    problem, labels = job.problem, job.problem.labels
    assert labels is not None, "GP classification is of labels"
    tried = _kernels(problem)
    model = problem.make_exact(problem.specification.model.replace(kernel=tried[0]))
    tuned = maximize_evidence(
        space.problem(model), problem.exact_parameters, FIRST_EVIDENCE_ITERATIONS, problem.clock
    )
    known = (space.X, space.transform, labels, problem.clock)
    return [fit_laplace(tuned.model.replace(kernel=kernel), *known) for kernel in tried]


def _integrate(job: Job) -> list[tuple[LaplaceCandidate, float]]:
    """Over the hyperparameters that the settings leave open."""
    problem, labels = job.problem, job.problem.labels
    assert labels is not None, "GP classification is of labels"
    spaces = spaces_of_few(problem)
    choices = choices_of(problem, spaces, _kernels(problem))
    transforms = [space.transform for space in spaces]
    return integrate_labels(choices, transforms, labels, job.rng, problem.clock)


def _kernels(problem: TuningProblem) -> tuple[KernelSetting, ...]:
    kernels = problem.specification.kernels
    return tuple(kernel for kernel in LAPLACE_KERNELS if kernel in kernels) or kernels[:1]
