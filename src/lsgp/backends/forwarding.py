# SPDX-License-Identifier: BSD-3-Clause
"""What backends share that leave the work to others, and decide who does it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import (
    LARGEST_SYSTEM,
    LocalSystems,
    Plan,
    Resources,
    RowsOfQueries,
    ScoreRequest,
)
from lsgp.method.contract import (
    Coefficients,
    LocalModel,
    LocalProblem,
    Predictions,
    QueryGradients,
    Scores,
)
from lsgp.method.kernels import Kernel
from lsgp.search.coarse import CoarseTree
from lsgp.search.exclusions import Exclusions
from lsgp.search.index import SearchIndex

Array = NDArray[np.floating]
Result = TypeVar("Result")


class ForwardingBackend(ABC):
    """See `Backend`. All that is asked goes through `run`."""

    is_device = True
    factors_once = True
    is_slow = False

    @abstractmethod
    def run(self, ask: Callable[[LocalSystems], Result]) -> Result:
        """The answer of whoever is to be asked."""

    def begin(self, ask: Callable[[LocalSystems], Result]) -> Result:
        """As `run`, of a search: what is asked next is about what it finds."""
        return self.run(ask)

    def knows(self, kernel: Kernel) -> bool:
        return self.run(lambda backend: backend.knows(kernel))

    def knows_metric(self, localizer_metric: str) -> bool:
        return self.run(lambda backend: backend.knows_metric(localizer_metric))

    def prepare(self, problem: LocalProblem) -> LocalProblem:
        return self.run(lambda backend: backend.prepare(problem))

    def search(
        self,
        index: SearchIndex,
        model: LocalModel,
        queries: NDArray[np.float64],
        n_neighbors: int | None,
        exclusions: Exclusions,
        max_neighbors: int = LARGEST_SYSTEM,
        first_query: int = 0,
    ) -> NDArray[np.int32]:
        given = index, model, queries, n_neighbors, exclusions, max_neighbors, first_query
        return self.begin(lambda backend: backend.search(*given))

    def search_units(
        self,
        tree: CoarseTree,
        index: SearchIndex,
        queries: NDArray[np.float64],
        n_units: int,
        reach: float,
        exclusions: Exclusions,
    ) -> NDArray[np.int32]:
        given = tree, index, queries, n_units, reach, exclusions
        return self.begin(lambda backend: backend.search_units(*given))

    def predict(
        self,
        problem: LocalProblem,
        queries: Array,
        neighbors: NDArray[np.int32],
        points: Array | None = None,
    ) -> Predictions:
        return self.run(lambda backend: backend.predict(problem, queries, neighbors, points))

    def predict_at(
        self,
        problem: LocalProblem,
        index: SearchIndex,
        queries: NDArray[np.float64],
        n_neighbors: int | None,
        exclusions: Exclusions,
        max_neighbors: int = LARGEST_SYSTEM,
        first_query: int = 0,
    ) -> tuple[Predictions, RowsOfQueries]:
        given = problem, index, queries, n_neighbors, exclusions, max_neighbors, first_query
        return self.begin(lambda backend: backend.predict_at(*given))

    def coefficients(
        self, problem: LocalProblem, queries: Array, neighbors: NDArray[np.int32]
    ) -> Coefficients:
        return self.run(lambda backend: backend.coefficients(problem, queries, neighbors))

    def differentiate(
        self, problem: LocalProblem, queries: Array, neighbors: NDArray[np.int32]
    ) -> tuple[Predictions, QueryGradients]:
        return self.run(lambda backend: backend.differentiate(problem, queries, neighbors))

    def score(
        self,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
        objective: str,
    ) -> Scores:
        return self.run(lambda backend: backend.score(problem, targets, neighbors, objective))

    def score_many(self, requests: Sequence[ScoreRequest]) -> list[Scores]:
        return self.run(lambda backend: backend.score_many(requests))

    def workspace_bytes(
        self, n_neighbors: int, n_inputs: int, n_targets: int, dtype: np.dtype, gradient: bool
    ) -> int:
        given = n_neighbors, n_inputs, n_targets, dtype, gradient
        return self.run(lambda backend: backend.workspace_bytes(*given))

    def plan(
        self,
        problem: LocalProblem,
        n_neighbors: int | None,
        n_queries: int,
        resources: Resources,
        gradient: bool = False,
    ) -> Plan:
        given = problem, n_neighbors, n_queries, resources, gradient
        return self.run(lambda backend: backend.plan(*given))
