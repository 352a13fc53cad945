# SPDX-License-Identifier: BSD-3-Clause
"""What a backend is: the functions that every one of them has, over the tuples of the method.

A backend takes arrays that are C-contiguous and of one dtype, and refuses others; a system that
cannot be solved is a status code, not an exception. Modules are backends, and so is any object with
these functions, such as one that knows its device.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

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

#: A local system may not have more points than this.
LARGEST_SYSTEM = 4096


class Resources(NamedTuple):
    """What a computation may use."""

    n_threads: int = 1
    memory_budget: int = 1_000_000_000
    verbose: int = 0
    pool: Executor | None = None  # threads that are there already, for work of milliseconds


class Plan(NamedTuple):
    """How queries are cut into blocks."""

    block_size: int
    n_threads: int
    max_neighbors: int


class ScoreRequest(NamedTuple):
    """What `Backend.score` is asked."""

    problem: LocalProblem
    targets: NDArray[np.int32]
    neighbors: NDArray[np.int32]
    objective: str


class RowsOfQueries(Protocol):
    """Neighbors of queries, such as an array (q, m), wherever they are."""

    def __getitem__(self, query: int, /) -> NDArray[np.int32]:
        """The neighbors of one query, (m,), padded with -1."""


class LocalSystems(Protocol):
    """Who solves local systems."""

    def knows(self, kernel: Kernel) -> bool:
        """Whether the backend can compute the kernel."""

    def knows_metric(self, localizer_metric: str) -> bool:
        """Whether the backend can weigh neighbors in this metric."""

    def prepare(self, problem: LocalProblem) -> LocalProblem:
        """The problem with its arrays where, and as, the backend needs them; once per model."""

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
        """The m nearest rows of each query (q, m), or all within the fixed bandwidth; -1 pads.

        ``first_query`` is the number of the block's first query, for errors.
        """

    def search_units(
        self,
        tree: CoarseTree,
        index: SearchIndex,
        queries: NDArray[np.float64],
        n_units: int,
        reach: float,
        exclusions: Exclusions,
    ) -> NDArray[np.int32]:
        """The units of each query (q, n_units) [E9], as `CoarseTree.nearest_units` finds them."""

    def predict(
        self,
        problem: LocalProblem,
        queries: Array,
        neighbors: NDArray[np.int32],
        points: Array | None = None,
    ) -> Predictions:
        """Solve the local system of each query; ``neighbors`` (q, m) is padded with -1.

        With ``points`` (q, p, d) a query stands for their average: neighbors and weights are
        those of the query, covariances are averaged over the points.
        """

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
        """`search`, then `predict`; neighborhoods need not leave where they were found.

        Queries may be on a device, and are answered there; `takes` says where none has to cross.
        """

    def coefficients(
        self, problem: LocalProblem, queries: Array, neighbors: NDArray[np.int32]
    ) -> Coefficients:
        """What the mean of each query multiplies the targets of its neighbors by."""

    def differentiate(
        self, problem: LocalProblem, queries: Array, neighbors: NDArray[np.int32]
    ) -> tuple[Predictions, QueryGradients]:
        """As `predict`, and the derivatives in the queries, which keep their neighborhoods."""

    def score(
        self,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
        objective: str,
    ) -> Scores:
        """Loss of predicting each target row from its neighbors, and its gradient [E8]."""

    def score_many(self, requests: Sequence[ScoreRequest]) -> list[Scores]:
        """`score` of each: a device has all of them before this machine waits for any."""

    def workspace_bytes(
        self, n_neighbors: int, n_inputs: int, n_targets: int, dtype: np.dtype, gradient: bool
    ) -> int:
        """Memory that one thread needs beside its block's arrays."""

    def plan(
        self,
        problem: LocalProblem,
        n_neighbors: int | None,
        n_queries: int,
        resources: Resources,
        gradient: bool = False,
    ) -> Plan:
        """Block size and threads that respect the memory budget and give every thread work.

        ``n_neighbors`` is None with a fixed bandwidth, where it is only known after the search:
        then the plan says how large a neighborhood may become.
        """


class Backend(LocalSystems, Protocol):
    """Where local systems are solved."""

    name: str
    #: Whether a call is handed to a device: few large ones are better than many small ones, and a
    #: search of a few thousand queries takes less time than another index.
    is_device: bool
    #: Whether one factor of all rows may serve all queries, instead of one system for each.
    factors_once: bool
    #: Whether a solve is so slow that tuning must do with few of them.
    is_slow: bool

    @property
    def device_name(self) -> str | None:
        """What it runs on, for people; None: this machine."""

    def takes(self, queries: Array) -> bool:
        """Whether `predict_at` solves queries where they are, on the host or on a device."""

    @property
    def dense(self) -> Dense:
        """Where exact GPs are factored."""
