# SPDX-License-Identifier: BSD-3-Clause
"""When a device is worth it: where this machine would be busy for seconds.

The first use of a device in a process takes about two seconds: importing CuPy, and loading kernels.
"""

from __future__ import annotations

#: Multiply-adds a second of one thread of the native core, with the search beside them.
RATE = 4e9
#: A device is used for work that would take this machine longer, in seconds.
WORTH = 3.0


def seconds_to_solve(work: float, n_threads: int) -> float:
    """That this machine takes for so many multiply-adds in local systems, roughly."""
    return work / (RATE * n_threads)
