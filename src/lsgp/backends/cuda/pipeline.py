# SPDX-License-Identifier: BSD-3-Clause
"""From queries to predictions on the device: what is found there is solved there."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lsgp.backends.cuda import search, solve
from lsgp.backends.cuda.device import cupy
from lsgp.backends.cuda.residence import DeviceArray, Residence, download, download_together
from lsgp.method.arrays import is_on_device
from lsgp.method.contract import STATUS_OK, LocalProblem, Predictions
from lsgp.search.contract import SearchRequest
from lsgp.search.index import NeighborIndex


class RowsOnDevice:
    """Neighbors (q, m) that are fetched when somebody asks for those of some queries."""

    def __init__(self, neighbors: DeviceArray) -> None:
        self._neighbors = neighbors
        self.shape: tuple[int, int] = neighbors.shape

    def __getitem__(self, queries: int | NDArray[np.int64]) -> NDArray[np.int32]:
        return download(self._neighbors[queries])

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> NDArray[np.int32]:
        """All of them, on the host."""
        return np.asarray(download(self._neighbors), dtype=dtype)


def predict_nearest(
    problem: LocalProblem, index: NeighborIndex, request: SearchRequest, residence: Residence
) -> tuple[Predictions, RowsOnDevice]:
    """Of queries (q, d), by weights that are not k(u)/h; only predictions leave the device.

    Those of queries that are on the device stay there.
    """
    model, queries = problem.model, request.queries
    if index.n > len(problem.X):
        raise ValueError("neighbors names a row that X does not have")
    neighbors = search.find_nearest(index, request, residence)
    on_device = solve.upload_problem(problem, model.has_large_trend, residence)
    places = cupy().asarray(queries.astype(problem.X.dtype, copy=False))
    solved = solve.predict(on_device, places, neighbors)
    if is_on_device(queries):
        return solved._replace(status=_status_on_host(solved.status)), RowsOnDevice(neighbors)
    result = Predictions(*download_together(solved[:5]))
    return result._replace(noise_unit=np.ones(len(queries))), RowsOnDevice(neighbors)


def _status_on_host(status: DeviceArray) -> NDArray[np.int32]:
    """Where all systems are solved, one number says so."""
    is_solved = len(status) == 0 or int(status.max()) == STATUS_OK
    return np.zeros(len(status), np.int32) if is_solved else download(status)
