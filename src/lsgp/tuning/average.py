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
from lsgp.tuning.data import Data, Problem
from lsgp.tuning.exact import (
    Exact,
    admits_exact,
    is_on_request,
    room_for_exact,
)
from lsgp.tuning.family import Contender, Family, Spec
from lsgp.tuning.hold_out import HoldOut
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
        data, hold_out, _ = problem
        began = time.monotonic()
        choices, spaces = data.choices(KERNELS)
        members = integrate(choices, data.y, data.rows.noise, job.rng, job.clock)
        parts = tuple(
            self._judge(data, Spec(self.name, spaces[k], model, data.n), hold_out)
            for k, model in members
        )
        return self._as_one(problem, spec, parts, began)

    def judge_again(self, problem: Problem, contender: Contender, job: Job) -> Contender:
        began, exact = time.monotonic(), Exact()
        if not contender.parts:  # a single member of the average
            return _as_member(exact.judge_again(problem, contender, job))
        parts = tuple(_as_member(exact.judge_again(problem, each, job)) for each in contender.parts)
        return self._as_one(problem, contender.spec, parts, began)

    def _as_one(
        self, problem: Problem, spec: Spec, parts: tuple[Contender, ...], began: float
    ) -> Contender:
        data, hold_out, _ = problem
        alike = np.full(len(parts), 1.0 / len(parts))
        predicted = combine([c.candidate.predicted for c in parts], alike)
        losses = data.objective.losses(predicted, data.y[hold_out.targets])
        candidate = replace(
            parts[0].candidate,
            predicted=predicted,
            loss=float(losses.mean()),
            standard_error=float(losses.std() / math.sqrt(len(losses))),
            seconds=time.monotonic() - began,
        )
        cost = sum(c.cost for c in parts)
        return Contender(self.name, spec.space, candidate, cost, parts=parts)

    def _judge(self, data: Data, spec: Spec, hold_out: HoldOut) -> Contender:
        """Judge one member, with the scale of the posterior."""
        began = time.monotonic()
        if data.specification.scale == "global" and spec.model.is_local_scale:
            # The posterior mean of the scale becomes the global scale that users asked for.
            system = ExactSystem.solve(spec.space.problem(spec.model), data.backend.dense)
            scale = float(np.mean(system.predict(spec.space.X[:1]).scale))
            spec = spec._replace(
                model=spec.model.replace(signal_variance=scale, scale_dof=math.inf)
            )
        system = ExactSystem.solve(spec.space.problem(spec.model), data.backend.dense)
        return _as_member(Exact().judge(data, spec, system, hold_out, began))

    def work_of(self, problem: Problem, spec: Spec, rung: Rung) -> float:
        """Nominal milliseconds of a third of the draws, because there are three rungs."""
        return 10.0 * problem.data.n


def _as_member(judged: Contender) -> Contender:
    candidate = replace(judged.candidate, is_integrated=True)
    return judged._replace(family=Average.name, candidate=candidate)
