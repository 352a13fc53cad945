# SPDX-License-Identifier: BSD-3-Clause
"""Objectives: what tuning minimizes, and all that follows from which one it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import reference
from lsgp.backends.contract import Plan, Resources
from lsgp.compute.threads import run_blocks
from lsgp.method.contract import LocalProblem, Scores, concatenate_results
from lsgp.method.distribution import PredictiveDistribution
from lsgp.tuning.classes.plan import MOST_COLUMNS, N_PROJECTED
from lsgp.tuning.plan import (
    ALL_KINDS,
    OF_CLASSES,
    PROMISING,
    WORTH_MORE_NEIGHBORS,
    WORTH_MORE_NEIGHBORS_IN_DENSITY,
    Breadth,
)

Array = NDArray[np.float64]


class Scorer(Protocol):
    """Who computes losses, and their gradients: a backend, or what stands before it."""

    def plan(
        self,
        problem: LocalProblem,
        n_neighbors: int | None,
        n_queries: int,
        resources: Resources,
        gradient: bool = False,
    ) -> Plan: ...

    def score(
        self,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
        objective: str,
    ) -> Scores: ...


@dataclass(frozen=True)
class Objective:
    """One that is a mean over points; subclasses say of what.

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
    variants : tuple of str
        Other objectives that the best candidates are tuned by as well.
    calibrates_scale : bool
        Whether it leaves the scale of predictions open, to be calibrated by their density.
    judges_unseen : bool
        Whether candidates are compared on other rows than those that they are optimized on.
    breadth : Breadth
        Which candidates are worth trying.
    judges_predictions : bool
        Whether it is a score of leave-one-out predictions, so that models can be combined by it,
        and what they predict be corrected. If not, it chooses one model, as it is.
    """

    name: str
    score_name: str
    is_slow: bool = False
    fixes: frozenset[str] = frozenset()
    variants: tuple[str, ...] = ()
    calibrates_scale: bool = True
    judges_unseen: bool = False
    breadth: Breadth = ALL_KINDS
    judges_predictions: bool = True

    @property
    def loss_name(self) -> str:
        """What a loss is, in scaled units."""
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
        """The same where the columns of y are alike in noise."""
        width, n = max(neighbors.shape[1], 1), len(targets)
        plan = scorer.plan(problem, width, n, resources, gradient=True)

        def work(start: int, stop: int) -> Scores:
            part = slice(start, stop)
            return scorer.score(problem, targets[part], neighbors[part], self.name)

        results = list(run_blocks(work, n, plan.block_size, plan.n_threads, pool=resources.pool))
        scores: Scores = concatenate_results(results)
        return scores

    def losses(self, predicted: PredictiveDistribution, observed: Array) -> Array:
        """Loss of each point, (q,), mean over the targets."""
        raise AssertionError(f"{self.name} has no losses")

    def judge(
        self,
        predicted: PredictiveDistribution,
        observed: Array,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
    ) -> Array:
        """Loss of each target, (q,), that a candidate is judged by."""
        return self.losses(predicted, observed)

    def criterion(self, predicted: PredictiveDistribution, observed: Array) -> float:
        """What a combination of models is chosen by."""
        return float(self.losses(predicted, observed).mean())

    def unit(self, loss: float) -> float:
        """What a prior is relative to, so that it weighs the same whatever the loss's unit."""
        return abs(loss)

    def unit_of_criterion(self, value: float) -> float:
        """By how much the criterion rises where the loss does by all of itself."""
        return self.unit(value)

    def is_worthwhile(self, loss: float, cheaper: float, cost: float = 0.0) -> bool:
        """Whether a loss is so much lower than that of a cheaper model that it is worth it.

        ``cost`` is what it must gain beside, as a fraction, for what predictions take.
        """
        return loss < cheaper - (WORTH_MORE_NEIGHBORS + cost) * cheaper

    def is_promising(self, loss: float, lowest: float) -> bool:
        """Whether a loss is so near the lowest that tuning may bring it there."""
        return loss < (1.0 + PROMISING) * lowest

    def in_units(self, loss: float, std: float) -> float:
        """A loss of scaled targets, for targets of this standard deviation."""
        return loss * std

    def describe_units(self, n_targets: int) -> str:
        """What the loss is in, as it follows the number; empty if it has no units."""
        return " in the units of y" if n_targets == 1 else " in the standard deviations of y"


class Crps(Objective):
    def losses(self, predicted: PredictiveDistribution, observed: Array) -> Array:
        return np.asarray(predicted.crps(observed)).mean(axis=1)

    def criterion(self, predicted: PredictiveDistribution, observed: Array) -> float:
        """CRPS times RMSE: the CRPS alone hardly notices large errors of means in the tails."""
        error = float(np.sqrt(np.mean((predicted.mean - observed) ** 2)))
        return error * float(np.mean(predicted.crps(observed)))

    def unit_of_criterion(self, value: float) -> float:
        return 2.0 * abs(value)  # a product of two that rise alike


class SquaredError(Objective):
    def losses(self, predicted: PredictiveDistribution, observed: Array) -> Array:
        return ((predicted.mean - observed) ** 2).mean(axis=1)

    def in_units(self, loss: float, std: float) -> float:
        return math.sqrt(loss) * std


class LogDensity(Objective):
    def losses(self, predicted: PredictiveDistribution, observed: Array) -> Array:
        return -np.asarray(predicted.logpdf(observed)).mean(axis=1)

    def unit(self, loss: float) -> float:
        return 1.0

    def is_worthwhile(self, loss: float, cheaper: float, cost: float = 0.0) -> bool:
        return loss < cheaper - WORTH_MORE_NEIGHBORS_IN_DENSITY - cost

    def is_promising(self, loss: float, lowest: float) -> bool:
        return loss < lowest + PROMISING

    def in_units(self, loss: float, std: float) -> float:
        return loss + math.log(std)


class MarginalLikelihood(LogDensity):
    """The paper's: of the neighborhood of each point, rather than of the point."""

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
    """Of labels, judged by `LabelComparison`; means are optimized by their squared error.

    Descending by the log loss itself took two to three times as long, for .000 to .004 less (magic)
    and for more where rows are few (pima .425 to .447).
    """

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
    """The mean over the columns of y, of which those alike in noise are scored together."""
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
    """Random signs (n_columns, N_PROJECTED), the same every time.

    Errors e of all columns have the squared error E (rᵀe)² = Σ e_c², with r of random signs.
    """
    rng = np.random.default_rng(0)
    return rng.choice([-1.0, 1.0], size=(n_columns, N_PROJECTED))


OBJECTIVES: dict[str, Objective] = {
    objective.name: objective
    for objective in (
        # Means tuned by squares are closer to the conditional mean where errors have heavy tails.
        Crps("crps", "leave-one-out CRPS", variants=("squared_error",)),
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
        LogLoss("log_loss", "leave-one-out log loss", judges_unseen=True, breadth=OF_CLASSES),
    )
}


def objective_of(setting: str, has_queries: bool) -> Objective:
    """What the setting asks for; "auto" depends on whether the queries are known.

    With exclusion radii the targets differ widely in difficulty, and log density is blind to that
    (satellite: CRPS .781 against .81).
    """
    if setting == "auto":
        setting = "log_density" if has_queries else "crps"
    return OBJECTIVES[setting]
