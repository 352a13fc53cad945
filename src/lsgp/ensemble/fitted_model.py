# SPDX-License-Identifier: BSD-3-Clause
"""One model of an ensemble: its input transform, its solver, and where its rows lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsgp.ensemble.extent import Extent
from lsgp.inputs.transforms import InputTransform
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.search.contract import SearchIndex
from lsgp.solvers.solver import Solver

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Everything that a prediction by one model needs; targets are in scaled units."""

    transform: InputTransform
    solver: Solver
    weight: float  # in the combination with others
    extent: Extent  # of the rows, in the model's metric
    #: Whether it is one of the exact GPs that stand for the posterior of the hyperparameters.
    is_integrated: bool = False

    def __repr__(self) -> str:
        source = self.solver.describe_source()
        return f"FittedModel({self.model.kernel}, {source}, weight {self.weight:.3g})"

    @classmethod
    def build(
        cls,
        transform: InputTransform,
        solver: Solver,
        weight: float = 1.0,
        is_integrated: bool = False,
    ) -> FittedModel:
        return cls(transform, solver, weight, Extent(solver), is_integrated)

    def with_solver(self, solver: Solver) -> FittedModel:
        """The same model, solved otherwise or from other rows."""
        return FittedModel.build(self.transform, solver, self.weight, self.is_integrated)

    @property
    def problem(self) -> LocalProblem:
        return self.solver.problem

    @property
    def model(self) -> LocalModel:
        return self.solver.problem.model

    @property
    def lengthscale_of_inputs(self) -> Array:
        """(d,), in the units of the transformed inputs; of a projection, in its own."""
        return self.transform.per_input(self.model.lengthscale)

    @property
    def index(self) -> SearchIndex:
        return self.solver.index

    @property
    def n_neighbors(self) -> int | None:
        return self.solver.n_neighbors

    def inputs_of(self, X: Array) -> Array:
        """Queries in the model's own inputs, as its solver takes them, where they are."""
        inputs = self.transform.transform(X, self.problem.X.dtype)
        return inputs.astype(float, order="C", copy=False)
