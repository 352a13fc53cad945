# SPDX-License-Identifier: BSD-3-Clause
"""The best candidates with the other kind of scale, and tuned by other objectives."""

from __future__ import annotations

from functools import partial

import numpy as np

from lsgp.method.contract import LocalModel
from lsgp.tuning.contender import Contender
from lsgp.tuning.objective import OBJECTIVES
from lsgp.tuning.plan import FAR_BETTER, Effort
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import VARY_STREAM, Found, Job, Runner


class Vary:
    stream = VARY_STREAM

    def work(self, problem: TuningProblem) -> int:
        n_candidates = min(len(problem.starts), problem.efforts.n_polished, _n_varied(problem))
        n_variants = problem.varies_scale + len(problem.objective.variants)
        return n_candidates * n_variants * _effort(problem).work

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        leaders = found.leaders
        if leaders and any(_is_left_behind(problem, leaders[0], exact) for exact in found.exact):
            return
        effort = _effort(problem)
        tasks = []
        for contender in leaders[: _n_varied(problem)]:
            start = contender.start
            if problem.varies_scale:
                other = start._replace(model=_with_other_scale(problem, contender.model))
                tasks.append(partial(Job.optimize, start=other, effort=effort))
            for name in problem.objective.variants:
                tasks.append(
                    partial(
                        Job.optimize,
                        start=start,
                        effort=effort,
                        objective=OBJECTIVES[name],
                    )
                )
        runner.run(tasks, found.varied)


def _is_left_behind(problem: TuningProblem, local: Contender, exact: Contender) -> bool:
    """Whether an exact GP is so much better that no variant of a local model will matter."""
    return local.loss - exact.loss > FAR_BETTER * problem.objective.unit(exact.loss)


def _effort(problem: TuningProblem) -> Effort:
    """One round: they start from what is polished."""
    return problem.efforts.polishing._replace(n_rounds=1)


def _n_varied(problem: TuningProblem) -> int:
    """Variants of a previous fit's models are among these."""
    return 0 if problem.is_warm else problem.level.n_varied


def _with_other_scale(problem: TuningProblem, model: LocalModel) -> LocalModel:
    other = np.inf if model.is_local_scale else problem.specification.model.scale_dof
    return model.replace(scale_dof=other)
