# SPDX-License-Identifier: BSD-3-Clause
"""Tuning with some of the inputs alone, and models of all inputs from what it finds.

Inputs that say nothing take as much of every distance and gradient as those that do.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.projections import Kinds
from lsgp.method.contract import LocalModel
from lsgp.solvers.boosted import BoostedTrees
from lsgp.solvers.exact_system import ExactSystem
from lsgp.tuning.contender import Contender, name_of
from lsgp.tuning.parameters import LENGTHSCALE_BOUNDS
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.result import Candidate

if TYPE_CHECKING:
    from lsgp.tuning.search import Tuned

Inputs = NDArray[np.intp]

#: Of an input that says nothing.
LONGEST = math.exp(LENGTHSCALE_BOUNDS[1])


def narrow(problem: TuningProblem, inputs: Inputs) -> TuningProblem:
    """The same problem with these inputs alone."""
    specification = problem.specification
    k = len(inputs)
    own = specification._replace(
        model=specification.model.replace(lengthscale=np.full(k, math.sqrt(k))),
        input_transforms=tuple(_some(kinds, inputs) for kinds in specification.input_transforms),
        groups=tuple(range(k)),
    )
    rows = problem.rows._replace(X=np.ascontiguousarray(problem.rows.X[:, inputs]))
    return replace(problem, rows=rows, specification=own).restarted()


def _some(kinds: Kinds, inputs: Inputs) -> Kinds:
    return tuple(kinds[j] for j in inputs.tolist())


def widen(problem: TuningProblem, tuned: Tuned, inputs: Inputs) -> Tuned:
    """What was found with these inputs alone as models of all: the others say nothing."""
    widening = _Widening(problem, inputs)
    result = tuned.result
    candidates = tuple(widening.candidate(each) for each in result.candidates)
    members = tuple((widening.contender(each), weight) for each, weight in tuned.members)
    return tuned._replace(
        members=members,
        result=replace(result, candidates=candidates),
        boosted=None if tuned.boosted is None else _of_all(tuned.boosted, inputs),
    )


def _of_all(boosted: BoostedTrees, inputs: Inputs) -> BoostedTrees:
    """Trees that ask for the same inputs by their numbers among all."""
    feature = boosted.nodes.feature
    numbers = np.where(feature < 0, feature, inputs[feature]).astype(feature.dtype)
    return replace(boosted, nodes=boosted.nodes._replace(feature=numbers))


class _Widening:
    def __init__(self, problem: TuningProblem, inputs: Inputs) -> None:
        self.problem, self.inputs = problem, inputs
        self.spaces = {start.space.kinds: start.space for start in problem.starts}

    def kinds(self, own: Kinds) -> Kinds:
        """Of all inputs; those that say nothing have the first transform that is tried."""
        kinds = list(self.problem.specification.input_transforms[0])
        if len(set(own)) == 1:
            kinds = [own[0]] * len(kinds)
        for j, kind in zip(self.inputs.tolist(), own, strict=True):
            kinds[j] = kind
        return tuple(kinds)

    def model(self, own: LocalModel) -> LocalModel:
        lengthscale = np.full(self.problem.rows.X.shape[1], LONGEST)
        lengthscale[self.inputs] = own.lengthscale
        return own.replace(lengthscale=lengthscale)

    def candidate(self, own: Candidate) -> Candidate:
        name = own.input_transform
        if isinstance(name, tuple):
            name = name_of(self.kinds(name))
        return replace(own, input_transform=name, model=self.model(own.model))

    def contender(self, own: Contender) -> Contender:
        kinds = self.kinds(own.space.kinds)
        if kinds not in self.spaces:
            self.spaces[kinds] = self.problem.space(kinds)
        space, candidate = self.spaces[kinds], self.candidate(own.candidate)
        system = None
        if own.system is not None:
            system = ExactSystem.solve(space.problem(candidate.model), self.problem.backend.dense)
        return Contender(space, candidate, system)
