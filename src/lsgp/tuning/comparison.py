# SPDX-License-Identifier: BSD-3-Clause
"""How candidates are compared: by leave-one-out predictions of the same training points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.method.combination import combine, lean, share_at, usual_scale
from lsgp.method.contract import (
    STATUS_NOT_POSITIVE_DEFINITE,
    LocalModel,
    LocalProblem,
    Predictions,
)
from lsgp.method.distribution import PredictiveDistribution, distribution_of
from lsgp.method.link import Link
from lsgp.tuning.beyond.regions import Regions
from lsgp.tuning.calibration import (
    N_HALF_PROVEN,
    ScaleAndShape,
    calibrate,
    calibrate_combination,
)
from lsgp.tuning.classes.linear import LinearCandidate
from lsgp.tuning.leave_one_out import Sample
from lsgp.tuning.objective import Objective
from lsgp.tuning.plan import BAD_LOSS
from lsgp.tuning.result import Candidate
from lsgp.tuning.trees.plan import (
    BOOSTED_PRIOR_SHARE,
    BOOSTED_SHARES,
    WORTH_BOOSTING,
    boosted_prior_rows,
    optimism,
)
from lsgp.tuning.weights import Toll, choose_weights

Array = NDArray[np.float64]


class Judgement(NamedTuple):
    """A model, calibrated, and what it is worth."""

    model: LocalModel
    predicted: PredictiveDistribution
    loss: float
    standard_error: float
    link: Link | None = None  # of labels


class Choice(NamedTuple):
    """Weights of candidates in a combination, and what that is worth."""

    weights: Array  # of the candidates, and behind them of the linear ones
    loss: float
    calibration: ScaleAndShape
    boosted_share: float = 0.0  # of boosted trees in the locations, where the scale is usual
    usual_scale: float | None = None


@dataclass(frozen=True, eq=False)
class Comparison:
    """The training points that candidates are compared on."""

    rows: NDArray[np.int32]  # (k,)
    y: Array  # (k, t)
    noise: Array  # (k,)
    objective: Objective
    given: frozenset[str]  # hyperparameters that calibration must leave alone
    #: Within which the logarithm of a model's signal variance may be calibrated.
    signal_range: Callable[[LocalModel], tuple[float, float]]
    #: With which the points are left out; None: each alone, or with what tuning leaves out.
    regions: Regions | None = field(default=None, kw_only=True)
    #: What boosted trees must lower the loss by, as a fraction.
    worth_boosting: float = field(default=WORTH_BOOSTING, kw_only=True)

    def judge(
        self,
        model: LocalModel,
        predictions: Predictions,
        calibrates_scale: bool,
        local: LocalProblem | None = None,
        sample: Sample | None = None,
    ) -> Judgement:
        """Score leave-one-out predictions, calibrated if so wanted.

        ``local`` and ``sample`` are what a local model predicted from: not all objectives are
        scores of predictions.
        """
        failed = (predictions.status >= STATUS_NOT_POSITIVE_DEFINITE).any()
        if calibrates_scale and not failed:
            model, predictions = self.calibrated(model, predictions)
        predicted = distribution_of(predictions, model.noise_of(self.noise))
        losses = np.full(len(self.y), BAD_LOSS)
        if not failed:
            losses = self._losses(predicted, local, sample)
        losses = np.where(np.isfinite(losses), losses, BAD_LOSS)
        error = float(losses.std() / np.sqrt(len(losses)))
        return Judgement(model, predicted, float(losses.mean()), error)

    def calibrated(
        self, model: LocalModel, predictions: Predictions
    ) -> tuple[LocalModel, Predictions]:
        """With the scale that makes the observations likeliest."""
        signal_range = self.signal_range(model)
        return calibrate(model, predictions, self.y, self.noise, self.given, signal_range)

    def _losses(
        self,
        predicted: PredictiveDistribution,
        local: LocalProblem | None,
        sample: Sample | None,
    ) -> Array:
        if local is None or sample is None:
            return self.objective.losses(predicted, self.y)
        return self.objective.judge(predicted, self.y, local, *sample)

    def choose(
        self,
        candidates: Sequence[Candidate],
        n_models: int,
        fixed: Array,
        share: float,
        linear: Sequence[LinearCandidate] = (),
        toll: Toll | None = None,
    ) -> Choice:
        """Combine predictions of the points as far as that pays.

        The weights ``fixed``, which sum to 1, have a share in any case. Linear candidates are for
        labels only. The ``toll`` is what candidates must lower the loss by, as fractions of it.
        """
        predicted = [candidate.predicted for candidate in candidates]
        is_open = [not self.is_outreached(candidate, candidates) for candidate in candidates]
        open_ones = np.flatnonzero(is_open).tolist()

        def loss(combined: PredictiveDistribution) -> float:
            return self.objective.criterion(combined, self.y)

        if toll is not None:
            unit = self._unit(predicted)
            toll = Toll(toll.costs[open_ones] * unit, toll.most * unit)
        picked = np.zeros(len(candidates))
        picked[open_ones] = choose_weights([predicted[k] for k in open_ones], loss, n_models, toll)
        return self.combined(predicted, (1.0 - share) * picked + share * fixed)

    def combined(
        self,
        predicted: Sequence[PredictiveDistribution],
        weights: Array,
        n_half_proven: float = N_HALF_PROVEN,
    ) -> Choice:
        """What these weights come to."""
        used = np.flatnonzero(weights).tolist()
        combined = combine([predicted[k] for k in used], weights[used])
        mean_loss = float(self.objective.losses(combined, self.y).mean())
        calibration = calibrate_combination(combined, self.y, n_half_proven)
        return Choice(weights, mean_loss, calibration)

    def share_of(
        self,
        location: Array,
        predicted: PredictiveDistribution,
        observed: Array,
        n_rows: int,
        usual: float | None,
    ) -> float:
        """How far predictions should lean to other locations (k, t); 0 if that is not worth it.

        Trees are judged on rows that they have not seen, models on rows that they were tuned on:
        errors of these are taken for larger, as those of so many training rows are, and what a
        share is likely to be beforehand counts too. Part of the compared points speaks for all.
        """
        shares, n = np.array(BOOSTED_SHARES), len(self.y)
        honest, prior_rows = 1.0 + optimism(n_rows), boosted_prior_rows(n_rows)
        as_unseen = replace(
            predicted,
            mean=observed + honest * (predicted.mean - observed),
            scale=honest * predicted.scale,
        )
        leaning = [
            lean(as_unseen, location, share_at(w, usual, predicted.scale)) for w in shares.tolist()
        ]
        losses = np.array([self.objective.criterion(each, observed) for each in leaning])
        unit = self.objective.unit_of_criterion(losses[0])
        if unit == 0.0:
            return 0.0  # nothing is left to gain
        relative = (losses - losses[0]) / unit
        penalty = n * relative + prior_rows * (shares - BOOSTED_PRIOR_SHARE) ** 2
        best = int(np.argmin(penalty))
        is_worth_it = penalty[0] - penalty[best] > self.worth_boosting * n
        return float(shares[best]) if is_worth_it else 0.0

    def lean(
        self,
        choice: Choice,
        predicted: Sequence[PredictiveDistribution],
        location: Array,
        n_rows: int,
    ) -> Choice:
        """A choice with what boosted trees say of the compared points (k, t) beside it."""
        used = np.flatnonzero(choice.weights).tolist()
        combined = combine([predicted[k] for k in used], choice.weights[used])
        usual = usual_scale(combined)
        share = self.share_of(location, combined, self.y, n_rows, usual)
        if share == 0.0:
            return choice
        combined = lean(combined, location, share_at(share, usual, combined.scale))
        mean_loss = float(self.objective.losses(combined, self.y).mean())
        calibration = calibrate_combination(combined, self.y)
        return Choice(choice.weights, mean_loss, calibration, share, usual)

    def _unit(self, predicted: Sequence[PredictiveDistribution]) -> float:
        """What fractions of the criterion are of: that of the best."""
        lowest = min(self.objective.criterion(each, self.y) for each in predicted)
        return self.objective.unit_of_criterion(lowest)

    def is_outreached(self, candidate: Candidate, others: Sequence[Candidate]) -> bool:
        """Whether another reaches for more rows [E9], at the same price, and is no worse.

        As far as losses tell. Then it averages more noise away, which losses of single rows, of
        all their noise, do not tell well; and in a combination they would pick at random.
        """
        n_neighbors = candidate.n_neighbors
        return n_neighbors is not None and any(
            other.n_neighbors is not None
            and other.n_neighbors >= n_neighbors
            and other.model.reach > candidate.model.reach
            and other.loss <= candidate.loss + self.doubt(other, candidate)
            for other in others
        )

    def doubt(self, one: Candidate, other: Candidate) -> float:
        """How much of a difference between their losses may well be chance: a standard error."""
        losses = [self.objective.losses(each.predicted, self.y) for each in (one, other)]
        return float(np.std(losses[0] - losses[1])) / math.sqrt(len(self.y))

    def blend(
        self,
        choice: Choice,
        predicted: Sequence[PredictiveDistribution],
        integrated: Sequence[PredictiveDistribution],
        share: float,
    ) -> Choice:
        """A choice with models of a share behind it, which are alike and need no calibration."""
        alike = np.full(len(integrated), share / len(integrated))
        weights = np.concatenate([(1.0 - share) * choice.weights, alike])
        everything = [*predicted, *integrated]
        used = np.flatnonzero(weights).tolist()
        combined = combine([everything[k] for k in used], weights[used])
        mean_loss = float(self.objective.losses(combined, self.y).mean())
        return Choice(weights, mean_loss, choice.calibration.shrunk(1.0 - share))
