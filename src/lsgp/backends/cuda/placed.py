# SPDX-License-Identifier: BSD-3-Clause
"""One device by its number: what runs there is placed, told of when it fails, and halved to fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import (
    LARGEST_SYSTEM,
    LocalSystems,
    Plan,
    Resources,
    RowsOfQueries,
    ScoreRequest,
)
from lsgp.backends.cuda.algebra import CudaAlgebra
from lsgp.backends.cuda.backend import CudaBackend
from lsgp.backends.cuda.dense import DeviceDense
from lsgp.backends.cuda.device import (
    DeviceMemoryError,
    current_number,
    find_device,
    release_memory,
    why_not,
    working_on,
)
from lsgp.backends.cuda.residence import Residence, number_of
from lsgp.backends.forwarding import ForwardingBackend
from lsgp.method.arrays import is_on_device
from lsgp.method.contract import (
    Coefficients,
    LocalModel,
    LocalProblem,
    Predictions,
    Scores,
    concatenate_results,
)
from lsgp.method.kernels import Kernel
from lsgp.search.coarse import CoarseTree
from lsgp.search.exclusions import Exclusions
from lsgp.search.index import SearchIndex

Array = NDArray[np.floating]
Result = TypeVar("Result")

#: Of the free memory of the device, what blocks may take, whatever the budget of the host is.
SHARE_FOR_BLOCKS = 0.5


class PlacedBackend(ForwardingBackend):
    """See `Backend`. Without a number, the device that is current."""

    def __init__(self, number: int | None = None) -> None:
        self.number = number
        self.name = "cuda" if number is None else f"cuda:{number}"
        self.solves = CudaBackend()
        self.algebra = CudaAlgebra()
        self.dense = DeviceDense(self.algebra, self.place)

    @property
    def residence(self) -> Residence:
        return self.solves.residence

    @property
    def device_name(self) -> str:
        return find_device(self.number).name

    def why_not(self) -> str | None:
        """Why it cannot be used here; None if it can."""
        return why_not(self.number)

    def place(self) -> AbstractContextManager[None]:
        return working_on(self.number, self.name)

    def takes(self, queries: Array) -> bool:
        """Those of the host, and of its own device while that is current.

        What is done to them beside what a backend does runs on the current one.
        """
        if not is_on_device(queries):
            return True
        return number_of(queries) == current_number(self.number) == current_number()

    def run(self, ask: Callable[[LocalSystems], Result]) -> Result:
        with self.place():
            return ask(self.solves)

    def knows(self, kernel: Kernel) -> bool:
        """Also where there is no device."""
        return self.solves.knows(kernel)

    def knows_metric(self, localizer_metric: str) -> bool:
        return self.solves.knows_metric(localizer_metric)

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
        def find(start: int, stop: int) -> NDArray[np.int32]:
            return self.solves.search(
                index,
                model,
                queries[start:stop],
                n_neighbors,
                exclusions.block(start, stop),
                max_neighbors,
                first_query + start,
            )

        return self._halving(find, len(queries), _side_by_side)

    def search_units(
        self,
        tree: CoarseTree,
        index: SearchIndex,
        queries: NDArray[np.float64],
        n_units: int,
        reach: float,
        exclusions: Exclusions,
    ) -> NDArray[np.int32]:
        def find(start: int, stop: int) -> NDArray[np.int32]:
            own = queries[start:stop], n_units, reach, exclusions.block(start, stop)
            return self.solves.search_units(tree, index, *own)

        return self._halving(find, len(queries), _side_by_side)

    def predict(
        self,
        problem: LocalProblem,
        queries: Array,
        neighbors: NDArray[np.int32],
        points: Array | None = None,
    ) -> Predictions:
        def solve(start: int, stop: int) -> Predictions:
            own = None if points is None else points[start:stop]
            return self.solves.predict(problem, queries[start:stop], neighbors[start:stop], own)

        return self._halving(solve, len(queries), concatenate_results)

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
        def solve(start: int, stop: int) -> tuple[Predictions, RowsOfQueries]:
            return self.solves.predict_at(
                problem,
                index,
                queries[start:stop],
                n_neighbors,
                exclusions.block(start, stop),
                max_neighbors,
                first_query + start,
            )

        return self._halving(solve, len(queries), _one_after_another, _to_host)

    def coefficients(
        self, problem: LocalProblem, queries: Array, neighbors: NDArray[np.int32]
    ) -> Coefficients:
        def solve(start: int, stop: int) -> Coefficients:
            return self.solves.coefficients(problem, queries[start:stop], neighbors[start:stop])

        return self._halving(solve, len(queries), concatenate_results)

    def score(
        self,
        problem: LocalProblem,
        targets: NDArray[np.int32],
        neighbors: NDArray[np.int32],
        objective: str,
    ) -> Scores:
        def solve(start: int, stop: int) -> Scores:
            part = targets[start:stop], neighbors[start:stop]
            return self.solves.score(problem, *part, objective)

        return self._halving(solve, len(targets), concatenate_results)

    def score_many(self, requests: Sequence[ScoreRequest]) -> list[Scores]:
        """All at once, or one after another where the device has too little memory for that."""
        try:
            with self.place():
                return self.solves.score_many(requests)
        except DeviceMemoryError:
            pass
        with self.place():
            release_memory()
        return [self.score(*request) for request in requests]

    def plan(
        self,
        problem: LocalProblem,
        n_neighbors: int | None,
        n_queries: int,
        resources: Resources,
        gradient: bool = False,
    ) -> Plan:
        """Blocks have arrays of one size on the host and on the device: the budget is for both."""
        with self.place():
            available = int(SHARE_FOR_BLOCKS * self.algebra.free_memory())
        budget = max(1, min(resources.memory_budget, available))
        own = resources._replace(memory_budget=budget)
        return super().plan(problem, n_neighbors, n_queries, own, gradient)

    def _halving(
        self,
        run: Callable[[int, int], Result],
        n: int,
        join: Callable[[list[Result]], Result],
        settle: Callable[[Result], Result] | None = None,
    ) -> Result:
        """The result of all n, or of halves of them where the device has too little memory.

        ``settle`` takes what a half keeps on the device from there, before the next one.
        """

        def attempt(start: int, stop: int) -> Result:
            try:
                with self.place():
                    found = run(start, stop)
                    is_part = stop - start < n
                    return settle(found) if settle is not None and is_part else found
            except DeviceMemoryError:
                if stop - start <= 1:
                    raise
            # Not inside the handler, whose exception holds the arrays that were too large.
            with self.place():
                release_memory()
            middle = (start + stop) // 2
            halves = [attempt(start, middle), attempt(middle, stop)]
            with self.place():
                return join(halves)

        return attempt(0, n)


def _to_host(part: tuple[Predictions, RowsOfQueries]) -> tuple[Predictions, NDArray[np.int32]]:
    predictions, rows = part
    return predictions, np.asarray(rows)


def _one_after_another(
    parts: list[tuple[Predictions, RowsOfQueries]],
) -> tuple[Predictions, RowsOfQueries]:
    joined: Predictions = concatenate_results([predictions for predictions, _ in parts])
    # Of halves, which are on the host.
    return joined, _side_by_side([np.asarray(rows) for _, rows in parts])


def _side_by_side(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Neighborhoods one below another, the narrower ones padded."""
    width = max(part.shape[1] for part in parts)
    return np.concatenate(
        [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in parts]
    )
