# SPDX-License-Identifier: BSD-3-Clause
"""The families of log odds of labels: logistic regression, and GP classification of few rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.dense_host import HOST
from lsgp.inputs.labels import Labels, one_hot
from lsgp.solvers.evidence import make_exact
from lsgp.solvers.laplace import MOST_CLASSES, LaplaceGP, integrate_labels
from lsgp.solvers.log_odds import N_FOLDS, fit_logistic, laplace_held_out, logistic_held_out
from lsgp.solvers.posterior import Choices
from lsgp.tuning.budget import PASSES_OF_LOGISTIC, Rung, cost_of_exact, cost_of_logistic
from lsgp.tuning.class_members import LaplaceMember, LinearMember
from lsgp.tuning.data import Data, Problem
from lsgp.tuning.family import Family, LogOdds, Spec, mean_log_loss
from lsgp.tuning.jobs import Job
from lsgp.tuning.space import Space

Array = NDArray[np.float64]

#: Largest number of rows of logistic regressions, and of logistic regressions with all ridges.
MOST_FOR_LOGISTIC, MOST_FOR_RIDGES = 10_000, 2000
#: Ridges that are tried; with more rows, only the last two.
RIDGES = (0.1, 1.0, 10.0, 100.0)
#: Largest number of rows of GP classification, and its kernels.
MOST_FOR_AVERAGE, LAPLACE_KERNELS = 100, ("matern32", "rbf")
#: The class prior has the share k / (n + k) in members of the average; this is k.
PRIOR_ROWS = 2.0


def _admits(problem: Problem) -> bool:
    """Whether the settings leave the kind of models and their bounds open."""
    data, settings = problem.data, problem.data.specification
    is_open = settings.admits_exact and data.has_own_bounds
    return data.is_in_memory and problem.budget.n_combined > 1 and is_open


def _labels(data: Data) -> Labels:
    assert data.labels is not None, "log odds are of labels"
    return data.labels


class Logistic(Family):
    name = "logistic"
    of_labels = True

    def starts(self, problem: Problem) -> list[Spec]:
        data = problem.data
        if not _admits(problem) or data.n > MOST_FOR_LOGISTIC:
            return []
        model = data.specification.model
        kinds = data.specification.input_transforms
        return [Spec(self.name, data.space(each), model, None) for each in kinds]

    def predict(self, problem: Problem, spec: Spec, job: Job) -> LogOdds:
        """Judge the logistic regression whose ridge has the lowest held-out loss."""
        data, hold_out, _ = problem
        labels, Z = _labels(data), spec.space.X
        folds, rows = hold_out.folds(data.n, N_FOLDS), hold_out.targets
        tried = []
        for ridge in RIDGES if data.n <= MOST_FOR_RIDGES else RIDGES[2:]:
            job.clock.check()
            log_proba = logistic_held_out(Z, labels.known, ridge, rows, folds)
            tried.append((mean_log_loss(labels, log_proba, rows), ridge, log_proba))
        loss, ridge, log_proba = min(tried, key=lambda each: each[0])
        logits = fit_logistic(Z, labels.known, ridge)
        parts = (LinearMember(spec.space.transform, logits, ridge),)
        cost = cost_of_logistic(data.d, labels.n_classes)
        return LogOdds(self.name, log_proba, loss, cost, 0.0, 1, parts)

    def work_of(self, problem: Problem, spec: Spec, rung: Rung) -> float:
        """Nominal milliseconds of all fits."""
        data = problem.data
        return PASSES_OF_LOGISTIC * data.n * cost_of_logistic(data.d, _labels(data).n_classes)


class LaplaceAverage(Family):
    """GP classification of few labels, averaged over the posterior of its hyperparameters.

    A label carries little information, so few labels hardly constrain hyperparameters. These are
    drawn from their prior and weighted by Laplace's evidence [C9].
    """

    name = "laplace average"
    of_labels = True

    def starts(self, problem: Problem) -> list[Spec]:
        data, settings = problem.data, problem.data.specification
        is_admitted = (
            _admits(problem)
            and data.n <= MOST_FOR_AVERAGE
            and not settings.states_bounds
            and data.rows.groups is None
            and _labels(data).n_classes <= MOST_CLASSES
            and HOST.evidence_bytes(data.n) <= data.resources.memory_budget
        )
        if not is_admitted:
            return []
        model = make_exact(settings.model, settings.given)
        return [Spec(self.name, data.space(settings.input_transforms[0]), model, data.n)]

    def predict(self, problem: Problem, spec: Spec, job: Job) -> LogOdds:
        data, hold_out, _ = problem
        labels = _labels(data)
        choices, spaces = data.choices(LAPLACE_KERNELS)
        members = _integrate(choices, spaces, labels, job)
        folds, rows = hold_out.folds(data.n, N_FOLDS), hold_out.targets
        log_proba = sum(
            one.weight * laplace_held_out(one.gp, one.gp.Z, labels.known, rows, folds)
            for one in members
        )
        # [C4] As predictions are pooled.
        log_proba -= np.log(np.exp(log_proba).sum(axis=1, keepdims=True))
        cost = cost_of_exact(data.n) * labels.n_classes * len(members)
        loss = mean_log_loss(labels, log_proba, rows)
        return LogOdds(self.name, log_proba, loss, cost, 0.0, 1, tuple(members))

    def work_of(self, problem: Problem, spec: Spec, rung: Rung) -> float:
        return 50.0 * problem.data.n


def _integrate(
    choices: Choices, spaces: list[Space], labels: Labels, job: Job
) -> list[LaplaceMember]:
    """Sample members from the posterior of the hyperparameters, with weights that sum to 1."""
    columns = one_hot(labels.codes, labels.n_classes)
    share = PRIOR_ROWS / (len(labels.codes) + PRIOR_ROWS)
    known = (labels.codes, labels.weight, labels.prior, share)
    members = []
    for drawn in integrate_labels(choices, columns, labels.weight, job.rng, job.clock):
        center = choices.inputs[drawn.x].mean(axis=0)
        gp = LaplaceGP.fit(drawn.covariance, choices.inputs[drawn.x] - center, *known)
        members.append(LaplaceMember(spaces[drawn.x].transform, center, gp, drawn.weight))
    return members
