# SPDX-License-Identifier: BSD-3-Clause
"""Judging exact GPs of functions without noise, by rows that have not tuned them."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.method.contract import STATUS_OK, LocalModel, LocalProblem
from lsgp.method.distribution import PredictiveDistribution, distribution_of
from lsgp.solvers.exact_system import ExactSystem
from lsgp.tuning.bending import BendableRows, Bent, maximize_bent_evidence, noiseless
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.noiseless_plan import (
    MOST_REFITTED,
    N_REFITTED,
    NOISE_STEPS,
    NOISELESS_ITERATIONS,
    ROUNDING_NOISE,
    WORTH_DESCENT,
)
from lsgp.tuning.plan import (
    NEGLIGIBLE_EVIDENCE,
)
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import Job

Array = NDArray[np.float64]


class Tuned(NamedTuple):
    """An exact GP by the evidence of some rows, not yet judged."""

    space: LeaveOneOut  # that it was bent from
    found: Bent
    is_bent: bool

    def start(self, problem: TuningProblem) -> Start:
        space = self.space
        if self.is_bent:
            powers = bendable_rows(problem, space).powers(self.found.bends)
            space = problem.bent_space(space, powers)
        return Start(space, self.found.model, len(problem.y))


class Judged(NamedTuple):
    """A contender, and what it says of rows that its hyperparameters have not seen, if known."""

    contender: Contender
    log_evidence: float
    unseen: PredictiveDistribution | None


def bendable_rows(problem: TuningProblem, space: LeaveOneOut) -> BendableRows:
    inputs = np.asarray(problem.rows.X, dtype=float)
    return BendableRows.of(inputs, space.X, problem.y, problem.rows.noise, space.transform)


def maximize_noiseless(
    problem: TuningProblem,
    rows: BendableRows,
    start: Bent,
    is_bent: bool = False,
    is_last: bool = True,
    n: int = NOISELESS_ITERATIONS,
) -> Bent:
    """In steps that gain something, or where others follow, much."""
    return maximize_bent_evidence(
        rows,
        start,
        noiseless(problem.exact_parameters),
        n,
        problem.clock,
        problem.backend.dense,
        is_bent,
        NEGLIGIBLE_EVIDENCE if is_last else WORTH_DESCENT,
    )


def judge_function(job: Job, tuned: Tuned) -> Judged | None:
    """Of all rows; None if they, or those of a fold, cannot be factored without more noise."""
    problem, n, began = job.problem, len(job.problem.y), time.monotonic()
    solved = solve_function(problem, tuned)
    if solved is None:
        return None
    start, system = solved
    unseen, variance = None, n / max(n - _n_tuned(problem, tuned), n / 2)
    if n <= MOST_REFITTED:
        unseen, of_unseen = _predict_unseen(job, tuned, start.model)
        if not np.isfinite(unseen.mean).all() or not np.isfinite(unseen.scale).all():
            return None
        variance *= of_unseen
    else:
        judged = problem.judge_exact(start, system, job.comparison, True, began)
        start = start._replace(model=judged.model)
    if "signal_variance" not in problem.specification.given:
        # By the rows that are left when each hyperparameter has taken one: errors are those of
        # the rows that they were tuned on, and nothing else widens them here.
        signal = start.model.signal_variance * variance
        start = start._replace(model=start.model.replace(signal_variance=signal))
    system = replace(system, problem=start.space.problem(start.model))
    contender = problem.judge_exact(start, system, job.comparison, False, began)
    return Judged(contender, tuned.found.log_evidence, unseen)


def solve_function(problem: TuningProblem, tuned: Tuned) -> tuple[Start, ExactSystem] | None:
    """With the least noise that factors need; None if they need more."""
    start = tuned.start(problem)
    least = max(start.model.noise_variance, ROUNDING_NOISE * len(problem.y))
    for step in NOISE_STEPS:
        model = start.model.replace(noise_variance=step * least)
        system = ExactSystem.solve(start.space.problem(model), problem.backend.dense)
        if system.status == STATUS_OK:
            return start._replace(model=model), system
    return None


def _n_tuned(problem: TuningProblem, tuned: Tuned) -> int:
    n_own = len(problem.exact_parameters.pack(tuned.found.model)) - 1  # the noise is not
    return n_own + len(tuned.found.bends) if tuned.is_bent else n_own


def _predict_unseen(
    job: Job, tuned: Tuned, of_all: LocalModel
) -> tuple[PredictiveDistribution, float]:
    """Rows of folds from the others, which alone have tuned it, and the variance of the errors.

    That is relative to what was predicted, and the predictions have it, unless the signal is given:
    then the model does not get it either. Tuning goes on from what all rows have found: from
    nothing, one fold in ten ends elsewhere, 20 in the log evidence lower, and tells of errors that
    the model does not make. The noise is that of the model of all rows, in the units of the
    targets: of smooth functions it is most of what is predicted. The signal is no larger than
    rounding allows for with it (`ROUNDING_NOISE`).
    """
    problem, comparison = job.problem, job.comparison
    rows, y = bendable_rows(problem, tuned.space), problem.y
    noise_size = of_all.noise_variance * of_all.signal_variance
    numbers = job.rng.permutation(len(y)) % N_REFITTED
    mean, scale = np.empty_like(y), np.empty_like(y)
    for number in range(N_REFITTED):
        seen, held = np.flatnonzero(numbers != number), np.flatnonzero(numbers == number)
        part = rows.part(seen)
        found = maximize_noiseless(problem, part, tuned.found, tuned.is_bent)
        X = rows.bent(found.bends)[0] if tuned.is_bent else rows.X
        signal = min(found.model.signal_variance, noise_size / found.model.noise_variance)
        model = found.model.replace(signal_variance=signal, noise_variance=noise_size / signal)
        own = LocalProblem(X[seen], part.y, part.noise, model)
        system = ExactSystem.solve(own, problem.backend.dense)
        noise = model.noise_of(rows.noise[held])
        predicted = distribution_of(system.predict(X[held]), noise)
        mean[held], scale[held] = predicted.mean, predicted.scale
    variance = float(np.mean(((y - mean) / scale) ** 2))
    if not 0.0 < variance < math.inf or "signal_variance" in problem.specification.given:
        variance = 1.0  # nothing to learn from, or to change by it
    compared = comparison.rows
    return PredictiveDistribution(mean[compared], math.sqrt(variance) * scale[compared]), variance
