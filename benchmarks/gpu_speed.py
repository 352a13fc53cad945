# SPDX-License-Identifier: BSD-3-Clause
"""Speed of the GPU backend, each figure beside what it should reach on an H200, and the host's.

    python benchmarks/gpu_speed.py --data protein.csv.gz

Needs a device; on a machine that is otherwise idle, and, for the times of first use, with an empty
cache of kernels (CUPY_CACHE_DIR). Times on the device are by its events, others
by the clock, from arrays of the host to arrays of the host; the fastest repeat counts. Raw numbers
go to benchmarks/results/gpu_speed.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from core_speed import make_table, write_results
from figures import Figure, make_data
from rich.console import Console

from lsgp import LSGPRegressor
from lsgp.backends import cuda
from lsgp.backends.cuda import search, solve
from lsgp.backends.cuda.device import cupy, find_device
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.search.contract import SearchRequest
from lsgp.search.index import build_index

RESULTS = Path(__file__).parent / "results" / "gpu_speed.json"
MILLION = 1e6


def on_device(function: Callable[[], Any], n_repeats: int = 5) -> float:
    """Least seconds on the device."""
    events = cupy().cuda
    function()
    seconds = []
    for _ in range(n_repeats):
        start, end = events.Event(), events.Event()
        start.record()
        function()
        end.record()
        end.synchronize()
        seconds.append(events.get_elapsed_time(start, end) / 1e3)
    return min(seconds)


def by_clock(function: Callable[[], Any], n_repeats: int = 2) -> float:
    """Least seconds from host to host."""
    seconds = []
    for _ in range(n_repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def solves(dtype: str, m: int, n_queries: int, goals: dict[str, float]) -> list[Figure]:
    """Systems a second, of 8 inputs with a linear trend, from neighbors that are given."""
    n, d = 100_000, 8
    random = np.random.default_rng(0)
    X, y = make_data(n, d)
    model = LocalModel(
        "matern32",
        "smooth",
        np.full(d, 2.0),
        noise_variance=0.1,
        constant_variance=1.0,
        slope_variance=0.1,
        scale_dof=4.0,
    )
    problem = LocalProblem(X.astype(dtype), y[:, None].astype(dtype), np.ones(n, dtype), model)
    there = solve.upload_problem(problem, False, cuda.residence)
    upload = cupy().asarray
    queries = upload(random.standard_normal((n_queries, d)).astype(dtype))
    neighbors = upload(random.integers(0, n, (n_queries, m)).astype(np.int32))
    targets = upload(random.integers(0, n, n_queries).astype(np.int32))
    start = time.perf_counter()
    (room,) = solve.room_for_scores((n_queries, d))
    # In the order of a fit.
    solve.score(there, targets, neighbors, "crps", room)
    solve.predict(there, queries, neighbors)
    cupy().cuda.Device().synchronize()
    first = time.perf_counter() - start
    predict = on_device(lambda: solve.predict(there, queries, neighbors))
    score = on_device(lambda: solve.score(there, targets, neighbors, "crps", room))
    name, unit = f"m = {m}, d = 8, {dtype}, neighbors given", "million/s"
    goal = goals.get("predict")
    return [
        Figure(f"solves, {name}", n_queries / predict / MILLION, unit, at_least=goal),
        Figure(f"score / predict, {name}", score / predict, "", at_most=goals.get("ratio")),
        Figure(f"first use of predict and score, {name}", first, "s", at_most=20.0),
    ]


def predictions(n: int, d: int, n_queries: int, goal: float, n_jobs: int) -> Iterator[Figure]:
    """Predictions with std a second, with the search, from host to host."""
    X, y = make_data(n, d)
    queries = make_data(n_queries, d, seed=1)[0]
    index = build_index(X, np.ones(d), n_jobs)
    block = np.ascontiguousarray(queries[: 1 << 18])
    request = SearchRequest(block, np.ones(d), 64)
    found = on_device(lambda: search.find_nearest(index, request, cuda.residence))
    name = f"n = {n:.0e}, d = {d}, 64 neighbors"
    yield Figure(f"search on the device, {name}", len(block) / found / MILLION, "million/s")
    for backend, dtype, threads, share in (
        ("cuda", "float32", 8, 1),
        ("cuda", "float64", 8, 1),
        ("cpu", "float32", n_jobs, 20),
    ):
        model = LSGPRegressor(
            objective=None,
            n_neighbors=64,
            input_transform=None,
            backend=backend,
            dtype=dtype,
            n_jobs=threads,
        ).fit(X, y)
        own = queries[: n_queries // share]
        model.predict(own[:10_000], return_std=True)
        seconds = by_clock(lambda model=model, own=own: model.predict(own, return_std=True))
        at_least = goal if (backend, dtype) == ("cuda", "float32") else None
        yield Figure(
            f"predict with std, {name}, {dtype}, {backend}, {threads} threads",
            len(own) / seconds / MILLION,
            "million/s",
            at_least=at_least,
        )


def hundred_million(n_queries: int) -> Figure:
    X, y = make_data(1_000_000, 2)
    settings = {"objective": None, "n_neighbors": 64, "input_transform": None, "n_jobs": 8}
    model = LSGPRegressor().set_params(**settings, backend="cuda", dtype="float32").fit(X, y)
    queries = np.random.default_rng(1).standard_normal((n_queries, 2))
    seconds = by_clock(lambda: model.predict(queries, return_std=True), 1)
    name = f"{n_queries:.0e} predictions with std, n = 1e6, d = 2, host to host"
    return Figure(name, seconds, "s", at_most=30.0 * n_queries / 1e8)


def fits(path: Path | None, n_jobs: int) -> Iterator[Figure]:
    tables = {"n = 1e6, d = 2": (*make_data(1_000_000, 2), 5.0)}
    if path is not None:
        table = np.genfromtxt(path, delimiter=",", skip_header=1)
        tables["protein"] = (table[:, :-1], table[:, -1], 3.0)
    for name, (X, y, goal) in tables.items():
        for backend in ("cuda", "cpu"):
            model = LSGPRegressor(backend=backend, random_state=0, n_jobs=n_jobs)
            model.fit(X, y)  # compiles
            seconds = by_clock(lambda model=model, X=X, y=y: model.fit(X, y), 1)
            at_most = goal if backend == "cuda" else None
            yield Figure(f"default fit, {name}, {backend}", seconds, "s", at_most=at_most)


def measure_all(options: argparse.Namespace) -> Iterator[Figure]:
    n_jobs = options.n_jobs
    yield from solves("float32", 64, 1 << 20, {"predict": 70.0, "ratio": 2.5})
    yield from solves("float64", 64, 1 << 19, {"predict": 20.0, "ratio": 2.5})
    yield from solves("float32", 32, 1 << 20, {})
    yield from solves("float32", 256, 1 << 14, {"predict": 2.0, "ratio": 2.5})
    yield from solves("float64", 256, 1 << 13, {})
    yield from solves("float32", 1024, 1 << 8, {})
    yield from predictions(1_000_000, 2, 8_000_000, 15.0, n_jobs)
    yield from predictions(1_000_000, 8, 1_000_000, 1.0, n_jobs)
    if options.fits:
        yield from fits(options.data, n_jobs)
    yield hundred_million(options.most)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the table protein, as CSV")
    parser.add_argument("--fits", action="store_true", help="measure default fits too")
    parser.add_argument("--most", type=int, default=100_000_000, help="queries of the last figure")
    parser.add_argument("--n-jobs", type=int, default=16, help="threads of the host beside it")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    console = Console()
    console.print(find_device())
    figures = []
    for figure in measure_all(options):
        print(f"{figure.name}: {figure.value:.4g} {figure.unit} {figure.reach}", flush=True)
        figures.append(figure)
        write_results(figures, options.output, device=find_device()._asdict())
    console.print(make_table(figures))


if __name__ == "__main__":
    main()
