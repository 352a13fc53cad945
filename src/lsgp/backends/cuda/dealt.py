# SPDX-License-Identifier: BSD-3-Clause
"""All devices at once: blocks are dealt to them in turn."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import LARGEST_SYSTEM, Backend, Plan, Resources, RowsOfQueries
from lsgp.backends.dense import Dense
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


class DealtBackend:
    """See `Backend`. What a thread finds is on the device where it then solves.

    Whoever searches gets the next device, and its thread keeps that until it searches again: so
    neighborhoods are solved where they were found. As many threads as there are devices run at
    least. Exact GPs have one factor, on the first device.
    """

    is_device = True
    factors_once = True
    is_slow = False

    def __init__(self, name: str, find_members: Callable[[], Sequence[Backend]]) -> None:
        self.name = name
        self._find_members = find_members
        self._turns = itertools.count()
        self._own = threading.local()

    @property
    def members(self) -> Sequence[Backend]:
        return self._find_members()

    @property
    def device_name(self) -> str:
        return f"{len(self.members)} x {self.members[0].device_name}"

    @property
    def dense(self) -> Dense:
        return self.members[0].dense

    @property
    def own(self) -> Backend:
        """That of this thread."""
        return self.next() if not hasattr(self._own, "number") else self._kept()

    def next(self) -> Backend:
        """The one whose turn it is, for this thread from now on."""
        self._own.number = next(self._turns)
        return self._kept()

    def _kept(self) -> Backend:
        members = self.members
        return members[self._own.number % len(members)]

    def knows(self, kernel: Kernel) -> bool:
        return self.members[0].knows(kernel)

    def knows_metric(self, localizer_metric: str) -> bool:
        return self.members[0].knows_metric(localizer_metric)

    def prepare(self, problem: LocalProblem) -> LocalProblem:
        """Devices take the same arrays of the host; the others when they first need them."""
        return self.own.prepare(problem)

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
        return self.next().search(
            index, model, queries, n_neighbors, exclusions, max_neighbors, first_query
        )

    def search_units(
        self,
        tree: CoarseTree,
        index: SearchIndex,
        queries: NDArray[np.float64],
        n_units: int,
        reach: float,
        exclusions: Exclusions,
    ) -> NDArray[np.int32]:
        return self.next().search_units(tree, index, queries, n_units, reach, exclusions)

    def predict(
        self,
        problem: LocalProblem,
        queries: Array,
        neighbors: NDArray[np.int32],
        points: Array | None = None,
    ) -> Predictions:
        return self.own.predict(problem, queries, neighbors, points)

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
        return self.next().predict_at(
            problem, index, queries, n_neighbors, exclusions, max_neighbors, first_query
        )

    def coefficients(
        self, problem: LocalProblem, queries: Array, neighbors: NDArray[np.int32]
    ) -> Coefficients:
        return self.own.coefficients(problem, queries, neighbors)

    def differentiate(
        self, problem: LocalProblem, queries: Array, neighbors: NDArray[np.int32]
    ) -> tuple[Predictions, QueryGradients]:
        return self.own.differentiate(problem, queries, neighbors)

    def score(
        self,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
        objective: str,
    ) -> Scores:
        return self.own.score(problem, targets, neighbors, objective)

    def workspace_bytes(
        self, n_neighbors: int, n_inputs: int, n_targets: int, dtype: np.dtype, gradient: bool
    ) -> int:
        return self.own.workspace_bytes(n_neighbors, n_inputs, n_targets, dtype, gradient)

    def plan(
        self,
        problem: LocalProblem,
        n_neighbors: int | None,
        n_queries: int,
        resources: Resources,
        gradient: bool = False,
    ) -> Plan:
        """Blocks of one device, on at least as many threads as there are devices."""
        n_devices = len(self.members)
        plan = self.own.plan(problem, n_neighbors, n_queries, resources, gradient)
        n_threads = max(plan.n_threads, n_devices)
        share = max(1, -(-n_queries // n_threads))
        return plan._replace(block_size=min(plan.block_size, share), n_threads=n_threads)
