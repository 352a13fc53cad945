# SPDX-License-Identifier: BSD-3-Clause
"""The interface of a family of models, and records of models: specified, tuned and judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.projections import Kinds
from lsgp.inputs.transforms import LINKED_KINDS
from lsgp.method.contract import LocalModel
from lsgp.solvers.boosted import BoostedTrees
from lsgp.solvers.exact_system import ExactSystem
from lsgp.tuning.budget import Rung
from lsgp.tuning.class_members import Member
from lsgp.tuning.data import Problem
from lsgp.tuning.jobs import Job
from lsgp.tuning.result import Candidate
from lsgp.tuning.space import Space


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
    """A GP model, judged on the hold-out.

    Attributes
    ----------
    family : str
    space : Space
        The rows in its input transform.
    candidate : Candidate
        The part that users see: hyperparameters, held-out predictions, loss.
    cost : float
        Nominal milliseconds of one prediction.
    log_evidence : float
        Gives the prior weights of models of one family.
    n_tuned : int
        Number of hyperparameters that were tuned on the targets.
    noise : float
        Mean variance of the noise of held-out targets, in scaled units.
    system : ExactSystem or None
        The factored system of all rows, of an exact GP.
    parts : tuple of Contender
        Members of equal weight, of an average over the posterior; else empty.
    """

    family: str
    space: Space
    candidate: Candidate
    cost: float
    log_evidence: float = 0.0
    n_tuned: int = 0
    noise: float = math.inf
    system: ExactSystem | None = None
    parts: tuple[Contender, ...] = ()

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
    """A model of the log odds of labels, judged on the hold-out.

    Attributes
    ----------
    family : str
    log_proba : array of shape (k, C)
        Log probabilities of the held-out targets, by fits without them.
    loss : float
    cost : float
        Nominal milliseconds of one prediction.
    log_evidence : float
        Gives the prior weights of models of one family.
    n_tuned : int
        Number of hyperparameters that were tuned on the labels.
    parts : tuple
        Fitted classifiers of all rows, with weights that sum to 1.
    """

    family: str
    log_proba: NDArray[np.float64]
    loss: float
    cost: float
    log_evidence: float
    n_tuned: int
    parts: tuple[Member, ...]

    def describe(self) -> str:
        return self.family


class Located(NamedTuple):
    """Boosted trees of numbers, judged on the hold-out.

    They predict locations only; in a combination, they take the scale of the best other model.

    Attributes
    ----------
    family : str
    trees : BoostedTrees
    location : array of shape (k, t)
        Predictions of the held-out targets, by fits without their fold.
    loss : float
        Loss with a common scale, the root mean squared error.
    cost : float
        Nominal milliseconds of one prediction.
    log_evidence : float
    """

    family: str
    trees: BoostedTrees
    location: NDArray[np.float64]
    loss: float
    cost: float
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


def name_of(kinds: Kinds) -> str | Kinds | None:
    """Return the input transforms for users: one name if all inputs share it.

    The kind of projected inputs is named only if there are no other inputs.
    """
    free = tuple(kind for kind in kinds if kind not in LINKED_KINDS) or kinds
    return free[0] if len(set(free)) == 1 else kinds
