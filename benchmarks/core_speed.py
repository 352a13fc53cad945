# SPDX-License-Identifier: BSD-3-Clause
"""Speed and memory of the core, each figure beside what it should reach.

Run it with ``make bench``, on a machine that is otherwise idle. What a ratio compares is measured
alternately in one process, so that both sides meet the same conditions, and the fastest repeat
counts. Raw numbers go to benchmarks/results/core_speed.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from figures import Figure, make_data, measure, run_python
from local_solve_speed import (
    core_against_scipy,
    gradient_against_predict,
    local_solve_against_gemm,
    single_against_double,
    two_threads_against_one,
)
from machine import cpu_model, describe_machine
from prediction_memory import prediction_memory
from rich.console import Console
from rich.table import Table
from scipy.spatial import cKDTree
from threadpoolctl import threadpool_limits

from lsgp import _core
from lsgp.search.contract import SearchRequest
from lsgp.search.index import build_index

RESULTS = Path(__file__).parent / "results" / "core_speed.json"


def import_time(n_repeats: int) -> Figure:
    code = (
        "import time, sklearn.gaussian_process; start = time.perf_counter(); "
        "from lsgp import LSGPRegressor; "
        "print(time.perf_counter() - start)"
    )
    seconds = [float(run_python("-c", code)) for _ in range(n_repeats)]
    name = "from lsgp import LSGPRegressor, after sklearn.gaussian_process"
    return Figure(name, min(seconds), "s", at_most=0.2, raw={"seconds": min(seconds)})


def neighbor_search(n: int, d: int, n_queries: int, n_repeats: int) -> list[Figure]:
    """Build and query times against scipy's kd-tree, for information."""
    n_neighbors = 50
    X = make_data(n, d)[0]
    queries = make_data(n_queries, d, seed=1)[0]
    ones = np.ones(d)
    index, tree = build_index(X, ones), cKDTree(X)
    found = index.measure(SearchRequest(queries[:20], ones, n_neighbors))
    np.testing.assert_allclose(found.distances, tree.query(queries[:20], n_neighbors)[0])
    builds = measure(
        {"build": lambda: build_index(X, ones), "build_scipy": lambda: cKDTree(X)}, n_repeats
    )
    searches = measure(
        {
            "query": lambda: index.search(SearchRequest(queries, ones, n_neighbors)),
            "query_scipy": lambda: tree.query(queries, n_neighbors),
        },
        n_repeats,
    )
    per_query = searches["query"] / n_queries
    where = f"n = {n:,}, d = {d}"
    return [
        Figure(
            f"index faster built than cKDTree, {where} ({builds['build']:.2f} s)",
            builds["build_scipy"] / builds["build"],
            "x",
            raw=builds,
        ),
        Figure(
            f"{n_neighbors} neighbors faster than cKDTree, {where} ({per_query * 1e6:.0f} µs)",
            searches["query_scipy"] / searches["query"],
            "x",
            raw=searches | {"n_queries": n_queries},
        ),
    ]


def measure_all(options: argparse.Namespace, console: Console) -> Iterable[Figure]:
    n_repeats = 5 if options.quick else 20
    few = 1 if options.quick else 3
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("local solves, m = 64", lambda: local_solve_against_gemm(64, 5, n_repeats)),
        ("local solves, m = 128", lambda: local_solve_against_gemm(128, 3, n_repeats)),
        ("local solves, m = 256", lambda: local_solve_against_gemm(256, 3, n_repeats)),
        ("scipy.linalg", lambda: core_against_scipy(n_repeats)),
        ("float32", lambda: single_against_double(n_repeats)),
        ("threads", lambda: two_threads_against_one(n_repeats)),
        ("gradient", lambda: gradient_against_predict(n_repeats)),
        ("import", lambda: import_time(n_repeats)),
        ("neighbors, d = 2", lambda: neighbor_search(1_000_000, 2, 20_000, few)),
        ("neighbors, d = 4", lambda: neighbor_search(1_000_000, 4, 5_000, few)),
        ("neighbors, d = 8", lambda: neighbor_search(100_000, 8, 1_000, few)),
        ("neighbors, d = 20", lambda: neighbor_search(100_000, 20, 100, few)),
    ]
    for name, step in steps:
        with console.status(name):
            result = step()
        yield from result if isinstance(result, list) else [result]
    if not options.skip_memory:
        n_queries = 1_000_000 if options.quick else 10_000_000
        # The child shows its own progress.
        memory = prediction_memory(n_queries)
        if memory is None:
            console.print("This system does not tell the peak memory of a process: left out.")
        else:
            yield memory


def write_results(figures: list[Figure], path: Path, **more: Any) -> None:
    """Write the figures, and the machine that they belong to with what else is known of it."""
    content = {
        "machine": {**describe_machine(), **more},
        "figures": [
            {
                "name": figure.name,
                "value": figure.value,
                "unit": figure.unit,
                "reach": figure.reach,
                "is_reached": figure.is_reached,
                "raw": figure.raw,
            }
            for figure in figures
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    # Renamed when complete: never half a file.
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as file:
        json.dump(content, file, indent=2)
        file.write("\n")
    Path(file.name).replace(path)


def make_table(figures: list[Figure]) -> Table:
    table = Table("figure", title=f"lsgp on {cpu_model()}, {_core.instruction_set}")
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("reach", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    verdicts = {True: "[green]ok", False: "[red]short", None: ""}
    for figure in figures:
        measured = f"{figure.value:.3g} {figure.unit}"
        table.add_row(figure.name, measured, figure.reach, verdicts[figure.is_reached])
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats and queries")
    parser.add_argument("--skip-memory", action="store_true", help="it takes minutes")
    parser.add_argument("--output", type=Path, default=RESULTS, help=f"default: {RESULTS.name}")
    options = parser.parse_args()
    console = Console()
    with threadpool_limits(1):
        figures = list(measure_all(options, console))
    console.print(make_table(figures))
    write_results(figures, options.output)
    print(f"Raw numbers: {options.output}")


if __name__ == "__main__":
    main()
