# SPDX-License-Identifier: BSD-3-Clause
"""What backends share whose arrays are in the memory of this machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Systems
from lsgp.method.arrays import is_on_device, on_host
from lsgp.method.contract import LocalProblem, Predictions
from lsgp.search.contract import SearchIndex, SearchRequest


def takes(queries: NDArray[np.floating]) -> bool:
    """As `Backend.takes`."""
    return not is_on_device(queries)


def prepare(problem: LocalProblem) -> LocalProblem:
    """As `Backend.prepare`: C-contiguous, and of the dtype of X."""
    dtype = problem.X.dtype
    X, y, noise = (np.ascontiguousarray(array, dtype) for array in problem[:3])
    return problem._replace(X=X, y=y, noise=noise)


def search(index: SearchIndex, request: SearchRequest) -> NDArray[np.int32]:
    """As `Backend.search`, by the index itself."""
    if request.n_neighbors is not None and request.n_neighbors > index.n:
        request = request._replace(n_neighbors=index.n)
    return index.search(request)


def predict_found(
    predict: Callable[[Systems], Predictions],
    problem: LocalProblem,
    index: SearchIndex,
    request: SearchRequest,
) -> tuple[Predictions, NDArray[np.int32]]:
    """As `Backend.predict_at`, from what the index finds."""
    queries = on_host(request.queries)
    own = request if queries is request.queries else request._replace(queries=queries)
    neighbors = search(index, own)
    solved = predict(Systems(problem, queries.astype(problem.X.dtype, copy=False), neighbors))
    return solved.beside(request.queries), neighbors


def noise_unit(
    problem: LocalProblem, queries: NDArray[np.floating], neighbors: NDArray[np.int32]
) -> NDArray[np.float64]:
    """As in `Predictions`, (q,): h where weights are k(u)/h, else 1."""
    model = problem.model
    if not model.normalize:
        return np.ones(len(queries))
    if model.bandwidth is not None:
        return np.full(len(queries), model.bandwidth)
    offsets = problem.X[neighbors].astype(float) - queries[:, None, :]
    r2 = ((offsets / model.localizer_scale) ** 2).sum(axis=2)
    h2 = np.where(neighbors >= 0, r2, 0.0).max(axis=1, initial=0.0)
    return np.sqrt(np.where(h2 > 0, h2, 1.0)) * model.localizer_unit
