# SPDX-License-Identifier: BSD-3-Clause
"""Judging exact GPs of functions without noise, by rows that have not tuned them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.method.contract import STATUS_OK, LocalModel, LocalProblem
from lsgp.method.distribution import PredictiveDistribution, distribution_of
from lsgp.solvers.exact_system import ExactSystem
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.functions.bending import BendableRows, Bent, maximize_bent_evidence, noiseless
from lsgp.tuning.functions.lattice import Lattice
from lsgp.tuning.functions.plan import (
    FEWEST_EVIDENCE_ROWS,
    MOST_REFITTED,
    N_HALF_PROVEN_LEVELS,
    N_REFITTED,
    NOISE_STEPS,
    NOISELESS_EVIDENCE_ROWS,
    NOISELESS_ITERATIONS,
    ROUNDING_NOISE,
    WORTH_DESCENT,
)
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.plan import (
    NEGLIGIBLE_EVIDENCE,
)
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import Job

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


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
    levels: PredictiveDistribution | None = None  # of rows of levels that were held out


def bendable_rows(problem: TuningProblem, space: LeaveOneOut) -> BendableRows:
    inputs = np.asarray(problem.rows.X, dtype=float)
    lattice = problem.lattice
    return BendableRows.of(inputs, space.X, problem.y, problem.rows.noise, space.transform, lattice)


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
        noiseless(problem.exact_parameters, rows.shortest),
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
    lattice = problem.lattice
    on_levels = lattice is not None and lattice.is_complete
    if n <= MOST_REFITTED and not on_levels:
        unseen, of_unseen = _predict_unseen(job, tuned, start.model)
        if not np.isfinite(unseen.mean).all() or not np.isfinite(unseen.scale).all():
            return None
        variance *= of_unseen
    elif not on_levels:
        judged = problem.judge_exact(start, system, job.comparison, True, began)
        start = start._replace(model=judged.model)
    before = start
    if "signal_variance" not in problem.specification.given:
        # By the rows that are left when each hyperparameter has taken one: errors are those of
        # the rows that they were tuned on, and nothing else widens them here.
        signal = start.model.signal_variance * variance
        start = start._replace(model=start.model.replace(signal_variance=signal))
    system = replace(system, problem=start.space.problem(start.model))
    contender = problem.judge_exact(start, system, job.comparison, False, began)
    found = Judged(contender, tuned.found.log_evidence, unseen)
    if lattice is None or not lattice.folds():
        return found
    levels, of_levels = predict_levels(problem, lattice, before)
    # Of other lattices, queries may lie between levels or at them.
    factor = of_levels if on_levels else math.sqrt(of_levels / variance)
    return _widened(problem, found, levels, factor)


def judge_on_levels(problem: TuningProblem, lattice: Lattice, one: Contender) -> Judged | None:
    """An exact GP with noise, as it is but for its scale."""
    levels, variance = predict_levels(problem, lattice, one.start)
    return _widened(problem, Judged(one, -math.inf, None), levels, variance)


def _widened(
    problem: TuningProblem, judged: Judged, levels: PredictiveDistribution, factor: float
) -> Judged | None:
    """With what it says of levels, and its variance times a factor; None if it says nothing."""
    if not np.isfinite(levels.mean).all() or not np.isfinite(levels.scale).all():
        return None
    one, system = judged.contender, judged.contender.system
    if system is not None and "signal_variance" not in problem.specification.given:
        model = one.model.replace(signal_variance=one.model.signal_variance * factor)
        one = one._replace(
            candidate=replace(one.candidate, model=model),
            system=replace(system, problem=system.problem._replace(model=model)),
        )
    return judged._replace(contender=one, levels=levels)


def predict_levels(
    problem: TuningProblem, lattice: Lattice, start: Start
) -> tuple[PredictiveDistribution, float]:
    """Rows of levels that are held out from the others, and the variance of the errors.

    That is relative to what was predicted, and the predictions have it. Hyperparameters are those
    of all rows: tuned again without one of four levels, they are of another function (4 x 4 x 4
    rows: a CRPS of the level of .46 instead of .05). Scales get no narrower by it, as levels are
    few, and their rows err alike.
    """
    folds = lattice.folds()
    predicted = _predict_held_out(problem, folds, lambda seen: (start.space.X, start.model))
    squares = [
        float(np.mean(((problem.y[held] - each.mean) / each.scale) ** 2))
        for held, each in zip(folds, predicted, strict=True)
    ]
    variance = float(np.mean(squares))
    if not 1.0 < variance < math.inf or "signal_variance" in problem.specification.given:
        variance = 1.0
    variance **= len(squares) / (len(squares) + N_HALF_PROVEN_LEVELS)
    scale = math.sqrt(variance) * np.concatenate([each.scale for each in predicted])
    return PredictiveDistribution(
        np.concatenate([each.mean for each in predicted]), scale
    ), variance


def _predict_held_out(
    problem: TuningProblem,
    folds: list[Rows],
    model_of: Callable[[Rows], tuple[Array, LocalModel]],
) -> list[PredictiveDistribution]:
    """The rows of each fold from the others, with inputs and a model that these have."""
    y, noise, found = problem.y, problem.rows.noise, []
    for held in folds:
        problem.clock.check()
        seen = np.setdiff1d(np.arange(len(y)), held)
        X, model = model_of(seen)
        own = LocalProblem(X[seen], y[seen], noise[seen], model)
        system = ExactSystem.solve(own, problem.backend.dense)
        found.append(distribution_of(system.predict(X[held]), model.noise_of(noise[held])))
    return found


def odds_of(log_evidence: list[float], n_rows: int) -> list[float]:
    """Of each, relative to the likeliest, by part of the evidence of so many rows."""
    gaps = np.array(log_evidence) - max(log_evidence)
    return np.exp(NOISELESS_EVIDENCE_ROWS / max(n_rows, FEWEST_EVIDENCE_ROWS) * gaps).tolist()


def solve_function(problem: TuningProblem, tuned: Tuned) -> tuple[Start, ExactSystem] | None:
    """With the least noise that factors need; None if they need more.

    On a lattice, where correlations are nearer to singular, also that solutions need.
    """
    start = tuned.start(problem)
    least = max(start.model.noise_variance, ROUNDING_NOISE * len(problem.y))
    solved = None
    for step in NOISE_STEPS:
        model = start.model.replace(noise_variance=step * least)
        system = ExactSystem.solve(start.space.problem(model), problem.backend.dense)
        if system.status == STATUS_OK:
            solved = start._replace(model=model), system
            if problem.lattice is None or _is_solved(system):
                break
    return solved


def _is_solved(system: ExactSystem) -> bool:
    """Whether the rows are predicted as they are, but for their noise."""
    X, y, noise, model = system.problem
    error = y - system.predict(np.asarray(X, dtype=float), mean_only=True).mean
    variance = model.signal_variance * model.noise_variance * float(np.mean(noise))
    return bool(np.mean(error**2) <= variance)


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
    folds = [np.flatnonzero(numbers == number) for number in range(N_REFITTED)]

    def refit(seen: Rows) -> tuple[Array, LocalModel]:
        found = maximize_noiseless(problem, rows.part(seen), tuned.found, tuned.is_bent)
        X = rows.bent(found.bends)[0] if tuned.is_bent else rows.X
        signal = min(found.model.signal_variance, noise_size / found.model.noise_variance)
        return X, found.model.replace(signal_variance=signal, noise_variance=noise_size / signal)

    mean, scale = np.empty_like(y), np.empty_like(y)
    for held, predicted in zip(folds, _predict_held_out(problem, folds, refit), strict=True):
        mean[held], scale[held] = predicted.mean, predicted.scale
    variance = float(np.mean(((y - mean) / scale) ** 2))
    if not 0.0 < variance < math.inf or "signal_variance" in problem.specification.given:
        variance = 1.0  # nothing to learn from, or to change by it
    compared = comparison.rows
    return PredictiveDistribution(mean[compared], math.sqrt(variance) * scale[compared]), variance
