# SPDX-License-Identifier: BSD-3-Clause
"""How queries are cut into blocks, for backends that solve on threads of this machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from lsgp.backends.contract import Plan, Resources, SystemSize
from lsgp.search.contract import LARGEST_SYSTEM

#: A block takes about this many multiply-adds: a fraction of a second, so that Ctrl-C is prompt.
#: Searches of smaller blocks are slower, because fewer queries are near each other.
WORK_PER_BLOCK = 2e9
LARGEST_BLOCK = 8192
#: With a fixed bandwidth most neighborhoods are far smaller than the largest that is allowed.
BLOCK_WITH_FIXED_BANDWIDTH = 512
#: Small blocks waste lanes.
SMALLEST_BLOCK = 16


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
        m = LARGEST_SYSTEM
        while m > 1 and bytes_per_thread(m, SMALLEST_BLOCK) * n_threads > memory_budget:
            m = int(m * 0.9)
    else:
        m = size.n_neighbors
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
    if size.n_neighbors is None:
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
