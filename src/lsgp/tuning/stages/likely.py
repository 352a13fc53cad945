# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs with each kernel and transform, averaged by their evidence.

Where rows are few, beside others; alone where all rows are asked for as neighbors.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from lsgp.solvers.exact_system import exact_bytes
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.evidence import ExactGP, maximize_evidence
from lsgp.tuning.plan import (
    FIRST_EVIDENCE_ITERATIONS,
    LAST_EVIDENCE_ITERATIONS,
    N_AVERAGED,
    SMALLEST_ODDS,
)
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import Found, Job, Runner


class Likely:
    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        is_asked_for = problem.is_exact_on_request
        if not problem.has_few_rows and not is_asked_for:
            return
        runner.report(0, "exact GPs")
        starts = [
            Start(start.space, problem.make_exact(start.model), len(problem.y))
            for start in problem.starts
        ]
        n_averaged, room = N_AVERAGED, problem.exact_room
        if is_asked_for:
            room = problem.resources.memory_budget // exact_bytes(len(problem.y))
            n_averaged = min(N_AVERAGED, problem.n_models)
        first = _maximize(problem, runner, starts, FIRST_EVIDENCE_ITERATIONS)
        order = np.argsort([-gp.log_evidence for gp in first], kind="stable")[:n_averaged]
        starts = [starts[k]._replace(model=first[k].model) for k in order.tolist()]
        last = _maximize(problem, runner, starts, LAST_EVIDENCE_ITERATIONS)
        log_evidence = np.array([gp.log_evidence for gp in last])
        odds = np.exp(log_evidence - log_evidence.max())
        kept = np.flatnonzero(odds > SMALLEST_ODDS)[:room].tolist()
        judged: list[Contender] = []
        last_starts = [starts[k]._replace(model=last[k].model) for k in kept]
        runner.run([partial(_judge, start) for start in last_starts], judged)
        found.likely += list(zip(judged, odds[kept].tolist(), strict=True))


def _maximize(
    problem: TuningProblem, runner: Runner, starts: list[Start], n_iterations: int
) -> list[ExactGP]:
    def maximize(start: Start, job: Job) -> ExactGP:
        one = start.space.problem(start.model)
        return maximize_evidence(
            one,
            problem.exact_parameters,
            n_iterations,
            problem.clock,
            problem.has_evidence_prior,
        )

    return runner.run([partial(maximize, start) for start in starts], [])


def _judge(start: Start, job: Job) -> None:
    # The evidence has set their scale.
    job.found.append(job.problem.evaluate_exact(start, job.comparison, calibrates_scale=False))
