# SPDX-License-Identifier: BSD-3-Clause
"""The likeliest exact GPs: with each kernel and transform, tuned and averaged by their evidence.

Where rows are few, beside others; alone where all rows are asked for as neighbors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lsgp.solvers.exact_system import exact_bytes
from lsgp.tuning.clock import OutOfTimeError
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.evidence import ExactGP, maximize_evidence
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.plan import (
    FIRST_EVIDENCE_ITERATIONS,
    LAST_EVIDENCE_ITERATIONS,
    N_FIRST_LIKELY,
    SMALL_SHARE_ITERATIONS,
    SMALLEST_ODDS,
    WARM_EVIDENCE_ITERATIONS,
)
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import LIKELY_STREAM, Found, Job, Runner


class Likely:
    stream = LIKELY_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        is_asked_for = problem.is_exact_on_request
        if not problem.has_few_rows and not is_asked_for:
            return
        runner.report(0, "exact GPs")
        starts = _starts(problem)
        tuned: dict[int, ExactGP] = {}  # by the number of the start, as far as they are
        try:
            every = list(range(len(starts)))
            if problem.exact_starts:
                _maximize(runner, starts, every, tuned, WARM_EVIDENCE_ITERATIONS)
                _judge(problem, starts, tuned, found, runner)
                return
            rows = problem.draw(N_FIRST_LIKELY, problem.random(runner.stream))
            some = None if is_asked_for or len(rows) == len(problem.y) else rows
            if some is None:
                some = problem.first_evidence_rows(problem.random(runner.stream))
            _maximize(runner, starts, every, tuned, FIRST_EVIDENCE_ITERATIONS, some)
            likeliest = _likeliest(tuned, problem)
            # Those that are optimized further are compared with each other, and with no others.
            further: dict[int, ExactGP] = {k: tuned[k] for k in likeliest}
            tuned = further
            is_minor = problem.has_small_exact_share
            n_last = SMALL_SHARE_ITERATIONS if is_minor else LAST_EVIDENCE_ITERATIONS
            _maximize(runner, starts, likeliest, tuned, n_last)
        except (OutOfTimeError, KeyboardInterrupt):
            # What was computed when time is up counts.
            _judge(problem, starts, tuned, found, runner)
            raise
        _judge(problem, starts, tuned, found, runner)


def _starts(problem: TuningProblem) -> list[Start]:
    """Exact GPs of a previous fit, or in each transform one, or all that are local models too."""
    if problem.exact_starts:
        return list(problem.exact_starts)
    tried = list(problem.starts)
    if not problem.level.tries_all_exact and not problem.is_exact_on_request:
        tried = problem.first_of_each()[0]
    return [Start(start.space, problem.make_exact(start.model), len(problem.y)) for start in tried]


def _likeliest(tuned: dict[int, ExactGP], problem: TuningProblem) -> list[int]:
    """Numbers of the likeliest, the best first."""
    numbers = sorted(tuned)
    order = np.argsort([-tuned[k].log_evidence for k in numbers], kind="stable")[
        : problem.n_averaged
    ]
    return [numbers[i] for i in order]


def _maximize(
    runner: Runner,
    starts: Sequence[Start],
    numbers: Sequence[int],
    tuned: dict[int, ExactGP],
    n_iterations: int,
    rows: NDArray[np.int32] | None = None,
) -> None:
    """Optimize these starts, from where they are on, on all rows or on some."""

    def maximize(k: int, job: Job) -> None:
        model = tuned[k].model if k in tuned else starts[k].model
        space: LeaveOneOut = starts[k].space
        one = (space if rows is None else space.part(rows)).problem(model)
        problem = job.problem
        tuned[k] = maximize_evidence(
            one,
            problem.exact_parameters,
            n_iterations,
            problem.clock,
            problem.has_evidence_prior,
            problem.backend.dense,
        )

    runner.run([partial(maximize, k) for k in numbers], [])


def _judge(
    problem: TuningProblem,
    starts: Sequence[Start],
    tuned: dict[int, ExactGP],
    found: Found,
    runner: Runner,
) -> None:
    """Leave-one-out predictions of the likeliest, and their odds."""
    numbers = _likeliest(tuned, problem)
    if not numbers:
        return
    log_evidence = np.array([tuned[k].log_evidence for k in numbers])
    odds = np.exp(log_evidence - log_evidence.max())
    room = problem.exact_room
    if problem.is_exact_on_request:
        n, budget = len(problem.y), problem.resources.memory_budget
        room = problem.backend.dense.room(budget, n) // exact_bytes(n)
    kept = np.flatnonzero(odds > SMALLEST_ODDS)[:room].tolist()
    last = [starts[numbers[i]]._replace(model=tuned[numbers[i]].model) for i in kept]

    def judge(start: Start, job: Job) -> None:
        # The evidence has set their scale.
        job.found.append(problem.evaluate_exact(start, job.comparison, calibrates_scale=False))

    judged: list[Contender] = []
    runner.run([partial(judge, start) for start in last], judged)
    found.likely += list(zip(judged, odds[kept].tolist(), strict=True))
