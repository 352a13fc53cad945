# SPDX-License-Identifier: BSD-3-Clause
"""The family of one: an exact GP of few rows, averaged over the posterior of its hyperparameters.

Few rows are about as likely under many hyperparameters, and the likeliest predict too surely.
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

#: Up to this many rows hyperparameters are integrated out,
MOST_ROWS = 160
#: and pairs of rows, times inputs: beyond, it would take longer than all the rest.
MOST_PAIRS = 2_500_000
#: Kernels that few rows can tell apart, at best.
KERNELS = frozenset({"matern32", "matern52", "rbf"})


class Average(Family):
    name = "average"
    of_labels = False

    def starts(self, problem: Problem) -> list[Spec]:
        """One, of few rows, where nobody has said within which bounds hyperparameters lie."""
        data, own = problem.data, problem.data.specification.model
        is_admitted = (
            data.n <= MOST_ROWS
            and data.n**2 * data.d <= MOST_PAIRS
            and admits_exact(data, problem.budget)
            and not is_on_request(data)
            and not data.specification.states_bounds
            and math.isfinite(own.constant_variance + own.slope_variance)
            and room_for_exact(data) > 2 * N_MEMBERS
            # A constant target has no scale to start from.
            and bool((np.ptp(data.y, axis=0) > 0).all())
        )
        if not is_admitted:
            return []
        return [Spec(self.name, data.space(data.specification.input_transforms[0]), own, data.n)]

    def predict(self, problem: Problem, spec: Spec, job: Job) -> Contender:
        """The combination of a few exact GPs that stand for the posterior."""
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
        if not contender.parts:  # one of its members
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
        """One member, with the scale that the posterior has set."""
        began = time.monotonic()
        if data.specification.scale == "global" and spec.model.is_local_scale:
            # Asked for a global scale: that of the posterior, as if it were known.
            system = ExactSystem.solve(spec.space.problem(spec.model), data.backend.dense)
            scale = float(np.mean(system.predict(spec.space.X[:1]).scale))
            spec = spec._replace(
                model=spec.model.replace(signal_variance=scale, scale_dof=math.inf)
            )
        system = ExactSystem.solve(spec.space.problem(spec.model), data.backend.dense)
        return _as_member(Exact().judge(data, spec, system, hold_out, began))

    def work_of(self, problem: Problem, spec: Spec, rung: Rung) -> float:
        """Nominal milliseconds of the draws, which take a third of them in each rung."""
        return 10.0 * problem.data.n


def _as_member(judged: Contender) -> Contender:
    candidate = replace(judged.candidate, is_integrated=True)
    return judged._replace(family=Average.name, candidate=candidate)
