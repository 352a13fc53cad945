# SPDX-License-Identifier: BSD-3-Clause
"""Longitude and latitude as they are, and on the sphere: accuracy, and what is left of the seam.

    python benchmarks/sphere.py --data-folder ../shared/data --out results/sphere.jsonl

argo (temperature at 100 m) and jason3 (wind speed) have longitude, latitude and time; 10 % of the
rows are held out by each seed. Default settings, one thread. The seam is the largest difference of
predictions at the two ends of the longitudes, of which both are the same places. A result is
appended as soon as it is there, and what is in the file is not run again.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from data_sets import split
from isolated import Result
from job_runner import ResultsFile, run_here
from numpy.typing import NDArray

from lsgp import LSGPRegressor, Sphere

Array = NDArray[np.float64]

#: Target of each table; the first three columns are the inputs.
TARGETS = {"argo": "temp100", "jason3": "windspeed"}
SETTINGS: dict[str, dict[str, Any]] = {"raw": {}, "sphere": {"coordinates": Sphere(0, 1)}}


def seam(model: LSGPRegressor, X: Array) -> float:
    """The largest difference of predictions at one place, reached from either side."""
    west = X[np.linspace(0, len(X) - 1, 200).astype(int)].copy()
    west[:, 0] = np.floor(X[:, 0].min())
    east = west + np.array([360.0, 0.0, 0.0])
    return float(np.abs(model.predict(west) - model.predict(east)).max())


def measure(dataset: str, inputs: str, seed: int, folder: Path) -> Result:
    """Scores of one fit on the rows that it has not seen."""
    table = pd.read_csv(folder / f"{dataset}.csv.gz")
    X, y = table.iloc[:, :3].to_numpy(float), table[TARGETS[dataset]].to_numpy(float)
    train, test = split(len(y), seed)
    began = time.process_time()
    model = (
        LSGPRegressor()
        .set_params(n_jobs=1, random_state=seed, **SETTINGS[inputs])
        .fit(X[train], y[train])
    )
    found = model.calibration(X[test], y[test])
    kilometers = float(model.lengthscales_[0, 0]) if inputs == "sphere" else None
    return {
        "n_train": len(train),
        "rmse": float(found.rmse),
        "crps": float(found.crps),
        "coverage_90": float(found.coverage_at(0.9)),
        "seam": seam(model, X),
        "lengthscale_km": kilometers,
        "cpu_seconds": time.process_time() - began,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-folder", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    jobs = [
        {"dataset": name, "inputs": setting, "seed": seed}
        for seed in options.seeds
        for name in TARGETS
        for setting in SETTINGS
    ]
    run_here(jobs, ResultsFile(options.out), partial(measure, folder=options.data_folder))


if __name__ == "__main__":
    main()
