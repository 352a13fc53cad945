# SPDX-License-Identifier: BSD-3-Clause
"""Solving again, with more digits, where too many were lost; for backends of single precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import ScoreRequest, Systems
from lsgp.backends.host import prepare
from lsgp.method.arrays import beside
from lsgp.method.contract import (
    STATUS_IMPRECISE,
    Coefficients,
    LocalProblem,
    Predictions,
    QueryGradients,
    Scores,
)

#: Rows that are copied to double precision at a time: a few megabytes.
ROWS_IN_DOUBLE = 16_384


def imprecise_parts(
    status: NDArray[np.int32], n_neighbors: int, n_rows: int = ROWS_IN_DOUBLE
) -> Iterator[NDArray[np.int64]]:
    """Numbers of the queries that are to be solved again, few enough at a time to copy rows."""
    again = np.flatnonzero(status == STATUS_IMPRECISE)
    size = max(16, n_rows // max(1, n_neighbors))
    for start in range(0, len(again), size):
        yield again[start : start + size]


def replace_part(
    result: Predictions | QueryGradients | Scores | Coefficients,
    part: NDArray[np.int64],
    better: Predictions | QueryGradients | Scores | Coefficients,
) -> None:
    """Write better results of some of the queries into those of all."""
    values: NDArray[Any] | None
    others: NDArray[Any] | None
    for values, others in zip(result, better, strict=True):
        if values is not None:
            assert others is not None, "better results are of the same kind"
            values[beside(part, values)] = beside(others, values)


def in_double(systems: Systems, part: NDArray[np.int64]) -> Systems:
    """Some of the systems, with the rows that they name in double precision."""
    problem, queries, neighbors, points = systems
    problem, numbers = _rows_in_double(problem, neighbors[part])
    around = None if points is None else points[part].astype(float)
    return Systems(problem, queries[part].astype(float), numbers, around)


def scores_in_double(request: ScoreRequest, part: NDArray[np.int64]) -> ScoreRequest:
    """Some of the targets, with the rows that they name in double precision."""
    named = np.column_stack([request.targets[part], request.neighbors[part]])
    problem, numbers = _rows_in_double(request.problem, named)
    targets, neighbors = (np.ascontiguousarray(a) for a in (numbers[:, 0], numbers[:, 1:]))
    return ScoreRequest(problem, targets, neighbors, request.objective)


def without_targets(systems: Systems) -> Systems:
    """All systems, in double precision, of which nobody wants predictions."""
    problem = systems.problem._replace(y=systems.problem.y[:, :0])
    problem, numbers = _rows_in_double(problem, systems.neighbors)
    return Systems(prepare(problem), np.ascontiguousarray(systems.queries, float), numbers)


def _rows_in_double(
    problem: LocalProblem, neighbors: NDArray[np.int32]
) -> tuple[LocalProblem, NDArray[np.int32]]:
    """The problem of the rows that are named, in double precision, and what they are called there.

    A problem that is in double precision is itself.
    """
    X, y, noise, model = problem
    if X.dtype == np.float64:
        return problem, neighbors
    rows, places = np.unique(neighbors, return_inverse=True)
    n_pads = int(np.searchsorted(rows, 0))
    rows = rows[n_pads:]
    numbers = np.maximum(places.reshape(neighbors.shape) - n_pads, -1)
    X, y, noise = (np.ascontiguousarray(array[rows], dtype=float) for array in (X, y, noise))
    return LocalProblem(X, y, noise, model), np.ascontiguousarray(numbers, dtype=np.int32)
