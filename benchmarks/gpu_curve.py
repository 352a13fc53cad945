# SPDX-License-Identifier: BSD-3-Clause
"""When a GPU pays: time against the number of queries and of rows, on a device and on its host.

    python benchmarks/gpu_curve.py
    python benchmarks/gpu_curve.py --parts rows --without-device --cores 1

Needs a device; on a machine that is otherwise idle. Times are by the clock, from arrays of the host
to arrays of the host, after a first use that is counted by itself. Rows go to
benchmarks/results/gpu_curve.jsonl, as they are measured; docs/gpu_picture.py draws them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from job_runner import ResultsFile
from numpy.typing import NDArray

from lsgp import LSGPRegressor
from lsgp.backends import cuda
from lsgp.backends.cuda.device import find_device
from lsgp.backends.dense_host import HOST
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.solvers.evidence import negative_log_evidence
from lsgp.solvers.exact_system import ExactSystem

Array = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "gpu_curve.jsonl"
N_QUERIES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
N_ROWS = (500, 2_000, 8_000, 32_000, 128_000)
#: Longer ones are not repeated.
LONG = 1.0
N_CORES = os.cpu_count() or 1


def clock(function: Callable[[], Any], n_repeats: int = 3) -> float:
    """Least seconds."""
    seconds = []
    for _ in range(n_repeats):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
        if seconds[-1] > LONG:
            break
    return min(seconds)


def smooth(n: int, d: int, noise: float, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.normal(size=n)


def arm(n: int, seed: int = 0) -> tuple[Array, Array]:
    """As kin40k: how far the end of a robot arm of eight joints is, without noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    angles = np.cumsum(np.pi / 4.0 * X, axis=1)
    place = np.column_stack([np.cos(angles).sum(axis=1), np.sin(angles).sum(axis=1)])
    return X, np.hypot(place[:, 0] - 0.1, place[:, 1] - 0.1)


def machines(
    n_cores: tuple[int, ...], with_device: bool = True
) -> list[tuple[str, dict[str, Any]]]:
    hosts = [(f"cpu {k}", {"backend": "cpu", "n_jobs": k}) for k in n_cores]
    device = [("cuda", {"backend": "cuda", "n_jobs": 4})] if with_device else []
    return [*device, *hosts]


def measure_queries(write: Callable[..., None]) -> None:
    X, y = smooth(100_000, 4, 0.1)
    Q = smooth(N_QUERIES[-1], 4, 0.0, 1)[0]
    for machine, settings in machines((N_CORES, 1)):
        model = LSGPRegressor().set_params(objective=None, n_neighbors=64, **settings)
        model.fit(X, y)
        first = clock(lambda m=model: m.predict(Q[:10], return_std=True), 1)
        write(part="first predict", machine=machine, seconds=first)
        for q in N_QUERIES:
            if machine == "cpu 1" and q > 100_000:
                continue
            model.predict(Q[:q], return_std=True)
            seconds = clock(lambda m=model, q=q: m.predict(Q[:q], return_std=True))
            write(part="predict", machine=machine, n=len(X), q=q, seconds=seconds)


def measure_rows(write: Callable[..., None], n_cores: tuple[int, ...], with_device: bool) -> None:
    for machine, settings in machines(n_cores, with_device):
        LSGPRegressor().set_params(random_state=0, **settings).fit(
            *smooth(600, 4, 0.1, 1)
        )  # the first use
        for n in N_ROWS:
            X, y = smooth(n, 4, 0.1)
            model = LSGPRegressor().set_params(random_state=0, **settings)
            seconds = clock(lambda model=model, X=X, y=y: model.fit(X, y), 1)
            write(part="fit", machine=machine, n=n, seconds=seconds)


def measure_exact(write: Callable[..., None], sizes: tuple[int, ...]) -> None:
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
                "factor": clock(lambda p=problem, d=dense: ExactSystem.solve(p, d), 2),
                "evidence": clock(lambda p=problem, d=dense: negative_log_evidence(p, d), 2),
                "predict 1000": clock(lambda s=system, Q=X[n:]: s.predict(Q), 2),
            }
            write(part="exact", machine=machine, n=n, **parts)
            del system


def measure_arm(write: Callable[..., None], n: int, on: str) -> None:
    """Default fits of what exact GPs are best at."""
    X, y = arm(n + 4000)
    for machine, settings in machines((N_CORES,)):
        if machine.split()[0] != on:
            continue
        model = LSGPRegressor().set_params(random_state=0, **settings)
        seconds = clock(lambda m=model: m.fit(X[:n], y[:n]), 1)
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


def measure_request(write: Callable[..., None], n: int) -> None:
    """An exact GP that was asked for: of given hyperparameters, and tuned by its evidence."""
    X, y = arm(n)
    given = {
        "localizer": "rectangular",
        "n_neighbors": n,
        "hyperparameters__scale": "global",
        "backend": "cuda",
    }
    plain = {**given, "kernel": "matern52", "input_transform": "standardize", "effort__n_models": 1}
    for name, settings in (("given", {**given, "objective": None}), ("tuned", plain)):
        model = LSGPRegressor().set_params(random_state=0, **settings)
        seconds = clock(lambda m=model: (m.fit(X, y), m.predict(X[:10], return_std=True)), 1)
        again = clock(lambda m=model: (m.fit(X, y), m.predict(X[:10], return_std=True)), 1)
        write(part=f"exact on request, {name}", machine="cuda", n=n, first=seconds, seconds=again)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", nargs="+", default=["queries", "rows", "exact", "arm"])
    parser.add_argument("--cores", nargs="+", type=int, default=[N_CORES])
    parser.add_argument("--without-device", action="store_true", help="rows on hosts alone")
    parser.add_argument("--sizes", nargs="+", type=int, default=[2_000, 10_000, 36_000])
    parser.add_argument("--arm-rows", type=int, default=36_000)
    parser.add_argument("--on", nargs="+", default=["cuda", "cpu"], help="where arms are fitted")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    device = "none" if options.without_device else find_device().name

    file = ResultsFile(options.results)

    def write(**row: Any) -> None:
        row = {"device": device, "n_cores": N_CORES, **row}
        print(json.dumps(row), flush=True)
        file.add(row)

    if "exact" in options.parts:
        measure_exact(write, tuple(options.sizes))
        measure_request(write, min(10_000, max(options.sizes)))
    if "arm" in options.parts:
        for on in options.on:
            measure_arm(write, options.arm_rows, on)
    if "queries" in options.parts:
        measure_queries(write)
    if "rows" in options.parts:
        measure_rows(write, tuple(options.cores), not options.without_device)


if __name__ == "__main__":
    main()
