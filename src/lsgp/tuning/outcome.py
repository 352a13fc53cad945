# SPDX-License-Identifier: BSD-3-Clause
"""What is made of the candidates that a search found: their weights, and the result."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.warn import warn_user
from lsgp.solvers.boosted import BoostedTrees
from lsgp.tuning.calibration import N_HALF_PROVEN, ScaleAndShape, calibrate_combination
from lsgp.tuning.classes.laplace import LaplaceCandidate
from lsgp.tuning.classes.linear import LinearCandidate
from lsgp.tuning.comparison import Choice, Comparison
from lsgp.tuning.contender import Contender
from lsgp.tuning.functions.plan import N_HALF_PROVEN_NOISELESS, N_HALF_PROVEN_UNSEEN
from lsgp.tuning.parameters import finds_no_noise, is_below_floor
from lsgp.tuning.plan import BAD_LOSS, exact_share
from lsgp.tuning.prices import toll_of
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.result import TuningResult
from lsgp.tuning.stages.stage import Found

Array = NDArray[np.float64]


class Tuned(NamedTuple):
    """What tuning found: the models to combine, heaviest first, and all that was tried."""

    members: tuple[tuple[Contender, float], ...]
    result: TuningResult
    linear: tuple[tuple[LinearCandidate, float], ...] = ()  # beside them, of labels
    laplace: tuple[tuple[LaplaceCandidate, float], ...] = ()  # likewise
    boosted: BoostedTrees | None = None  # beside them, with a share


def have_one(problem: TuningProblem, comparison: Comparison, found: Found) -> None:
    """However little time there was, the first start as it is."""
    if not found.all and not (problem.is_exact_on_request and found.likely):
        began = time.monotonic()
        found.polished.append(problem.evaluate(problem.starts[0], comparison, began))


def usable_ones(contenders: list[Contender]) -> list[Contender]:
    return [c for c in contenders if c.loss < BAD_LOSS]


class Weighed(NamedTuple):
    """What was found, and its weights in the combination."""

    contenders: list[Contender]
    choice: Choice
    linear: tuple[tuple[LinearCandidate, float], ...] = ()


def weigh(problem: TuningProblem, comparison: Comparison, searched: list[Found]) -> Weighed:
    """What searches have found, and beside it those that are integrated over, which all share."""
    weighed = [_weigh_search(problem, comparison, found) for found in searched]
    chosen = weighed[0] if len(weighed) == 1 else _mean_of(problem, comparison, weighed)
    return _with_integrated(problem, comparison, chosen, searched[0])


def _weigh_search(problem: TuningProblem, comparison: Comparison, found: Found) -> Weighed:
    """Combine candidates as far as their leave-one-out predictions say that it pays."""
    tried = found.all
    usable = usable_ones(tried) or tried[:1]
    usable.sort(key=lambda c: c.loss)
    likely = [(c, odds) for c, odds in found.likely if c.loss < BAD_LOSS]
    if not usable and not likely:
        likely = found.likely[:1]
    usable += [contender for contender, _ in likely]
    fixed = np.zeros(len(usable))
    if likely:
        fixed[-len(likely) :] = [odds for _, odds in likely]
        fixed /= fixed.sum()
    share = exact_share(len(problem.y)) if likely else 0.0
    unseen = found.unseen if likely else None  # of those
    if not tried or unseen is not None:
        share = 1.0  # they are what was asked for, or nothing is left to leave-one-out
    candidates = [c.candidate for c in usable]
    if problem.objective.judges_predictions or not tried:
        toll = toll_of(problem, usable)
        choice = comparison.choose(candidates, problem.n_models, fixed, share, found.linear, toll)
    else:
        # The best is kept as it is: the first of those that are sorted.
        choice = Choice(np.eye(len(usable))[0], usable[0].loss, ScaleAndShape())
    if unseen is not None and found.is_on_levels:
        choice = choice._replace(calibration=ScaleAndShape())
    elif unseen is not None:
        n_half, y = N_HALF_PROVEN_UNSEEN, comparison.y
        calibration = calibrate_combination(unseen, y, n_half, has_contrast=False)
        choice = choice._replace(calibration=calibration)
    elif _is_noiseless(problem, usable, choice.weights):
        predicted = [candidate.predicted for candidate in candidates]
        choice = comparison.combined(predicted, choice.weights, N_HALF_PROVEN_NOISELESS)
    weights, of_linear = np.split(choice.weights, [len(usable)])
    linear = tuple((c, float(w)) for c, w in zip(found.linear, of_linear, strict=True) if w)
    return Weighed(usable, choice._replace(weights=weights), linear)


def _with_integrated(
    problem: TuningProblem, comparison: Comparison, weighed: Weighed, found: Found
) -> Weighed:
    """With models that are integrated over beside what was chosen, if there are any."""
    # Those have noise, no less than its floor: of a function without any, they would be most of
    # the error (three functions of 50 rows: three times that of the others).
    integrated = [] if found.is_noiseless else usable_ones(found.integrated)
    if not integrated:
        return weighed
    # Never of labels: there is no linear candidate beside them.
    predicted = [contender.candidate.predicted for contender in weighed.contenders]
    also = [contender.candidate.predicted for contender in integrated]
    choice = comparison.blend(weighed.choice, predicted, also, problem.integrated_share)
    return weighed._replace(contenders=[*weighed.contenders, *integrated], choice=choice)


def _is_noiseless(problem: TuningProblem, contenders: list[Contender], weights: Array) -> bool:
    """Whether most of the weight is that of models with less noise than its floor, as found."""
    pairs = zip(contenders, weights, strict=False)  # linear ones, of labels, are behind them
    return problem.finds_noise and sum(w for c, w in pairs if is_below_floor(c.model)) > 0.5


def _mean_of(problem: TuningProblem, comparison: Comparison, weighed: list[Weighed]) -> Weighed:
    """What several searches have chosen, all with the same weight: their mean errs less."""
    contenders: list[Contender] = []
    shares: list[float] = []
    for one in weighed:
        for contender, weight in zip(one.contenders, one.choice.weights.tolist(), strict=True):
            # What all searches have, as exact GPs, is one model of what weight they give it.
            place = next((k for k, own in enumerate(contenders) if own is contender), None)
            if place is None:
                contenders.append(contender)
                shares.append(weight)
            else:
                shares[place] += weight
    weights = np.array(shares) / len(weighed)
    predicted = [contender.candidate.predicted for contender in contenders]
    is_noiseless = _is_noiseless(problem, contenders, weights)
    n_half = N_HALF_PROVEN_NOISELESS if is_noiseless else N_HALF_PROVEN
    return Weighed(contenders, comparison.combined(predicted, weights, n_half))


def finish(
    problem: TuningProblem,
    comparison: Comparison,
    weighed: Weighed,
    boosted: BoostedTrees | None,
    is_complete: bool,
) -> Tuned:
    """With boosted trees beside what was chosen, if they have something to add."""
    contenders, choice, linear = weighed
    if boosted is not None:
        predicted = [contender.candidate.predicted for contender in contenders]
        held_out = boosted.held_out[comparison.rows]
        choice = comparison.lean(choice, predicted, held_out, len(problem.y))
        boosted = replace(boosted, usual_scale=choice.usual_scale)
    tuned = result_of(problem, comparison, contenders, choice, is_complete, linear)
    return tuned._replace(boosted=with_share(boosted, choice.boosted_share))


def result_of(
    problem: TuningProblem,
    comparison: Comparison,
    contenders: list[Contender],
    choice: Choice,
    is_complete: bool,
    linear: tuple[tuple[LinearCandidate, float], ...] = (),
) -> Tuned:
    """What was chosen, and all that was tried."""
    order = np.argsort(-choice.weights, kind="stable")
    members = tuple((contenders[k], float(choice.weights[k])) for k in order if choice.weights[k])
    calibration = ScaleAndShape()
    if problem.specification.calibrates:
        factor, shape = choice.calibration
        calibration = ScaleAndShape(factor, shape._replace(is_noisy=_is_noisy(problem, members)))
    result = TuningResult(
        objective=problem.objective.name,
        candidates=tuple(c.candidate for c in contenders),
        weights=choice.weights,
        loss=choice.loss,
        scale_factor=calibration.factor,
        shape=calibration.shape,
        n_compared=len(comparison.rows),
        seconds=problem.clock.elapsed,
        is_complete=is_complete,
        at_bounds=_count_at_bounds(problem, members),
        boosted_share=choice.boosted_share,
    )
    return Tuned(members, result, linear)


def _is_noisy(problem: TuningProblem, members: tuple[tuple[Contender, float], ...]) -> bool:
    """Whether noise was found, or known, by most of what is combined."""
    if not problem.finds_noise or problem.labels is not None:
        return True
    # Those that are integrated over say themselves how far noise and function can be told apart.
    chosen = [(c, weight) for c, weight in members if not c.candidate.is_integrated]
    return sum(weight for c, weight in chosen if finds_no_noise(c.model)) < 0.5


def _count_at_bounds(
    problem: TuningProblem, members: tuple[tuple[Contender, float], ...]
) -> dict[str, int]:
    """How many hyperparameters of the combined models ended at a bound, by name; warns of cuts."""
    counts: Counter[str] = Counter()
    n_cut: Counter[str] = Counter()
    for contender, _ in members:
        if not contender.candidate.is_integrated:
            is_exact = contender.system is not None
            parameters = problem.exact_parameters if is_exact else problem.parameters
            counts.update(parameters.at_bounds(contender.model))
            n_cut.update(parameters.cut_off(contender.model))
    # Labels are steps, faster than any range allows for, and links are fitted to what comes of it.
    if n_cut and problem.labels is None:
        told = " and ".join(f"{name} in {n} of {len(members)} models" for name, n in n_cut.items())
        warn_user(
            f"Tuning ended at a bound of {told}: the targets change faster, or differ more in "
            "size, than the ranges of hyperparameters allow for. Check the scaling of the inputs "
            "and targets, and how predictions do in loo().",
        )
    return dict(sorted(counts.items()))


def merge(first: Tuned, second: Tuned) -> Tuned:
    """Both pools with half of the weight each."""
    results = (first.result, second.result)
    members = [(c, 0.5 * w) for tuned in (first, second) for c, w in tuned.members]
    linear = [(c, 0.5 * w) for tuned in (first, second) for c, w in tuned.linear]
    result = replace(
        first.result,
        candidates=first.result.candidates + second.result.candidates,
        weights=np.concatenate([0.5 * result.weights for result in results]),
        loss=float(np.average([r.loss for r in results], weights=[r.n_compared for r in results])),
        n_compared=sum(result.n_compared for result in results),
        seconds=second.result.seconds,
        is_complete=second.result.is_complete,
        at_bounds=dict(sorted(sum((Counter(r.at_bounds) for r in results), Counter()).items())),
    )
    return Tuned(tuple(sorted(members, key=lambda m: -m[1])), result, tuple(linear))


def with_share(boosted: BoostedTrees | None, share: float) -> BoostedTrees | None:
    return replace(boosted, share=share) if boosted is not None and share else None
