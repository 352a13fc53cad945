# SPDX-License-Identifier: BSD-3-Clause
"""How queries are cut into blocks, for backends that solve on threads of this machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from lsgp.backends.contract import LARGEST_SYSTEM, Plan, Resources
from lsgp.method.contract import LocalProblem

#: Memory of one thread beside its block's arrays, of (m, d, t, dtype, gradient).
WorkspaceBytes = Callable[[int, int, int, np.dtype, bool], int]

#: A block takes about this many multiply-adds: a fraction of a second, so that Ctrl-C is prompt.
#: With half as many, four models of up to 384 neighbors took a tenth longer: searches have fewer
#: queries near each other.
WORK_PER_BLOCK = 2e9
LARGEST_BLOCK = 8192
#: With a fixed bandwidth most neighborhoods are far smaller than the largest that is allowed.
BLOCK_WITH_FIXED_BANDWIDTH = 512
#: Small blocks waste lanes.
SMALLEST_BLOCK = 16


def plan_blocks(
    workspace_bytes: WorkspaceBytes,
    problem: LocalProblem,
    n_neighbors: int | None,
    n_queries: int,
    resources: Resources,
    gradient: bool = False,
) -> Plan:
    """As `Backend.plan`, of a backend whose threads each need a workspace."""
    d, t = problem.X.shape[1], problem.y.shape[1]
    n_threads, budget = resources.n_threads, resources.memory_budget
    has_pool = resources.pool is not None
    return _plan(
        workspace_bytes,
        (d, t, problem.X.dtype),
        n_neighbors,
        n_queries,
        n_threads,
        budget,
        has_pool,
        gradient,
    )


# A descent asks for the same plan again and again, which takes as long as some of its systems.
@lru_cache(maxsize=256)
def _plan(
    workspace_bytes: WorkspaceBytes,
    of_problem: tuple[int, int, np.dtype],
    n_neighbors: int | None,
    n_queries: int,
    n_threads: int,
    memory_budget: int,
    has_pool: bool,
    gradient: bool,
) -> Plan:
    """For d inputs and t targets of a type."""
    d, t, dtype = of_problem

    def bytes_per_thread(m: int, block_size: int) -> int:
        per_query = 4 * m + 8 * (4 * d + 4 * t + 8) + (8 * (2 * t + 3) * d if gradient else 0)
        workspace = workspace_bytes(m, d, t, dtype, gradient)
        return workspace + block_size * per_query

    if n_neighbors is None:
        m = LARGEST_SYSTEM
        while m > 1 and bytes_per_thread(m, SMALLEST_BLOCK) * n_threads > memory_budget:
            m = int(m * 0.9)
    else:
        m = n_neighbors
        affordable = memory_budget // bytes_per_thread(m, SMALLEST_BLOCK)
        n_threads = max(1, min(n_threads, affordable))
    needed = bytes_per_thread(m, SMALLEST_BLOCK)
    if needed > memory_budget:
        raise ValueError(
            f"memory_budget={memory_budget} bytes is less than the {needed} bytes that "
            f"local systems of {m} points need. Increase memory_budget, or reduce n_neighbors."
        )
    work = m**3 / 6 + m * m * d
    block_size = int(np.clip(WORK_PER_BLOCK / work, SMALLEST_BLOCK, LARGEST_BLOCK))
    if n_neighbors is None:
        block_size = BLOCK_WITH_FIXED_BANDWIDTH
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
