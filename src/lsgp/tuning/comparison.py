# SPDX-License-Identifier: BSD-3-Clause
"""How candidates are compared: by leave-one-out predictions of the same training points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.method.combination import combine
from lsgp.method.contract import STATUS_NOT_POSITIVE_DEFINITE, LocalModel, Predictions
from lsgp.method.distribution import PredictiveDistribution, distribution_of
from lsgp.tuning.calibration import calibrate, coverage_factor, usual_signal_range
from lsgp.tuning.objective import Objective
from lsgp.tuning.plan import BAD_LOSS
from lsgp.tuning.weights import choose_weights

Array = NDArray[np.float64]


class Judgement(NamedTuple):
    """A model, calibrated, and what it is worth."""

    model: LocalModel
    predicted: PredictiveDistribution
    loss: float
    standard_error: float


class Choice(NamedTuple):
    """Weights of candidates in a combination, and what that is worth."""

    weights: Array
    loss: float
    scale_factor: float


class Comparison(NamedTuple):
    """The training points that candidates are compared on."""

    rows: NDArray[np.int32]  # (k,)
    y: Array  # (k, t)
    noise: Array  # (k,)
    objective: Objective
    given: frozenset[str]  # hyperparameters that calibration must leave alone
    #: Within which the logarithm of a model's signal variance may be calibrated.
    signal_range: Callable[[LocalModel], tuple[float, float]] = usual_signal_range

    def judge(
        self, model: LocalModel, predictions: Predictions, calibrates_scale: bool
    ) -> Judgement:
        """Score leave-one-out predictions, calibrated if so wanted."""
        failed = (predictions.status >= STATUS_NOT_POSITIVE_DEFINITE).any()
        if calibrates_scale and not failed:
            model, predictions = calibrate(
                model, predictions, self.y, self.noise, self.given, self.signal_range(model)
            )
        predicted = distribution_of(predictions, model.noise_of(self.noise))
        losses = np.full(len(self.y), BAD_LOSS)
        if not failed:
            losses = self.objective.losses(predicted, self.y)
        losses = np.where(np.isfinite(losses), losses, BAD_LOSS)
        error = float(losses.std() / np.sqrt(len(losses)))
        return Judgement(model, predicted, float(losses.mean()), error)

    def choose(
        self,
        predicted: Sequence[PredictiveDistribution],
        n_models: int,
        fixed: Array,
        share: float,
    ) -> Choice:
        """Combine predictions of the points as far as that pays.

        The weights ``fixed``, which sum to 1, have a share in any case.
        """

        def loss(combined: PredictiveDistribution) -> float:
            return self.objective.criterion(combined, self.y)

        weights = (1.0 - share) * choose_weights(predicted, loss, n_models) + share * fixed
        used = np.flatnonzero(weights).tolist()
        combined = combine([predicted[k] for k in used], weights[used])
        mean_loss = float(self.objective.losses(combined, self.y).mean())
        return Choice(weights, mean_loss, coverage_factor(combined, self.y))
