# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs of all rows, with the hyperparameters of the local model that suit them best."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from lsgp.solvers.exact_system import ExactSystem
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.evidence import maximize_evidence
from lsgp.tuning.plan import FAST_RATE, LAST_EVIDENCE_ITERATIONS, N_TRIED
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import EXACT_STREAM, Found, Job, Runner


class Exact:
    """Which do, and whether it pays at all, is seen from part of the rows.

    Factoring all of many takes seconds, and is done only where more neighbors pay.
    """

    stream = EXACT_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if not problem.admits_large_exact:
            return
        leaders = found.leaders
        lowest = min((c.loss for c in found.frontier), default=np.inf)
        if lowest < leaders[0].loss or len(problem.y) <= N_TRIED:
            contenders = [*leaders, *(c for c in found.frontier if c in found.enlarged)]
            runner.report(0, "exact GP of all rows")
            trial = _Trial(problem, contenders, runner)
            if trial.pays:
                runner.run([trial.make_exact], found.exact)


class _Trial:
    """Exact GPs of part of the rows, one for each contender."""

    def __init__(
        self, problem: TuningProblem, contenders: Sequence[Contender], runner: Runner
    ) -> None:
        self.problem = problem
        self.comparison = problem.compare_on(problem.draw(N_TRIED, problem.random(runner.stream)))
        self.contenders = contenders
        self.models = [problem.make_exact(c.model) for c in contenders]
        began = time.monotonic()
        tasks = [partial(self._judge, k) for k in range(len(contenders))]
        self.losses = runner.run(tasks, [])
        #: That one of them took.
        self.seconds = (time.monotonic() - began) / len(contenders)
        self.best = int(np.argmin(self.losses))

    def _judge(self, k: int, job: Job) -> float:
        """Loss of the exact GP of the compared points alone."""
        self.problem.clock.check()
        part = self.contenders[k].space.part(self.comparison.rows)
        system = ExactSystem.solve(part.problem(self.models[k]), self.problem.backend.dense)
        predictions = system.leave_out(np.arange(len(self.comparison.rows)))
        return self.comparison.judge(self.models[k], predictions, calibrates_scale=True).loss

    @property
    def pays(self) -> bool:
        """Whether the best is better than the best local model of the same rows."""
        rows = self.comparison.rows
        if len(rows) == len(self.problem.y):
            return True
        k = int(np.argmin([c.loss for c in self.contenders]))
        start = self.contenders[k].start
        part = start.space.part(rows).indexed()
        sample = part.sample(start.model, np.arange(len(rows), dtype=np.int32), start.n_neighbors)
        predictions = part.predict(start.model, sample)
        is_open = self.problem.objective.calibrates_scale
        local = self.comparison.judge(start.model, predictions, is_open)
        return self.losses[self.best] <= local.loss

    def _seconds_of_all(self) -> float:
        """What the exact GP of all rows may take: time goes with the cube of the rows."""
        n, n_tried = len(self.problem.y), len(self.comparison.rows)
        if self.problem.backend.dense.is_fast:  # a part is over before it has begun
            return self.seconds + n**3 / FAST_RATE
        return float(self.seconds * (n / n_tried) ** 3)

    def make_exact(self, job: Job) -> None:
        """The best of them of all rows, and tuned by the evidence where that is affordable."""
        problem, n = self.problem, len(self.problem.y)
        problem.clock.check(self._seconds_of_all())
        start = Start(self.contenders[self.best].space, self.models[self.best], n)
        exact = problem.evaluate_exact(start, job.comparison)
        job.found.append(exact)
        lowest = min(c.loss for c in [*self.contenders, exact])
        if problem.admits_evidence and problem.objective.is_promising(exact.loss, lowest):
            rows = problem.evidence_rows(job.rng)
            space = start.space if rows is None else start.space.part(rows)
            likelier = maximize_evidence(
                space.problem(start.model),
                problem.exact_parameters,
                LAST_EVIDENCE_ITERATIONS,
                problem.clock,
                dense=problem.backend.dense,
            )
            start = start._replace(model=likelier.model)
            job.found.append(problem.evaluate_exact(start, job.comparison))
