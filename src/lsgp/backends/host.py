# SPDX-License-Identifier: BSD-3-Clause
"""What backends share whose arrays are in the memory of this machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import LARGEST_SYSTEM
from lsgp.method.arrays import is_on_device, on_host
from lsgp.method.contract import LocalModel, LocalProblem, Predictions
from lsgp.search.coarse import CoarseTree
from lsgp.search.exclusions import Exclusions
from lsgp.search.index import SearchIndex


def takes(queries: NDArray[np.floating]) -> bool:
    """As `Backend.takes`."""
    return not is_on_device(queries)


def prepare(problem: LocalProblem) -> LocalProblem:
    """As `Backend.prepare`: C-contiguous, and of the dtype of X."""
    dtype = problem.X.dtype
    X, y, noise = (np.ascontiguousarray(array, dtype) for array in problem[:3])
    return problem._replace(X=X, y=y, noise=noise)


def search(
    index: SearchIndex,
    model: LocalModel,
    queries: NDArray[np.float64],
    n_neighbors: int | None,
    exclusions: Exclusions,
    max_neighbors: int = LARGEST_SYSTEM,
    first_query: int = 0,
) -> NDArray[np.int32]:
    """As `Backend.search`, by the tree of boxes."""
    lengthscale = model.localizer_scale
    if n_neighbors is not None:
        return index.nearest(queries, lengthscale, min(n_neighbors, index.n), exclusions)
    return index.within(
        queries,
        lengthscale,
        model.scaled_bandwidth,
        max_neighbors=max_neighbors,
        first_query=first_query,
        exclusions=exclusions,
    )


def search_units(
    tree: CoarseTree,
    index: SearchIndex,
    queries: NDArray[np.float64],
    n_units: int,
    reach: float,
    exclusions: Exclusions,
) -> NDArray[np.int32]:
    """As `Backend.search_units`, by the native core."""
    return tree.nearest_units(index, queries, n_units, reach, exclusions)


#: As `Backend.predict`, of a problem, queries and neighbors.
Predict = Callable[[LocalProblem, NDArray[np.floating], NDArray[np.int32]], Predictions]


def predict_found(
    predict: Predict,
    problem: LocalProblem,
    index: SearchIndex,
    queries: NDArray[np.float64],
    n_neighbors: int | None,
    exclusions: Exclusions,
    max_neighbors: int = LARGEST_SYSTEM,
    first_query: int = 0,
) -> tuple[Predictions, NDArray[np.int32]]:
    """As `Backend.predict_at`, from what the tree of boxes finds."""
    own = on_host(queries)
    neighbors = search(
        index, problem.model, own, n_neighbors, exclusions, max_neighbors, first_query
    )
    solved = predict(problem, own.astype(problem.X.dtype, copy=False), neighbors)
    return solved.beside(queries), neighbors


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
