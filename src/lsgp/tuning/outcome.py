# SPDX-License-Identifier: BSD-3-Clause
"""From the models that a search found to their weights and the calibrated combination."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import warn_user
from lsgp.inputs.labels import Labels
from lsgp.method.calibration import ScaleAndShape, calibrate_combination, widen_to_cover
from lsgp.method.combination import blend_location, combine
from lsgp.method.distribution import PredictiveDistribution
from lsgp.method.link import log_pool
from lsgp.method.parameters import NO_NOISE
from lsgp.solvers.boosted import BoostedTrees
from lsgp.solvers.objective import BAD_LOSS
from lsgp.tuning.budget import SPEED_OF_DEVICE, Budget
from lsgp.tuning.class_members import Member
from lsgp.tuning.data import USUAL_N_NEIGHBORS, Data
from lsgp.tuning.family import Contender, Judged, Located, LogOdds, mean_log_loss
from lsgp.tuning.hold_out import HoldOut
from lsgp.tuning.result import TuningResult
from lsgp.tuning.weighing import LEAST_WEIGHT, of_distributions, of_pools, stack

Array = NDArray[np.float64]
Kind = TypeVar("Kind", bound=Judged)

#: Largest number of models that are weighed. More take time, and the worst would get no weight.
MOST_WEIGHED = 12
#: Number of rows at which an average over the posterior has the prior weight of another family. Its
#: weight is proportional to the inverse square of the number of rows.
N_EVEN = 100
#: Prior weight of the fit without queries if queries lie beyond the rows.
PRIOR_OF_PLAIN = 0.5
#: Amount by which any model must lower the criterion, so that there are few models to explain.
PRICE_OF_MODEL = 3e-4
#: Largest number of rows that are checked for a lattice.
MOST_ON_LEVELS = 2000


class Outcome(NamedTuple):
    """The outcome of tuning: the models to combine, heaviest first, and the result for users."""

    members: tuple[tuple[Contender, float], ...]
    result: TuningResult
    others: tuple[Member, ...] = ()  # classifiers of log odds that are pooled with the models
    trees: BoostedTrees | None = None  # boosted trees of numbers, with their share


class Weighed(NamedTuple):
    """Models with weights, which sum to 1, and the calibration of their combination."""

    contenders: tuple[Judged, ...]
    weights: Array
    calibration: ScaleAndShape = ScaleAndShape()

    @property
    def members(self) -> list[tuple[Contender, float]]:
        """GP models with a weight, heaviest first, with averages split into their members.

        Weights are divided by the total weight of models other than trees.
        """
        expanded: list[tuple[Contender, float]] = []
        rest = 1.0 - (self.trees.share if self.trees else 0.0)
        for contender, weight in self.chosen:
            if isinstance(contender, Contender):
                parts = contender.parts or (contender,)
                expanded += [(part, weight / rest / len(parts)) for part in parts]
        return expanded

    @property
    def trees(self) -> BoostedTrees | None:
        """The boosted trees of numbers, whose weight is their share; None without a weight."""
        found = [replace(c.trees, share=w) for c, w in self.chosen if isinstance(c, Located)]
        return found[0] if found else None

    @property
    def chosen(self) -> list[tuple[Judged, float]]:
        """Models with a weight, heaviest first."""
        order = np.argsort(-self.weights, kind="stable")
        return [(self.contenders[k], float(self.weights[k])) for k in order if self.weights[k]]


def _weigh_labels(
    data: Data, labels: Labels, found: Sequence[Judged], hold_out: HoldOut, budget: Budget
) -> Weighed:
    """Stack models of labels by their pooled probabilities; at least one of them is a GP model."""
    usable = [c for c in found if c.loss < BAD_LOSS] or list(found[:1])

    def optimism(judged: Judged) -> float:
        """Akaike's estimate of the optimism of a log loss, due to tuning on the same labels."""
        return 0.0 if isinstance(judged, Located) else judged.n_tuned / data.n

    chosen = _promising(usable, lambda c: c.loss + optimism(c))
    if len(chosen) == 1:
        return Weighed(tuple(chosen), np.ones(1))
    rows = hold_out.targets
    weight = labels.weight[rows]
    log_p = [log_proba_of(labels, c) for c in chosen]
    biases = np.array([optimism(c) for c in chosen])
    criterion = of_pools(log_p, labels.codes[rows], weight / weight.sum(), biases)
    known = _prior(data, chosen), hold_out.n_independent, _prices(data, chosen, budget)
    weights = stack(criterion, *known, budget.n_combined)
    return Weighed(tuple(chosen), _with_model(chosen, weights))


def _with_model(chosen: Sequence[Judged], weights: Array) -> Array:
    """Give a GP model the least weight if none has one.

    An ensemble needs a model for its neighbors, latent values and scale.
    """
    is_model = np.array([isinstance(c, Contender) for c in chosen])
    if not weights[is_model].any():
        best = int(np.flatnonzero(is_model)[0])
        weights = (1.0 - LEAST_WEIGHT) * weights
        weights[best] = LEAST_WEIGHT
    return weights


def log_proba_of(labels: Labels, judged: Judged) -> Array:
    """Log probabilities (k, C) of the held-out targets."""
    if isinstance(judged, LogOdds):
        return judged.log_proba
    assert isinstance(judged, Contender)
    link = judged.candidate.link
    assert link is not None, "models of labels have a link"
    return link.log_proba(labels.latent(judged.candidate.predicted))


def weigh(
    data: Data, found: Sequence[Judged], hold_out: HoldOut, budget: Budget, widens: bool = False
) -> Weighed:
    """Stack the models by their held-out predictions, and calibrate the combination.

    With ``widens``, errors of the targets are correlated, so calibration only widens intervals.
    """
    if data.labels is not None:
        return _weigh_labels(data, data.labels, found, hold_out, budget)
    models = [c for c in found if isinstance(c, Contender)]
    usable: list[Judged] = [c for c in models if c.loss < BAD_LOSS]
    usable = [*usable, *(c for c in found if isinstance(c, Located))] if usable else [*models[:1]]
    if not data.objective.judges_predictions:
        return Weighed((min(usable, key=lambda c: c.loss),), np.ones(1))
    chosen = _promising(usable)
    y, weights = data.y[hold_out.targets], np.ones(1)
    if len(chosen) > 1:
        criterion = of_distributions(_predicted(chosen), y, data.objective)
        known = _prior(data, chosen), hold_out.n_independent, _prices(data, chosen, budget)
        weights = _with_model(chosen, stack(criterion, *known, budget.n_combined))
    calibration, combined = ScaleAndShape(), combined_of(chosen, weights)
    if data.specification.calibrates and widens:
        calibration = widen_to_cover(combined, y)
    elif data.specification.calibrates:
        calibration = calibrate_combination(combined, y, hold_out.n_independent)
    return Weighed(tuple(chosen), weights, calibration)


def weigh_beyond(
    data: Data,
    plain: Sequence[Contender],
    plain_weights: Array,
    found: Sequence[Contender],
    calibration: ScaleAndShape,
    regions: HoldOut,
    budget: Budget,
) -> Weighed:
    """Stack models that are tuned for queries, with the fit without queries as one candidate.

    That fit keeps its members, their weights and its calibration, which regions can only widen.
    """
    chosen = _promising([c for c in found if c.loss < BAD_LOSS])
    of_plain = combine([c.candidate.predicted for c in plain], plain_weights)
    predicted = [of_plain, *(c.candidate.predicted for c in chosen)]
    y, weights = data.y[regions.targets], np.ones(1)
    if chosen:
        rest = (1.0 - PRIOR_OF_PLAIN) * _prior(data, chosen)
        prices = np.array([0.0, *_prices(data, chosen, budget)])
        prior = np.array([PRIOR_OF_PLAIN, *rest])
        criterion = of_distributions(predicted, y, data.objective)
        most = 1 + budget.n_combined if budget.n_combined > 1 else 1
        weights = stack(criterion, prior, regions.n_independent, prices, most)
    used = np.flatnonzero(weights).tolist()
    combined = calibration.apply(combine([predicted[k] for k in used], weights[used]))
    widened = calibration
    if data.specification.calibrates:
        factor = widen_to_cover(combined, y).factor
        widened = calibration._replace(factor=factor * calibration.factor)
    every = np.concatenate([weights[0] * plain_weights, weights[1:]])
    return Weighed((*plain, *chosen), every, widened)


def finds_function(data: Data, weighed: Weighed) -> bool:
    """Whether most of the combined models have no noise, and rows can be checked for a lattice."""
    return data.is_in_memory and data.n <= MOST_ON_LEVELS and not _is_noisy(data, weighed.members)


def _predicted(judged: Sequence[Judged]) -> list[PredictiveDistribution]:
    """Predictions of the held-out targets; trees take the scale of the best model."""
    models = (c for c in judged if isinstance(c, Contender))
    best = min(models, key=lambda c: c.loss).candidate.predicted
    return [
        replace(best, mean=c.location) if isinstance(c, Located) else c.candidate.predicted
        for c in judged
        if not isinstance(c, LogOdds)
    ]


def combined_of(judged: Sequence[Judged], weights: Array) -> PredictiveDistribution:
    """Combine the predictions of models and trees as an ensemble does."""
    pairs = [(c, w) for c, w in zip(judged, weights.tolist(), strict=True) if w > 0]
    models = [(c.candidate.predicted, w) for c, w in pairs if isinstance(c, Contender)]
    total = sum(w for _, w in models)
    combined = combine([p for p, _ in models], [w / total for _, w in models])
    for c, w in pairs:
        if isinstance(c, Located):
            combined = blend_location(combined, c.location, w)
    return combined


def _promising(
    found: Sequence[Kind], loss: Callable[[Kind], float] = lambda c: c.loss
) -> list[Kind]:
    """Select the best model of each family, then the best of all; at most `MOST_WEIGHED`."""
    distinct = {(c.family, c.loss, c.cost): c for c in found}
    order = sorted(distinct.values(), key=loss)
    first = list({c.family: c for c in reversed(order)}.values())
    others = [c for c in order if all(c is not one for one in first)]
    return (first + others)[:MOST_WEIGHED]


def _prior(data: Data, contenders: Sequence[Judged]) -> Array:
    """Prior weights of models: each family's share is divided by the evidence of its models."""
    prior = np.zeros(len(contenders))
    for family in {c.family for c in contenders}:
        members = [k for k, c in enumerate(contenders) if c.family == family]
        log_odds = np.array([contenders[k].log_evidence for k in members])
        odds = np.exp(np.maximum(log_odds - log_odds.max(), -20.0))
        share = 1.0  # of the family, relative to others
        if family.endswith("average"):
            share = (N_EVEN / data.n) ** 2
        elif family == "local" and data.labels is None:
            # If one neighborhood has nearly all rows, local models duplicate exact GPs.
            share = max(1, data.n - USUAL_N_NEIGHBORS) / data.n
        prior[members] = share * odds / odds.sum()
    return prior / prior.sum()


def _prices(data: Data, contenders: Sequence[Judged], budget: Budget) -> Array:
    """Amounts by which models must lower the criterion: a constant, and for slower predictions."""
    speed = SPEED_OF_DEVICE if data.backend.is_device else 1.0
    costs = np.array([c.cost for c in contenders])
    return PRICE_OF_MODEL + budget.worth_of_millisecond / speed * costs


def finish(
    data: Data,
    found: Sequence[Judged],
    weighed: Weighed,
    hold_out: HoldOut,
    seconds: float,
    is_complete: bool,
) -> Outcome:
    """Return the outcome, whose score is that of the calibrated combination."""
    members, trees, rows = weighed.members, weighed.trees, hold_out.targets
    if data.labels is not None:
        log_p = [log_proba_of(data.labels, c) for c in weighed.contenders]
        loss = mean_log_loss(data.labels, log_pool(log_p, weighed.weights), rows)
    elif not data.objective.judges_predictions:
        loss = weighed.contenders[0].loss
    else:
        combined = combined_of(weighed.contenders, weighed.weights)
        calibrated = weighed.calibration.apply(combined)
        loss = float(data.objective.losses(calibrated, data.y[rows]).mean())
    factor, shape = weighed.calibration
    known = {id(c): w for c, w in members}
    others = [c for c in found if isinstance(c, Contender) and id(c) not in known and not c.parts]
    every = [*(c for c, _ in members), *others]
    result = TuningResult(
        objective=data.objective.name,
        candidates=tuple(c.candidate for c in every),
        weights=np.array([known.get(id(c), 0.0) for c in every]),
        loss=loss,
        scale_factor=factor,
        shape=shape._replace(is_noisy=_is_noisy(data, members)),
        n_compared=len(rows),
        seconds=seconds,
        is_complete=is_complete,
        at_bounds=_count_at_bounds(data, members),
        boosted_share=trees.share if trees else 0.0,
    )
    pooled = tuple(
        replace(one, weight=weight * one.weight)
        for judged, weight in weighed.chosen
        if isinstance(judged, LogOdds)
        for one in judged.parts
    )
    return Outcome(tuple(members), result, pooled, trees)


def _is_noisy(data: Data, members: Sequence[tuple[Contender, float]]) -> bool:
    """Whether most of the combined models have noise, tuned or given."""
    is_given = "noise_variance" in data.specification.given or not data.has_own_bounds
    if is_given or data.labels is not None or data.rows.mean_noise_variance is not None:
        return True
    # An average over the posterior has the uncertainty of the noise in its predictions.
    tuned = [(c, w) for c, w in members if not c.candidate.is_integrated]
    return sum(w for c, w in tuned if 0.0 < c.noise <= NO_NOISE) < 0.5


def _count_at_bounds(data: Data, members: Sequence[tuple[Contender, float]]) -> dict[str, int]:
    """Count the hyperparameters of the combined models that ended at a bound, by name.

    Warns of bounds that may exclude better models.
    """
    counts: Counter[str] = Counter()
    n_cut: Counter[str] = Counter()
    for contender, _ in members:
        if not contender.candidate.is_integrated:
            parameters = data.parameters if contender.system is None else data.exact_parameters
            counts.update(parameters.at_bounds(contender.model))
            n_cut.update(parameters.cut_off(contender.model))
    # Labels are steps, for which no lengthscale is short enough; links compensate for it.
    if n_cut and data.labels is None:
        told = " and ".join(f"{name} in {n} of {len(members)} models" for name, n in n_cut.items())
        warn_user(
            f"Tuning ended at a bound of {told}: the targets change faster, or differ more in "
            "size, than the ranges of hyperparameters allow for. Check the scaling of the inputs "
            "and targets, and how predictions do in loo()."
        )
    return dict(sorted(counts.items()))
