# SPDX-License-Identifier: BSD-3-Clause
"""Tuning for queries beyond the rows: what is tuned for them, and the fit without them, compete.

Both are judged by the same regions, which are held out as a whole, and combined as far as these
say that it pays. So knowing the queries is no worse than not knowing them, as far as regions of
the rows can tell.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.method.combination import combine
from lsgp.method.distribution import PredictiveDistribution
from lsgp.tuning.calibration import ScaleAndShape
from lsgp.tuning.comparison import Choice, Comparison
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.plan import BAD_LOSS, MANY_REGIONS, N_TAKEN_ON
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.weights import choose_weights

Array = NDArray[np.float64]

#: The level whose coverage is calibrated: regions are too few to tell more of a shape than that,
COVERED_LEVEL = 0.95
#: and this many observations hold the factor to 1.
PRIOR_OBSERVATIONS = 1000


class Pool(NamedTuple):
    """Models with weights that sum to 1."""

    contenders: list[Contender]
    weights: Array


def taken_on(problem: TuningProblem, pool: Pool) -> TuningProblem:
    """The problem that starts from the heaviest local models of the fit without queries.

    In gaps, which kernel is best is another question than among rows: all of them start there.
    """
    if problem.is_in_gaps:
        return problem
    local = [c for c in pool.contenders if c.system is None]
    if not local:
        return problem
    starts = tuple(
        Start(problem.space(c.space.kinds), c.model, c.n_neighbors) for c in local[:N_TAKEN_ON]
    )
    return replace(problem, starts=starts, is_taken_on=True)


def judge_pool(problem: TuningProblem, pool: Pool, comparison: Comparison) -> Pool:
    """The same models as they are, with what they are worth on the regions."""
    judged = [_judge(problem, contender, comparison) for contender in pool.contenders]
    return pool._replace(contenders=judged)


def _judge(problem: TuningProblem, contender: Contender, comparison: Comparison) -> Contender:
    began, start, system = time.monotonic(), contender.start, contender.system
    if system is not None:
        judged = problem.judge_exact(start, system, comparison, False, began)
    else:
        # Scales were calibrated by the rows, each without itself.
        plain = replace(problem, objective=replace(problem.objective, calibrates_scale=False))
        judged = plain.evaluate(start, comparison, began)
    is_integrated = contender.candidate.is_integrated
    candidate = replace(judged.candidate, is_integrated=is_integrated)
    return judged._replace(candidate=candidate)


def choose_beyond(
    problem: TuningProblem, comparison: Comparison, plain: Pool, others: list[Contender]
) -> tuple[Pool, Choice]:
    """Greedy picks among single models and the whole pool of the fit without queries."""
    usable = [c for c in others if c.loss < BAD_LOSS]
    contenders = [*plain.contenders, *usable]
    predicted = [c.candidate.predicted for c in contenders]
    n_plain = len(plain.contenders)
    as_one = combine(predicted[:n_plain], plain.weights)

    objective = problem.objective
    has_many = comparison.regions is not None and comparison.regions.n_regions >= MANY_REGIONS
    if has_many and problem.plain is not None:
        objective = problem.plain.objective

    def loss(combined: PredictiveDistribution) -> float:
        return objective.criterion(combined, comparison.y)

    if has_many and usable:
        # Picks among many single models follow the chance of few regions: on the map of a
        # satellite, CRPS was .76 or .86 by the random state. The likeliest alone, then.
        weights = np.zeros(len(contenders))
        weights[n_plain + int(np.argmin([c.loss for c in usable]))] = 1.0
    else:
        picks = choose_weights([as_one, *predicted], loss, problem.n_models)
        weights = picks[1:].copy()
        weights[:n_plain] += picks[0] * plain.weights
    used = np.flatnonzero(weights).tolist()
    combined = combine([predicted[k] for k in used], weights[used])
    if loss(as_one) <= loss(combined):
        # Of those that are picked together, some may be no better than the pool as it was.
        weights[:] = 0.0
        weights[:n_plain] = plain.weights
        combined = as_one
    mean_loss = float(problem.objective.losses(combined, comparison.y).mean())
    factor = _coverage_factor(combined, comparison.y)
    if not has_many:
        factor = max(1.0, factor)  # what few regions have picked is no surer than they say
    choice = Choice(weights, mean_loss, ScaleAndShape(factor))
    return Pool(contenders, weights), choice


def _coverage_factor(predicted: PredictiveDistribution, observed: Array) -> float:
    """What the scales must be multiplied by for central intervals to cover their share."""
    half_width = predicted.interval(COVERED_LEVEL)[1] - predicted.mean
    ratio = np.abs(observed - predicted.mean) / np.maximum(half_width, 1e-300)
    factor = float(np.quantile(ratio, COVERED_LEVEL))
    if not 0.0 < factor < math.inf:
        return 1.0
    n = len(observed)
    return float(np.clip(factor, 0.1, 10.0) ** (n / (n + PRIOR_OBSERVATIONS)))
