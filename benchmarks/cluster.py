# SPDX-License-Identifier: BSD-3-Clause
"""What a cluster costs and brings, and what it survives: fits and predictions from Parquet.

    python benchmarks/cluster.py demo                                  # or: make cluster-demo
    python benchmarks/cluster.py speed --rows 1e6 --folder /somewhere/with/room
    python benchmarks/cluster.py kill --times 10
    python benchmarks/cluster.py fill --rows 2.4e7 --memory 600MB --folder /somewhere/with/room

``demo`` shows a cluster on a laptop, in a minute: fit, predict, lose a worker, save and load.
Workers are processes of one thread and --memory each (LocalCluster). ``speed`` compares them with
one process: the estimator itself with two threads and all rows in memory; its lines go to
benchmarks/results/cluster.jsonl, those of the others to cluster_faults.jsonl. ``kill`` draws phases
at random, kills a worker when each begins, and compares every prediction with one machine. ``fill``
fits rows that take many times the memory of two workers, and says how much these used at most.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
from runner import FOLDER, Result, ResultsFile

import lsgp.distributed
from lsgp import LSGPRegressor

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from fatal import PHASES, deadly

ROWS_PER_FILE, N_QUERY_FILES = 1_000_000, 20
IDLE_SECONDS = 3.0
#: Of one small model: nodes, and trees, are of rows in memory.
SMALL = {
    "kernel": "matern32",
    "localizer__reach": 1.0,
    "effort__boosting": False,
    "input_transform": "standardize",
    "n_neighbors": 16,
    "effort__n_points": 50,
    "effort__n_models": 1,
    "random_state": 0,
}
#: Difference of predictions in standard deviations: tuning depends on how sums are rounded.
TOLERANCE = 0.05
GIVEN = {"objective": None, "hyperparameters__lengthscale": 0.1}


def make_rows(number: int, n: int) -> pd.DataFrame:
    rng = np.random.default_rng([7, number])
    X = rng.uniform(size=(n, 2))
    y = np.sin(40 * X[:, 0]) * np.cos(25 * X[:, 1]) + 0.1 * rng.standard_normal(n)
    return pd.DataFrame({"east": X[:, 0], "north": X[:, 1], "depth": y})


def write_files(folder: Path, n_rows: int, n_queries: int) -> tuple[Path, Path]:
    """Rows and queries as folders of Parquet, written once per size."""
    rows, queries = folder / f"rows-{n_rows}", folder / f"queries-{n_queries}"
    if not rows.exists():
        rows.mkdir(parents=True)
        for k, start in enumerate(range(0, n_rows, ROWS_PER_FILE)):
            frame = make_rows(k, min(ROWS_PER_FILE, n_rows - start))
            frame.to_parquet(rows / f"{k:05d}.parquet")
    if not queries.exists():
        queries.mkdir(parents=True)
        for k, part in enumerate(np.array_split(np.arange(n_queries), N_QUERY_FILES)):
            frame = make_rows(10_000 + k, len(part))[["east", "north"]]
            frame.to_parquet(queries / f"{k:05d}.parquet")
    return rows, queries


@contextmanager
def workers(n: int, **settings: Any) -> Iterator[Client]:
    """A client of so many workers of one thread."""
    settings = {"threads_per_worker": 1, "dashboard_address": ":0", **settings}
    with LocalCluster(n_workers=n, **settings) as cluster, Client(cluster) as client:
        client.wait_for_workers(n)
        yield client


def on_cluster(client: Client, rows: Path, queries: Path, settings: Result) -> Any:
    """Seconds of a fit and predictions, and the predictions."""
    idle = time.process_time()
    time.sleep(IDLE_SECONDS)
    idle = (time.process_time() - idle) / IDLE_SECONDS
    busy, worked = time.process_time(), sum(client.run(time.process_time).values())
    began = time.perf_counter()
    estimator = LSGPRegressor().set_params(**settings)
    model = lsgp.distributed.fit(estimator, str(rows), "depth", client)
    fitted = time.perf_counter()
    mean, std = model.predict(dd.read_parquet(queries), return_std=True)
    both = dd.concat([mean.rename("mean"), std.rename("std")], axis=1).compute()
    done = time.perf_counter()
    return {
        "fit_seconds": fitted - began,
        "predict_seconds": done - fitted,
        "n_partitions": model.n_partitions,
        # Of the scheduler, and of the client, which tunes: they are one process here.
        "scheduler_and_client_cpu_seconds": time.process_time() - busy,
        # What a scheduler takes of a core that has nothing to do.
        "idle_cpu_share": idle,
        "worker_cpu_seconds": sum(client.run(time.process_time).values()) - worked,
    }, both.to_numpy()


def in_one_process(rows: Path, queries: Path, settings: Result, n_threads: int) -> Any:
    began, busy = time.perf_counter(), time.process_time()
    frame = pd.read_parquet(rows)
    model = LSGPRegressor().set_params(**settings, n_jobs=n_threads)
    model.fit(frame[["east", "north"]], frame["depth"])
    fitted = time.perf_counter()
    found = model.predict(pd.read_parquet(queries), return_std=True)
    return {
        "fit_seconds": fitted - began,
        "predict_seconds": time.perf_counter() - fitted,
        "cpu_seconds": time.process_time() - busy,
    }, np.column_stack(found)


def speed(options: argparse.Namespace) -> None:
    settings = {"random_state": 0, **({} if options.tune else {**GIVEN, "n_neighbors": 64})}
    n, n_queries = int(options.rows), int(options.queries)
    rows, queries = write_files(options.folder, n, n_queries)
    expected = None
    for run in options.runs:
        load = os.getloadavg()[0]
        if run == "one":
            line, found = in_one_process(rows, queries, settings, 2)
        else:
            limits = {"memory_limit": options.memory, "local_directory": str(options.folder)}
            with workers(int(run), **limits) as client:
                line, found = on_cluster(client, rows, queries, settings)
        if expected is not None:
            line["largest_difference"] = float(np.abs(found - expected).max())
        expected = found
        line = {
            "run": "one process, 2 threads" if run == "one" else f"{run} workers of 1 thread",
            "n_rows": n,
            "n_queries": n_queries,
            "tuned": options.tune,
            "memory_per_worker": options.memory,
            **line,
            "load_before": load,
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        }
        ResultsFile(FOLDER / "cluster.jsonl").add(line)
        print(json.dumps(line), flush=True)


def kill(options: argparse.Namespace) -> None:
    """Phases at random, each of which kills a worker."""
    lsgp.distributed.cluster.PATIENCE = 120.0
    rng = np.random.default_rng(options.seed)
    frame = make_rows(0, 20_000)
    frame["kind"] = np.where(frame["east"] > 0.6, "rock", "sand")
    frame["shop"] = [f"s{k}" for k in np.arange(len(frame)) % 70]
    inputs, queries = frame.drop(columns="depth"), frame.drop(columns="depth")[:1000]
    one = LSGPRegressor().set_params(**SMALL).fit(inputs, frame["depth"])
    expected = np.column_stack(one.predict(queries, return_std=True))
    for number in range(options.times):
        phases = sorted(rng.choice(list(PHASES), size=3, replace=False).tolist())
        with (
            tempfile.TemporaryDirectory() as folder,
            dask.config.set({"distributed.scheduler.allowed-failures": 20}),
            workers(2) as client,
        ):
            killed = Path(folder) / "killed"
            killed.mkdir()
            deadly(client, killed, phases)
            lazy, estimator = dd.from_pandas(frame, npartitions=4), LSGPRegressor()
            estimator.set_params(**SMALL)
            model = lsgp.distributed.fit(estimator, lazy, "depth", n_partitions=4)
            found = np.column_stack(model.predict(queries, return_std=True))
            model.save(Path(folder) / "model")
            killed_in = sorted(path.name for path in killed.iterdir())
        gap = float(np.abs(found - expected).max())
        line = {"run": number, "killed_in": killed_in, "largest_difference": gap}
        ResultsFile(FOLDER / "cluster_faults.jsonl").add(line)


def fill(options: argparse.Namespace) -> None:
    """More rows than fit: what workers need, at most."""
    n = int(options.rows)
    rows, queries = write_files(options.folder, n, 100_000)
    with workers(2, memory_limit=options.memory, local_directory=str(options.folder)) as client:
        done, most = threading.Event(), [0]
        addresses: set[str] = set()

        def watch() -> None:
            while not done.wait(0.5):
                for address, info in client.scheduler_info(n_workers=-1)["workers"].items():
                    most[0] = max(most[0], info["metrics"].get("memory", 0))
                    addresses.add(address)

        watcher = threading.Thread(target=watch)
        watcher.start()
        began = time.perf_counter()
        estimator = LSGPRegressor().set_params(**GIVEN, n_neighbors=32)
        model = lsgp.distributed.fit(
            estimator, str(rows), "depth", client, n_partitions=options.partitions
        )
        fitted = time.perf_counter()
        mean = model.predict(pd.read_parquet(queries))
        predicted = time.perf_counter()
        done.set()
        watcher.join()
    line = {
        "n_rows": n,
        "memory_per_worker": options.memory,
        "most_memory_bytes": most[0],
        "bytes_of_rows": n * 8 * 5,
        "bytes_of_models": n * 52,
        "n_partitions": model.n_partitions,
        "n_worker_processes": len(addresses),
        "fit_seconds": fitted - began,
        "predict_seconds": predicted - fitted,
        "finite": bool(np.isfinite(mean).all()),
    }
    ResultsFile(FOLDER / "cluster_faults.jsonl").add(line)


def demo(folder: Path, n_rows: int, n_queries: int, say: Callable[[str], Any] = print) -> None:
    """The whole demonstration; raises if predictions differ from those of one machine."""
    began = time.perf_counter()

    def tell(text: str) -> None:
        say(f"{time.perf_counter() - began:5.1f} s  {text}")

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(n_rows, 2)), columns=["east", "north"])
    depth = np.sin(20 * X["east"]) * X["north"] + 0.1 * rng.standard_normal(n_rows)
    rows = folder / "rows"
    rows.mkdir()
    for k, part in enumerate(np.array_split(np.arange(n_rows), 8)):
        X.assign(depth=depth).iloc[part].to_parquet(rows / f"{k}.parquet")
    queries = pd.DataFrame(rng.uniform(size=(n_queries, 2)), columns=["east", "north"])
    tell(f"{n_rows:,} rows in a folder of Parquet, {n_queries:,} queries")
    one = LSGPRegressor().set_params(**SMALL).fit(X, depth.rename("depth"))
    expected = one.predict(queries, return_std=True)
    tell("one machine: fitted and predicted, to compare with")

    def compare(model: Any, what: str) -> None:
        lazy = model.predict(dd.from_pandas(queries, npartitions=8), return_std=True)
        for found, wanted in zip(dask.compute(*lazy), expected, strict=True):
            if not (np.abs(found - wanted) < TOLERANCE * expected[1]).all():
                raise AssertionError(f"{what}: not as one machine")
        tell(f"{what}: as one machine, mean and std")

    with workers(2) as client:
        tell(f"a cluster of 2 workers; its dashboard is {client.dashboard_link}")
        compare(one, "predictions of a model in memory")
        estimator = LSGPRegressor().set_params(**SMALL)
        model = lsgp.distributed.fit(estimator, str(rows), "depth", n_partitions=6)
        tell(repr(model))
        compare(model, "predictions of partitions")
        os.kill(next(iter(client.run(os.getpid).values())), 9)
        compare(model, "a worker was killed")
        model.save(folder / "model")
        sizes = [file.stat().st_size for file in (folder / "model").iterdir()]
        tell(f"saved: {len(sizes)} files, {sum(sizes) / 1e6:.0f} MB")
    loaded = lsgp.distributed.DistributedModel.load(folder / "model")
    compare(loaded, "loaded lazily, without a cluster")


def run_demo(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        demo(Path(folder), options.rows, options.queries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("demo", help="a cluster on a laptop, in a minute")
    one.add_argument("--rows", type=int, default=100_000)
    one.add_argument("--queries", type=int, default=20_000)
    one.set_defaults(work=run_demo)
    one = parts.add_parser("speed", help="one process, and clusters of 1 and 2 workers")
    one.add_argument("--rows", type=float, default=1e6)
    one.add_argument("--queries", type=float, default=1e6)
    one.add_argument("--folder", type=Path, required=True)
    one.add_argument("--memory", default="3GB")
    one.add_argument("--tune", action="store_true", help="default settings, else given ones")
    one.add_argument("--runs", nargs="+", default=["one", "1", "2"])
    one.set_defaults(work=speed)
    one = parts.add_parser("kill", help="kill workers in phases drawn at random")
    one.add_argument("--times", type=int, default=10)
    one.add_argument("--seed", type=int, default=0)
    one.set_defaults(work=kill)
    one = parts.add_parser("fill", help="rows that take many times the memory of two workers")
    one.add_argument("--rows", type=float, required=True)
    one.add_argument("--memory", default="600MB")
    one.add_argument("--partitions", type=int)
    one.add_argument("--folder", type=Path, required=True)
    one.set_defaults(work=fill)
    options = parser.parse_args()
    options.work(options)


if __name__ == "__main__":
    main()
