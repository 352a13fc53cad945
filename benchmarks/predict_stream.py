# SPDX-License-Identifier: BSD-3-Clause
"""Memory and speed of ``lsgp predict`` on a file that is much larger than its memory budget allows.

Writes a CSV file of random queries with 2 inputs, predicts it from the command line, and compares
the peak resident memory of that process with the budget, which it should not exceed in all: not
only beside the interpreter and the model. Raw numbers go to benchmarks/results.

    python benchmarks/predict_stream.py                      # 20 million rows, some minutes
    python benchmarks/predict_stream.py --rows 1000000
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from runner import FOLDER

from lsgp import LSGPRegressor, _core
from lsgp.compute.threads import parse_memory_budget

RESULTS = FOLDER / "predict_stream.json"
N_TRAIN, N_NEIGHBORS = 100_000, 32
ROWS_AT_A_TIME = 1_000_000

#: The command line, which says at its end how much memory it had at most. The parent cannot: on
#: Linux, what it learns about a child includes what it had itself when it started the child.
PROGRAM = """
import re, resource, sys
from lsgp.cli import main
code = main(sys.argv[2:])
usage = resource.getrusage(resource.RUSAGE_SELF)
if sys.platform == "linux":
    status = open("/proc/self/status").read()
    peak = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", status)[1])
else:
    peak = usage.ru_maxrss  # bytes on macOS
with open(sys.argv[1], "w") as file:
    file.write(f"{peak} {usage.ru_utime + usage.ru_stime}")
sys.exit(code)
"""


def run(folder: Path, *arguments: object) -> dict[str, float]:
    """Run the command line; seconds on the clock and of processors, and peak memory in MB."""
    usage = folder / "usage.txt"
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", PROGRAM, usage, *map(str, arguments)], check=True)
    seconds = time.perf_counter() - started
    peak, processor_seconds = map(float, usage.read_text(encoding="utf-8").split())
    spent = {"seconds": seconds, "processor_seconds": processor_seconds}
    return {**spent, "peak_memory_mb": peak / 1e6}


def write_model(path: Path) -> None:
    random = np.random.default_rng(0)
    X = pl.DataFrame(random.uniform(size=(N_TRAIN, 2)), schema=["x1", "x2"])
    y = np.sin(20 * X["x1"].to_numpy() ** 2) + X["x2"].to_numpy()
    y += 0.1 * random.standard_normal(N_TRAIN)
    settings = {"objective": None, "n_neighbors": N_NEIGHBORS, "hyperparameters__lengthscale": 0.5}
    LSGPRegressor().set_params(**settings).fit(X, pl.Series("y", y)).save(path)


def write_queries(path: Path, n_rows: int) -> None:
    random = np.random.default_rng(1)
    with path.open("wb") as file:
        for start in range(0, n_rows, ROWS_AT_A_TIME):
            n = min(ROWS_AT_A_TIME, n_rows - start)
            frame = pl.DataFrame(random.uniform(size=(n, 2)), schema=["x1", "x2"])
            file.write(frame.write_csv(include_header=start == 0).encode())


def measure(n_most: int, budget: str, folder: Path) -> list[dict[str, Any]]:
    model, queries = folder / "model.lsgp", folder / "queries.csv"
    write_model(model)
    results = []
    # A short file first: what the interpreter, the libraries and the model take.
    for n_rows, kind in ((1000, "csv"), (n_most, "csv"), (n_most, "parquet")):
        write_queries(queries, n_rows)
        output = folder / f"predictions.{kind}"
        measured = run(
            folder, "predict", model, queries, "-o", output, "--quiet", "--memory-budget", budget
        )
        scan = pl.scan_parquet if kind == "parquet" else pl.scan_csv
        assert scan(output).select(pl.len()).collect().item() == n_rows
        size = queries.stat().st_size / 1e6
        results.append({"rows": n_rows, "output": kind, "input_mb": size, **measured})
        output.unlink()
        print(
            f"{n_rows:>12,} rows ({size:,.0f} MB of CSV) to {kind:<7}"
            f"{measured['seconds']:8.1f} s {n_rows / measured['seconds']:>10,.0f} rows/s"
            f"{measured['peak_memory_mb']:8.0f} MB at most",
            flush=True,
        )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--memory-budget", default="1GB")
    parser.add_argument("--folder", type=Path, help="for the files (default: a temporary one)")
    parser.add_argument("--output", type=Path, default=RESULTS, help=f"default: {RESULTS.name}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = measure(options.rows, options.memory_budget, Path(folder))
    budget = parse_memory_budget(options.memory_budget) / 1e6
    peak = max(result["peak_memory_mb"] for result in results)
    is_kept = "ok" if peak < budget else "short"
    print(f"Peak {peak:.0f} MB of a budget of {budget:.0f} MB: {is_kept}")
    content = {
        "machine": {
            "platform": platform.platform(),
            "instruction_set": _core.instruction_set,
            "n_cores": os.cpu_count(),
            "versions": {name: version(name) for name in ("lsgp", "numpy", "polars")},
        },
        "model": {"n_train": N_TRAIN, "n_neighbors": N_NEIGHBORS, "n_inputs": 2},
        "memory_budget_mb": budget,
        "runs": results,
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
