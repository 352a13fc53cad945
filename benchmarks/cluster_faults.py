# SPDX-License-Identifier: BSD-3-Clause
"""What a cluster survives: workers killed in every phase, and data that do not fit its memory.

    python benchmarks/cluster_faults.py --kill 10
    python benchmarks/cluster_faults.py --rows 4e7 --memory 600MB --folder /somewhere/with/room

The first draws phases at random, kills a worker when each begins, and compares every prediction
with one machine. The second fits rows that take many times the memory of two workers,
and says how much these used at most. Lines go to benchmarks/results/cluster_faults.jsonl.
"""

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from cluster import make_rows, write_queries, write_rows
from distributed import Client, LocalCluster
from job_runner import ResultsFile

import lsgp.distributed
from lsgp import LSGPRegressor

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from fatal import PHASES, deadly

RESULTS = Path(__file__).parent / "results" / "cluster_faults.jsonl"
SETTINGS = {
    "kernel": "matern32",
    "localizer__reach": 1.0,  # nodes are of rows in memory
    "effort__boosting": False,  # and so are trees
    "input_transform": "standardize",
    "n_neighbors": 16,
    "effort__n_points": 50,
    "effort__n_models": 1,
    "random_state": 0,
}


def kill(n_times: int, seed: int) -> None:
    """Phases at random, each of which kills a worker."""
    rng = np.random.default_rng(seed)
    frame = make_rows(0, 20_000)
    frame["kind"] = np.where(frame["east"] > 0.6, "rock", "sand")
    frame["shop"] = [f"s{k}" for k in np.arange(len(frame)) % 70]
    inputs, queries = frame.drop(columns="depth"), frame.drop(columns="depth")[:1000]
    one = LSGPRegressor().set_params(**SETTINGS).fit(inputs, frame["depth"])
    expected = np.column_stack(one.predict(queries, return_std=True))
    for number in range(n_times):
        phases = sorted(rng.choice(list(PHASES), size=3, replace=False).tolist())
        with (
            tempfile.TemporaryDirectory() as folder,
            dask.config.set({"distributed.scheduler.allowed-failures": 20}),
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            killed = Path(folder) / "killed"
            killed.mkdir()
            deadly(client, killed, phases)
            lazy = dd.from_pandas(frame, npartitions=4)
            model = lsgp.distributed.fit(
                LSGPRegressor().set_params(**SETTINGS), lazy, "depth", n_partitions=4
            )
            found = np.column_stack(model.predict(queries, return_std=True))
            model.save(Path(folder) / "model")
            ResultsFile(RESULTS).add(
                {
                    "run": number,
                    "killed_in": sorted(path.name for path in killed.iterdir()),
                    "largest_difference": float(np.abs(found - expected).max()),
                }
            )


def fill(n: int, memory: str, folder: Path, n_partitions: int | None) -> None:
    """More rows than fit: what workers need, at most."""
    path, queries = write_rows(folder, n), write_queries(folder, 100_000)
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=memory,
            dashboard_address=":0",
            local_directory=str(folder),
        ) as cluster,
        Client(cluster) as client,
    ):
        done, most = threading.Event(), [0]
        pids: set[str] = set()

        def watch() -> None:
            while not done.wait(0.5):
                for address, info in client.scheduler_info(n_workers=-1)["workers"].items():
                    most[0] = max(most[0], info["metrics"].get("memory", 0))
                    pids.add(address)

        watcher = threading.Thread(target=watch)
        watcher.start()
        began = time.perf_counter()
        settings = {"objective": None, "n_neighbors": 32, "hyperparameters__lengthscale": 0.1}
        model = lsgp.distributed.fit(
            LSGPRegressor().set_params(**settings),
            str(path),
            "depth",
            client,
            n_partitions=n_partitions,
        )
        fitted = time.perf_counter()
        mean = model.predict(pd.read_parquet(queries))
        predicted = time.perf_counter()
        done.set()
        watcher.join()
    ResultsFile(RESULTS).add(
        {
            "n_rows": n,
            "memory_per_worker": memory,
            "most_memory_bytes": most[0],
            "bytes_of_rows": n * 8 * 5,
            "bytes_of_models": n * 52,
            "n_partitions": model.n_partitions,
            "n_worker_processes": len(pids),
            "fit_seconds": fitted - began,
            "predict_seconds": predicted - fitted,
            "finite": bool(np.isfinite(mean).all()),
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kill", type=int, default=0, help="times that phases are drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=float, default=0)
    parser.add_argument("--memory", default="600MB")
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.kill:
        lsgp.distributed.cluster.PATIENCE = 120.0
        kill(options.kill, options.seed)
    if options.rows:
        if options.folder is None:
            parser.error("--rows needs --folder")
        fill(int(options.rows), options.memory, options.folder, options.partitions)


if __name__ == "__main__":
    main()
