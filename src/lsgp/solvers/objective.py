# SPDX-License-Identifier: BSD-3-Clause
"""Objectives: the losses that tuning minimizes, and comparisons of models by them."""

from __future__ import annotations

import math
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
Rows = NDArray[np.int32]

#: Loss of a model with a local system that cannot be solved: bad, but finite for the optimizer.
BAD_LOSS = 1e6
#: Lower bound of losses, so that the logarithm of a perfect prediction's loss is finite.
LEAST_LOSS = 1e-300
#: Models of more than MOST_COLUMNS classes are optimized on N_PROJECTED projections of the one-hot
#: targets. On average, projections on random signs have the squared error of all columns.
MOST_COLUMNS, N_PROJECTED = 12, 8


class Scorer(Protocol):
    """Computes losses and their gradients: a backend, or a queue in front of a device."""

    def plan(self, size: SystemSize, n_queries: int, resources: Resources) -> Plan: ...

    def score(self, request: ScoreRequest) -> Scores: ...


@dataclass(frozen=True)
class Objective:
    """A mean over targets of a positive loss; subclasses say which."""

    name: str  # the value of the setting ``objective``
    score_name: str  # of the score in the units of the targets, for reports
    is_slow: bool = False  # whether it is the likelihood, which the reference backend computes
    fixes: frozenset[str] = frozenset()  # hyperparameters that it cannot tune
    #: Whether it leaves the scale of predictions open, to be calibrated by their density.
    calibrates_scale: bool = True
    kernels: tuple[str, ...] | None = None  # worth trying; None: all that the settings leave open
    #: Whether it scores held-out predictions, so that models can be combined by it. If not, it
    #: selects one model, without calibration.
    judges_predictions: bool = True

    @property
    def loss_name(self) -> str:
        """Name of the loss in scaled units."""
        plain = self.name.replace("_", " ")
        return f"leave-one-out {plain}" if self.judges_predictions else self.score_name

    def score(
        self,
        problem: LocalProblem,
        targets: Rows,
        neighbors: Rows,
        scorer: Scorer,
        resources: Resources,
    ) -> Scores:
        """Compute loss and gradient of each target in threads; failures remain status codes."""

        def score_level(part: LocalProblem) -> Scores:
            if self.is_slow:
                return reference.marginal_likelihood(part, targets, neighbors)
            width, n = max(neighbors.shape[1], 1), len(targets)
            plan = scorer.plan(SystemSize.of(part, width, has_gradient=True), n, resources)
            request = ScoreRequest(part, targets, neighbors, self.name)

            def work(start: int, stop: int) -> Scores:
                return scorer.score(request.block(start, stop))

            blocks = run_blocks(work, n, plan.block_size, plan.n_threads, pool=resources.pool)
            scores: Scores = concatenate_results(list(blocks))
            return scores

        # Columns of y with equal noise are scored together.
        parts = [(len(columns), score_level(part)) for columns, part in problem.by_noise_level()]
        if len(parts) == 1:
            return parts[0][1]
        n_columns = sum(size for size, _ in parts)
        return Scores(
            np.asarray(sum(size * scores.loss for size, scores in parts)) / n_columns,
            np.asarray(sum(size * scores.gradient for size, scores in parts)) / n_columns,
            np.max([scores.status for _, scores in parts], axis=0),
        )

    def losses(self, predicted: PredictiveDistribution, observed: Array) -> Array:
        """Loss of each target, mean over the columns of y, (q,)."""
        raise AssertionError(f"{self.name} has no losses")

    def criterion(self, losses: Array, errors: Array) -> tuple[float, Array, Array]:
        """Criterion of combinations, and its gradients in the losses (q,) and errors (q, t).

        It is a logarithm, so that a difference of .01 is one percent in any units.
        """
        mean = max(float(losses.mean()), LEAST_LOSS)
        return math.log(mean), np.full(len(losses), 1.0 / (mean * len(losses))), 0.0 * errors

    def excess(self, loss: float, lowest: float) -> float:
        """How much worse a loss is than the lowest, as a fraction."""
        return math.log(max(loss, LEAST_LOSS) / max(lowest, LEAST_LOSS))

    def unit(self, loss: float) -> float:
        """Unit of differences of losses: the loss itself, or 1 if losses have no natural zero."""
        return abs(loss)

    def in_units(self, loss: float, std: float) -> float:
        """Convert a loss of scaled targets to the units of targets with this deviation."""
        return loss * std

    def describe_units(self, n_targets: int) -> str:
        """Describe the unit of a loss, to follow its number; empty if it has none."""
        return " in the units of y" if n_targets == 1 else " in the standard deviations of y"


class Crps(Objective):
    def losses(self, predicted: PredictiveDistribution, observed: Array) -> Array:
        return np.asarray(predicted.crps(observed)).mean(axis=1)

    def criterion(self, losses: Array, errors: Array) -> tuple[float, Array, Array]:
        """Mean of the logarithms of CRPS and RMSE; the CRPS alone hardly penalizes large errors."""
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


class LogLoss(Objective):
    """Log loss of labels. Models are optimized by squared errors of one-hot columns."""

    def score(
        self,
        problem: LocalProblem,
        targets: Rows,
        neighbors: Rows,
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


@cache
def _signs(n_columns: int) -> Array:
    """Fixed random signs (n_columns, N_PROJECTED); they have E (rᵀe)² = Σ e_c²."""
    rng = np.random.default_rng(0)
    return rng.choice([-1.0, 1.0], size=(n_columns, N_PROJECTED))


OBJECTIVES: dict[str, Objective] = {
    objective.name: objective
    for objective in (
        Crps("crps", "leave-one-out CRPS"),
        LogDensity("log_density", "leave-one-out negative log density", calibrates_scale=False),
        # Means do not depend on the scale, which only calibration sets.
        SquaredError(
            "squared_error",
            "leave-one-out root mean squared error",
            fixes=frozenset({"signal_variance", "scale_dof"}),
        ),
        # The paper's objective, for a given bandwidth and localizer: the likelihood of each
        # target's neighborhood, not of the target.
        LogDensity(
            "marginal_likelihood",
            "negative log marginal likelihood of neighborhoods per row",
            is_slow=True,
            fixes=frozenset({"localizer_decay", "scale_dof"}),
            calibrates_scale=False,
            judges_predictions=False,
        ),
        # Labels are steps, for which smoother kernels do not pay.
        LogLoss("log_loss", "leave-one-out log loss", kernels=("matern12", "matern32")),
    )
}


def objective_of(setting: str, has_queries: bool) -> Objective:
    """Return the objective of a setting; "auto" depends on whether the queries are known.

    With known queries, targets leave out rows within different radii and differ much in difficulty.
    Differences of log densities do not depend on the size of errors.
    """
    if setting == "auto":
        setting = "log_density" if has_queries else "crps"
    return OBJECTIVES[setting]
