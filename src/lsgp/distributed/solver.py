# SPDX-License-Identifier: BSD-3-Clause
"""Solvers that do not hold all rows: they solve from the rows that a search found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Systems
from lsgp.distributed.neighbors import at_hand
from lsgp.method.contract import LocalProblem, Predictions, join_targets
from lsgp.search.contract import Exclusions
from lsgp.search.index import NeighborIndex, build_index
from lsgp.solvers.local import LocalSolver
from lsgp.solvers.solver import Block

Array = NDArray[np.float64]


def unsearched_index(unit: Array) -> NeighborIndex:
    """An index that nobody searches, where a solver must have one."""
    return build_index(np.zeros((1, len(unit))), unit)


@dataclass(frozen=True, eq=False)
class PartSolver(LocalSolver):
    """Solves from rows at hand, for each level of noise."""

    def _predict(self, queries: Array, block: Block, exclusions: Exclusions) -> Predictions:
        return self._predict_found(queries, block, exclusions)

    def _solve(self, queries: Array, neighbors: NDArray[np.int32], block: Block) -> Predictions:
        return self._solve_with(self.problem, queries, neighbors, block)

    def _solve_with(
        self, problem: LocalProblem, queries: Array, neighbors: NDArray[np.int32], block: Block
    ) -> Predictions:
        narrow = np.ascontiguousarray(queries, dtype=problem.X.dtype)
        columns, solved = [], []
        for own, part in problem.by_noise_level():
            columns.append(own)
            solved.append(self.backend.predict(Systems(part, narrow, neighbors)))
            block.failures.note(block.first_query, solved[-1].status, part, neighbors)
        return solved[0] if len(solved) == 1 else join_targets(columns, solved)


@dataclass(frozen=True, eq=False)
class FoundSolver(PartSolver):
    """Solves queries whose neighborhoods are known, and no others.

    Queries come in the order of the neighborhoods, in blocks.
    """

    neighbors: NDArray[np.int32]  # (q, m) places in the problem, whose rows are at hand

    def predict(self, queries: Array, block: Block, mean_only: bool = False) -> Predictions:
        own = self.neighbors[block.first_query : block.first_query + len(queries)]
        return self._solve(queries, own, block)

    def describe(self) -> str:
        return "all within" if self.n_neighbors is None else str(self.n_neighbors)

    def describe_source(self) -> str:
        return f"{self.describe()} rows of a cluster"


@dataclass(frozen=True, eq=False)
class ClusterSolver(PartSolver):
    """Searches on the cluster, and solves here; its problem's arrays are `Columns`."""

    def _solve(self, queries: Array, neighbors: NDArray[np.int32], block: Block) -> Predictions:
        rows, places = at_hand(neighbors)
        X, y, noise = (column[rows] for column in self.problem[:3])
        here = LocalProblem(X, y, noise, self.problem.model)
        return self._solve_with(here, queries, places, block)
