# SPDX-License-Identifier: BSD-3-Clause
"""The interface of a family of models, and models: specified, tuned and judged."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.labels import Labels
from lsgp.inputs.transforms import LINKED_KINDS
from lsgp.method.calibration import calibrate
from lsgp.method.contract import STATUS_NOT_POSITIVE_DEFINITE, LocalModel, LocalProblem, Predictions
from lsgp.method.distribution import distribution_of
from lsgp.method.link import default_link, fit_link
from lsgp.solvers.boosted import BoostedTrees
from lsgp.solvers.exact_system import ExactSystem
from lsgp.solvers.objective import BAD_LOSS
from lsgp.tuning.budget import Rung
from lsgp.tuning.class_members import Member
from lsgp.tuning.data import Data, Problem
from lsgp.tuning.hold_out import HoldOut
from lsgp.tuning.jobs import Job
from lsgp.tuning.result import Candidate
from lsgp.tuning.space import Sample, Space

Array = NDArray[np.float64]


class Spec(NamedTuple):
    """The specification of a model, with which tuning or a warm start begins."""

    family: str
    space: Space
    model: LocalModel
    n_neighbors: int | None


class Tuned(NamedTuple):
    """A tuned model, not yet judged on the hold-out."""

    spec: Spec
    score: float  # lower is better; comparable within a family, on the same rows
    log_evidence: float = 0.0  # of the rows on which all models of its family are tuned


class Contender(NamedTuple):
    """A GP model, judged on the hold-out."""

    family: str
    space: Space  # the rows in its input transform
    candidate: Candidate  # for users: hyperparameters, held-out predictions, loss
    cost: float = 0.0  # nominal milliseconds of one prediction
    log_evidence: float = 0.0  # gives the prior weights of models of one family
    n_tuned: int = 0  # number of hyperparameters that were tuned on the targets
    noise: float = math.inf  # mean variance of the noise of held-out targets, in scaled units
    system: ExactSystem | None = None  # the factored system of all rows, of an exact GP
    parts: tuple[Contender, ...] = ()  # of equal weight, of an average over the posterior

    @property
    def loss(self) -> float:
        return self.candidate.loss

    @property
    def model(self) -> LocalModel:
        return self.candidate.model

    @property
    def n_neighbors(self) -> int | None:
        return self.candidate.n_neighbors

    def describe(self) -> str:
        return self.candidate.describe()

    @property
    def spec(self) -> Spec:
        """The specification from which another optimization may continue."""
        return Spec(self.family, self.space, self.model, self.n_neighbors)


class LogOdds(NamedTuple):
    """A model of the log odds of labels, judged on the hold-out."""

    family: str
    log_proba: Array  # (k, C) of the held-out targets, by fits without them
    loss: float
    cost: float  # nominal milliseconds of one prediction
    log_evidence: float  # gives the prior weights of models of one family
    n_tuned: int  # number of hyperparameters that were tuned on the labels
    parts: tuple[Member, ...]  # classifiers of all rows, with weights that sum to 1

    def describe(self) -> str:
        return self.family


def mean_log_loss(labels: Labels, log_proba: Array, rows: NDArray[np.integer]) -> float:
    """Mean log loss of rows by their weights, from their log probabilities (k, C)."""
    weight = labels.weight[rows]
    return float(weight @ labels.losses(log_proba, rows) / weight.sum())


class Located(NamedTuple):
    """Boosted trees of numbers, judged on the hold-out.

    They predict locations only; in a combination, they take the scale of the best other model.
    """

    family: str
    trees: BoostedTrees
    location: Array  # (k, t) predictions of the held-out targets, by fits without their fold
    loss: float  # with a common scale, the root mean squared error
    cost: float  # nominal milliseconds of one prediction
    log_evidence: float = 0.0

    def describe(self) -> str:
        return "boosted trees"


Judged: TypeAlias = Contender | LogOdds | Located


class Family(Protocol):
    """A kind of models. A family without tuning needs only the methods without a default."""

    name: str
    of_labels: bool | None = None  # True: for labels only, False: for numbers only
    is_quick: bool = False  # whether its models can be judged even if time is up
    yields: bool = False  # whether it is skipped if another family suffices

    def starts(self, problem: Problem) -> list[Spec]:
        """Return the models to tune; none if settings, rows or memory rule the family out."""

    def suffices(self, problem: Problem) -> bool:
        """Whether families with ``yields`` are skipped beside this one."""
        return False

    def predict(self, problem: Problem, spec: Spec, job: Job) -> Judged:
        """Judge a model by its held-out predictions."""

    def work_of(self, problem: Problem, spec: Spec, rung: Rung) -> float:
        """Nominal milliseconds of a rung, for the progress bar."""

    def tune(self, problem: Problem, spec: Spec, rung: Rung, job: Job) -> Tuned:
        """Tune a model; its score ranks the models of this family in one rung."""
        return Tuned(spec, 0.0)

    def ready(self, problem: Problem, tuned: list[Tuned]) -> list[Tuned]:
        """Select the tuned models, best first, that are judged first."""
        return tuned

    def grow(
        self, problem: Problem, tuned: list[Tuned], found: Sequence[Judged], job: Job
    ) -> list[Tuned]:
        """Return larger models, tuned, that are worth judging in view of ``found``; or none."""
        return []

    def beyond(self, problem: Problem, tuned: list[Tuned], job: Job) -> list[Tuned]:
        """Return models that may predict best far from the rows."""
        return []

    def judge_again(self, problem: Problem, contender: Contender, job: Job) -> Contender:
        """Judge a model on another hold-out, without tuning."""
        raise AssertionError(f"{self.name} has one hold-out")


def judge(
    data: Data,
    hold_out: HoldOut,
    spec: Spec,
    predictions: Predictions,
    began: float,
    local: tuple[LocalProblem, Sample] | None = None,
) -> Contender:
    """Score a GP model by its predictions of the targets of a hold-out.

    ``local`` are the problem and the sample of a local model. Its scale is fitted to the targets
    first, if the objective leaves that open, and some objectives score the neighborhoods instead
    of the predictions. Models of labels get a link, fitted to the latent values.
    """
    rows, model, objective, labels = hold_out.targets, spec.model, data.objective, data.labels
    y, noise, error, link = data.y[rows], data.rows.noise[rows], 0.0, None
    failed = bool((predictions.status >= STATUS_NOT_POSITIVE_DEFINITE).any())
    if local is not None and objective.calibrates_scale and not failed:
        given, signal_range = data.specification.given, data.parameters.signal_range(model)
        model, predictions = calibrate(model, predictions, y, noise, given, signal_range)
    if labels is not None:
        predicted, size = distribution_of(predictions, 0.0), math.inf
        latent, loss, link = labels.latent(predicted), BAD_LOSS, default_link(labels.prior)
        is_finite = np.isfinite(latent.mean).all() and np.isfinite(latent.variance).all()
        if is_finite and not failed:
            weight = labels.weight[rows]
            link = fit_link(latent, labels.codes[rows], weight, labels.prior)
            losses, shares = labels.losses(link.log_proba(latent), rows), weight / weight.sum()
            loss = float(shares @ losses)
            error = float(np.sqrt((shares**2) @ (losses - loss) ** 2))
    else:
        predicted = distribution_of(predictions, model.noise_of(noise))
        losses = np.full(len(y), BAD_LOSS)
        if local is not None and not objective.judges_predictions and not failed:
            problem, sample = local
            scores = objective.score(problem, *sample, data.backend, data.resources)
            losses = np.asarray(scores.loss, dtype=float)
        elif not failed:
            losses = objective.losses(predicted, y)
        losses = np.where(np.isfinite(losses), losses, BAD_LOSS)
        loss, error = float(losses.mean()), float(losses.std() / math.sqrt(len(losses)))
        size = model.noise_variance * float(np.mean(predictions.scale))
    # Users see one name if all inputs share a transform. That of projected inputs is named only
    # if there are no other inputs.
    kinds = spec.space.kinds
    free = tuple(kind for kind in kinds if kind not in LINKED_KINDS) or kinds
    candidate = Candidate(
        input_transform=free[0] if len(set(free)) == 1 else kinds,
        n_neighbors=spec.n_neighbors,
        model=model,
        predicted=predicted,
        loss=loss,
        standard_error=error,
        seconds=time.monotonic() - began,
        link=link,
    )
    return Contender(spec.family, spec.space, candidate, noise=size)
