# SPDX-License-Identifier: BSD-3-Clause
"""Of many inputs, those that matter: halved while leave-one-out predictions are as good."""

from __future__ import annotations

import math
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
        n_halvings = math.ceil(math.log2(problem.rows.X.shape[1] / FEWEST_KEPT))
        return (1 + n_halvings) * NARROWING.work

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        runner.report(0, "which inputs matter")
        inputs: Inputs = np.arange(problem.rows.X.shape[1])
        best = _tune(runner, first_start(problem), found.first)
        lowest = best.loss
        while len(inputs) > FEWEST_KEPT:
            lengthscale = best.model.lengthscale
            n_kept = max(FEWEST_KEPT, len(inputs) // 2)
            places = np.sort(np.argsort(lengthscale, kind="stable")[:n_kept])
            narrowed = narrow(problem, inputs[places])
            model = best.model.replace(lengthscale=lengthscale[places])
            start = first_start(narrowed)._replace(model=model)
            own = Runner(narrowed, runner.comparison, runner.stream, runner.report)
            tried = _tune(own, start, [])
            if tried.loss > lowest + SAME_NARROWED * problem.objective.unit(lowest):
                break
            inputs, best, lowest = inputs[places], tried, min(lowest, tried.loss)
            found.inputs = inputs


def _tune(runner: Runner, start: Start, keep: list[Contender]) -> Contender:
    (tuned,) = runner.run([partial(Job.optimize, start=start, effort=NARROWING)], keep)
    return tuned
