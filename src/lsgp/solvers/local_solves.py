# SPDX-License-Identifier: BSD-3-Clause
"""Local solves for many queries: neighborhoods, then a backend, block by block on threads.

Results do not depend on the block size, the number of threads or the order of the queries.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.compute import threads
from lsgp.method import contract as local_problem
from lsgp.method.contract import LocalModel, LocalProblem, Scores
from lsgp.search.exclusions import NO_EXCLUSIONS, Exclusions
from lsgp.search.index import SearchIndex

Array = NDArray[np.floating]

#: A local system may not have more points than this.
LARGEST_SYSTEM = 4096
#: A block takes about this many multiply-adds: a fraction of a second, so that Ctrl-C is prompt.
_WORK_PER_BLOCK = 1e9
_LARGEST_BLOCK = 8192
_BLOCK_WITH_FIXED_BANDWIDTH = 512
#: Small blocks waste lanes.
_SMALLEST_BLOCK = 16


class Resources(NamedTuple):
    """What a computation may use."""

    n_threads: int = 1
    memory_budget: int = 1_000_000_000
    verbose: int = 0


class Plan(NamedTuple):
    """How queries are cut into blocks."""

    block_size: int
    n_threads: int
    max_neighbors: int


def plan_blocks(
    backend: ModuleType,
    n_neighbors: int | None,
    problem: LocalProblem,
    n_queries: int,
    resources: Resources,
    gradient: bool = False,
) -> Plan:
    """Block size and threads that respect the memory budget and give every thread work.

    ``n_neighbors`` is None with a fixed bandwidth, where it is only known after the search:
    then the plan says how large a neighborhood may become.
    """
    d, t = problem.X.shape[1], problem.y.shape[1]

    def bytes_per_thread(m: int, block_size: int) -> int:
        per_query = 4 * m + 8 * (4 * d + 4 * t + 8) + (8 * d if gradient else 0)
        workspace: int = backend.workspace_bytes(m, d, t, problem.X.dtype, gradient)
        return workspace + block_size * per_query

    n_threads = resources.n_threads
    if n_neighbors is None:
        m = LARGEST_SYSTEM
        while m > 1 and bytes_per_thread(m, _SMALLEST_BLOCK) * n_threads > resources.memory_budget:
            m = int(m * 0.9)
    else:
        m = n_neighbors
        while (
            n_threads > 1
            and bytes_per_thread(m, _SMALLEST_BLOCK) * n_threads > resources.memory_budget
        ):
            n_threads -= 1
    needed = bytes_per_thread(m, _SMALLEST_BLOCK)
    if needed > resources.memory_budget:
        raise ValueError(
            f"memory_budget={resources.memory_budget} bytes is less than the {needed} bytes that "
            f"local systems of {m} points need. Increase memory_budget, or reduce n_neighbors."
        )
    work = m**3 / 6 + m * m * d
    block_size = int(np.clip(_WORK_PER_BLOCK / work, _SMALLEST_BLOCK, _LARGEST_BLOCK))
    if n_neighbors is None:
        # Most neighborhoods are far smaller than the largest that is allowed.
        block_size = _BLOCK_WITH_FIXED_BANDWIDTH
    block_size = min(block_size, max(_SMALLEST_BLOCK, n_queries // (4 * n_threads)))
    while (
        block_size > _SMALLEST_BLOCK
        and bytes_per_thread(m, block_size) * n_threads > resources.memory_budget
    ):
        block_size //= 2
    # A multiple of every lane width, so that only the last block has idle lanes.
    return Plan(max(_SMALLEST_BLOCK, block_size // 16 * 16), n_threads, m)


def find_neighborhoods(
    index: SearchIndex,
    model: LocalModel,
    queries: NDArray[np.float64],
    n_neighbors: int | None,
    max_neighbors: int = LARGEST_SYSTEM,
    first_query: int = 0,
    exclusions: Exclusions = NO_EXCLUSIONS,
) -> NDArray[np.int32]:
    """The m nearest training points of each query, or all within the fixed bandwidth."""
    lengthscale = np.ascontiguousarray(model.lengthscale, dtype=float)
    if n_neighbors is None:
        return index.within(
            queries,
            lengthscale,
            model.scaled_bandwidth,
            max_neighbors=max_neighbors,
            first_query=first_query,
            exclusions=exclusions,
        )
    return index.nearest(queries, lengthscale, min(n_neighbors, index.n), exclusions)


def score_in_blocks(
    problem: LocalProblem,
    targets: NDArray[np.int32],
    neighbors: NDArray[np.int32],
    objective: str,
    backend: ModuleType,
    resources: Resources,
) -> Scores:
    """`score` of the backend on threads; failures stay status codes."""
    width, n = max(neighbors.shape[1], 1), len(targets)
    plan = plan_blocks(backend, width, problem, n, resources, gradient=True)

    def work(start: int, stop: int) -> Scores:
        part = slice(start, stop)
        scores: Scores = backend.score(problem, targets[part], neighbors[part], objective)
        return scores

    results = list(threads.run_blocks(work, n, plan.block_size, plan.n_threads))
    scores: Scores = local_problem.concatenate_results(results)
    return scores


class Failures:
    """Queries whose local system could not be solved, gathered over blocks."""

    def __init__(self) -> None:
        self.count = 0
        self.first: tuple[int, int, int] | None = None  # query, status, duplicate neighbors

    def note(
        self,
        start: int,
        status: NDArray[np.int32],
        problem: LocalProblem,
        neighbors: NDArray[np.int32],
    ) -> None:
        failed = np.flatnonzero(status >= local_problem.STATUS_NOT_POSITIVE_DEFINITE)
        if not failed.size:
            return
        self.count += failed.size
        query = start + int(failed[0])
        if self.first is None or query < self.first[0]:
            rows = neighbors[failed[0]]
            rows = rows[rows >= 0]
            n_duplicates = len(rows) - len(np.unique(problem.X[rows], axis=0))
            self.first = (query, int(status[failed[0]]), n_duplicates)

    def raise_if_any(self, n_queries: int, model: LocalModel) -> None:
        if self.first is None:
            return
        query, status, n_duplicates = self.first
        remedy = (
            f"Increase noise_variance (now {model.noise_variance:.3g})."
            if status == local_problem.STATUS_NOT_POSITIVE_DEFINITE
            else "Check the scale of the inputs against the lengthscale."
        )
        raise np.linalg.LinAlgError(
            f"{self.count} of {n_queries} local systems are "
            f"{local_problem.STATUS_MESSAGES[status]} (first: query {query}, with "
            f"{n_duplicates} duplicate neighbors). {remedy}"
        )
