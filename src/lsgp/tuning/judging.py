# SPDX-License-Identifier: BSD-3-Clause
"""Scores of held-out predictions, for all families."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.labels import Labels
from lsgp.method.calibration import calibrate
from lsgp.method.contract import (
    STATUS_NOT_POSITIVE_DEFINITE,
    LocalModel,
    LocalProblem,
    Predictions,
)
from lsgp.method.distribution import PredictiveDistribution, distribution_of
from lsgp.method.link import Link, default_link, fit_link
from lsgp.solvers.objective import BAD_LOSS
from lsgp.tuning.data import Data
from lsgp.tuning.hold_out import HoldOut
from lsgp.tuning.space import Sample

Array = NDArray[np.float64]


class Judgement(NamedTuple):
    """A calibrated model with its held-out predictions and their loss."""

    model: LocalModel
    predicted: PredictiveDistribution
    loss: float
    standard_error: float
    noise: float  # mean variance of the noise of held-out targets
    link: Link | None = None  # of labels


@dataclass(frozen=True, eq=False)
class Judge:
    """Scores predictions of the targets of a hold-out."""

    data: Data
    hold_out: HoldOut

    @property
    def y(self) -> Array:
        """Observed targets (k, t)."""
        return self.data.y[self.hold_out.targets]

    def judge(
        self,
        model: LocalModel,
        predictions: Predictions,
        calibrates_scale: bool,
        local: tuple[LocalProblem, Sample] | None = None,
    ) -> Judgement:
        """Score predictions, after fitting the scale to the targets if ``calibrates_scale``.

        ``local`` are the problem and the sample of a local model, because some objectives score the
        neighborhoods instead of the predictions.
        """
        y, noise = self.y, self.data.rows.noise[self.hold_out.targets]
        failed = bool((predictions.status >= STATUS_NOT_POSITIVE_DEFINITE).any())
        if calibrates_scale and not failed:
            given, ranges = self.data.specification.given, self.data.parameters.signal_range(model)
            model, predictions = calibrate(model, predictions, y, noise, given, ranges)
        if self.data.labels is not None:
            return _judge_labels(self.data.labels, self.hold_out, model, predictions, failed)
        predicted = distribution_of(predictions, model.noise_of(noise))
        losses = np.full(len(y), BAD_LOSS)
        objective = self.data.objective
        if not failed and local is not None and not objective.judges_predictions:
            problem, sample = local
            scorer, resources = self.data.backend, self.data.resources
            losses = objective.score(problem, *sample, scorer, resources).loss
        elif not failed:
            losses = objective.losses(predicted, y)
        losses = np.where(np.isfinite(losses), losses, BAD_LOSS)
        error = float(losses.std() / math.sqrt(len(losses)))
        size = model.noise_variance * float(np.mean(predictions.scale))
        return Judgement(model, predicted, float(losses.mean()), error, size)


def _judge_labels(
    labels: Labels, hold_out: HoldOut, model: LocalModel, predictions: Predictions, failed: bool
) -> Judgement:
    """Fit the link to held-out latent values, and score it by log loss."""
    rows = hold_out.targets
    predicted = distribution_of(predictions, 0.0)
    latent = labels.latent(predicted)
    is_finite = np.isfinite(latent.mean).all() and np.isfinite(latent.variance).all()
    if failed or not is_finite:
        return Judgement(model, predicted, BAD_LOSS, 0.0, math.inf, default_link(labels.prior))
    codes, weight = labels.codes[rows], labels.weight[rows]
    link = fit_link(latent, codes, weight, labels.prior)
    losses, shares = labels.losses(link.log_proba(latent), rows), weight / weight.sum()
    loss = float(shares @ losses)
    error = float(np.sqrt((shares**2) @ (losses - loss) ** 2))
    return Judgement(model, predicted, loss, error, math.inf, link)
