# SPDX-License-Identifier: BSD-3-Clause
"""The family of boosted trees: where targets jump, steps fit better than any kernel.

There is one fit for each fold of the rows, to all rows outside the fold, so that every row is
predicted by trees that have not seen it. Trees of numbers predict a location; its scale comes from
other models. Trees of labels predict log odds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.grow import log_proba_of_odds
from lsgp.inputs.labels import one_hot
from lsgp.method.distribution import PredictiveDistribution
from lsgp.solvers.boosted import MOST_CLASSES, UNSEEN, grow_folds
from lsgp.tuning.budget import Rung, cost_of_trees
from lsgp.tuning.class_members import TreesMember
from lsgp.tuning.data import Problem, Stream
from lsgp.tuning.family import Family, Located, LogOdds, Spec, mean_log_loss
from lsgp.tuning.jobs import Job

Array = NDArray[np.float64]

#: With fewer rows, leaves would have too few. With one or two inputs, predictions are curves or
#: maps, in which users do not want steps. Of more rows, a sample is used, to limit the time.
FEWEST_ROWS, FEWEST_INPUTS, MOST_ROWS = 100, 3, 300_000
#: Number of folds, and of folds with more than MANY_ROWS rows.
N_FOLDS, FEW_FOLDS, MANY_ROWS = 5, 3, 10_000
#: Largest number of trees.
N_TREES = 1000
#: Degrees of freedom of the Student-t with which trees are judged alone.
DOF = 8.0


class Trees(Family):
    name = "trees"

    def starts(self, problem: Problem) -> list[Spec]:
        data = problem.data
        n, d = data.rows.X.shape
        is_admitted = (
            data.specification.admits_boosting
            and problem.budget.n_combined > 1
            and (data.labels is None or data.labels.n_classes <= MOST_CLASSES)
            and data.is_in_memory
            and data.objective.judges_predictions
            and n >= FEWEST_ROWS
            and d >= FEWEST_INPUTS
            and bool(np.ptp(data.y, axis=0).any())
            and len(np.unique(fold_numbers(problem))) > 1
        )
        if not is_admitted:
            return []
        model = data.specification.model
        return [Spec(self.name, data.space(data.specification.input_transforms[0]), model, None)]

    def predict(self, problem: Problem, spec: Spec, job: Job) -> Located | LogOdds:
        """Grow the trees of all folds, and judge their held-out predictions."""
        data, targets, labels = problem.data, problem.hold_out.targets, problem.data.labels
        X, y, noise = np.asarray(data.rows.X, dtype=float), data.y, data.rows.noise
        n_trees = N_TREES * min(1.0, problem.budget.work)
        weight: Array | None = None
        if labels is not None:
            y, weight = one_hot(labels.codes, labels.n_classes), labels.weight
            n_trees /= y.shape[1]
        elif (noise != noise[0]).any():
            weight = 1.0 / np.maximum(noise, np.finfo(float).tiny)
        growing = max(1, round(n_trees)), job.clock.check, job.share().n_threads
        folds = fold_numbers(problem)
        trees = grow_folds(X, y, weight, folds, *growing, has_labels=labels is not None)
        cost, held_out = cost_of_trees(trees.n_trees, trees.nodes.n_leaves), trees.held_out[targets]
        if labels is not None:
            log_proba = log_proba_of_odds(held_out)
            loss = mean_log_loss(labels, log_proba, targets)
            return LogOdds(self.name, log_proba, loss, cost, 0.0, 0, (TreesMember(trees),))
        observed = data.y[targets]
        scale = np.full_like(held_out, float(np.sqrt(np.mean((observed - held_out) ** 2))))
        alone = PredictiveDistribution(held_out, scale, np.full(len(held_out), DOF))
        loss = float(data.objective.losses(alone, observed).mean())
        return Located(self.name, trees, held_out, loss, cost)

    def work_of(self, problem: Problem, spec: Spec, rung: Rung) -> float:
        """Nominal milliseconds per rung."""
        n, d = problem.data.rows.X.shape
        return 0.02 * min(n, MOST_ROWS) * d


def fold_numbers(problem: Problem) -> NDArray[np.int64]:
    """The fold of each row (n,), UNSEEN beyond MOST_ROWS; blocks of the hold-out stay together."""
    data = problem.data
    folds = problem.hold_out.folds(data.n, N_FOLDS if data.n <= MANY_ROWS else FEW_FOLDS)
    if data.n > MOST_ROWS:
        folds[data.random(Stream.TREES).permutation(data.n)[MOST_ROWS:]] = UNSEEN
    return folds
