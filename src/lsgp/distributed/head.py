# SPDX-License-Identifier: BSD-3-Clause
"""A fitted model of rows on a cluster: what all partitions share, and what each has."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from lsgp.distributed.lazy import Question
from lsgp.distributed.neighbors import Numbers
from lsgp.distributed.regions import Boxes, Regions
from lsgp.distributed.rows import Rows
from lsgp.distributed.solver import FoundSolver, unsearched_index
from lsgp.distributed.transfer import Estimator
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.view import EncodedRows
from lsgp.method.contract import LocalProblem
from lsgp.search.index import NeighborIndex, build_index
from lsgp.solvers.local import LocalSolver

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Head:
    """What every task needs to know; small, whatever the number of rows."""

    estimator: Estimator  # whose models have one row each, of zeros
    units: tuple[Array, ...]  # of the indexes of each model
    regions: Regions
    part_of_region: NDArray[np.int64]  # empty regions are answered by another one
    boxes: Boxes  # of the partitions, in the inputs as they were given
    sizes: tuple[int, ...]  # rows of each partition

    @property
    def models(self) -> tuple[FittedModel, ...]:
        return self.estimator.ensemble_.models

    @property
    def n_rows(self) -> int:
        return sum(self.sizes)

    def boxes_of(self, k: int) -> Boxes:
        """The boxes of the partitions in the inputs of a model."""
        return self.boxes.transformed(self.models[k].transform)

    def solver(self, k: int, problem: LocalProblem, neighbors: NDArray[np.integer]) -> FoundSolver:
        """What solves queries by a model, from neighborhoods (q, m) in a problem at hand."""
        own = self.models[k].solver
        places = np.ascontiguousarray(neighbors, dtype=np.int32)
        return FoundSolver(problem, own.index, own.n_neighbors, own.backend.name, places)

    def answer(
        self, question: Question, solvers: Sequence[FoundSolver], X: Array
    ) -> list[NDArray[Any]]:
        """What the estimator says of inputs that these solvers can solve, on one thread."""
        estimator = copy.copy(self.estimator)
        estimator.n_jobs, estimator.verbose = 1, 0
        models = tuple(
            replace(own, solver=solver) for own, solver in zip(self.models, solvers, strict=True)
        )
        estimator.ensemble_ = replace(self.estimator.ensemble_, models=models)
        # Their names have been checked, and columns encoded.
        return question.answer(estimator, EncodedRows(X))


def without_rows(fitted: FittedModel, n_neighbors: int | None) -> FittedModel:
    """The model with one row of zeros, because files have models of no fewer."""
    own = fitted.problem
    d, t, dtype = own.X.shape[1], own.y.shape[1], own.X.dtype
    zeros = np.zeros((1, d), dtype), np.zeros((1, t), dtype)
    problem = LocalProblem(*zeros, np.ones(1, dtype), own.model)
    index, nothing = unsearched_index(np.ones(d)), np.empty((0, 0), np.int32)
    solver = FoundSolver(problem, index, n_neighbors, fitted.solver.backend.name, nothing)
    return FittedModel(fitted.transform, solver, fitted.weight)


class Partition(NamedTuple):
    """The rows of a partition as each of the models has them."""

    numbers: Numbers  # (k,) in all of the data
    models: tuple[FittedModel, ...]

    def index_of(self, k: int) -> NeighborIndex:
        return cast(NeighborIndex, self.models[k].index)


def build_partition(rows: Rows, head: Head) -> Partition:
    """What one machine does with all rows, with those of a partition."""
    made: dict[tuple[int, bytes], tuple[Array, NeighborIndex]] = {}
    y = head.estimator.ensemble_.target_scaler.transform(rows.y)
    models = []
    for fitted, unit in zip(head.models, head.units, strict=True):
        # Models of one transform share its inputs and its index.
        key = id(fitted.transform), unit.tobytes()
        if key not in made:
            X = np.ascontiguousarray(fitted.transform.transform(rows.X), dtype=float)
            made[key] = X, build_index(X, unit)
        X, index = made[key]
        dtype = fitted.problem.X.dtype
        own, targets, noise = (np.ascontiguousarray(a, dtype=dtype) for a in (X, y, rows.noise))
        problem = LocalProblem(own, targets, noise, fitted.model)
        size = None if fitted.n_neighbors is None else min(fitted.n_neighbors, len(own))
        solver = LocalSolver(problem, index, size, fitted.solver.backend.name)
        models.append(replace(fitted, solver=solver))
    return Partition(rows.numbers, tuple(models))
