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
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from machine import cpu_model, describe_machine
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from lsgp import LSGPRegressor, _core
from lsgp.backends import cpu
from lsgp.blocks import parse_memory_budget
from lsgp.local_problem import LocalModel, LocalProblem
from lsgp.neighbors import build_index, find_nearest, find_nearest_with_distances

Array = NDArray[np.floating]

RESULTS = Path(__file__).parent / "results" / "core_speed.json"
GEMM_SIZE = 1500
N_TRAIN, N_INPUTS = 20_000, 8
MEMORY_BUDGET = "1GB"
MEMORY_N_TRAIN, MEMORY_N_NEIGHBORS = 1_000_000, 32


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


class Case(NamedTuple):
    """Local solves with the true nearest neighbors of random queries."""

    problem: LocalProblem
    queries: Array  # (q, d)
    neighbors: NDArray[np.int32]  # (q, m)

    def astype(self, dtype: Any) -> Case:
        X, y, noise, model = self.problem
        problem = LocalProblem(X.astype(dtype), y.astype(dtype), noise.astype(dtype), model)
        return Case(problem, self.queries.astype(dtype), self.neighbors)


def default_model(n_inputs: int) -> LocalModel:
    """The default kernel, localizer, trend and scale, with the values tuning starts from."""
    return LocalModel(
        kernel="matern32",
        localizer="smooth",
        lengthscale=np.full(n_inputs, np.sqrt(n_inputs)),
        noise_variance=0.1,
        constant_variance=1.0,
        slope_variance=0.1,
        localizer_decay=1.0,
        scale_dof=10.0,
    )


def make_data(n: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    return X, np.sin(X.sum(axis=1)) + 0.1 * random.standard_normal(n)


def make_case(n_neighbors: int, n_queries: int) -> Case:
    X, y = make_data(N_TRAIN, N_INPUTS)
    queries = make_data(n_queries, N_INPUTS, seed=1)[0]
    model = default_model(N_INPUTS)
    neighbors = find_nearest(build_index(X, model.lengthscale), queries, n_neighbors)
    return Case(LocalProblem(X, y[:, None], np.ones(len(X)), model), queries, neighbors)


def measure(functions: dict[str, Callable[[], Any]], n_repeats: int) -> dict[str, float]:
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


def local_solve_against_gemm(n_neighbors: int, reach: float, n_repeats: int) -> Figure:
    """Gather, weights, covariance, factor, mean and variance, in units of m³/3 flops of dgemm."""
    m = n_neighbors
    case = make_case(m, n_queries=16 * (2**27 // m**3))
    a, b = np.random.default_rng(2).standard_normal((2, GEMM_SIZE, GEMM_SIZE))
    raw = measure({"solves": lambda: cpu.predict(*case), "gemm": lambda: a @ b}, n_repeats)
    per_solve = raw["solves"] / len(case.queries)
    gemm_rate = 2 * GEMM_SIZE**3 / raw["gemm"]
    value = per_solve / (m**3 / 3 / gemm_rate)
    raw |= {"seconds_per_solve": per_solve, "gemm_gflops": gemm_rate / 1e9}
    name = f"local solve, m = {m}, in dgemm times of its factor ({per_solve * 1e6:.1f} µs)"
    return Figure(name, value, "x", at_most=reach, raw=raw)


def solve_with_scipy(case: Case) -> Array:
    """Mean, latent variance and scale of each query by LAPACK, (q, 3): [E1] to [E6]."""
    (X, y, noise, model), queries, neighbors = case
    result = np.empty((len(queries), 3))
    for i, (query, rows) in enumerate(zip(queries, neighbors, strict=True)):
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
    core = cpu.predict(*case)
    agree = np.column_stack([core.mean[:, 0], core.variance, core.scale[:, 0]])
    np.testing.assert_allclose(solve_with_scipy(case), agree, rtol=1e-6, atol=1e-9)
    raw = measure(
        {"core": lambda: cpu.predict(*case), "scipy": lambda: solve_with_scipy(case)}, n_repeats
    )
    name = "faster than a loop over scipy.linalg, m = 64"
    return Figure(name, raw["scipy"] / raw["core"], "x", at_least=5, raw=raw)


def single_against_double(n_repeats: int) -> Figure:
    double = make_case(64, n_queries=1024)
    single = double.astype(np.float32)
    raw = measure(
        {"float64": lambda: cpu.predict(*double), "float32": lambda: cpu.predict(*single)},
        n_repeats,
    )
    name = "float32 faster than float64, m = 64"
    return Figure(name, raw["float64"] / raw["float32"], "x", at_least=1.7, raw=raw)


def two_threads_against_one(n_repeats: int) -> Figure:
    """The whole of `predict`: neighbor search and local solves."""
    X, y = make_data(N_TRAIN, N_INPUTS)
    queries = make_data(32_768, N_INPUTS, seed=1)[0]
    model = LSGPRegressor(objective=None, n_neighbors=64).fit(X, y)

    def predict(n_jobs: int) -> None:
        model.set_params(n_jobs=n_jobs).predict(queries)

    def hash_on_threads(n_threads: int) -> None:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(hashlib.sha256, [bytes(2**26 // n_threads)] * n_threads))

    raw = measure(
        {
            "one": lambda: predict(1),
            "two": lambda: predict(2),
            # As good as it gets: short of 2 where the machine has other work.
            "control_one": lambda: hash_on_threads(1),
            "control_two": lambda: hash_on_threads(2),
        },
        n_repeats,
    )
    possible = raw["control_one"] / raw["control_two"]
    name = f"2 threads faster than 1, predict, m = 64 (hashing, as a control: {possible:.2f})"
    return Figure(name, raw["one"] / raw["two"], "x", at_least=1.8, raw=raw)


def gradient_against_predict(n_repeats: int) -> Figure:
    X, y = make_data(N_TRAIN, N_INPUTS)
    model = default_model(N_INPUTS)
    targets = np.arange(1024, dtype=np.int32)
    queries = X[: len(targets)]
    index = build_index(X, model.lengthscale)
    neighbors = find_nearest(index, queries, 64, exclude=targets)
    problem = LocalProblem(X, y[:, None], np.ones(len(X)), model)
    raw = measure(
        {
            "predict": lambda: cpu.predict(problem, queries, neighbors),
            "score": lambda: cpu.score(problem, targets, neighbors, "crps"),
        },
        n_repeats,
    )
    name = "score with gradient, in predict times, m = 64"
    return Figure(name, raw["score"] / raw["predict"], "x", at_most=2.5, raw=raw)


def import_time(n_repeats: int) -> Figure:
    code = (
        "import time, sklearn.gaussian_process; start = time.perf_counter(); "
        "from lsgp import LSGPRegressor; "
        "print(time.perf_counter() - start)"
    )
    seconds = [float(run_python("-c", code)) for _ in range(n_repeats)]
    name = "from lsgp import LSGPRegressor, after sklearn.gaussian_process"
    return Figure(name, min(seconds), "s", at_most=0.2, raw={"seconds": min(seconds)})


def run_python(*arguments: str) -> str:
    """What a new interpreter prints; its progress bars and errors stay visible."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def prediction_memory(n_queries: int) -> Figure | None:
    """Peak beyond inputs, outputs and index; in a process of its own."""
    printed = run_python(__file__, "--memory-child", str(n_queries))
    raw = json.loads(printed)
    if raw is None:
        return None
    budget = parse_memory_budget(MEMORY_BUDGET)
    name = f"memory to predict {n_queries / 1e6:g} million queries, m = {MEMORY_N_NEIGHBORS}"
    extra = raw["peak_bytes"] - raw["before_bytes"] - raw["output_bytes"]
    return Figure(name, extra / 1e6, "MB", at_most=budget / 1e6, raw=raw)


def measure_memory(n_queries: int) -> dict[str, float] | None:
    """Predict, and say how memory grew; None where the system does not tell."""
    X, y = make_data(MEMORY_N_TRAIN, 2)
    model = LSGPRegressor(
        objective=None,
        n_neighbors=MEMORY_N_NEIGHBORS,
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


def neighbor_search(n: int, d: int, n_queries: int, n_repeats: int) -> list[Figure]:
    """Build and query times against scipy's kd-tree, for information."""
    n_neighbors = 50
    X = make_data(n, d)[0]
    queries = make_data(n_queries, d, seed=1)[0]
    ones = np.ones(d)
    index, tree = build_index(X, ones), cKDTree(X)
    found = find_nearest_with_distances(index, queries[:20], n_neighbors)
    np.testing.assert_allclose(found.distances, tree.query(queries[:20], n_neighbors)[0])
    builds = measure(
        {"build": lambda: build_index(X, ones), "build_scipy": lambda: cKDTree(X)}, n_repeats
    )
    searches = measure(
        {
            "query": lambda: find_nearest(index, queries, n_neighbors),
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


def write_results(figures: list[Figure], path: Path) -> None:
    content = {
        "machine": describe_machine(),
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
    parser.add_argument("--memory-child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_child is not None:
        print(json.dumps(measure_memory(options.memory_child)))
        return
    console = Console()
    with threadpool_limits(1):
        figures = list(measure_all(options, console))
    console.print(make_table(figures))
    write_results(figures, options.output)
    print(f"Raw numbers: {options.output}")


if __name__ == "__main__":
    main()
