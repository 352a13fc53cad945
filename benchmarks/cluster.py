# SPDX-License-Identifier: BSD-3-Clause
"""What a cluster costs and brings: fit and predictions from Parquet, on 1 and 2 workers.

    python benchmarks/cluster.py --rows 1e6 --folder /somewhere/with/room

Workers are processes of one thread and --memory each (LocalCluster). "one process" is the estimator
itself with as many threads as there are workers, with all rows in memory. Rows are written to
Parquet once per size. Each line goes to benchmarks/results/cluster.jsonl.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
from job_runner import ResultsFile

import lsgp.distributed
from lsgp import LSGPRegressor

RESULTS = Path(__file__).parent / "results" / "cluster.jsonl"
ROWS_PER_FILE = 1_000_000
IDLE_SECONDS = 3.0


def make_rows(number: int, n: int) -> pd.DataFrame:
    rng = np.random.default_rng([7, number])
    X = rng.uniform(size=(n, 2))
    y = np.sin(40 * X[:, 0]) * np.cos(25 * X[:, 1]) + 0.1 * rng.standard_normal(n)
    return pd.DataFrame({"east": X[:, 0], "north": X[:, 1], "depth": y})


def write_rows(folder: Path, n: int) -> Path:
    path = folder / f"rows-{n}"
    if not path.exists():
        path.mkdir(parents=True)
        for k, start in enumerate(range(0, n, ROWS_PER_FILE)):
            make_rows(k, min(ROWS_PER_FILE, n - start)).to_parquet(path / f"{k:05d}.parquet")
    return path


def write_queries(folder: Path, n: int, n_files: int = 20) -> Path:
    path = folder / f"queries-{n}"
    if not path.exists():
        path.mkdir(parents=True)
        for k, rows in enumerate(np.array_split(np.arange(n), n_files)):
            frame = make_rows(10_000 + k, len(rows))[["east", "north"]]
            frame.to_parquet(path / f"{k:05d}.parquet")
    return path


def on_cluster(path: Path, queries: Path, settings: dict, n_workers: int, memory: str):
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=memory,
            dashboard_address=":0",
            local_directory=str(path.parent),
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(n_workers)
        idle = time.process_time()
        time.sleep(IDLE_SECONDS)
        idle = (time.process_time() - idle) / IDLE_SECONDS
        busy = time.process_time()
        worked = sum(client.run(time.process_time).values())
        began = time.perf_counter()
        model = lsgp.distributed.fit(
            LSGPRegressor().set_params(**settings), str(path), "depth", client
        )
        fitted = time.perf_counter()
        frame = dd.read_parquet(queries)
        mean, std = model.predict(frame, return_std=True)
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


def in_one_process(path: Path, queries: Path, settings: dict, n_threads: int):
    began, busy = time.perf_counter(), time.process_time()
    frame = pd.read_parquet(path)
    model = LSGPRegressor().set_params(**settings, n_jobs=n_threads)
    model.fit(frame[["east", "north"]], frame["depth"])
    fitted = time.perf_counter()
    found = model.predict(pd.read_parquet(queries), return_std=True)
    done = time.perf_counter()
    seconds = {
        "fit_seconds": fitted - began,
        "predict_seconds": done - fitted,
        "cpu_seconds": time.process_time() - busy,
    }
    return seconds, np.column_stack(found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--queries", type=float, default=1e6)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--memory", default="3GB")
    parser.add_argument("--tune", action="store_true", help="default settings, else given ones")
    parser.add_argument("--runs", nargs="+", default=["one", "1", "2"])
    options = parser.parse_args()
    n = int(options.rows)
    settings = {"random_state": 0}
    if not options.tune:
        settings |= {"objective": None, "n_neighbors": 64, "hyperparameters__lengthscale": 0.1}
    path = write_rows(options.folder, n)
    queries = write_queries(options.folder, int(options.queries))
    expected = None
    for run in options.runs:
        load = os.getloadavg()[0]
        if run == "one":
            line, found = in_one_process(path, queries, settings, 2)
        else:
            line, found = on_cluster(path, queries, settings, int(run), options.memory)
        if expected is not None:
            line["largest_difference"] = float(np.abs(found - expected).max())
        expected = found
        line = {
            "run": "one process, 2 threads" if run == "one" else f"{run} workers of 1 thread",
            "n_rows": n,
            "n_queries": int(options.queries),
            "tuned": options.tune,
            "memory_per_worker": options.memory,
            **line,
            "load_before": load,
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        }
        ResultsFile(RESULTS).add(line)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
