# SPDX-License-Identifier: BSD-3-Clause
"""What backends share whose arrays are in the memory of this machine.

Where single precision has lost too many digits, systems are solved again in double; queries are cut
into blocks that suit the threads and the memory budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import (
    Array,
    Matrix,
    Plan,
    Resources,
    Rows,
    ScoreRequest,
    Systems,
    SystemSize,
)
from lsgp.method.arrays import beside, on_host
from lsgp.method.contract import (
    STATUS_IMPRECISE,
    Coefficients,
    LocalProblem,
    Predictions,
    QueryGradients,
    Scores,
)
from lsgp.search.contract import LARGEST_SYSTEM, SearchIndex, SearchRequest

#: Rows that are copied to double precision at a time: a few megabytes.
ROWS_IN_DOUBLE = 16_384
#: A block takes about this many multiply-adds: a fraction of a second, so that Ctrl-C is prompt.
#: Searches of smaller blocks are slower, because fewer queries are near each other.
WORK_PER_BLOCK = 2e9
#: Smaller blocks waste lanes.
SMALLEST_BLOCK, LARGEST_BLOCK = 16, 8192
#: With a fixed bandwidth most neighborhoods are far smaller than the largest that is allowed.
BLOCK_WITH_FIXED_BANDWIDTH = 512

Request = TypeVar("Request", Systems, ScoreRequest)
Result = TypeVar("Result", Predictions, Coefficients, Scores)


def prepare(problem: LocalProblem) -> LocalProblem:
    """As `Backend.prepare`: C-contiguous, and of the dtype of X."""
    dtype = problem.X.dtype
    X, y, noise = (np.ascontiguousarray(array, dtype) for array in problem[:3])
    return problem._replace(X=X, y=y, noise=noise)


def search(index: SearchIndex, request: SearchRequest) -> Rows:
    """As `Backend.search`, by the index itself."""
    if request.n_neighbors is not None and request.n_neighbors > index.n:
        request = request._replace(n_neighbors=index.n)
    return index.search(request)


def predict_found(
    predict: Callable[[Systems], Predictions],
    problem: LocalProblem,
    index: SearchIndex,
    request: SearchRequest,
) -> tuple[Predictions, Rows]:
    """As `Backend.predict_at`, from what the index finds."""
    queries = on_host(request.queries)
    own = request if queries is request.queries else request._replace(queries=queries)
    neighbors = search(index, own)
    solved = predict(Systems(problem, queries.astype(problem.X.dtype, copy=False), neighbors))
    return solved.beside(request.queries), neighbors


def noise_unit(problem: LocalProblem, queries: Array, neighbors: Rows) -> Matrix:
    """As in `Predictions`, (q,): h where weights are k(u)/h, else 1."""
    model = problem.model
    if not model.normalize:
        return np.ones(len(queries))
    if model.bandwidth is not None:
        return np.full(len(queries), model.bandwidth)
    offsets = problem.X[neighbors].astype(float) - queries[:, None, :]
    r2 = ((offsets / model.localizer_scale) ** 2).sum(axis=2)
    h2 = np.where(neighbors >= 0, r2, 0.0).max(axis=1, initial=0.0)
    return np.sqrt(np.where(h2 > 0, h2, 1.0)) * model.localizer_unit


def solve_twice(
    solve: Callable[[Request, bool], Result], request: Request, n_rows: int = ROWS_IN_DOUBLE
) -> Result:
    """``solve(request, is_trend_apart)``, and again in double precision where digits were lost."""
    result = solve(request, request.problem.model.has_large_trend)
    for part in imprecise_parts(result.status, request.neighbors.shape[1], n_rows):
        replace_part(result, part, solve(in_double(request, part), True))
    return result


def imprecise_parts(
    status: Rows, n_neighbors: int, n_rows: int = ROWS_IN_DOUBLE
) -> Iterator[NDArray[np.int64]]:
    """Numbers of the queries that are to be solved again, few enough at a time to copy rows."""
    again = np.flatnonzero(status == STATUS_IMPRECISE)
    size = max(16, n_rows // max(1, n_neighbors))
    for start in range(0, len(again), size):
        yield again[start : start + size]


def replace_part(
    result: Predictions | QueryGradients | Scores | Coefficients,
    part: NDArray[np.int64],
    better: Predictions | QueryGradients | Scores | Coefficients,
) -> None:
    """Write better results of some of the queries into those of all."""
    values: NDArray[Any] | None
    others: NDArray[Any] | None
    for values, others in zip(result, better, strict=True):
        if values is not None:
            assert others is not None, "better results are of the same kind"
            values[beside(part, values)] = beside(others, values)


def in_double(request: Request, part: NDArray[np.int64]) -> Request:
    """Some of the systems or targets, with the rows that they name in double precision."""
    problem, queries, neighbors, _ = request
    if isinstance(request, ScoreRequest):
        named = np.column_stack([queries[part], neighbors[part]])
        problem, numbers = _rows_in_double(problem, named)
        targets, found = (np.ascontiguousarray(a) for a in (numbers[:, 0], numbers[:, 1:]))
        return ScoreRequest(problem, targets, found, request.objective)
    problem, numbers = _rows_in_double(problem, neighbors[part])
    around = None if request.points is None else request.points[part].astype(float)
    return Systems(problem, queries[part].astype(float), numbers, around)


def without_targets(systems: Systems) -> Systems:
    """All systems, in double precision, of which nobody wants predictions."""
    problem = systems.problem._replace(y=systems.problem.y[:, :0])
    problem, numbers = _rows_in_double(problem, systems.neighbors)
    return Systems(prepare(problem), np.ascontiguousarray(systems.queries, float), numbers)


def _rows_in_double(problem: LocalProblem, neighbors: Rows) -> tuple[LocalProblem, Rows]:
    """The problem of the named rows, in double precision, and their numbers there.

    A problem that is in double precision is itself.
    """
    if problem.X.dtype == np.float64:
        return problem, neighbors
    rows, places = np.unique(neighbors, return_inverse=True)
    n_pads = int(np.searchsorted(rows, 0))
    rows = rows[n_pads:]
    numbers = np.maximum(places.reshape(neighbors.shape) - n_pads, -1)
    X, y, noise = (np.ascontiguousarray(array[rows], dtype=float) for array in problem[:3])
    found = LocalProblem(X, y, noise, problem.model)
    return found, np.ascontiguousarray(numbers, dtype=np.int32)


def plan_blocks(
    workspace_bytes: Callable[[SystemSize], int],
    size: SystemSize,
    n_queries: int,
    resources: Resources,
) -> Plan:
    """As `Backend.plan`, of a backend whose threads each need a workspace."""
    n_threads, memory_budget, _, pool = resources
    return _plan(workspace_bytes, size, n_queries, n_threads, memory_budget, pool is not None)


# A descent asks for the same plan again and again, which takes as long as some of its systems.
@lru_cache(maxsize=256)
def _plan(
    workspace_bytes: Callable[[SystemSize], int],
    size: SystemSize,
    n_queries: int,
    n_threads: int,
    memory_budget: int,
    has_pool: bool,
) -> Plan:
    d, t = size.n_inputs, size.n_targets

    def bytes_per_thread(m: int, block_size: int) -> int:
        gradients = 8 * (2 * t + 3) * d if size.has_gradient else 0
        per_query = 4 * m + 8 * (4 * d + 4 * t + 8) + gradients
        return workspace_bytes(size._replace(n_neighbors=m)) + block_size * per_query

    if size.n_neighbors is None:
        m, block_size = LARGEST_SYSTEM, BLOCK_WITH_FIXED_BANDWIDTH
        while m > 1 and bytes_per_thread(m, SMALLEST_BLOCK) * n_threads > memory_budget:
            m = int(m * 0.9)
    else:
        m = size.n_neighbors
        work = m**3 / 6 + m * m * d
        block_size = int(np.clip(WORK_PER_BLOCK / work, SMALLEST_BLOCK, LARGEST_BLOCK))
        affordable = memory_budget // bytes_per_thread(m, SMALLEST_BLOCK)
        n_threads = max(1, min(n_threads, affordable))
    needed = bytes_per_thread(m, SMALLEST_BLOCK)
    if needed > memory_budget:
        raise ValueError(
            f"memory_budget={memory_budget} bytes is less than the {needed} bytes that "
            f"local systems of {m} points need. Increase memory_budget, or reduce n_neighbors."
        )
    if n_threads > 1:
        # Some blocks for each thread, so that none waits long for the last; but handing one over
        # takes longer than solving few small systems.
        n_blocks = n_threads if has_pool else 4 * n_threads
        block_size = min(block_size, max(SMALLEST_BLOCK, -(-n_queries // n_blocks)))
    while (
        block_size > SMALLEST_BLOCK and bytes_per_thread(m, block_size) * n_threads > memory_budget
    ):
        block_size //= 2
    # A multiple of every lane width, so that only the last block has idle lanes.
    return Plan(max(SMALLEST_BLOCK, block_size // 16 * 16), n_threads, m)
