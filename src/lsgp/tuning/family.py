# SPDX-License-Identifier: BSD-3-Clause
"""A family of models, and what a model is before it is tuned, after it, and once it is judged."""

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
    """All that makes a model: what is tuned, and what a warm start goes on from."""

    family: str
    space: Space
    model: LocalModel
    n_neighbors: int | None


class Tuned(NamedTuple):
    """A tuned model, not yet judged on the hold-out."""

    spec: Spec
    score: float  # lower is better; of models of one family, on the same rows
    log_evidence: float = 0.0  # of the rows that all of its family are tuned on


class Contender(NamedTuple):
    """A model that is judged on the hold-out, with what predictions by it need.

    Attributes
    ----------
    family : str
    space : Space
        The rows in its input transform.
    candidate : Candidate
        What users see of it: hyperparameters, held-out predictions, loss.
    cost : float
        Nominal milliseconds of one prediction.
    log_evidence : float
        Orders the members of one family before held-out targets have spoken.
    n_tuned : int
        Hyperparameters that have seen the targets.
    noise : float
        Mean variance of the noise of held-out targets, in scaled units.
    system : ExactSystem or None
        Of an exact GP, the factored system of all rows.
    parts : tuple of Contender
        Of an average over the posterior, its members of equal weight; else empty.
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
        """Where another optimization may go on from."""
        return Spec(self.family, self.space, self.model, self.n_neighbors)


class LogOdds(NamedTuple):
    """A model of the log odds of labels that is judged on the hold-out.

    Attributes
    ----------
    family : str
    log_proba : array of shape (k, C)
        Of the held-out targets, by fits without them.
    loss : float
    cost : float
        Nominal milliseconds of one prediction.
    log_evidence : float
        Orders the members of one family before held-out targets have spoken.
    n_tuned : int
        Hyperparameters that have seen the labels.
    parts : tuple
        What predicts, fitted to all rows, with weights that sum to 1.
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
    """Boosted trees that are judged on the hold-out.

    They say where targets lie. In a combination, they have the scale of the best other model.

    Attributes
    ----------
    family : str
    trees : BoostedTrees
    location : array of shape (k, t)
        Of the held-out targets, by fits without their fold.
    loss : float
        With one scale for all, that of the errors.
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
    """A kind of models. Those that are not tuned need no more than what has no default here."""

    name: str
    of_labels: bool | None = None  # True: of labels alone, False: of numbers alone
    is_quick: bool = False  # whether its models are judged in a moment, if time is up
    yields: bool = False  # whether it has nothing to add where another family suffices

    def starts(self, problem: Problem) -> list[Spec]:
        """Models to tune; none where settings, rows or memory rule the family out."""

    def suffices(self, problem: Problem) -> bool:
        """Whether families that yield have nothing to add to this one."""
        return False

    def predict(self, problem: Problem, spec: Spec, job: Job) -> Judged:
        """Held-out predictions of a model, and their loss."""

    def work_of(self, problem: Problem, spec: Spec, rung: Rung) -> float:
        """Nominal milliseconds that a rung takes, for the progress bar."""

    def tune(self, problem: Problem, spec: Spec, rung: Rung, job: Job) -> Tuned:
        """A better model, with a score that orders models of this family in one rung."""
        return Tuned(spec, 0.0)

    def ready(self, problem: Problem, tuned: list[Tuned]) -> list[Tuned]:
        """Of the tuned models, best first, those to be judged at once."""
        return tuned

    def grow(
        self, problem: Problem, tuned: list[Tuned], found: Sequence[Judged], job: Job
    ) -> list[Tuned]:
        """Larger models that what was found makes worth trying, tuned; none at the end."""
        return []

    def beyond(self, problem: Problem, tuned: list[Tuned], job: Job) -> list[Tuned]:
        """Models that may predict best far from the rows, whatever they do among them."""
        return []

    def judge_again(self, problem: Problem, contender: Contender, job: Job) -> Contender:
        """A model as it is, judged on another hold-out."""
        raise AssertionError(f"{self.name} has one hold-out")


def name_of(kinds: Kinds) -> str | Kinds | None:
    """The input transforms as users read them: one name if all inputs share it.

    Projected inputs have their own kind, which is named only where there is no other.
    """
    free = tuple(kind for kind in kinds if kind not in LINKED_KINDS) or kinds
    return free[0] if len(set(free)) == 1 else kinds
