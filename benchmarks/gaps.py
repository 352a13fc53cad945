# SPDX-License-Identifier: BSD-3-Clause
"""Gaps like those of the satellite's map, in cells whose temperatures are known to whoever tunes.

    python benchmarks/gaps.py --data-folder ../shared/data --out gaps.jsonl --masks 0 1 --states 0

All cells without a training value, flipped and shifted over the map, are held out of its training
cells: gaps of the same shapes, also at edges, with what the map has of gaps beside them. Choices
that concern gaps may be made here; its test cells are then for the report alone. It must be *all*
cells without a value: of the test cells alone, single cells that nobody measured would stay in the
gaps, where rows never are. A result is appended as soon as it is there.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from data_sets import load_dataset
from machine import describe_machine
from numpy.typing import NDArray

from lsgp import LSGPRegressor

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

#: Whether each axis is flipped, and by how many cells the mask is shifted.
MASKS = (
    ((True, False), (0, 0)),
    ((False, True), (0, 0)),
    ((True, True), (0, 0)),
    ((False, False), (250, 0)),
    ((False, False), (0, 150)),
    ((True, False), (250, 150)),
    ((False, True), (125, 75)),
    ((True, True), (125, 0)),
)
#: Cells of a gap that are predicted.
N_PREDICTED = 1500
LEVEL = 0.95


class Gaps(NamedTuple):
    """Training cells that are kept, those that are held out, and some of these."""

    kept: Rows
    held_out: Rows
    predicted: Rows


def cells_of(X: Array, every: Array) -> Rows:
    """Columns and rows of the grid (n, 2) that the points lie on."""
    steps = [np.median(np.diff(np.unique(np.round(column, 5)))) for column in every.T]
    return np.round((X - every.min(axis=0)) / steps).astype(int)


def cut(X_train: Array, X_test: Array, number: int) -> Gaps:
    """The gaps of one mask."""
    every = np.concatenate([X_train, X_test])
    cells = cells_of(X_train, every)
    row_of = np.full(cells_of(every, every).max(axis=0) + 1, -1)
    row_of[tuple(cells.T)] = np.arange(len(X_train))
    flips, shift = MASKS[number]
    axes = [axis for axis, is_flipped in enumerate(flips) if is_flipped]
    mask = np.roll(np.flip(row_of < 0, axes), shift, (0, 1))
    held_out = row_of[mask & (row_of >= 0)]
    kept = np.setdiff1d(np.arange(len(X_train)), held_out)
    rng = np.random.default_rng(0)
    predicted = np.sort(rng.choice(held_out, min(N_PREDICTED, len(held_out)), replace=False))
    return Gaps(kept, held_out, predicted)


def judge(X: Array, y: Array, gaps: Gaps, state: int, n_jobs: int | None) -> dict[str, float]:
    """A default fit that knows where the gaps are, and its scores there."""
    model = LSGPRegressor(random_state=state, n_jobs=n_jobs)
    began = time.process_time()
    model.fit(X[gaps.kept], y[gaps.kept], queries=X[gaps.held_out])
    seconds = time.process_time() - began
    predicted, observed = model.predict_distribution(X[gaps.predicted]), y[gaps.predicted]
    low, high = predicted.interval(LEVEL)
    missed = np.maximum(low - observed, 0.0) + np.maximum(observed - high, 0.0)
    return {
        "rmse": float(np.sqrt(np.mean((predicted.mean - observed) ** 2))),
        "crps": float(np.mean(predicted.crps(observed))),
        "interval_score": float(np.mean(high - low + 2.0 / (1.0 - LEVEL) * missed)),
        "coverage": float(np.mean((low <= observed) & (observed <= high))),
        "fit_cpu_seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data-folder", default="data")
    parser.add_argument("--out", type=Path, default=Path("gaps.jsonl"))
    parser.add_argument("--masks", type=int, nargs="+", default=list(range(len(MASKS))))
    parser.add_argument("--states", type=int, nargs="+", default=[0])
    parser.add_argument("--n-jobs", type=int)
    settings = parser.parse_args()
    data = load_dataset("satellite", settings.data_folder)
    n = data.n_train
    X, y = data.X[:n], data.y[:n]
    for number in settings.masks:
        gaps = cut(X, data.X[n:], number)
        for state in settings.states:
            scores = judge(X, y, gaps, state, settings.n_jobs)
            result = {"mask": number, "state": state, **scores, "machine": describe_machine()}
            with settings.out.open("a") as file:
                file.write(json.dumps(result) + "\n")
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
