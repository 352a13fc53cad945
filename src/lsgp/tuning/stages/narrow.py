# SPDX-License-Identifier: BSD-3-Clause
"""Of many inputs, those that matter: halved while leave-one-out predictions are as good."""

from __future__ import annotations

from functools import partial

import numpy as np

from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.narrowing import Inputs, narrow
from lsgp.tuning.plan import FEWEST_KEPT, NARROWING, SAME_NARROWED
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.first import first_start
from lsgp.tuning.stages.stage import NARROW_STREAM, Found, Job, Runner


class Narrow:
    """One model is tuned with all inputs, and again with the half of the shortest lengthscales."""

    stream = NARROW_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 2 * NARROWING.work

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        runner.report(0, "which inputs matter")
        inputs: Inputs = np.arange(problem.rows.X.shape[1])
        best = _tune(runner, first_start(problem), found.first)
        lowest = best.loss
        while len(inputs) >= 2 * FEWEST_KEPT:
            shortest = np.argsort(best.model.lengthscale, kind="stable")[: len(inputs) // 2]
            kept = np.sort(shortest)
            narrowed = narrow(problem, inputs[kept])
            model = best.model.replace(lengthscale=best.model.lengthscale[kept])
            start = Start(first_start(narrowed).space, model, best.n_neighbors)
            own = Runner(narrowed, runner.comparison, runner.stream, runner.report)
            tried = _tune(own, start, [])
            if tried.loss > lowest + SAME_NARROWED * problem.objective.unit(lowest):
                break
            inputs, best, lowest = inputs[kept], tried, min(lowest, tried.loss)
            found.inputs = inputs


def _tune(runner: Runner, start: Start, keep: list[Contender]) -> Contender:
    effort = NARROWING
    (tuned,) = runner.run([partial(Job.optimize, start=start, effort=effort)], keep)
    return tuned
