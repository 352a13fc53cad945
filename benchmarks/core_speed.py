# SPDX-License-Identifier: BSD-3-Clause
"""Speed and memory of the core, each figure beside what it should reach.

Run it with ``make bench``, on a machine that is otherwise idle. What a ratio compares is measured
alternately in one process, so that both sides meet the same conditions, and the fastest repeat
counts. Raw numbers go to benchmarks/results/core_speed.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from runner import FOLDER, cpu_model, describe_machine
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from lsgp import LSGPRegressor, _core
from lsgp.backends import cpu
from lsgp.backends.contract import ScoreRequest, Systems
from lsgp.compute.files import write_text
from lsgp.compute.threads import parse_memory_budget
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.search.contract import Exclusions, SearchRequest
from lsgp.search.index import build_index

Array = NDArray[np.floating]

RESULTS = FOLDER / "core_speed.json"
GEMM_SIZE = 1500
N_TRAIN, N_INPUTS = 20_000, 8
MEMORY_BUDGET, N_STORED = "1GB", 1_000_000


class Figure(NamedTuple):
    """One measured number, and what it should reach."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    raw: dict[str, float] = {}  # noqa: RUF012  (never changed)

    @property
    def reach(self) -> str:
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return "" if self.at_least is None else f">= {self.at_least:g}"

    @property
    def is_reached(self) -> bool | None:
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.value >= self.at_least


def report(figures: Iterator[Figure], path: Path, console: Console, **device: Any) -> None:
    """Print figures as they are measured, and keep them with the machine that they belong to."""
    table = Table("figure", title=f"lsgp on {cpu_model()}, {_core.instruction_set}")
    for title in ("measured", "reach", ""):
        table.add_column(title, justify="right", no_wrap=True)
    verdicts = {True: "[green]ok", False: "[red]short", None: ""}
    content: dict[str, Any] = {"machine": {**describe_machine(), **device}, "figures": []}
    path.parent.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        name, value, unit, *_ = figure
        facts = {"reach": figure.reach, "is_reached": figure.is_reached, "raw": figure.raw}
        content["figures"].append({"name": name, "value": value, "unit": unit, **facts})
        write_text(path, json.dumps(content, indent=2) + "\n", "results")
        console.print(f"{name}: {value:.4g} {unit} {figure.reach}")
        table.add_row(name, f"{value:.3g} {unit}", figure.reach, verdicts[figure.is_reached])
    console.print(table)
    print(f"Raw numbers: {path}")


def measure(n_repeats: int, **functions: Callable[[], Any]) -> dict[str, float]:
    """Least seconds of each function, called in turn."""
    for function in functions.values():
        function()
    seconds = dict.fromkeys(functions, np.inf)
    for _ in range(n_repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


def run_python(*arguments: str) -> str:
    """What a new interpreter prints; its progress bars and errors stay visible."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def make_data(n: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    return X, np.sin(X.sum(axis=1)) + 0.1 * random.standard_normal(n)


def default_problem() -> LocalProblem:
    """The default kernel, localizer, trend and scale, with the values tuning starts from."""
    X, y = make_data(N_TRAIN, N_INPUTS)
    model = LocalModel(
        kernel="matern32",
        localizer="smooth",
        lengthscale=np.full(N_INPUTS, np.sqrt(N_INPUTS)),
        noise_variance=0.1,
        constant_variance=1.0,
        slope_variance=0.1,
        localizer_decay=1.0,
        scale_dof=10.0,
    )
    return LocalProblem(X, y[:, None], np.ones(len(X)), model)


def make_case(n_neighbors: int, n_queries: int) -> Systems:
    """Local solves with the true nearest neighbors of random queries."""
    problem, queries = default_problem(), make_data(n_queries, N_INPUTS, seed=1)[0]
    lengthscale = np.asarray(problem.model.lengthscale)
    index = build_index(problem.X, lengthscale)
    neighbors = index.search(SearchRequest(queries, lengthscale, n_neighbors))
    return Systems(problem, queries, neighbors)


def local_solve_against_gemm(n_neighbors: int, reach: float, n_repeats: int) -> Figure:
    """Gather, weights, covariance, factor, mean and variance, in units of m³/3 flops of dgemm."""
    m = n_neighbors
    case = make_case(m, n_queries=16 * (2**27 // m**3))
    a, b = np.random.default_rng(2).standard_normal((2, GEMM_SIZE, GEMM_SIZE))
    raw = measure(n_repeats, solves=lambda: cpu.predict(case), gemm=lambda: a @ b)
    per_solve = raw["solves"] / len(case.queries)
    gemm_rate = 2 * GEMM_SIZE**3 / raw["gemm"]
    raw |= {"seconds_per_solve": per_solve, "gemm_gflops": gemm_rate / 1e9}
    name = f"local solve, m = {m}, in dgemm times of its factor ({per_solve * 1e6:.1f} µs)"
    return Figure(name, per_solve / (m**3 / 3 / gemm_rate), "x", at_most=reach, raw=raw)


def solve_with_scipy(case: Systems) -> Array:
    """Mean, latent variance and scale of each query by LAPACK, (q, 3): [E1] to [E6]."""
    X, y, noise, model = case.problem
    result = np.empty((len(case.queries), 3))
    for i, (query, rows) in enumerate(zip(case.queries, case.neighbors, strict=True)):
        z = (X[rows] - query) / model.lengthscale
        s = np.einsum("ij,ij->i", z, z)
        u2 = s / s.max()
        inside = u2 < 1  # the farthest neighbor has no weight
        z, s, u2, rows = z[inside], s[inside], u2[inside], rows[inside]
        weight = (1 - u2) * np.exp(-model.localizer_decay * u2)
        k = matern32(np.sqrt(s)) + model.constant_variance
        A = matern32(cdist(z, z)) + model.constant_variance + model.slope_variance * (z @ z.T)
        A.flat[:: len(A) + 1] += model.noise_variance * noise[rows] / weight
        factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        right = np.stack([y[rows, 0], k], axis=1)
        alpha, beta = cho_solve(factor, right, check_finite=False).T
        scale = (model.scale_dof * model.signal_variance + y[rows, 0] @ alpha) / (
            model.scale_dof + np.minimum(weight, 1).sum()
        )
        result[i] = k @ alpha, 1 + model.constant_variance - k @ beta, scale
    return result


def matern32(r: Array) -> Array:
    scaled = np.sqrt(3) * r
    return (1 + scaled) * np.exp(-scaled)


def core_against_scipy(n_repeats: int) -> Figure:
    case = make_case(64, n_queries=512)
    core = cpu.predict(case)
    agree = np.column_stack([core.mean[:, 0], core.variance, core.scale[:, 0]])
    np.testing.assert_allclose(solve_with_scipy(case), agree, rtol=1e-6, atol=1e-9)
    raw = measure(n_repeats, core=lambda: cpu.predict(case), scipy=lambda: solve_with_scipy(case))
    name = "faster than a loop over scipy.linalg, m = 64"
    return Figure(name, raw["scipy"] / raw["core"], "x", at_least=5, raw=raw)


def single_against_double(n_repeats: int) -> Figure:
    double = make_case(64, n_queries=1024)
    *arrays, model = double.problem
    problem = LocalProblem(*(array.astype(np.float32) for array in arrays), model)
    single = double._replace(problem=problem, queries=double.queries.astype(np.float32))
    raw = measure(
        n_repeats, float64=lambda: cpu.predict(double), float32=lambda: cpu.predict(single)
    )
    name = "float32 faster than float64, m = 64"
    return Figure(name, raw["float64"] / raw["float32"], "x", at_least=1.7, raw=raw)


def two_threads_against_one(n_repeats: int) -> Figure:
    """The whole of `predict`: neighbor search and local solves."""
    X, y = make_data(N_TRAIN, N_INPUTS)
    queries = make_data(32_768, N_INPUTS, seed=1)[0]
    model = LSGPRegressor(objective=None, n_neighbors=64).fit(X, y)

    def hash_on_threads(n_threads: int) -> None:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(hashlib.sha256, [bytes(2**26 // n_threads)] * n_threads))

    raw = measure(
        n_repeats,
        one=lambda: model.set_params(n_jobs=1).predict(queries),
        two=lambda: model.set_params(n_jobs=2).predict(queries),
        # As good as it gets: short of 2 where the machine has other work.
        control_one=lambda: hash_on_threads(1),
        control_two=lambda: hash_on_threads(2),
    )
    possible = raw["control_one"] / raw["control_two"]
    name = f"2 threads faster than 1, predict, m = 64 (hashing, as a control: {possible:.2f})"
    return Figure(name, raw["one"] / raw["two"], "x", at_least=1.8, raw=raw)


def gradient_against_predict(n_repeats: int) -> Figure:
    problem, targets = default_problem(), np.arange(1024, dtype=np.int32)
    queries, lengthscale = problem.X[:1024], np.asarray(problem.model.lengthscale)
    request = SearchRequest(queries, lengthscale, 64, Exclusions(rows=targets))
    neighbors = build_index(problem.X, lengthscale).search(request)
    raw = measure(
        n_repeats,
        predict=lambda: cpu.predict(Systems(problem, queries, neighbors)),
        score=lambda: cpu.score(ScoreRequest(problem, targets, neighbors, "crps")),
    )
    name = "score with gradient, in predict times, m = 64"
    return Figure(name, raw["score"] / raw["predict"], "x", at_most=2.5, raw=raw)


def import_time(n_repeats: int) -> Figure:
    code = (
        "import time, sklearn.gaussian_process; start = time.perf_counter(); "
        "from lsgp import LSGPRegressor; print(time.perf_counter() - start)"
    )
    seconds = min(float(run_python("-c", code)) for _ in range(n_repeats))
    name = "from lsgp import LSGPRegressor, after sklearn.gaussian_process"
    return Figure(name, seconds, "s", at_most=0.2, raw={"seconds": seconds})


def neighbor_search(n: int, d: int, n_queries: int, n_repeats: int) -> Iterator[Figure]:
    """Build and query times against scipy's kd-tree, for information."""
    n_neighbors, ones = 50, np.ones(d)
    X, queries = make_data(n, d)[0], make_data(n_queries, d, seed=1)[0]
    index, tree = build_index(X, ones), cKDTree(X)
    found = index.measure(SearchRequest(queries[:20], ones, n_neighbors))
    np.testing.assert_allclose(found.distances, tree.query(queries[:20], n_neighbors)[0])
    raw = measure(n_repeats, build=lambda: build_index(X, ones), build_scipy=lambda: cKDTree(X))
    where = f"n = {n:,}, d = {d}"
    name = f"index faster built than cKDTree, {where} ({raw['build']:.2f} s)"
    yield Figure(name, raw["build_scipy"] / raw["build"], "x", raw=raw)
    raw = measure(
        n_repeats,
        query=lambda: index.search(SearchRequest(queries, ones, n_neighbors)),
        query_scipy=lambda: tree.query(queries, n_neighbors),
    )
    each = raw["query"] / n_queries * 1e6
    name = f"{n_neighbors} neighbors faster than cKDTree, {where} ({each:.0f} µs)"
    raw["n_queries"] = n_queries
    yield Figure(name, raw["query_scipy"] / raw["query"], "x", raw=raw)


def prediction_memory(n_queries: int) -> Iterator[Figure]:
    """Peak beyond inputs, outputs and index, in a process of its own, if the system tells it."""
    raw = json.loads(run_python(__file__, "--memory-of", str(n_queries)))
    if raw is not None:
        name = f"memory to predict {n_queries / 1e6:g} million queries, m = 32"
        extra = raw["peak_bytes"] - raw["before_bytes"] - raw["output_bytes"]
        budget = parse_memory_budget(MEMORY_BUDGET) / 1e6
        yield Figure(name, extra / 1e6, "MB", at_most=budget, raw=raw)


def measure_memory(n_queries: int) -> dict[str, float] | None:
    """Predict, and say how memory grew; None where the system does not tell."""

    def peak() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

    settings = {"objective": None, "n_neighbors": 32, "memory_budget": MEMORY_BUDGET}
    model = LSGPRegressor().set_params(**settings, n_jobs=-1, verbose=1)
    model.fit(*make_data(N_STORED, 2))
    queries = np.random.default_rng(1).standard_normal((n_queries, 2))
    model.predict(queries[:1000], return_std=True)
    try:
        # From here on the peak is counted anew.
        Path("/proc/self/clear_refs").write_text("5")
        before = peak()
    except OSError:
        return None
    start = time.perf_counter()
    mean, std = model.predict(queries, return_std=True)
    return {
        "n_queries": n_queries,
        "before_bytes": before,
        "peak_bytes": peak(),
        "output_bytes": mean.nbytes + std.nbytes,
        "seconds": time.perf_counter() - start,
    }


def measure_all(is_quick: bool, with_memory: bool) -> Iterator[Figure]:
    n_repeats, few = (5, 1) if is_quick else (20, 3)
    for m, reach in ((64, 5), (128, 3), (256, 3)):
        yield local_solve_against_gemm(m, reach, n_repeats)
    yield core_against_scipy(n_repeats)
    yield single_against_double(n_repeats)
    yield two_threads_against_one(n_repeats)
    yield gradient_against_predict(n_repeats)
    yield import_time(n_repeats)
    for n, d, n_queries in (
        (1_000_000, 2, 20_000),
        (1_000_000, 4, 5_000),
        (100_000, 8, 1_000),
        (100_000, 20, 100),
    ):
        yield from neighbor_search(n, d, n_queries, few)
    if with_memory:
        yield from prediction_memory(1_000_000 if is_quick else 10_000_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats and queries")
    parser.add_argument("--skip-memory", action="store_true", help="it takes minutes")
    parser.add_argument("--output", type=Path, default=RESULTS, help=f"default: {RESULTS.name}")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        print(json.dumps(measure_memory(options.memory_of)))
        return
    with threadpool_limits(1):
        report(measure_all(options.quick, not options.skip_memory), options.output, Console())


if __name__ == "__main__":
    main()
