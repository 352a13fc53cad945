# SPDX-License-Identifier: BSD-3-Clause
"""One device by its number: what runs there is placed, told of when it fails, and halved to fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import (
    Cut,
    LocalSystems,
    Plan,
    Resources,
    RowsOfQueries,
    ScoreRequest,
    Systems,
    SystemSize,
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
    LocalProblem,
    Predictions,
    Scores,
    concatenate_results,
)
from lsgp.method.kernels import Kernel
from lsgp.search.coarse import UnitRequest
from lsgp.search.contract import SearchIndex, SearchRequest, stack_neighbors

Result = TypeVar("Result")
Request = TypeVar("Request", bound=Cut)

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

    def takes(self, queries: NDArray[np.floating]) -> bool:
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

    def search(self, index: SearchIndex, request: SearchRequest) -> NDArray[np.int32]:
        find = partial(self.solves.search, index)
        return self._halving(find, request, len(request.queries), stack_neighbors)

    def search_units(self, request: UnitRequest) -> NDArray[np.int32]:
        n_queries = len(request.queries)
        return self._halving(self.solves.search_units, request, n_queries, stack_neighbors)

    def predict(self, systems: Systems) -> Predictions:
        n_queries = len(systems.queries)
        return self._halving(self.solves.predict, systems, n_queries, concatenate_results)

    def predict_at(
        self, problem: LocalProblem, index: SearchIndex, request: SearchRequest
    ) -> tuple[Predictions, RowsOfQueries]:
        def predict(part: SearchRequest) -> tuple[Predictions, RowsOfQueries]:
            solved, rows = self.solves.predict_at(problem, index, part)
            # What a half keeps on the device leaves it before the next one.
            return solved, rows if part is request else np.asarray(rows)

        return self._halving(predict, request, len(request.queries), _stack_predicted)

    def coefficients(self, systems: Systems) -> Coefficients:
        n_queries = len(systems.queries)
        return self._halving(self.solves.coefficients, systems, n_queries, concatenate_results)

    def score(self, request: ScoreRequest) -> Scores:
        n_targets = len(request.targets)
        return self._halving(self.solves.score, request, n_targets, concatenate_results)

    def score_many(self, requests: Sequence[ScoreRequest]) -> list[Scores]:
        """All at once, or one after another where the device has too little memory for that."""
        try:
            with self.place():
                return self.solves.score_many(requests)
        except DeviceMemoryError:
            pass
        with self.place():
            release_memory()
        return [self.score(request) for request in requests]

    def plan(self, size: SystemSize, n_queries: int, resources: Resources) -> Plan:
        """Blocks have arrays of one size on the host and on the device: the budget is for both."""
        with self.place():
            available = int(SHARE_FOR_BLOCKS * self.algebra.free_memory())
            budget = max(1, min(resources.memory_budget, available))
            own = resources._replace(memory_budget=budget)
            return self.solves.plan(size, n_queries, own)

    def _halving(
        self,
        answer: Callable[[Request], Result],
        request: Request,
        n: int,
        join: Callable[[list[Result]], Result],
    ) -> Result:
        """The answer for all n queries, or for halves of them where the device lacks memory."""
        try:
            with self.place():
                return answer(request)
        except DeviceMemoryError:
            if n <= 1:
                raise
        # Not inside the handler, whose exception holds the arrays that were too large.
        with self.place():
            release_memory()
        halves = [
            self._halving(answer, request.block(start, stop), stop - start, join)
            for start, stop in ((0, n // 2), (n // 2, n))
        ]
        with self.place():
            return join(halves)


def _stack_predicted(
    parts: list[tuple[Predictions, RowsOfQueries]],
) -> tuple[Predictions, RowsOfQueries]:
    joined: Predictions = concatenate_results([predictions for predictions, _ in parts])
    # Of halves, which are on the host.
    return joined, stack_neighbors([np.asarray(rows) for _, rows in parts])
