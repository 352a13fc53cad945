# SPDX-License-Identifier: BSD-3-Clause
"""Memory of a prediction of many queries, measured in a process of its own."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from figures import Figure, make_data, run_python

from lsgp import LSGPRegressor
from lsgp.compute.threads import parse_memory_budget

MEMORY_BUDGET = "1GB"
N_TRAIN, N_NEIGHBORS = 1_000_000, 32


def prediction_memory(n_queries: int) -> Figure | None:
    """Peak beyond inputs, outputs and index; in a process of its own."""
    printed = run_python(__file__, str(n_queries))
    raw = json.loads(printed)
    if raw is None:
        return None
    budget = parse_memory_budget(MEMORY_BUDGET)
    name = f"memory to predict {n_queries / 1e6:g} million queries, m = {N_NEIGHBORS}"
    extra = raw["peak_bytes"] - raw["before_bytes"] - raw["output_bytes"]
    return Figure(name, extra / 1e6, "MB", at_most=budget / 1e6, raw=raw)


def measure_memory(n_queries: int) -> dict[str, float] | None:
    """Predict, and say how memory grew; None where the system does not tell."""
    X, y = make_data(N_TRAIN, 2)
    model = LSGPRegressor(
        objective=None,
        n_neighbors=N_NEIGHBORS,
        memory_budget=MEMORY_BUDGET,
        n_jobs=-1,
        verbose=1,
    ).fit(X, y)
    queries = np.random.default_rng(1).standard_normal((n_queries, 2))
    model.predict(queries[:1000], return_std=True)
    try:
        # From here on the peak is counted anew.
        Path("/proc/self/clear_refs").write_text("5")
        before = resident_bytes("VmHWM")
    except OSError:
        return None
    start = time.perf_counter()
    mean, std = model.predict(queries, return_std=True)
    return {
        "n_queries": n_queries,
        "before_bytes": before,
        "peak_bytes": resident_bytes("VmHWM"),
        "output_bytes": mean.nbytes + std.nbytes,
        "seconds": time.perf_counter() - start,
    }


def resident_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise OSError(f"/proc/self/status has no {field}")


if __name__ == "__main__":
    print(json.dumps(measure_memory(int(sys.argv[1]))))
