# SPDX-License-Identifier: BSD-3-Clause
"""How candidates are compared: by leave-one-out predictions of the same training points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.method.combination import choose_weights, combine, criterion
from lsgp.method.contract import STATUS_NOT_POSITIVE_DEFINITE, LocalModel, LocalProblem, Predictions
from lsgp.method.distribution import PredictiveDistribution
from lsgp.solvers.shared_system import SharedSystem
from lsgp.tuning.calibration import calibrate, coverage_factor, observation_distribution
from lsgp.tuning.leave_one_out import BAD_VALUE
from lsgp.tuning.result import Candidate

Array = NDArray[np.float64]

#: More neighbors must lower the loss by this fraction to be worth their cost; a log density,
#: which has no zero, by this much.
WORTHWHILE = 0.005
WORTHWHILE_LOG_DENSITY = 0.001
#: A loss higher by this fraction, or a log density lower by this much, may yet become the best.
PROMISING = 0.1


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
    objective: str
    given: frozenset[str]  # hyperparameters that calibration must leave alone

    def judge(
        self, model: LocalModel, predictions: Predictions, is_calibrated: bool | None = None
    ) -> Judgement:
        """Calibrate the leave-one-out predictions, and score them.

        What was tuned by a density is calibrated by that, unless ``is_calibrated`` is False.
        """
        failed = (predictions.status >= STATUS_NOT_POSITIVE_DEFINITE).any()
        if is_calibrated is None:
            is_calibrated = self.objective not in ("crps", "squared_error")
        if not (failed or is_calibrated):
            model, predictions = calibrate(model, predictions, self.y, self.noise, self.given)
        predicted = observation_distribution(model, predictions, self.noise)
        losses = np.full(len(self.y), BAD_VALUE) if failed else self._losses(predicted)
        losses = np.where(np.isfinite(losses), losses, BAD_VALUE)
        error = float(losses.std() / np.sqrt(len(losses)))
        return Judgement(model, predicted, float(losses.mean()), error)

    def is_worthwhile(self, larger: Candidate, smaller: Candidate) -> bool:
        """Whether more neighbors pay."""
        if self.objective in ("crps", "squared_error"):
            return larger.loss < smaller.loss - WORTHWHILE * smaller.loss
        return larger.loss < smaller.loss - WORTHWHILE_LOG_DENSITY

    def is_promising(self, loss: float, lowest: float) -> bool:
        """Whether a loss is so near the lowest that tuning may bring it there."""
        if self.objective in ("crps", "squared_error"):
            return loss < (1.0 + PROMISING) * lowest
        return loss < lowest + PROMISING

    def choose(
        self, candidates: Sequence[Candidate], n_models: int, fixed: Array, share: float
    ) -> Choice:
        """Combine candidates as far as their predictions say that it pays.

        The weights ``fixed``, which sum to 1, have a share in any case.
        """
        weights = choose_weights([c.predicted for c in candidates], self._criterion, n_models)
        weights = (1.0 - share) * weights + share * fixed
        used = np.flatnonzero(weights).tolist()
        combined = combine([candidates[k].predicted for k in used], weights[used])
        loss = float(self._losses(combined).mean())
        return Choice(weights, loss, coverage_factor(combined, self.y))

    def _criterion(self, predicted: PredictiveDistribution) -> float:
        """What a combination is chosen by: the objective, made aware of large errors."""
        if self.objective == "crps":
            return criterion(predicted, self.y)
        return float(self._losses(predicted).mean())

    def _losses(self, predicted: PredictiveDistribution) -> Array:
        """Loss of each point, by the objective."""
        if self.objective == "crps":
            return np.asarray(predicted.crps(self.y)).mean(axis=1)
        if self.objective == "squared_error":
            return ((predicted.mean - self.y) ** 2).mean(axis=1)
        return -np.asarray(predicted.logpdf(self.y)).mean(axis=1)


def choose_exact(
    problems: Sequence[LocalProblem], trial: Comparison, check_time: Callable[[], None]
) -> tuple[int, float]:
    """The problem whose model is the best exact GP of the compared points alone, and its loss."""
    losses = []
    for problem in problems:
        check_time()
        predictions = SharedSystem.solve(problem).leave_out(np.arange(len(trial.rows)))
        losses.append(trial.judge(problem.model, predictions, is_calibrated=False).loss)
    best = int(np.argmin(losses))
    return best, losses[best]
