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
from lsgp.tuning.plan import (
    ALWAYS_EXACT,
    FAST_RATE,
    LARGE_EVIDENCE_ITERATIONS,
    LAST_EVIDENCE_ITERATIONS,
    MOST_TRIED_WORK,
    N_FIRST_EVIDENCE,
    N_RIVALS,
    N_TRIED,
    N_TRIED_CLOSELY,
    N_TRIED_OF_FEW,
    WARM_EVIDENCE_ITERATIONS,
)
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
        if problem.is_warm:
            # Whether they pay, and which, the previous fit has seen.
            runner.run([partial(_again, start) for start in problem.exact_starts], found.exact)
            return
        leaders = found.leaders
        lowest = min((c.loss for c in found.frontier), default=np.inf)
        if lowest < leaders[0].loss or _is_made_anyway(problem):
            contenders = [*leaders, *(c for c in found.frontier if c in found.enlarged)]
            contenders += _of_other_kernels(contenders, [*found.ranked, *found.outlined])
            runner.report(0, "exact GP of all rows")
            trial = _Trial(problem, contenders, runner)
            if trial.pays:
                runner.run([trial.make_exact], found.exact)


def _of_other_kernels(
    contenders: Sequence[Contender], others: Sequence[Contender]
) -> list[Contender]:
    """The best of each kernel that is not among the contenders.

    Which kernel suits a few neighbors is another question than which suits all rows: of kin8nm, rbf
    is fourth by leave-one-out of local models, and 3 % better than all others in an exact GP.
    """
    best: dict[str, Contender] = {}
    for other in sorted(others, key=lambda c: c.loss):
        best.setdefault(str(other.model.kernel), other)
    known = {str(c.model.kernel) for c in contenders}
    return [c for name, c in best.items() if name not in known]


def _is_made_anyway(problem: TuningProblem) -> bool:
    return len(problem.y) <= ALWAYS_EXACT


def _again(start: Start, job: Job) -> None:
    """An exact GP of a previous fit, of the rows that there are now."""
    problem = job.problem
    if problem.admits_evidence:
        tuned = maximize_evidence(
            start.space.problem(start.model),
            problem.exact_parameters,
            WARM_EVIDENCE_ITERATIONS,
            problem.clock,
            dense=problem.backend.dense,
        )
        start = start._replace(model=tuned.model)
    job.found.append(problem.evaluate_exact(start, job.comparison))


class _Part:
    """Some of the rows, and which of them are predicted."""

    def __init__(self, problem: TuningProblem, n_wanted: int, stream: int) -> None:
        self.rows = problem.draw(n_wanted, problem.random(stream))
        n = len(self.rows)
        n_judged = max(1, int(MOST_TRIED_WORK / (1 + problem.rows.X.shape[1]) ** 3))
        #: Those of the rows that are predicted, by their places.
        self.places = np.arange(0, n, -(-n // min(n_judged, N_TRIED)), dtype=np.int32)
        self.comparison = problem.compare_on(self.rows[self.places])


class _Trial:
    """Exact GPs of part of the rows, one for each contender."""

    def __init__(
        self, problem: TuningProblem, contenders: Sequence[Contender], runner: Runner
    ) -> None:
        self.problem = problem
        self.contenders = contenders
        self.models = [problem.make_exact(c.model) for c in contenders]
        is_made_anyway = _is_made_anyway(problem)
        self.part = _Part(problem, N_TRIED_OF_FEW if is_made_anyway else N_TRIED, runner.stream)
        began = time.monotonic()
        tasks = [partial(self._judge, k, self.part) for k in range(len(contenders))]
        self.losses = runner.run(tasks, [])
        #: That one of them took.
        self.seconds = (time.monotonic() - began) / len(contenders)
        order = np.argsort(self.losses, kind="stable").tolist()
        # The smoother of two kernels is the better one only where rows are dense enough.
        rivals: list[int] = []
        for k in order:
            if all(self.models[k].kernel != self.models[other].kernel for other in rivals):
                rivals.append(k)
        rivals = rivals[:N_RIVALS]
        if not is_made_anyway and len(rivals) > 1:
            larger = _Part(problem, N_TRIED_CLOSELY, runner.stream)
            closely = runner.run([partial(self._judge, k, larger) for k in rivals], [])
            self.best = rivals[int(np.argmin(closely))]
        else:
            self.best = order[0]

    def _judge(self, k: int, part: _Part, job: Job) -> float:
        """Loss of the exact GP of these rows alone."""
        self.problem.clock.check()
        space, model = self.contenders[k].space.part(part.rows), self.models[k]
        system = ExactSystem.solve(space.problem(model), self.problem.backend.dense)
        predictions = system.leave_out(part.places)
        return part.comparison.judge(model, predictions, calibrates_scale=True).loss

    @property
    def pays(self) -> bool:
        """Whether the best is better than the best local model of the same rows."""
        if _is_made_anyway(self.problem):
            return True
        k = int(np.argmin([c.loss for c in self.contenders]))
        start = self.contenders[k].start
        part = start.space.part(self.part.rows).indexed()
        sample = part.sample(start.model, self.part.places, start.n_neighbors)
        predictions = part.predict(start.model, sample)
        is_open = self.problem.objective.calibrates_scale
        local = self.part.comparison.judge(start.model, predictions, is_open)
        return self.losses[self.best] <= local.loss

    def _seconds_of_all(self) -> float:
        """What the exact GP of all rows may take: time goes with the cube of the rows."""
        n, n_tried = len(self.problem.y), len(self.part.rows)
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
            spaces = [start.space.part(problem.draw(N_FIRST_EVIDENCE, job.rng))]
            rows = problem.evidence_rows(job.rng)
            spaces.append(start.space if rows is None else start.space.part(rows))
            lengths = (LAST_EVIDENCE_ITERATIONS, LARGE_EVIDENCE_ITERATIONS)
            for space, n_iterations in zip(spaces, lengths, strict=True):
                likelier = maximize_evidence(
                    space.problem(start.model),
                    problem.exact_parameters,
                    n_iterations,
                    problem.clock,
                    dense=problem.backend.dense,
                )
                start = start._replace(model=likelier.model)
            job.found.append(problem.evaluate_exact(start, job.comparison))
