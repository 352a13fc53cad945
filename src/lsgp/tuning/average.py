# SPDX-License-Identifier: BSD-3-Clause
"""A family of one model: an exact GP, averaged over the posterior of its hyperparameters.

Few rows have about the same evidence under many hyperparameters, and a single choice of them
predicts too surely.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from lsgp.method.combination import combine
from lsgp.solvers.exact_system import ExactSystem
from lsgp.solvers.posterior import N_MEMBERS, integrate
from lsgp.tuning.budget import Rung
from lsgp.tuning.data import Problem
from lsgp.tuning.exact import Exact, admits_exact, is_on_request, judge_exact, room_for_exact
from lsgp.tuning.family import Contender, Family, Spec
from lsgp.tuning.jobs import Job

#: Largest number of rows of an average.
MOST_ROWS = 160
#: Largest number of pairs of rows, times inputs; with more, the average would dominate the time.
MOST_PAIRS = 2_500_000
#: Kernels among which few rows can choose.
KERNELS = frozenset({"matern32", "matern52", "rbf"})


class Average(Family):
    name = "average"
    of_labels = False

    def starts(self, problem: Problem) -> list[Spec]:
        """Return one start for few rows, unless users gave bounds of hyperparameters."""
        data, model = problem.data, problem.data.specification.model
        is_admitted = (
            data.n <= MOST_ROWS
            and data.n**2 * data.d <= MOST_PAIRS
            and admits_exact(data, problem.budget)
            and not is_on_request(data)
            and not data.specification.states_bounds
            and math.isfinite(model.constant_variance + model.slope_variance)
            and room_for_exact(data) > 2 * N_MEMBERS
            # The prior of the signal variance needs targets that vary.
            and bool((np.ptp(data.y, axis=0) > 0).all())
        )
        if not is_admitted:
            return []
        return [Spec(self.name, data.space(data.specification.input_transforms[0]), model, data.n)]

    def predict(self, problem: Problem, spec: Spec, job: Job) -> Contender:
        """Combine a few exact GPs, which are drawn from the posterior."""
        data, dense = problem.data, problem.data.backend.dense
        began = time.monotonic()
        choices, spaces = data.choices(KERNELS)
        judged = []
        for k, model in integrate(choices, data.y, data.rows.noise, job.rng, job.clock):
            if data.specification.scale == "global" and model.is_local_scale:
                # The posterior mean of the scale becomes the global scale that users asked for.
                system = ExactSystem.solve(spaces[k].problem(model), dense)
                scale = float(np.mean(system.predict(spaces[k].X[:1]).scale))
                model = model.replace(signal_variance=scale, scale_dof=math.inf)
            system = ExactSystem.solve(spaces[k].problem(model), dense)
            member = Spec(self.name, spaces[k], model, data.n)
            judged.append(judge_exact(data, member, system, problem.hold_out, time.monotonic()))
        return self._as_one(problem, spec, judged, began)

    def judge_again(self, problem: Problem, contender: Contender, job: Job) -> Contender:
        began, exact = time.monotonic(), Exact()
        if not contender.parts:  # a single member of the average
            return _as_member(exact.judge_again(problem, contender, job))
        judged = [exact.judge_again(problem, each, job) for each in contender.parts]
        return self._as_one(problem, contender.spec, judged, began)

    def _as_one(
        self, problem: Problem, spec: Spec, judged: list[Contender], began: float
    ) -> Contender:
        data, parts = problem.data, tuple(_as_member(each) for each in judged)
        alike = np.full(len(parts), 1.0 / len(parts))
        predicted = combine([c.candidate.predicted for c in parts], alike)
        losses = data.objective.losses(predicted, data.y[problem.hold_out.targets])
        candidate = replace(
            parts[0].candidate,
            predicted=predicted,
            loss=float(losses.mean()),
            standard_error=float(losses.std() / math.sqrt(len(losses))),
            seconds=time.monotonic() - began,
        )
        cost = sum(c.cost for c in parts)
        return Contender(self.name, spec.space, candidate, cost, parts=parts)

    def work_of(self, problem: Problem, spec: Spec, rung: Rung) -> float:
        """Nominal milliseconds of a third of the draws, because there are three rungs."""
        return 10.0 * problem.data.n


def _as_member(judged: Contender) -> Contender:
    return judged._replace(candidate=replace(judged.candidate, is_integrated=True))
