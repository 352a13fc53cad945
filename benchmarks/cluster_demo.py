# SPDX-License-Identifier: BSD-3-Clause
"""A cluster on a laptop, in a minute: fit, predict, lose a worker, save and load.

python benchmarks/cluster_demo.py          # or: make cluster-demo
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

import lsgp.distributed
from lsgp import LSGPRegressor

SETTINGS = {
    "kernel": "matern32",
    "localizer__reach": 1.0,  # nodes are of rows in memory
    "effort__boosting": False,  # and so are trees
    "input_transform": "standardize",
    "n_neighbors": 32,
    "effort__n_points": 200,
    "effort__n_models": 1,
    "random_state": 0,
}
#: Difference of predictions in standard deviations: tuning depends on how sums are rounded.
TOLERANCE = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), options.rows, options.queries, print)


def run(folder: Path, n_rows: int, n_queries: int, say: Callable[[str], Any]) -> None:
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

    one = LSGPRegressor().set_params(**SETTINGS).fit(X, depth.rename("depth"))
    expected = one.predict(queries, return_std=True)
    tell("one machine: fitted and predicted, to compare with")

    def compare(model: Any, what: str) -> None:
        lazy = model.predict(dd.from_pandas(queries, npartitions=8), return_std=True)
        for found, wanted in zip(dask.compute(*lazy), expected, strict=True):
            if not (np.abs(found - wanted) < TOLERANCE * expected[1]).all():
                raise AssertionError(f"{what}: not as one machine")
        tell(f"{what}: as one machine, mean and std")

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        tell(f"a cluster of 2 workers; its dashboard is {client.dashboard_link}")
        compare(one, "predictions of a model in memory")
        model = lsgp.distributed.fit(
            LSGPRegressor().set_params(**SETTINGS), str(rows), "depth", n_partitions=6
        )
        tell(repr(model))
        compare(model, "predictions of partitions")
        os.kill(next(iter(client.run(os.getpid).values())), 9)
        compare(model, "a worker was killed")
        model.save(folder / "model")
        size = sum(file.stat().st_size for file in (folder / "model").iterdir())
        tell(f"saved: {len(list((folder / 'model').iterdir()))} files, {size / 1e6:.0f} MB")
    loaded = lsgp.distributed.DistributedModel.load(folder / "model")
    compare(loaded, "loaded lazily, without a cluster")


if __name__ == "__main__":
    main()
