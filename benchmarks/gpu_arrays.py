# SPDX-License-Identifier: BSD-3-Clause
"""What it takes to predict arrays that are on the device already, and those of the host.

    python benchmarks/gpu_arrays.py
    python benchmarks/gpu_arrays.py --queries 1e6 --dtypes float64

Needs a device; on a machine that is otherwise idle. Least seconds by the clock, of three, after a
first use; with standard deviations. Results are also compared.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import cupy
import numpy as np

from lsgp import LSGPRegressor


def clock(model: LSGPRegressor, queries: Any) -> tuple[float, Any]:
    """Least seconds, and what was predicted."""
    device, seconds = cupy.cuda.Device(), []
    for _ in range(4):
        device.synchronize()
        began = time.perf_counter()
        found = model.predict(queries, return_std=True)
        device.synchronize()
        seconds.append(time.perf_counter() - began)
    return min(seconds[1:]), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--queries", type=float, default=1e7)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    X, queries = (rng.uniform(size=(int(n), 2)) for n in (given.rows, given.queries))
    y = np.sin(6.0 * X[:, 0]) + 0.1 * rng.normal(size=len(X))
    on_device = cupy.asarray(queries)
    for dtype in given.dtypes:
        model = LSGPRegressor(objective=None, n_neighbors=64, dtype=dtype, backend="cuda")
        model.fit(X, y)
        there, answer = clock(model, on_device)
        print(f"{dtype}, of the device: {there:.3f} s, {len(queries) / there / 1e6:.1f} million/s")
        for n_jobs in (1, 4):
            model.set_params(n_jobs=n_jobs)
            here, same = clock(model, queries)
            rate = len(queries) / here / 1e6
            print(f"{dtype}, of the host, n_jobs={n_jobs}: {here:.3f} s, {rate:.1f} million/s")
        gap = max(float(np.abs(a.get() - b).max()) for a, b in zip(answer, same, strict=True))
        print(f"{dtype}, largest difference: {gap:.2g}", flush=True)


if __name__ == "__main__":
    main()
