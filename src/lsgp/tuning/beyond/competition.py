# SPDX-License-Identifier: BSD-3-Clause
"""Tuning for queries beyond the rows: what is tuned for them, and the fit without them, compete.

Both are judged by the same regions, which are held out as a whole. Regions are few, and like the
queries in their distances alone: unless what is tuned for the queries is better by more than
chance, the fit without them has half of the weight; and all of it, with its own trees and
calibration, if that is better by more than chance, and in gaps of large maps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.method.combination import combine, lean, share_at
from lsgp.method.distribution import PredictiveDistribution
from lsgp.method.kernels import Composite
from lsgp.tuning.beyond.plan import (
    CLEARLY,
    COMPOSITE_SHARE_BEYOND,
    LEAST_FACTOR_BEYOND,
    MANY_REGIONS,
    N_TAKEN_ON,
    SHARE_ACROSS_GAPS,
    UNCLEAR_SHARE,
    USABLE_BEYOND,
)
from lsgp.tuning.calibration import ScaleAndShape
from lsgp.tuning.comparison import Choice, Comparison
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.objective import Objective
from lsgp.tuning.plan import BAD_LOSS
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import Found

Array = NDArray[np.float64]

#: The level whose coverage is calibrated: regions are too few to tell more of a shape than that,
COVERED_LEVEL = 0.95
#: and this many observations hold the factor to 1.
PRIOR_OBSERVATIONS = 1000


class Pool(NamedTuple):
    """What a fit without queries combines, and what is done to its combination."""

    contenders: list[Contender]
    weights: Array  # that sum to 1
    calibration: ScaleAndShape
    boosted_share: float


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
    problem: TuningProblem, comparison: Comparison, plain: Pool, found: Found
) -> tuple[list[Contender], Choice]:
    """What is tuned for the queries, the fit without them, or half of each, as regions say."""
    assert problem.plain is not None
    assert comparison.regions is not None
    usable = _of_one_direction([c for c in found.all if c.loss < BAD_LOSS])
    contenders = [*plain.contenders, *usable]
    predicted = [c.candidate.predicted for c in contenders]
    n_plain = len(plain.contenders)
    plain_weights = np.concatenate([plain.weights, np.zeros(len(usable))])
    as_one = combine(predicted[:n_plain], plain.weights)

    # By the objective that is asked for. Models are tuned for queries by their density, by which
    # picks of 18 development tasks had .923 of an exact GP's CRPS, and by CRPS .914.
    objective = problem.plain.objective
    has_many = comparison.regions.n_regions >= MANY_REGIONS

    def loss(combined: PredictiveDistribution) -> float:
        return objective.criterion(combined, comparison.y)

    weights = np.zeros(len(contenders))
    if problem.gaps_to_tune_on is not None and usable:
        weights[n_plain:] = _in_gaps(problem, usable, objective, loss)
    elif has_many and usable:
        # Picks among many single models follow the chance of few regions: on the map of a
        # satellite, CRPS was .76 or .86 by the random state. The likeliest alone, then.
        weights[n_plain + int(np.argmin([c.loss for c in usable]))] = 1.0
    elif usable:
        losses = np.array([loss(c.candidate.predicted) for c in usable])
        weights[n_plain:] = _of_both_kinds(problem, usable, losses, objective)

    judge, trees = replace(comparison, objective=objective), found.boosted_regions
    # Beyond the rows, trees say what they say at their edge: none, unless regions have judged them.
    fitted, share = as_one, 0.0
    usual = None if found.boosted is None else found.boosted.usual_scale
    if trees is not None:
        share = plain.boosted_share
        fitted = lean(as_one, trees, share_at(share, usual, as_one.scale))
    best = _Option(plain_weights, share, plain.calibration, plain.calibration.apply(fitted))
    calibrate = partial(_calibrated, judge, predicted, trees, len(problem.y), usual)
    if weights.any():
        chosen = calibrate(weights)
        if _is_better(judge, best, chosen):
            best = chosen
        elif not has_many and problem.n_models > 1:
            both = calibrate((1.0 - UNCLEAR_SHARE) * plain_weights + UNCLEAR_SHARE * weights)
            if not _is_better(judge, both, best):
                best = both
    mean_loss = float(problem.objective.losses(best.predicted, comparison.y).mean())
    return contenders, Choice(best.weights, mean_loss, best.calibration, best.boosted_share)


def _of_one_direction(contenders: list[Contender]) -> list[Contender]:
    """Those whose inputs are turned as those of the best: an ensemble has one direction."""
    if not contenders:
        return contenders
    best = min(contenders, key=lambda c: c.loss).space.transform.projection
    return [c for c in contenders if c.space.transform.projection is best]


def _in_gaps(
    problem: TuningProblem,
    contenders: list[Contender],
    objective: Objective,
    loss: Callable[[PredictiveDistribution], float],
) -> Array:
    """Equal weights of what varies within gaps, and a share for what varies across them.

    The share is given, unless gaps that are held out speak clearly against it.
    """
    is_across = np.array([c.space.gap_width > 0 for c in contenders])
    if is_across.all() or not is_across.any() or problem.n_models == 1:
        return _alike(problem, contenders, np.ones_like(is_across), problem.n_models)
    within = _alike(problem, contenders, ~is_across, problem.n_models - 1)
    across = _alike(problem, contenders, is_across, 1)
    both = (1.0 - SHARE_ACROSS_GAPS) * within + SHARE_ACROSS_GAPS * across
    losses = []
    for weights in (within, both):
        used = np.flatnonzero(weights).tolist()
        combined = combine([contenders[k].candidate.predicted for k in used], weights[used])
        losses.append(loss(combined))
    return both if objective.is_promising(losses[1], losses[0]) else within


def _alike(
    problem: TuningProblem, contenders: list[Contender], is_eligible: NDArray[np.bool_], n: int
) -> Array:
    """The same weight for those that are promising, at most n, which are tuned for the same.

    Picks follow the chance of few gaps: RMSE 1.501 and CRPS .773, and with equal weights 1.486 and
    .768 (`benchmarks/gaps.py`, masks 2, 3 and 7, tuned and picked on 0 and 1).
    """
    losses = np.array([c.loss for c in contenders])
    lowest, is_promising = losses[is_eligible].min(), problem.objective.is_promising
    is_usable = [is_promising(loss, lowest) or loss == lowest for loss in losses.tolist()]
    return _equal(losses, is_eligible & np.array(is_usable), n)


def _of_both_kinds(
    problem: TuningProblem, contenders: list[Contender], losses: Array, objective: Objective
) -> Array:
    """A share for exact GPs of sums and products, the rest for local models that were tuned.

    Regions of the rows are too few to choose between the two kinds: the share is given.
    """
    losses = np.where(np.isfinite(losses), losses, np.inf)
    if problem.n_models == 1:
        return np.asarray(np.eye(len(losses))[int(np.argmin(losses))])
    is_composite = np.array([isinstance(c.model.kernel, Composite) for c in contenders])
    kinds = [kind for kind in (is_composite, ~is_composite) if np.isfinite(losses[kind]).any()]
    if not kinds:
        return np.zeros(len(losses))
    shares = [COMPOSITE_SHARE_BEYOND, 1.0 - COMPOSITE_SHARE_BEYOND] if len(kinds) == 2 else [1.0]
    total = np.zeros(len(losses))
    for kind, share in zip(kinds, shares, strict=True):
        lowest = float(losses[kind].min())
        most = lowest + USABLE_BEYOND * objective.unit_of_criterion(lowest)
        total += share * _equal(losses, kind & (losses <= most), problem.n_models // len(kinds))
    return total


def _equal(losses: Array, is_usable: NDArray[np.bool_], n: int) -> Array:
    """The same weight for the best of those that are usable, at most n."""
    order = np.argsort(losses, kind="stable")
    chosen = order[is_usable[order]][:n]
    weights = np.zeros(len(losses))
    weights[chosen] = 1.0 / len(chosen)
    return weights


class _Option(NamedTuple):
    """A combination, and what it says of the regions."""

    weights: Array
    boosted_share: float
    calibration: ScaleAndShape
    predicted: PredictiveDistribution


def _calibrated(
    judge: Comparison,
    predicted: list[PredictiveDistribution],
    trees: Array | None,
    n_rows: int,
    usual: float | None,
    weights: Array,
) -> _Option:
    """With the share of trees, and the factor, that suit the regions."""
    used = np.flatnonzero(weights).tolist()
    combined, share = combine([predicted[k] for k in used], weights[used]), 0.0
    if trees is not None:
        share = judge.share_of(trees, combined, judge.y, n_rows, usual)
        combined = lean(combined, trees, share_at(share, usual, combined.scale))
    factor = _coverage_factor(combined, judge.y)
    if judge.regions is not None and judge.regions.n_regions < MANY_REGIONS:
        factor = max(LEAST_FACTOR_BEYOND, factor)
    calibration = ScaleAndShape(factor)
    return _Option(weights, share, calibration, calibration.apply(combined))


def _gains(judge: Comparison, one: _Option, other: _Option) -> Array:
    """What the loss falls by from one to the other in each region."""
    assert judge.regions is not None
    region = judge.regions.of_targets
    before, after = (judge.objective.losses(each.predicted, judge.y) for each in (one, other))
    return np.asarray(np.bincount(region, before - after) / np.bincount(region))


def _is_better(judge: Comparison, one: _Option, other: _Option) -> bool:
    """Whether regions gain by more than chance from one to the other."""
    assert judge.regions is not None
    gains, n = _gains(judge, one, other), judge.regions.n_independent
    doubt = float(gains.std(ddof=1)) / math.sqrt(n) if len(gains) > 1 else math.inf
    return float(gains.mean()) > CLEARLY * doubt


def _coverage_factor(predicted: PredictiveDistribution, observed: Array) -> float:
    """What the scales must be multiplied by for central intervals to cover their share."""
    half_width = predicted.interval(COVERED_LEVEL)[1] - predicted.mean
    ratio = np.abs(observed - predicted.mean) / np.maximum(half_width, 1e-300)
    factor = float(np.quantile(ratio, COVERED_LEVEL))
    if not 0.0 < factor < math.inf:
        return 1.0
    n = len(observed)
    return float(np.clip(factor, 0.1, 10.0) ** (n / (n + PRIOR_OBSERVATIONS)))
