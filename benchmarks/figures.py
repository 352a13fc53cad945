# SPDX-License-Identifier: BSD-3-Clause
"""Measured numbers beside what they should reach, and how they are measured."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


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


def run_python(*arguments: str) -> str:
    """What a new interpreter prints; its progress bars and errors stay visible."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def make_data(n: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    return X, np.sin(X.sum(axis=1)) + 0.1 * random.standard_normal(n)
