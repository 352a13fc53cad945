# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs of functions without noise, where none was found.

A noise at the floor of its range says that the targets are a function of the inputs, as those of a
computer experiment are: then the floor itself is what limits how well they are predicted. These GPs
have less, as far as their factors allow, and a signal variance and lengthscales to suit.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.evidence import maximize_evidence
from lsgp.tuning.parameters import SHARED_BOUNDS, finds_no_noise
from lsgp.tuning.plan import (
    FEWEST_EVIDENCE_ROWS,
    LARGEST_NOISELESS_SIGNAL,
    MOST_FOR_STARTS,
    N_NOISELESS_ROWS,
    NOISELESS_EVIDENCE_ROWS,
    NOISELESS_ITERATIONS,
    NOISELESS_KERNELS,
    SMALLEST_ODDS,
    TINY_NOISES,
)
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import NOISELESS_STREAM, Found, Job, Runner


class Noiseless:
    stream = NOISELESS_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if not problem.admits_noiseless:
            return
        best = _best_exact(found)
        if best is None or not finds_no_noise(best.model):
            return
        runner.report(0, "exact GPs without noise")
        rows = problem.draw(N_NOISELESS_ROWS, problem.random(runner.stream))
        tasks = [partial(_tune, start=start, rows=rows) for start in _starts(problem, best)]
        judged: list[Contender] = []
        log_evidence = [value for value in runner.run(tasks, judged) if value is not None]
        likely = [contender for contender, _ in found.likely]
        if (
            likely
            and judged
            and problem.objective.is_promising(
                min(c.loss for c in judged), min(c.loss for c in likely)
            )
        ):
            # They have the share of those with noise, which are candidates like any other now. Not
            # by the loss alone: where rows are few, these are, at a tenth more, the better ones.
            found.exact += likely
            found.is_noiseless = True
            pairs = zip(judged, odds_of(log_evidence, len(rows)), strict=True)
            found.likely[:] = [(c, one) for c, one in pairs if one > SMALLEST_ODDS]
        else:
            found.exact += judged


def odds_of(log_evidence: list[float], n_rows: int) -> list[float]:
    """Of each, relative to the likeliest, by part of the evidence of so many rows."""
    gaps = np.array(log_evidence) - max(log_evidence)
    return np.exp(NOISELESS_EVIDENCE_ROWS / max(n_rows, FEWEST_EVIDENCE_ROWS) * gaps).tolist()


def _best_exact(found: Found) -> Contender | None:
    """The best exact GP there is; without any, the best of all."""
    exact = [*found.exact, *(contender for contender, _ in found.likely)]
    return min(exact or found.all, key=lambda c: c.loss, default=None)


def _starts(problem: TuningProblem, best: Contender) -> list[Start]:
    """From the best on, with each kernel: where that is cheap, in other spaces too."""
    kernels = [k for k in NOISELESS_KERNELS if k in problem.specification.kernels]
    kernels, spaces = kernels or [best.model.kernel], [best.space]
    if len(problem.y) <= MOST_FOR_STARTS:
        first = problem.starts[0].space
        spaces += [first] if first.kinds != best.space.kinds else []
    model = problem.make_exact(best.model).replace(noise_variance=TINY_NOISES[0])
    return [
        Start(space, model.replace(kernel=kernel), len(problem.y))
        for space in spaces
        for kernel in kernels
    ]


def _tune(job: Job, start: Start, rows: NDArray[np.int32]) -> float | None:
    """Log evidence of the rows; None if all of them cannot be factored without more noise."""
    problem = job.problem
    usual = problem.exact_parameters
    wide = np.array([[SHARED_BOUNDS["signal_variance"][0], LARGEST_NOISELESS_SIGNAL]])
    parameters = replace(
        usual, given=usual.given | {"noise_variance"}, own_bounds={"signal_variance": wide}
    )
    part = start.space if len(rows) == len(problem.y) else start.space.part(rows)
    tuned = maximize_evidence(
        part.problem(start.model), parameters, NOISELESS_ITERATIONS, problem.clock
    )
    for noise in TINY_NOISES:
        model = tuned.model.replace(noise_variance=noise)
        judged = problem.evaluate_exact(start._replace(model=model), job.comparison)
        if judged.system is not None and judged.system.jitter == 0.0:
            job.found.append(_widened(job, start, judged, len(parameters.pack(model))))
            return tuned.log_evidence
    return None


def _widened(job: Job, start: Start, judged: Contender, n_tuned: int) -> Contender:
    """With a variance by the rows that are left when each hyperparameter has taken one.

    Errors are those of the rows that they were tuned on, and nothing else widens them here.
    """
    n = len(job.problem.y)
    model = judged.model
    wider = model.replace(signal_variance=model.signal_variance * n / max(n - n_tuned, n / 2))
    return job.problem.evaluate_exact(start._replace(model=wider), job.comparison, False)
