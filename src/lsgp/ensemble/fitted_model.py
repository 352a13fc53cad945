# SPDX-License-Identifier: BSD-3-Clause
"""One model of an ensemble: its input transform, its solver, and where its rows lie."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.transforms import InputTransform, subsample
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.search.contract import NO_EXCLUSIONS, Exclusions, SearchIndex, SearchRequest
from lsgp.solvers.solver import Solver

Array = NDArray[np.float64]

#: How far a query is from the data is its mean distance to this many training rows,
N_NEAREST = 5
#: relative to this quantile of that of the training rows,
TYPICAL_QUANTILE = 0.99
#: as estimated from this many of them.
N_TYPICAL = 1000


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Everything that a prediction by one model needs; targets are in scaled units."""

    transform: InputTransform
    solver: Solver
    weight: float = 1.0  # in the combination with others
    #: Whether it is one of the exact GPs that stand for the posterior of the hyperparameters.
    is_integrated: bool = False

    def __repr__(self) -> str:
        source = self.solver.describe_source()
        return f"FittedModel({self.model.kernel}, {source}, weight {self.weight:.3g})"

    def with_solver(self, solver: Solver) -> FittedModel:
        """The same model, solved otherwise or from other rows."""
        return replace(self, solver=solver)

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

    def bandwidths(self, queries: Array) -> Array:
        """Radii of the neighborhoods of queries in its own inputs, in the localizer's metric."""
        model = self.model
        if self.n_neighbors is None:
            return np.full(len(queries), model.scaled_bandwidth)
        request = SearchRequest(queries, model.localizer_scale, self.n_neighbors)
        return np.asarray(model.reach * self.index.measure(request).distances.max(axis=1))

    def distance(self, queries: Array, exclusions: Exclusions = NO_EXCLUSIONS) -> Array:
        """How far queries in its own inputs are from the training rows, (q,); 1 is still typical.

        The mean distance to the nearest training rows in the scaled metric, relative to the
        same of training rows without themselves. Where all of these are 0, any distance is
        infinite.
        """
        distances = self._mean_distance(queries, exclusions)
        if self._typical_distance > 0:
            return distances / self._typical_distance
        return np.where(distances > 0, np.inf, 0.0)

    @cached_property
    def input_range(self) -> tuple[Array, Array]:
        """Smallest and largest value of each transformed input, (d,) each."""
        return self.problem.X.min(axis=0), self.problem.X.max(axis=0)

    @cached_property
    def _typical_distance(self) -> float:
        """What all but few training rows have as mean distance to the nearest others."""
        X = self.problem.X
        if len(X) == 1:
            return 0.0
        sample = subsample(len(X), N_TYPICAL)
        rows = np.arange(len(X)) if sample is None else sample
        queries = np.ascontiguousarray(X[rows], dtype=float)
        distances = self._mean_distance(queries, Exclusions(rows.astype(np.int32)))
        return float(np.quantile(distances, TYPICAL_QUANTILE))

    def _mean_distance(self, queries: Array, exclusions: Exclusions) -> Array:
        lengthscale = np.asarray(self.model.lengthscale, dtype=float)
        request = SearchRequest(queries, lengthscale, N_NEAREST, exclusions)
        found = self.index.measure(request)
        is_there = found.neighbors >= 0
        total = np.where(is_there, found.distances, 0.0).sum(axis=1)
        return total / np.maximum(np.count_nonzero(is_there, axis=1), 1)
