# SPDX-License-Identifier: BSD-3-Clause
"""Saved models whose bytes are changed: each is refused in one sentence, or answers as before."""

from __future__ import annotations

import tempfile
import time
import tracemalloc
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fuzz.outcome import Finding, Tally
from lsgp import Effort, LSGPClassifier, LSGPRegressor

#: `load` may take so long, and so many bytes for each byte of the file, beside a constant.
LONGEST, MOST_BYTES, PER_BYTE = 2.0, 30_000_000, 60
FEW = Effort("fast", n_points=30)


@cache
def originals() -> list[tuple[type, bytes, Any]]:
    """Small saved models of each kind: their class, their bytes, and queries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    table = pd.DataFrame({"a": X[:, 0], "kind": rng.choice(list("uvw"), 60)})
    models = [
        (LSGPRegressor(objective=None).fit(X, y), X),
        (LSGPRegressor(effort=FEW, random_state=0).fit(X, y), X),
        (LSGPRegressor(effort=FEW, random_state=0).fit(table, y), table),
        (LSGPClassifier(effort=FEW, random_state=0).fit(X, y > 0), X),
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.lsgp"
        for model, queries in models:
            model.save(path)
            found.append((type(model), path.read_bytes(), queries[:5]))
    return found


def run(seed: int, tally: Tally) -> None:
    rng = np.random.default_rng([seed, 32])
    cls, data, queries = originals()[rng.integers(len(originals()))]
    damaged, how = damage(rng, data)
    case = f"{cls.__name__} of {len(data):,} bytes, {how}"
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.lsgp"
        path.write_bytes(damaged)
        tally.judge(seed, case, lambda: load_and_ask(cls, path, queries))


def load_and_ask(cls: Any, path: Path, queries: Any) -> str:
    started = time.perf_counter()
    tracemalloc.start()
    try:
        model = cls.load(path)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        seconds = time.perf_counter() - started
        if seconds > LONGEST or peak > MOST_BYTES + PER_BYTE * path.stat().st_size:
            raise Finding(f"load took {seconds:.1f} s and {peak:,} bytes")
    answer = model.predict_proba if cls is LSGPClassifier else model.predict
    if not np.isfinite(answer(queries)).all():
        raise Finding("predictions are not finite")
    return "answered"


def damage(rng: np.random.Generator, data: bytes) -> tuple[bytes, str]:
    """The bytes with one change, and what it is."""
    kind = str(rng.choice(["flip", "byte", "cut", "zeros", "insert", "swap", "append", "digits"]))
    bytes_, at = bytearray(data), int(rng.integers(len(data)))
    if rng.uniform() < 0.5:  # the headers matter most
        at = int(min(rng.exponential(2000), len(data) - 1))
    size = int(min(rng.exponential(50) + 1, len(data) - at))
    if kind == "flip":
        bytes_[at] ^= 1 << int(rng.integers(8))
    elif kind == "byte":
        bytes_[at] = int(rng.integers(256))
    elif kind == "cut":
        del bytes_[at:]
    elif kind == "zeros":
        bytes_[at : at + size] = bytes(size)
    elif kind == "insert":
        bytes_[at:at] = rng.bytes(size)
    elif kind == "swap":
        other = int(rng.integers(len(data) - size + 1))
        bytes_[at : at + size], bytes_[other : other + size] = (
            bytes_[other : other + size],
            bytes_[at : at + size],
        )
    elif kind == "append":
        bytes_ += rng.bytes(size)
    else:  # numbers in the texts of the file
        digits = [i for i in range(at, min(at + 3000, len(data))) if 48 <= data[i] <= 57]
        for i in rng.choice(digits, min(3, len(digits))) if digits else []:
            bytes_[i] = int(rng.integers(48, 58))
    return bytes(bytes_), f"{kind} at {at:,}"
