# SPDX-License-Identifier: BSD-3-Clause
"""Objectives: what tuning minimizes, and all that follows from which one it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import reference
from lsgp.backends.contract import Backend, Resources
from lsgp.compute.threads import run_blocks
from lsgp.method.contract import LocalProblem, Scores, concatenate_results
from lsgp.method.distribution import PredictiveDistribution
from lsgp.tuning.plan import (
    PROMISING,
    WORTH_MORE_NEIGHBORS,
    WORTH_MORE_NEIGHBORS_IN_DENSITY,
)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Objective:
    """One that is a mean over points; subclasses say of what.

    Attributes
    ----------
    name : str
        As users give it.
    score_name : str
        As people read it.
    is_slow : bool
        Whether only the reference backend computes it.
    fixes : frozenset of str
        Hyperparameters that it cannot tune.
    variants : tuple of str
        Other objectives that the best candidates are tuned by as well.
    calibrates_scale : bool
        Whether it leaves the scale of predictions open, to be calibrated by their density.
    """

    name: str
    score_name: str
    is_slow: bool = False
    fixes: frozenset[str] = frozenset()
    variants: tuple[str, ...] = ()
    calibrates_scale: bool = True

    def score(
        self,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
        backend: Backend,
        resources: Resources,
    ) -> Scores:
        """Loss and gradient of each target, on threads; failures stay status codes."""
        parts = [
            (len(columns), self.score_alike(part, targets, neighbors, backend, resources))
            for columns, part in problem.by_noise_level()
        ]
        if len(parts) == 1:
            return parts[0][1]
        n_columns = sum(size for size, _ in parts)
        return Scores(
            np.asarray(sum(size * scores.loss for size, scores in parts)) / n_columns,
            np.asarray(sum(size * scores.gradient for size, scores in parts)) / n_columns,
            np.max([scores.status for _, scores in parts], axis=0),
        )

    def score_alike(
        self,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
        backend: Backend,
        resources: Resources,
    ) -> Scores:
        """The same where the columns of y are alike in noise."""
        width, n = max(neighbors.shape[1], 1), len(targets)
        plan = backend.plan(problem, width, n, resources, gradient=True)

        def work(start: int, stop: int) -> Scores:
            part = slice(start, stop)
            return backend.score(problem, targets[part], neighbors[part], self.name)

        results = list(run_blocks(work, n, plan.block_size, plan.n_threads))
        scores: Scores = concatenate_results(results)
        return scores

    def losses(self, predicted: PredictiveDistribution, observed: Array) -> Array:
        """Loss of each point, (q,), mean over the targets."""
        raise AssertionError(f"{self.name} has no losses")

    def criterion(self, predicted: PredictiveDistribution, observed: Array) -> float:
        """What a combination of models is chosen by."""
        return float(self.losses(predicted, observed).mean())

    def unit(self, loss: float) -> float:
        """What a prior is relative to, so that it weighs the same whatever the loss's unit."""
        return abs(loss)

    def is_worthwhile(self, loss: float, cheaper: float) -> bool:
        """Whether a loss is so much lower than that of a cheaper model that it is worth it."""
        return loss < cheaper - WORTH_MORE_NEIGHBORS * cheaper

    def is_promising(self, loss: float, lowest: float) -> bool:
        """Whether a loss is so near the lowest that tuning may bring it there."""
        return loss < (1.0 + PROMISING) * lowest

    def in_units(self, loss: float, std: float) -> float:
        """A loss of scaled targets, for targets of this standard deviation."""
        return loss * std


class Crps(Objective):
    def losses(self, predicted: PredictiveDistribution, observed: Array) -> Array:
        return np.asarray(predicted.crps(observed)).mean(axis=1)

    def criterion(self, predicted: PredictiveDistribution, observed: Array) -> float:
        """CRPS times RMSE: the CRPS alone hardly notices large errors of means in the tails."""
        error = float(np.sqrt(np.mean((predicted.mean - observed) ** 2)))
        return error * float(np.mean(predicted.crps(observed)))


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

    def is_worthwhile(self, loss: float, cheaper: float) -> bool:
        return loss < cheaper - WORTH_MORE_NEIGHBORS_IN_DENSITY

    def is_promising(self, loss: float, lowest: float) -> bool:
        return loss < lowest + PROMISING

    def in_units(self, loss: float, std: float) -> float:
        return loss + math.log(std)


class MarginalLikelihood(LogDensity):
    """The paper's: of the neighborhood of each point, rather than of the point."""

    def score_alike(
        self,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
        backend: Backend,
        resources: Resources,
    ) -> Scores:
        return reference.marginal_likelihood(problem, targets, neighbors)


OBJECTIVES: dict[str, Objective] = {
    objective.name: objective
    for objective in (
        # Means tuned by squares are closer to the conditional mean where errors have heavy tails.
        Crps("crps", "CRPS", variants=("squared_error",)),
        LogDensity("log_density", "negative log density", calibrates_scale=False),
        SquaredError("squared_error", "root mean squared error"),
        # The paper's is for a given bandwidth and localizer.
        MarginalLikelihood(
            "marginal_likelihood",
            "negative log density",
            is_slow=True,
            fixes=frozenset({"localizer_decay", "scale_dof"}),
            calibrates_scale=False,
        ),
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
