# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs of functions without noise on a lattice: chosen by levels that are held out.

A level is a value that an input has in many rows (`lsgp.tuning.functions.lattice`).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from lsgp.method.combination import combine
from lsgp.method.distribution import PredictiveDistribution
from lsgp.tuning.contender import Contender
from lsgp.tuning.functions.judging import Judged, judge_on_levels, odds_of
from lsgp.tuning.functions.lattice import Lattice
from lsgp.tuning.functions.plan import LITTLE_NOISE
from lsgp.tuning.plan import SMALLEST_ODDS
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import Found, Job, Runner
from lsgp.tuning.weights import choose_weights

Array = NDArray[np.float64]


def trends_of(problem: TuningProblem) -> tuple[bool, ...]:
    """Whether there is one, where it is open.

    With a signal far larger than the targets, as smooth functions have, a trend is next to free
    between three levels, and predictions are what it happens to be there.
    """
    lattice, given = problem.lattice, problem.specification.given
    if lattice is None or {"constant_variance", "slope_variance"} & given:
        return (True,)
    if lattice.has_few_levels:
        return (False,)
    return (True, False) if lattice.is_complete else (True,)


def add_on_levels(
    problem: TuningProblem, lattice: Lattice, found: Found, runner: Runner, judged: list[Judged]
) -> None:
    """The best of what was found and of those with noise, by levels that are held out."""
    likely = [contender for contender, _ in found.likely]
    if not lattice.folds():
        if judged:
            likelihood = odds_of([each.log_evidence for each in judged], len(problem.y))
            _settle(found, judged, np.array(likelihood), judged[0].contender.candidate.predicted)
        return
    # Held-out levels are twice as far from others as what lies between them: where a function
    # varies too fast for that, much noise would seem to be the better guess.
    little = [one for one in likely if one.model.noise_variance <= LITTLE_NOISE]
    tasks = [partial(_judge_on_levels, lattice=lattice, one=one) for one in little]
    judged = [*judged, *(each for each in runner.run(tasks, []) if each is not None)]
    levels = [each.levels for each in judged if each.levels is not None]
    if not levels:
        return
    y = problem.y[np.concatenate(lattice.folds())]
    odds = choose_weights(
        levels, lambda each: problem.objective.criterion(each, y), problem.n_models
    )
    used = np.flatnonzero(odds)
    _settle(found, judged, odds, combine([levels[int(k)] for k in used], odds[used]))


def _settle(
    found: Found, judged: list[Judged], odds: Array, unseen: PredictiveDistribution
) -> None:
    """These, and nothing else, with scales as they are."""
    found.unseen, found.is_on_levels, found.is_noiseless = unseen, True, True
    found.exact += [contender for contender, _ in found.likely]
    pairs = zip(judged, odds.tolist(), strict=True)
    found.likely[:] = [(each.contender, one) for each, one in pairs if one > SMALLEST_ODDS]


def _judge_on_levels(job: Job, lattice: Lattice, one: Contender) -> Judged | None:
    return judge_on_levels(job.problem, lattice, one)


def weigh_unseen(
    problem: TuningProblem, unseen: list[PredictiveDistribution], judged: list[Judged], y: Array
) -> Array:
    """By rows that were not seen, and by levels that are held out."""
    lattice = problem.lattice
    if lattice is not None and lattice.folds():
        of_levels = [each.levels for each in judged if each.levels is not None]
        pairs = zip(unseen, of_levels, strict=True)
        unseen = [
            PredictiveDistribution(
                np.concatenate([one.mean, other.mean]), np.concatenate([one.scale, other.scale])
            )
            for one, other in pairs
        ]
        y = np.concatenate([y, problem.y[np.concatenate(lattice.folds())]])
    return choose_weights(
        unseen, lambda each: problem.objective.criterion(each, y), problem.n_models
    )
