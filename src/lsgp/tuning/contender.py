# SPDX-License-Identifier: BSD-3-Clause
"""A model that tuning considers: where an optimization starts, and what came of it.

What users see of it is its `Candidate` (`result`).
"""

from __future__ import annotations

from typing import NamedTuple

from lsgp.inputs.projections import Kinds
from lsgp.inputs.transforms import LINKED_KINDS
from lsgp.method.contract import LocalModel
from lsgp.solvers.exact_system import ExactSystem
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.result import Candidate


class Start(NamedTuple):
    """Where an optimization starts from."""

    space: LeaveOneOut
    model: LocalModel
    n_neighbors: int | None


class Contender(NamedTuple):
    """A candidate with the rows that it was tuned on, and the system of them if that is solved."""

    space: LeaveOneOut
    candidate: Candidate
    system: ExactSystem | None = None

    @property
    def loss(self) -> float:
        return self.candidate.loss

    @property
    def model(self) -> LocalModel:
        return self.candidate.model

    @property
    def n_neighbors(self) -> int | None:
        return self.candidate.n_neighbors

    @property
    def start(self) -> Start:
        """Where another optimization may go on from."""
        return Start(self.space, self.candidate.model, self.candidate.n_neighbors)


def name_of(kinds: Kinds) -> str | Kinds | None:
    """The transforms of all inputs as users read them: one name if they share it.

    Those that are projected have no other than theirs, and are named where there is nothing else.
    """
    free = tuple(kind for kind in kinds if kind not in LINKED_KINDS) or kinds
    return free[0] if len(set(free)) == 1 else kinds
