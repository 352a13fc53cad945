# SPDX-License-Identifier: BSD-3-Clause
"""Exact and approximate neighbor search: time and recall as rows and inputs grow.

    python benchmarks/approximate_search.py

One thread; microseconds of its CPU time per query, of 64 neighbors, the least of some repeats.
Queries are new points, and recall is measured on them, beside what the index reports of its own
probes. Raw numbers go to benchmarks/results/approximate_search.json, from which the tables of the
documentation are made.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from comparison_tables import markdown_table
from numpy.typing import NDArray
from runner import FOLDER, describe_machine

from lsgp.search.approximate import approximate
from lsgp.search.contract import SearchRequest
from lsgp.search.index import build_index

Array = NDArray[np.float64]

RESULTS = FOLDER / "approximate_search.json"
N_NEIGHBORS = 64
N_QUERIES = 1000
#: Many at once, as predictions are: an exact search of few does not make codes (`_core/nearest.h`).
N_EXACT = 500

CASES = [
    (kind, n, d)
    for n in (10_000, 100_000, 1_000_000)
    for d in (4, 8, 16)
    for kind in ("uniform", "mixture", "normal")
    if d > 4 or kind == "uniform"
]


def draw(kind: str, n: int, d: int) -> Array:
    """Uniform in the unit cube, normal, or of 100 normal clusters."""
    rng = np.random.default_rng(0)
    if kind == "uniform":
        return rng.uniform(size=(n, d))
    if kind == "normal":
        return rng.normal(size=(n, d))
    centers = rng.normal(size=(100, d))
    return centers[rng.integers(100, size=n)] + 0.3 * rng.normal(size=(n, d))


def microseconds(search: Callable[[], Any], n_queries: int, n_repeats: int) -> float:
    best = np.inf
    for _ in range(n_repeats):
        start = time.thread_time()
        search()
        best = min(best, time.thread_time() - start)
    return 1e6 * best / n_queries


def compare(X: Array, queries: Array, unit: Array, n_repeats: int) -> dict[str, Any]:
    """Both searches of the same rows in a metric."""
    start = time.thread_time()
    index = build_index(X, unit)
    build = time.thread_time() - start
    few = queries[:N_EXACT].copy()
    true = index.search(SearchRequest(few, unit, N_NEIGHBORS))
    start = time.thread_time()
    near = approximate(index, unit, N_NEIGHBORS)
    choice = time.thread_time() - start
    found = near.search(SearchRequest(queries, unit, N_NEIGHBORS))
    same = [np.isin(a, b).mean() for a, b in zip(true, found, strict=False)]
    return {
        "build_seconds": build,
        "choice_seconds": choice,
        "exact_us": microseconds(
            lambda: index.search(SearchRequest(few, unit, N_NEIGHBORS)), N_EXACT, 2
        ),
        "approximate_us": microseconds(
            lambda: near.search(SearchRequest(queries, unit, N_NEIGHBORS)), len(queries), n_repeats
        ),
        "reach": getattr(near, "reach", None),
        "reported_recall": near.recall,
        "recall": float(np.mean(same)),
    }


def run(n_repeats: int, most_rows: int) -> dict[str, Any]:
    cases = []
    for kind, n, d in CASES:
        if n > most_rows:
            continue
        points = draw(kind, n + N_QUERIES, d)
        found = compare(points[:n].copy(), points[n:].copy(), np.ones(d), n_repeats)
        cases.append({"points": kind, "n": n, "d": d, "d_active": d, **found})
        print(cases[-1], flush=True)
    for d_active in (10, 128):  # lengthscales of the others are 30 times as long
        n, d = min(100_000, most_rows), 128
        points, unit = draw("normal", n + N_QUERIES, d), np.full(d, 30.0)
        unit[np.random.default_rng(1).permutation(d)[:d_active]] = 1.0
        found = compare(points[:n].copy(), points[n:][:N_EXACT].copy(), unit, n_repeats)
        cases.append({"points": "normal", "n": n, "d": d, "d_active": d_active, **found})
        print(cases[-1], flush=True)
    return {"machine": describe_machine(), "n_neighbors": N_NEIGHBORS, "cases": cases}


def table(results: dict[str, Any]) -> str:
    """Of the documentation, in Markdown."""
    head = ["points", "rows", "inputs", "exact, µs", "approximate, µs", "recall", "`recall_`"]
    rows = []
    for case in results["cases"]:
        d = str(case["d"])
        if case["d_active"] < case["d"]:
            d += f", of which {case['d_active']} matter"
        is_exact = case["reach"] is None
        near = ("the same", "1", "1") if is_exact else (
            f"{case['approximate_us']:.0f}",
            f"{case['recall']:.3f}",
            f"{case['reported_recall']:.3f}",
        )  # fmt: skip
        rows.append([case["points"], f"{case['n']:,}", d, f"{case['exact_us']:.0f}", *near])
    machine = results["machine"]
    said = f"One thread of {machine['cpu']}, {machine['instruction_set']}."
    return f"{markdown_table(head, rows, n_texts=None)}\n\n{said}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most-rows", type=int, default=1_000_000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = run(options.repeats, options.most_rows)
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
