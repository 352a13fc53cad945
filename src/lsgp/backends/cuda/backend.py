# SPDX-License-Identifier: BSD-3-Clause
"""The backend of a GPU: the functions of the contract, over arrays of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import cpu, host
from lsgp.backends.contract import LARGEST_SYSTEM, Plan, Resources, RowsOfQueries, ScoreRequest
from lsgp.backends.cuda import coarse, pipeline, search, solve
from lsgp.backends.cuda.device import cupy, find_device
from lsgp.backends.cuda.residence import DeviceArray, Residence, download, download_together
from lsgp.backends.cuda.streams import on_own_stream, queue_of, side_by_side
from lsgp.backends.cuda.workspace import BLOCKS_PER_MULTIPROCESSOR, Shape, place
from lsgp.backends.precision import imprecise_parts, in_double, replace_part
from lsgp.method.arrays import beside, on_host
from lsgp.method.contract import (
    STATUS_IMPRECISE,
    Coefficients,
    LocalModel,
    LocalProblem,
    Predictions,
    QueryGradients,
    Scores,
)
from lsgp.method.kernels import Kernel
from lsgp.search.coarse import CoarseTree
from lsgp.search.exclusions import Exclusions
from lsgp.search.index import NeighborIndex, SearchIndex

Array = NDArray[np.floating]
Result = TypeVar("Result", Predictions, Coefficients, Scores)

#: A block takes about this many multiply-adds: a fraction of a second, so that Ctrl-C is prompt.
WORK_PER_BLOCK = 1e12
SMALLEST_BLOCK, LARGEST_BLOCK = 1024, 1 << 18
#: Blocks whose arrays the host has at a time: while one is on the device, others are made ready.
BLOCKS_AT_ONCE = 8
#: With a fixed bandwidth most neighborhoods are far smaller than the largest that is allowed.
BLOCK_WITH_FIXED_BANDWIDTH = 8192
#: Rows that are copied to double precision at a time, many, so that the device has work.
ROWS_IN_DOUBLE = 1 << 22


class CudaBackend:
    """Local systems on the device that is current; see `Backend`, and `placed`.

    Nothing of CuPy is imported before the first use.
    """

    def __init__(self) -> None:
        self.residence = Residence()

    def knows(self, kernel: Kernel) -> bool:
        return cpu.knows(kernel)

    def knows_metric(self, localizer_metric: str) -> bool:
        return cpu.knows_metric(localizer_metric)

    @on_own_stream
    def prepare(self, problem: LocalProblem) -> LocalProblem:
        """As `Backend.prepare`: the arrays stay on the host too, and go to the device once."""
        prepared = host.prepare(problem)
        for array in prepared[:3]:
            self.residence.upload(array)
        return prepared

    @on_own_stream
    def search(
        self,
        index: SearchIndex,
        model: LocalModel,
        queries: NDArray[np.float64],
        n_neighbors: int | None,
        exclusions: Exclusions,
        max_neighbors: int = LARGEST_SYSTEM,
        first_query: int = 0,
    ) -> NDArray[np.int32]:
        """As `Backend.search`; what is found stays on the device too, for `predict`."""
        if not isinstance(index, NeighborIndex):  # rows that came later, or are elsewhere
            return host.search(
                index, model, queries, n_neighbors, exclusions, max_neighbors, first_query
            )
        scale = model.localizer_scale
        if n_neighbors is not None:
            m = min(n_neighbors, index.n)
            found = search.find_nearest(index, queries, scale, m, exclusions, self.residence)
        else:
            radius = model.scaled_bandwidth
            found = search.find_within(
                index,
                queries,
                scale,
                radius,
                max_neighbors,
                first_query,
                exclusions,
                self.residence,
            )
        return self._kept(found)

    @on_own_stream
    def search_units(
        self,
        tree: CoarseTree,
        index: SearchIndex,
        queries: NDArray[np.float64],
        n_units: int,
        reach: float,
        exclusions: Exclusions,
    ) -> NDArray[np.int32]:
        """As `Backend.search_units`; what is found stays on the device too."""
        if not isinstance(index, NeighborIndex):
            return host.search_units(tree, index, queries, n_units, reach, exclusions)
        found = coarse.find_units(tree, index, queries, n_units, reach, exclusions, self.residence)
        return self._kept(found)

    def _kept(self, found: DeviceArray) -> NDArray[np.int32]:
        """What was found, on the host, and still on the device."""
        neighbors: NDArray[np.int32] = download(found)
        self.residence.remember(neighbors, found)
        return neighbors

    @on_own_stream
    def predict(
        self,
        problem: LocalProblem,
        queries: Array,
        neighbors: NDArray[np.int32],
        points: Array | None = None,
    ) -> Predictions:
        """As `Backend.predict`; averages over points are the native core's."""
        if points is not None:
            return cpu.predict(problem, queries, neighbors, points)
        result = self._predict(problem, queries, neighbors, problem.model.has_large_trend)
        for part in imprecise_parts(result.status, neighbors.shape[1], ROWS_IN_DOUBLE):
            precise, numbers = in_double(problem, neighbors[part])
            again = self._predict(precise, queries[part].astype(float), numbers, True)
            replace_part(result, part, again)
        return result

    def _predict(
        self,
        problem: LocalProblem,
        queries: Array,
        neighbors: NDArray[np.int32],
        is_trend_apart: bool,
    ) -> Predictions:
        on_device = solve.upload_problem(problem, is_trend_apart, self.residence)
        rows = self._rows(neighbors, len(problem.X))
        solved = solve.predict(on_device, cupy().asarray(queries), rows)
        solved = Predictions(*download_together(solved[:5]))
        return solved._replace(noise_unit=host.noise_unit(problem, queries, neighbors))

    def predict_at(
        self,
        problem: LocalProblem,
        index: SearchIndex,
        queries: NDArray[np.float64],
        n_neighbors: int | None,
        exclusions: Exclusions,
        max_neighbors: int = LARGEST_SYSTEM,
        first_query: int = 0,
    ) -> tuple[Predictions, RowsOfQueries]:
        """As `Backend.predict_at`: neighborhoods stay on the device, and queries that are there."""
        model, dtype = problem.model, problem.X.dtype
        if not isinstance(index, NeighborIndex) or n_neighbors is None or model.normalize:
            own = on_host(queries)
            rows = self.search(
                index, model, own, n_neighbors, exclusions, max_neighbors, first_query
            )
            solved = self.predict(problem, own.astype(dtype, copy=False), rows)
            return solved.beside(queries), rows
        with queue_of(queries):
            result, found = pipeline.predict_nearest(
                problem, index, queries, n_neighbors, exclusions, self.residence
            )
            for part in imprecise_parts(result.status, found.shape[1], ROWS_IN_DOUBLE):
                precise, numbers = in_double(problem, found[part])
                own = on_host(queries[beside(part, queries)]).astype(dtype).astype(float)
                replace_part(result, part, self._predict(precise, own, numbers, True))
        return result, found

    @on_own_stream
    def coefficients(
        self, problem: LocalProblem, queries: Array, neighbors: NDArray[np.int32]
    ) -> Coefficients:
        """As `Backend.coefficients`; always in double precision."""
        precise, numbers = in_double(problem._replace(y=problem.y[:, :0]), neighbors)
        precise = host.prepare(precise)
        own = np.ascontiguousarray(queries, dtype=float)
        result = self._coefficients(precise, own, numbers, problem.model.has_large_trend)
        again = np.flatnonzero(result.status == STATUS_IMPRECISE)
        if len(again):
            better = self._coefficients(precise, own[again], numbers[again], True)
            replace_part(result, again, better)
        return result

    def _coefficients(
        self,
        problem: LocalProblem,
        queries: Array,
        neighbors: NDArray[np.int32],
        is_trend_apart: bool,
    ) -> Coefficients:
        on_device = solve.upload_problem(problem, is_trend_apart, self.residence)
        rows = self._rows(neighbors, len(problem.X))
        solved = solve.coefficients(on_device, cupy().asarray(queries), rows)
        return Coefficients(*download_together(solved))

    def differentiate(
        self, problem: LocalProblem, queries: Array, neighbors: NDArray[np.int32]
    ) -> tuple[Predictions, QueryGradients]:
        """As `Backend.differentiate`, by the native core."""
        return cpu.differentiate(problem, queries, neighbors)

    @on_own_stream
    def score(
        self,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
        objective: str,
    ) -> Scores:
        """As `Backend.score`."""
        return self.score_many([ScoreRequest(problem, targets, neighbors, objective)])[0]

    @on_own_stream
    def score_many(self, requests: Sequence[ScoreRequest]) -> list[Scores]:
        """As `Backend.score_many`: queues side by side, and one copy of all that they find."""
        results = self._score(requests, [r.problem.model.has_large_trend for r in requests])
        for request, result in zip(requests, results, strict=True):
            problem, targets, neighbors, objective = request
            for part in imprecise_parts(result.status, neighbors.shape[1], ROWS_IN_DOUBLE):
                named = np.column_stack([targets[part], neighbors[part]])
                precise, numbers = in_double(problem, named)
                own, others = (np.ascontiguousarray(a) for a in (numbers[:, 0], numbers[:, 1:]))
                again = ScoreRequest(precise, own, others, objective)
                replace_part(result, part, self._score([again], [True])[0])
        return results

    def _score(self, requests: Sequence[ScoreRequest], are_apart: Sequence[bool]) -> list[Scores]:
        if not requests:
            return []
        problems = [request.problem for request in requests]
        uploaded = solve.upload_problems(problems, are_apart, self.residence)
        places = [
            (self._targets(r.targets, len(r.problem.X)), self._rows(r.neighbors, len(r.problem.X)))
            for r in requests
        ]
        rooms = solve.room_for_scores(*((len(r.targets), r.problem.X.shape[1]) for r in requests))
        with side_by_side(len(uploaded)) as queues:
            each = zip(requests, uploaded, places, rooms, queues, strict=True)
            for request, problem, own, room, queue in each:
                with queue:
                    solve.score(problem, *own, request.objective, room)
        flat = iter(download_together(tuple(array for room in rooms for array in room)))
        return [Scores(*parts) for parts in zip(flat, flat, flat, strict=True)]

    def _targets(self, targets: NDArray[np.int32], n: int) -> DeviceArray:
        if len(targets) and not (targets.min() >= 0 and targets.max() < n):
            raise ValueError("targets names a row that X does not have")
        return self.residence.upload(targets)

    def _rows(self, neighbors: NDArray[np.int32], n: int) -> DeviceArray:
        """Neighbors on the device; a row that is not there must not be read."""
        rows, largest = self.residence.upload_rows(neighbors)
        if largest >= n:
            raise ValueError("neighbors names a row that X does not have")
        return rows

    def workspace_bytes(
        self, n_neighbors: int, n_inputs: int, n_targets: int, dtype: np.dtype, gradient: bool
    ) -> int:
        """Memory of the device beside a block's arrays, also with the trend apart."""
        n_solutions = 1 + n_targets if gradient else 0
        shape = Shape(n_neighbors, n_inputs, n_targets, 1 + n_inputs, n_solutions, gradient)
        device = find_device()
        scratch = place(shape, dtype.itemsize, device).n_scratch
        return scratch * dtype.itemsize * BLOCKS_PER_MULTIPROCESSOR * device.n_multiprocessors

    def plan(
        self,
        problem: LocalProblem,
        n_neighbors: int | None,
        n_queries: int,
        resources: Resources,
        gradient: bool = False,
    ) -> Plan:
        """As `Backend.plan`: large blocks, whose arrays on the host are within the budget."""
        d, t = problem.X.shape[1], problem.y.shape[1]
        m = LARGEST_SYSTEM if n_neighbors is None else n_neighbors
        per_query = 4 * m + 8 * (4 * d + 4 * t + 8) + (8 * d if gradient else 0)
        affordable = resources.memory_budget // (BLOCKS_AT_ONCE * per_query)
        if affordable < 1:
            raise ValueError(
                f"memory_budget={resources.memory_budget} bytes is less than the "
                f"{BLOCKS_AT_ONCE * per_query} bytes that local systems of {m} points need. "
                "Increase memory_budget, or reduce n_neighbors."
            )
        block_size = int(
            np.clip(WORK_PER_BLOCK / (m**3 / 6 + m * m * d), SMALLEST_BLOCK, LARGEST_BLOCK)
        )
        if n_neighbors is None:
            block_size = BLOCK_WITH_FIXED_BANDWIDTH
        return Plan(min(block_size, affordable), min(BLOCKS_AT_ONCE, resources.n_threads), m)
