# SPDX-License-Identifier: BSD-3-Clause
"""Objectives: what tuning minimizes, and how models and combinations are compared by it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import reference
from lsgp.backends.contract import Plan, Resources, ScoreRequest, SystemSize
from lsgp.compute.threads import run_blocks
from lsgp.method.contract import LocalProblem, Scores, concatenate_results
from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]

#: Loss of a model with a local system that cannot be solved: bad, but finite for the optimizer.
BAD_LOSS = 1e6
#: Losses below are those of perfect predictions: their logarithm must be finite.
LEAST_LOSS = 1e-300
#: One-hot targets of more classes than this are projected to fewer columns where models are
#: optimized: the squared error of random combinations with signs is that of all, on average.
MOST_COLUMNS, N_PROJECTED = 12, 8


class Scorer(Protocol):
    """What computes losses and their gradients: a backend, or a queue in front of a device."""

    def plan(self, size: SystemSize, n_queries: int, resources: Resources) -> Plan: ...

    def score(self, request: ScoreRequest) -> Scores: ...


@dataclass(frozen=True)
class Objective:
    """A mean over targets of a positive loss; subclasses say which.

    Attributes
    ----------
    name : str
        As users give it.
    score_name : str
        As people read it, in the units of the targets.
    is_slow : bool
        Whether only the reference backend computes it.
    fixes : frozenset of str
        Hyperparameters that it cannot tune.
    calibrates_scale : bool
        Whether it leaves the scale of predictions open, to be calibrated by their density.
    kernels : tuple of str or None
        Kernels that are worth trying; None: all that the settings leave open.
    judges_predictions : bool
        Whether it is a score of held-out predictions, so that models can be combined by it. If
        not, it chooses one model, as it is.
    """

    name: str
    score_name: str
    is_slow: bool = False
    fixes: frozenset[str] = frozenset()
    calibrates_scale: bool = True
    kernels: tuple[str, ...] | None = None
    judges_predictions: bool = True

    @property
    def loss_name(self) -> str:
        """What a loss is called, in scaled units."""
        plain = self.name.replace("_", " ")
        return f"leave-one-out {plain}" if self.judges_predictions else self.score_name

    def score(
        self,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
        scorer: Scorer,
        resources: Resources,
    ) -> Scores:
        """Loss and gradient of each target, on threads; failures stay status codes."""

        def score(part: LocalProblem) -> Scores:
            return self.score_alike(part, targets, neighbors, scorer, resources)

        return _score_by_level(problem, score)

    def score_alike(
        self,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
        scorer: Scorer,
        resources: Resources,
    ) -> Scores:
        """The same where all columns of y have one noise level."""
        width, n = max(neighbors.shape[1], 1), len(targets)
        plan = scorer.plan(SystemSize.of(problem, width, has_gradient=True), n, resources)
        request = ScoreRequest(problem, targets, neighbors, self.name)

        def work(start: int, stop: int) -> Scores:
            return scorer.score(request.block(start, stop))

        results = list(run_blocks(work, n, plan.block_size, plan.n_threads, pool=resources.pool))
        scores: Scores = concatenate_results(results)
        return scores

    def losses(self, predicted: PredictiveDistribution, observed: Array) -> Array:
        """Loss of each target, (q,), mean over the columns of y."""
        raise AssertionError(f"{self.name} has no losses")

    def judge(
        self,
        predicted: PredictiveDistribution,
        observed: Array,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
    ) -> Array:
        """Loss of each target, (q,), that a local model is judged by."""
        return self.losses(predicted, observed)

    def criterion(self, losses: Array, errors: Array) -> tuple[float, Array, Array]:
        """What combinations are chosen by, and its slopes in the losses (q,) and errors (q, t).

        In logarithms, so that a difference of .01 is one percent whatever the units.
        """
        mean = max(float(losses.mean()), LEAST_LOSS)
        return math.log(mean), np.full(len(losses), 1.0 / (mean * len(losses))), 0.0 * errors

    def excess(self, loss: float, lowest: float) -> float:
        """How much worse a loss is than another, as a fraction."""
        return math.log(max(loss, LEAST_LOSS) / max(lowest, LEAST_LOSS))

    def unit(self, loss: float) -> float:
        """The loss itself, for whatever is to be relative to it; 1 where losses have no zero."""
        return abs(loss)

    def in_units(self, loss: float, std: float) -> float:
        """A loss of scaled targets, for targets of this standard deviation."""
        return loss * std

    def describe_units(self, n_targets: int) -> str:
        """The unit of a loss, as it follows the number; empty if it has none."""
        return " in the units of y" if n_targets == 1 else " in the standard deviations of y"


class Crps(Objective):
    def losses(self, predicted: PredictiveDistribution, observed: Array) -> Array:
        return np.asarray(predicted.crps(observed)).mean(axis=1)

    def criterion(self, losses: Array, errors: Array) -> tuple[float, Array, Array]:
        """Mean of the logarithms of CRPS and RMSE: the CRPS alone hardly notices large errors."""
        value, by_losses, _ = super().criterion(losses, errors)
        square = max(float(np.mean(errors**2)), LEAST_LOSS)
        by_errors = 0.5 * errors / (square * errors.size)
        return 0.5 * (value + 0.5 * math.log(square)), 0.5 * by_losses, by_errors


class SquaredError(Objective):
    def losses(self, predicted: PredictiveDistribution, observed: Array) -> Array:
        return ((predicted.mean - observed) ** 2).mean(axis=1)

    def in_units(self, loss: float, std: float) -> float:
        return math.sqrt(loss) * std


class LogDensity(Objective):
    def losses(self, predicted: PredictiveDistribution, observed: Array) -> Array:
        return -np.asarray(predicted.logpdf(observed)).mean(axis=1)

    def criterion(self, losses: Array, errors: Array) -> tuple[float, Array, Array]:
        return float(losses.mean()), np.full(len(losses), 1.0 / len(losses)), 0.0 * errors

    def excess(self, loss: float, lowest: float) -> float:
        return loss - lowest

    def unit(self, loss: float) -> float:
        return 1.0

    def in_units(self, loss: float, std: float) -> float:
        return loss + math.log(std)


class MarginalLikelihood(LogDensity):
    """The paper's: of the neighborhood of each target, rather than of the target."""

    def judge(
        self,
        predicted: PredictiveDistribution,
        observed: Array,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
    ) -> Array:
        def score(part: LocalProblem) -> Scores:
            return reference.marginal_likelihood(part, targets, neighbors)

        return np.asarray(_score_by_level(problem, score).loss, dtype=float)

    def score_alike(
        self,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
        scorer: Scorer,
        resources: Resources,
    ) -> Scores:
        return reference.marginal_likelihood(problem, targets, neighbors)


class LogLoss(Objective):
    """Of labels: models are optimized by squared errors of one-hot columns, judged by log loss."""

    def score(
        self,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
        scorer: Scorer,
        resources: Resources,
    ) -> Scores:
        n_columns = problem.y.shape[1]
        if n_columns > MOST_COLUMNS:
            projected = problem.y @ _signs(n_columns)
            y = np.ascontiguousarray(projected, dtype=problem.y.dtype)
            problem = problem._replace(y=y)
        return OBJECTIVES["squared_error"].score(problem, targets, neighbors, scorer, resources)

    def in_units(self, loss: float, std: float) -> float:
        return loss

    def describe_units(self, n_targets: int) -> str:
        return ""


def _score_by_level(problem: LocalProblem, score: Callable[[LocalProblem], Scores]) -> Scores:
    """The mean over the columns of y; columns of one noise level are scored together."""
    parts = [(len(columns), score(part)) for columns, part in problem.by_noise_level()]
    if len(parts) == 1:
        return parts[0][1]
    n_columns = sum(size for size, _ in parts)
    return Scores(
        np.asarray(sum(size * scores.loss for size, scores in parts)) / n_columns,
        np.asarray(sum(size * scores.gradient for size, scores in parts)) / n_columns,
        np.max([scores.status for _, scores in parts], axis=0),
    )


@cache
def _signs(n_columns: int) -> Array:
    """Random signs (n_columns, N_PROJECTED), the same every time: E (rᵀe)² = Σ e_c²."""
    rng = np.random.default_rng(0)
    return rng.choice([-1.0, 1.0], size=(n_columns, N_PROJECTED))


OBJECTIVES: dict[str, Objective] = {
    objective.name: objective
    for objective in (
        Crps("crps", "leave-one-out CRPS"),
        LogDensity("log_density", "leave-one-out negative log density", calibrates_scale=False),
        # Means do not depend on the scale: calibration alone sets it.
        SquaredError(
            "squared_error",
            "leave-one-out root mean squared error",
            fixes=frozenset({"signal_variance", "scale_dof"}),
        ),
        # The paper's is for a given bandwidth and localizer.
        MarginalLikelihood(
            "marginal_likelihood",
            "negative log marginal likelihood of neighborhoods per row",
            is_slow=True,
            fixes=frozenset({"localizer_decay", "scale_dof"}),
            calibrates_scale=False,
            judges_predictions=False,
        ),
        # Labels are steps: smoother kernels never had a share.
        LogLoss("log_loss", "leave-one-out log loss", kernels=("matern12", "matern32")),
    )
}


def objective_of(setting: str, has_queries: bool) -> Objective:
    """What the setting asks for; "auto" depends on whether the queries are known.

    With exclusion radii, targets differ widely in difficulty: log density is blind to that scale.
    """
    if setting == "auto":
        setting = "log_density" if has_queries else "crps"
    return OBJECTIVES[setting]
