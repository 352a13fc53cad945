# SPDX-License-Identifier: BSD-3-Clause
"""What a GPU brings: speed of its parts, when it pays, and arrays that are there already.

    python benchmarks/gpu.py speed --data protein.csv.gz --fits
    python benchmarks/gpu.py curve
    python benchmarks/gpu.py curve --parts rows --without-device --cores 1
    python benchmarks/gpu.py arrays --queries 1e6 --dtypes float64

Needs a device; on a machine that is otherwise idle, and, for the times of first use, with an empty
cache of kernels (CUPY_CACHE_DIR). Times are by the clock, from arrays of the host to arrays of the
host, or by the events of the device where figures say so; the fastest repeat counts. ``speed`` has
figures beside what they should reach on an H200 (benchmarks/results/gpu_speed.json), ``curve`` rows
for docs/gpu_picture.py (gpu_curve.jsonl).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from core_speed import Array, Figure, make_data, report
from rich.console import Console
from runner import FOLDER, ResultsFile

from lsgp import LSGPRegressor
from lsgp.backends import cuda
from lsgp.backends.cuda import search, solve
from lsgp.backends.cuda.device import cupy, find_device
from lsgp.backends.dense_host import HOST
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.search.contract import SearchRequest
from lsgp.search.index import build_index
from lsgp.solvers.evidence import negative_log_evidence
from lsgp.solvers.exact_system import ExactSystem

MILLION = 1e6
N_QUERIES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
N_ROWS = (500, 2_000, 8_000, 32_000, 128_000)
#: Longer ones are not repeated.
LONG = 1.0
N_CORES = os.cpu_count() or 1


def on_device(function: Callable[[], Any], n_repeats: int = 5) -> float:
    """Least seconds on the device, by its events."""
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


def clock(function: Callable[[], Any], n_repeats: int = 3, longest: float = np.inf) -> float:
    """Least seconds from host to host; a run that takes longer is the last."""
    seconds = []
    for _ in range(n_repeats):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
        if seconds[-1] > longest:
            break
    return min(seconds)


def solves(
    dtype: str, m: int, n_queries: int, at_least: float | None, at_most: float | None
) -> Iterator[Figure]:
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
    name, rate = f"m = {m}, d = 8, {dtype}, neighbors given", n_queries / predict / MILLION
    yield Figure(f"solves, {name}", rate, "million/s", at_least=at_least)
    yield Figure(f"score / predict, {name}", score / predict, "", at_most=at_most)
    yield Figure(f"first use of predict and score, {name}", first, "s", at_most=20.0)


def predictions(n: int, d: int, n_queries: int, goal: float, n_jobs: int) -> Iterator[Figure]:
    """Predictions with std a second, with the search, from host to host."""
    (X, y), queries = make_data(n, d), make_data(n_queries, d, seed=1)[0]
    index = build_index(X, np.ones(d), n_jobs)
    block = np.ascontiguousarray(queries[: 1 << 18])
    request = SearchRequest(block, np.ones(d), 64)
    found = on_device(lambda: search.find_nearest(index, request, cuda.residence))
    name = f"n = {n:.0e}, d = {d}, 64 neighbors"
    yield Figure(f"search on the device, {name}", len(block) / found / MILLION, "million/s")
    settings = {"objective": None, "n_neighbors": 64, "input_transform": None}
    for backend, dtype, threads, share, at_least in (
        ("cuda", "float32", 8, 1, goal),
        ("cuda", "float64", 8, 1, None),
        ("cpu", "float32", n_jobs, 20, None),
    ):
        where = {"backend": backend, "dtype": dtype, "n_jobs": threads}
        model = LSGPRegressor().set_params(**settings, **where).fit(X, y)
        own = queries[: n_queries // share]
        model.predict(own[:10_000], return_std=True)
        rate = len(own) / clock(partial(model.predict, own, return_std=True), 2) / MILLION
        full = f"predict with std, {name}, {dtype}, {backend}, {threads} threads"
        yield Figure(full, rate, "million/s", at_least=at_least)


def hundred_million(n_queries: int) -> Figure:
    settings = {"objective": None, "n_neighbors": 64, "input_transform": None, "n_jobs": 8}
    model = LSGPRegressor().set_params(**settings, backend="cuda", dtype="float32")
    model.fit(*make_data(1_000_000, 2))
    queries = np.random.default_rng(1).standard_normal((n_queries, 2))
    seconds = clock(partial(model.predict, queries, return_std=True), 1)
    name = f"{n_queries:.0e} predictions with std, n = 1e6, d = 2, host to host"
    return Figure(name, seconds, "s", at_most=30.0 * n_queries / 1e8)


def fits(path: Path | None, n_jobs: int) -> Iterator[Figure]:
    tables = {"n = 1e6, d = 2": (*make_data(1_000_000, 2), 5.0)}
    if path is not None:
        table = np.genfromtxt(path, delimiter=",", skip_header=1)
        tables["protein"] = (table[:, :-1], table[:, -1], 3.0)
    for name, (X, y, goal) in tables.items():
        for backend, at_most in (("cuda", goal), ("cpu", None)):
            model = LSGPRegressor(backend=backend, random_state=0, n_jobs=n_jobs)
            model.fit(X, y)  # compiles
            seconds = clock(partial(model.fit, X, y), 1)
            yield Figure(f"default fit, {name}, {backend}", seconds, "s", at_most=at_most)


def speed(options: argparse.Namespace) -> None:
    def measure_all() -> Iterator[Figure]:
        yield from solves("float32", 64, 1 << 20, 70.0, 2.5)
        yield from solves("float64", 64, 1 << 19, 20.0, 2.5)
        yield from solves("float32", 32, 1 << 20, None, None)
        yield from solves("float32", 256, 1 << 14, 2.0, 2.5)
        yield from solves("float64", 256, 1 << 13, None, None)
        yield from solves("float32", 1024, 1 << 8, None, None)
        yield from predictions(1_000_000, 2, 8_000_000, 15.0, options.n_jobs)
        yield from predictions(1_000_000, 8, 1_000_000, 1.0, options.n_jobs)
        if options.fits:
            yield from fits(options.data, options.n_jobs)
        yield hundred_million(options.most)

    report(measure_all(), options.output, Console(), device=find_device()._asdict())


Write = Callable[..., None]


def smooth(n: int, d: int, noise: float, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.normal(size=n)


def arm(n: int, seed: int = 0) -> tuple[Array, Array]:
    """As kin40k: how far the end of a robot arm of eight joints is, without noise."""
    X = np.random.default_rng(seed).normal(size=(n, 8))
    angles = np.cumsum(np.pi / 4.0 * X, axis=1)
    place = np.column_stack([np.cos(angles).sum(axis=1), np.sin(angles).sum(axis=1)])
    return X, np.hypot(place[:, 0] - 0.1, place[:, 1] - 0.1)


def machines(*n_cores: int, with_device: bool = True) -> Iterator[tuple[str, dict[str, Any]]]:
    if with_device:
        yield "cuda", {"backend": "cuda", "n_jobs": 4}
    for k in n_cores:
        yield f"cpu {k}", {"backend": "cpu", "n_jobs": k}


def measure_queries(write: Write) -> None:
    X, y = smooth(100_000, 4, 0.1)
    Q = smooth(N_QUERIES[-1], 4, 0.0, 1)[0]
    for machine, settings in machines(N_CORES, 1):
        model = LSGPRegressor().set_params(objective=None, n_neighbors=64, **settings).fit(X, y)
        first = clock(partial(model.predict, Q[:10], return_std=True), 1)
        write(part="first predict", machine=machine, seconds=first)
        for q in N_QUERIES:
            if machine != "cpu 1" or q <= 100_000:
                predict = partial(model.predict, Q[:q], return_std=True)
                predict()
                seconds = clock(predict, longest=LONG)
                write(part="predict", machine=machine, n=len(X), q=q, seconds=seconds)


def measure_rows(write: Write, options: argparse.Namespace) -> None:
    for machine, settings in machines(*options.cores, with_device=not options.without_device):
        model = LSGPRegressor().set_params(random_state=0, **settings)
        model.fit(*smooth(600, 4, 0.1, 1))  # the first use
        for n in N_ROWS:
            seconds = clock(partial(model.fit, *smooth(n, 4, 0.1)), 1)
            write(part="fit", machine=machine, n=n, seconds=seconds)


def measure_exact(write: Write, sizes: list[int]) -> None:
    """The parts of an exact GP of n rows."""
    for n in sizes:
        X, y = arm(n + 1000)
        model = LocalModel(
            "matern52", "rectangular", np.full(8, 3.0), noise_variance=1e-3, constant_variance=1e6
        )
        problem = LocalProblem(X[:n], (y[:n, None] - y.mean()) / y.std(), np.ones(n), model)
        for machine, dense in (("cuda", cuda.dense), ("cpu", HOST)):
            if machine == "cpu" and n > 5_000:
                continue
            system = ExactSystem.solve(problem, dense)
            parts = {
                "factor": clock(partial(ExactSystem.solve, problem, dense), 2, LONG),
                "evidence": clock(partial(negative_log_evidence, problem, dense), 2, LONG),
                "predict 1000": clock(partial(system.predict, X[n:]), 2, LONG),
            }
            write(part="exact", machine=machine, n=n, **parts)
            del system


def measure_request(write: Write, n: int) -> None:
    """An exact GP that was asked for: of given hyperparameters, and tuned by its evidence."""
    X, y = arm(n)
    given: dict[str, Any] = {"localizer": "rectangular", "n_neighbors": n, "backend": "cuda"}
    given |= {"hyperparameters__scale": "global", "random_state": 0}
    plain = {"kernel": "matern52", "input_transform": "standardize", "effort__n_models": 1}
    for name, settings in (("given", {"objective": None}), ("tuned", plain)):
        model = LSGPRegressor().set_params(**given, **settings)

        def fit_and_predict(model: LSGPRegressor = model) -> None:
            model.fit(X, y).predict(X[:10], return_std=True)

        first, seconds = clock(fit_and_predict, 1), clock(fit_and_predict, 1)
        part = f"exact on request, {name}"
        write(part=part, machine="cuda", n=n, first=first, seconds=seconds)


def measure_arm(write: Write, n: int, on: list[str]) -> None:
    """Default fits of what exact GPs are best at."""
    X, y = arm(n + 4000)
    for machine, settings in machines(N_CORES):
        if machine.split()[0] not in on:
            continue
        model = LSGPRegressor().set_params(random_state=0, **settings)
        seconds = clock(partial(model.fit, X[:n], y[:n]), 1)
        began = time.perf_counter()
        predicted = model.predict_distribution(X[n:])
        write(
            part="arm",
            machine=machine,
            n=n,
            seconds=seconds,
            predict_4000=time.perf_counter() - began,
            crps=float(np.mean(predicted.crps(y[n:]))),
            rmse=float(np.sqrt(np.mean((predicted.mean - y[n:]) ** 2))),
            models=[repr(fitted) for fitted in model.fitted_],
        )


def curve(options: argparse.Namespace) -> None:
    device = "none" if options.without_device else find_device().name
    file = ResultsFile(options.output)

    def write(**row: Any) -> None:
        row = {"device": device, "n_cores": N_CORES, **row}
        print(json.dumps(row), flush=True)
        file.add(row)

    if "exact" in options.parts:
        measure_exact(write, options.sizes)
        measure_request(write, min(10_000, max(options.sizes)))
    if "arm" in options.parts:
        measure_arm(write, options.arm_rows, options.on)
    if "queries" in options.parts:
        measure_queries(write)
    if "rows" in options.parts:
        measure_rows(write, options)


def arrays(options: argparse.Namespace) -> None:
    """Predictions with std of arrays that are on the device already; results are compared."""
    rng, wait = np.random.default_rng(0), cupy().cuda.Device().synchronize
    X, queries = (rng.uniform(size=(int(n), 2)) for n in (options.rows, options.queries))
    y = np.sin(6.0 * X[:, 0]) + 0.1 * rng.normal(size=len(X))
    for dtype in options.dtypes:
        model = LSGPRegressor(objective=None, n_neighbors=64, dtype=dtype, backend="cuda")
        model.fit(X, y)
        answers = []
        for where, n_jobs in (("device", None), ("host", 1), ("host", 4)):
            model.set_params(n_jobs=n_jobs)
            own = cupy().asarray(queries) if where == "device" else queries

            def predict(own: Any = own, model: LSGPRegressor = model) -> Any:
                found = model.predict(own, return_std=True)
                wait()
                return found

            answers.append(predict())  # the first use
            seconds = clock(predict)
            rate = len(queries) / seconds / MILLION
            said = f"of the {where}, n_jobs={n_jobs}: {seconds:.3f} s, {rate:.1f} million/s"
            print(f"{dtype}, {said}", flush=True)
        pairs = zip(answers[0], answers[-1], strict=True)
        gap = max(float(np.abs(a.get() - b).max()) for a, b in pairs)
        print(f"{dtype}, largest difference: {gap:.2g}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("speed", help="figures beside what they should reach")
    one.add_argument("--data", type=Path, help="the table protein, as CSV")
    one.add_argument("--fits", action="store_true", help="measure default fits too")
    one.add_argument("--most", type=int, default=100_000_000, help="queries of the last figure")
    one.add_argument("--n-jobs", type=int, default=16, help="threads of the host beside it")
    one.add_argument("--output", type=Path, default=FOLDER / "gpu_speed.json")
    one.set_defaults(work=speed)
    one = parts.add_parser("curve", help="time against the number of queries and of rows")
    one.add_argument("--parts", nargs="+", default=["queries", "rows", "exact", "arm"])
    one.add_argument("--cores", nargs="+", type=int, default=[N_CORES])
    one.add_argument("--without-device", action="store_true", help="rows on hosts alone")
    one.add_argument("--sizes", nargs="+", type=int, default=[2_000, 10_000, 36_000])
    one.add_argument("--arm-rows", type=int, default=36_000)
    one.add_argument("--on", nargs="+", default=["cuda", "cpu"], help="where arms are fitted")
    one.add_argument("--output", type=Path, default=FOLDER / "gpu_curve.jsonl")
    one.set_defaults(work=curve)
    one = parts.add_parser("arrays", help="arrays of the device, and of the host")
    one.add_argument("--rows", type=float, default=1e6)
    one.add_argument("--queries", type=float, default=1e7)
    one.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    one.set_defaults(work=arrays)
    options = parser.parse_args()
    options.work(options)


if __name__ == "__main__":
    main()
