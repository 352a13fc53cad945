# SPDX-License-Identifier: BSD-3-Clause
"""The backend of a GPU: the functions of the contract, over arrays of the host."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lsgp.backends import cpu, host
from lsgp.backends.contract import (
    Plan,
    Resources,
    Rows,
    RowsOfQueries,
    ScoreRequest,
    Systems,
    SystemSize,
)
from lsgp.backends.cuda import search, solve
from lsgp.backends.cuda.device import cupy, find_device, own_stream, side_by_side
from lsgp.backends.cuda.residence import DeviceArray, Residence, download, download_together
from lsgp.backends.cuda.workspace import BLOCKS_PER_MULTIPROCESSOR, Shape, place
from lsgp.backends.host import imprecise_parts, in_double, replace_part, solve_twice
from lsgp.method.arrays import beside, is_on_device, on_host
from lsgp.method.contract import STATUS_OK, Coefficients, LocalProblem, Predictions, Scores
from lsgp.search.coarse import UnitRequest, search_units
from lsgp.search.contract import LARGEST_SYSTEM, SearchIndex, SearchRequest
from lsgp.search.index import NeighborIndex

#: A block takes about this many multiply-adds: a fraction of a second, so that Ctrl-C is prompt.
WORK_PER_BLOCK = 1e12
SMALLEST_BLOCK, LARGEST_BLOCK = 1024, 1 << 18
#: Blocks whose arrays the host has at a time: while one is on the device, others are made ready.
BLOCKS_AT_ONCE = 8
#: With a fixed bandwidth most neighborhoods are far smaller than the largest that is allowed.
BLOCK_WITH_FIXED_BANDWIDTH = 8192
#: Rows that are copied to double precision at a time, many, so that the device has work.
ROWS_IN_DOUBLE = 1 << 22


class RowsOnDevice:
    """Neighbors (q, m) that are fetched when somebody asks for those of some queries."""

    def __init__(self, neighbors: DeviceArray) -> None:
        self._neighbors = neighbors
        self.shape: tuple[int, int] = neighbors.shape

    def __getitem__(self, queries: int | NDArray[np.int64]) -> Rows:
        return download(self._neighbors[queries])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Rows:
        """All of them, on the host."""
        return np.asarray(download(self._neighbors), dtype=dtype)


class CudaBackend:
    """Local systems on the device that is current; see `Backend`, and `PlacedBackend`.

    Nothing of CuPy is imported before the first use.
    """

    knows = staticmethod(cpu.knows)
    knows_metric = staticmethod(cpu.knows_metric)
    differentiate = staticmethod(cpu.differentiate)

    def __init__(self) -> None:
        self.residence = Residence()

    @own_stream()
    def prepare(self, problem: LocalProblem) -> LocalProblem:
        """As `Backend.prepare`: the arrays stay on the host too, and go to the device once."""
        prepared = host.prepare(problem)
        for array in prepared[:3]:
            self.residence.upload(array)
        return prepared

    @own_stream()
    def search(self, index: SearchIndex, request: SearchRequest) -> Rows:
        """As `Backend.search`; what is found stays on the device too, for `predict`."""
        # Rows that came later, are elsewhere or in codes are searched by the host.
        if not isinstance(index, NeighborIndex) or index.codes is not None:
            return host.search(index, request)
        return self._kept(search.find(index, request, self.residence))

    @own_stream()
    def search_units(self, request: UnitRequest) -> Rows:
        """As `Backend.search_units`; what is found stays on the device too."""
        index = request.row_index
        if not isinstance(index, NeighborIndex) or index.codes is not None:
            return search_units(request)
        return self._kept(search.find_units(request, index, self.residence))

    def _kept(self, found: DeviceArray) -> Rows:
        """What was found, on the host, and still on the device."""
        neighbors: Rows = download(found)
        self.residence.remember(neighbors, found)
        return neighbors

    @own_stream()
    def predict(self, systems: Systems) -> Predictions:
        """As `Backend.predict`; averages over points are the native core's."""
        if systems.points is not None:
            return cpu.predict(systems)
        return solve_twice(self._predict, systems, ROWS_IN_DOUBLE)

    def _predict(self, systems: Systems, is_trend_apart: bool) -> Predictions:
        solved = solve.predict(*self._placed(systems, is_trend_apart))
        solved = Predictions(*download_together(solved[:5]))
        return solved._replace(noise_unit=host.noise_unit(*systems[:3]))

    def _placed(
        self, systems: Systems, is_trend_apart: bool
    ) -> tuple[solve.OnDevice, DeviceArray, DeviceArray]:
        """The problem, the queries and their neighbors on the device."""
        problem = solve.upload_problem(systems.problem, is_trend_apart, self.residence)
        rows = self._rows(systems.neighbors, len(systems.problem.X))
        return problem, cupy().asarray(systems.queries), rows

    def predict_at(
        self, problem: LocalProblem, index: SearchIndex, request: SearchRequest
    ) -> tuple[Predictions, RowsOfQueries]:
        """As `Backend.predict_at`: neighborhoods stay on the device, and queries that are there."""
        model, queries, dtype = problem.model, request.queries, problem.X.dtype
        is_tree = isinstance(index, NeighborIndex) and index.codes is None
        if not is_tree or request.n_neighbors is None or model.normalize:
            own = on_host(queries)
            rows = self.search(index, request._replace(queries=own))
            solved = self.predict(Systems(problem, own.astype(dtype, copy=False), rows))
            return solved.beside(queries), rows
        assert isinstance(index, NeighborIndex)
        if index.n > len(problem.X):
            raise ValueError("neighbors names a row that X does not have")
        # Arrays of a device belong to the queue of the caller, who made them, and stay there.
        is_there = is_on_device(queries)
        with nullcontext() if is_there else own_stream():
            neighbors = search.find_nearest(index, request, self.residence)
            on_device = solve.upload_problem(problem, model.has_large_trend, self.residence)
            places = cupy().asarray(queries.astype(dtype, copy=False))
            solved = solve.predict(on_device, places, neighbors)
            if is_there:
                # Where all systems are solved, one number says so.
                is_solved = len(queries) == 0 or int(solved.status.max()) == STATUS_OK
                status = np.zeros(len(queries), np.int32) if is_solved else download(solved.status)
                result = solved._replace(status=status)
            else:
                result = Predictions(*download_together(solved[:5]))
                result = result._replace(noise_unit=np.ones(len(queries)))
            found = RowsOnDevice(neighbors)
            for part in imprecise_parts(result.status, found.shape[1], ROWS_IN_DOUBLE):
                own = on_host(queries[beside(part, queries)]).astype(dtype)
                some = Systems(problem, own, found[part])
                again = self._predict(in_double(some, np.arange(len(part))), True)
                replace_part(result, part, again)
        return result, found

    @own_stream()
    def coefficients(self, systems: Systems) -> Coefficients:
        """As `Backend.coefficients`; always in double precision."""

        def find(systems: Systems, is_trend_apart: bool) -> Coefficients:
            solved = solve.coefficients(*self._placed(systems, is_trend_apart))
            return Coefficients(*download_together(solved))

        return solve_twice(find, host.without_targets(systems), ROWS_IN_DOUBLE)

    def score(self, request: ScoreRequest) -> Scores:
        """As `Backend.score`."""
        return self.score_many([request])[0]

    @own_stream()
    def score_many(self, requests: Sequence[ScoreRequest]) -> list[Scores]:
        """As `Backend.score_many`: queues side by side, and one copy of all that they find."""
        results = self._score(requests, [r.problem.model.has_large_trend for r in requests])
        for request, result in zip(requests, results, strict=True):
            for part in imprecise_parts(result.status, request.neighbors.shape[1], ROWS_IN_DOUBLE):
                replace_part(result, part, self._score([in_double(request, part)], [True])[0])
        return results

    def _score(self, requests: Sequence[ScoreRequest], are_apart: Sequence[bool]) -> list[Scores]:
        if not requests:
            return []
        problems = [request.problem for request in requests]
        uploaded = solve.upload_problems(problems, are_apart, self.residence)
        places = []
        for targets, neighbors, n in ((r.targets, r.neighbors, len(r.problem.X)) for r in requests):
            if len(targets) and not (targets.min() >= 0 and targets.max() < n):
                raise ValueError("targets names a row that X does not have")
            places.append((self.residence.upload(targets), self._rows(neighbors, n)))
        rooms = solve.room_for_scores(*((len(r.targets), r.problem.X.shape[1]) for r in requests))
        with side_by_side(len(uploaded)) as queues:
            each = zip(requests, uploaded, places, rooms, queues, strict=True)
            for request, problem, own, room, queue in each:
                with queue:
                    solve.score(problem, *own, request.objective, room)
        flat = iter(download_together(tuple(array for room in rooms for array in room)))
        return [Scores(*parts) for parts in zip(flat, flat, flat, strict=True)]

    def _rows(self, neighbors: Rows, n: int) -> DeviceArray:
        """Neighbors on the device; a row that is not there must not be read."""
        rows, largest = self.residence.upload_rows(neighbors)
        if largest >= n:
            raise ValueError("neighbors names a row that X does not have")
        return rows

    def workspace_bytes(self, size: SystemSize) -> int:
        """Memory of the device beside a block's arrays, also with the trend apart."""
        m, d, t, dtype, has_gradient = size
        assert m is not None
        shape = Shape(m, d, t, 1 + d, 1 + t if has_gradient else 0, has_gradient)
        device = find_device()
        scratch = place(shape, dtype.itemsize, device).n_scratch
        return scratch * dtype.itemsize * BLOCKS_PER_MULTIPROCESSOR * device.n_multiprocessors

    def plan(self, size: SystemSize, n_queries: int, resources: Resources) -> Plan:
        """As `Backend.plan`: large blocks, whose arrays on the host are within the budget."""
        m = LARGEST_SYSTEM if size.n_neighbors is None else size.n_neighbors
        d, t = size.n_inputs, size.n_targets
        per_query = 4 * m + 8 * (4 * d + 4 * t + 8) + (8 * d if size.has_gradient else 0)
        affordable = resources.memory_budget // (BLOCKS_AT_ONCE * per_query)
        if affordable < 1:
            raise ValueError(
                f"memory_budget={resources.memory_budget} bytes is less than the "
                f"{BLOCKS_AT_ONCE * per_query} bytes that local systems of {m} points need. "
                "Increase memory_budget, or reduce n_neighbors."
            )
        work = m**3 / 6 + m * m * d
        block_size = int(np.clip(WORK_PER_BLOCK / work, SMALLEST_BLOCK, LARGEST_BLOCK))
        if size.n_neighbors is None:
            block_size = BLOCK_WITH_FIXED_BANDWIDTH
        return Plan(min(block_size, affordable), min(BLOCKS_AT_ONCE, resources.n_threads), m)
