# SPDX-License-Identifier: BSD-3-Clause
"""Backends that leave the work to others, and decide who does it.

`PlacedBackend` is one device by its number, `DealtBackend` all of them in turn, and
`FallbackBackend` a device as long as it works, and this machine after that: what
``backend="auto"`` may stand for.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np

from lsgp.backends.contract import (
    Array,
    Backend,
    Covariance,
    Cut,
    Dense,
    InverseFactor,
    Inverted,
    LocalSystems,
    Matrix,
    Plan,
    Resources,
    Rows,
    ScoreRequest,
    SystemSize,
)
from lsgp.backends.cuda.backend import CudaBackend
from lsgp.backends.cuda.dense import DeviceDense
from lsgp.backends.cuda.device import (
    DeviceError,
    DeviceMemoryError,
    current_number,
    find_device,
    free_memory,
    release_memory,
    why_not,
    working_on,
)
from lsgp.compute.text import warn_user
from lsgp.method.contract import LocalModel, LocalProblem, Predictions, Scores, concatenate_results
from lsgp.method.kernels import Kernel
from lsgp.search.contract import stack_neighbors

Result = TypeVar("Result")
Request = TypeVar("Request", bound=Cut)

#: Of the free memory of the device, what blocks may take, whatever the budget of the host is.
SHARE_FOR_BLOCKS = 0.5
#: Exact GPs of more rows are not begun again on the host: that takes minutes to hours.
MOST_ON_HOST = 10_000


def forwarded(name: str) -> Any:
    """A method that is left to whoever ``run`` asks."""

    def forward(self: Any, *given: Any) -> Any:
        return self.run(lambda other: getattr(other, name)(*given))

    return forward


class ForwardingBackend:
    """See `Backend`. All that is asked goes through `run`."""

    is_device = True
    factors_once = True
    is_slow = False

    knows = forwarded("knows")
    knows_metric = forwarded("knows_metric")
    prepare = forwarded("prepare")
    search = forwarded("search")
    search_units = forwarded("search_units")
    predict = forwarded("predict")
    predict_at = forwarded("predict_at")
    coefficients = forwarded("coefficients")
    differentiate = forwarded("differentiate")
    score = forwarded("score")
    score_many = forwarded("score_many")
    workspace_bytes = forwarded("workspace_bytes")
    plan = forwarded("plan")


# -- one device ----------------------------------------------------------------------------------


def halved(name: str, join: Callable[[list[Any]], Any]) -> Any:
    """A method whose last argument is a request, of which the device may lack memory for all."""

    def ask(self: PlacedBackend, *given: Any) -> Any:
        *first, request = given
        solve = getattr(self.solves, name)
        return self._halving(lambda part: solve(*first, part), request, join)

    return ask


def _join_predicted(parts: list[Any]) -> tuple[Predictions, Rows]:
    """Predictions, and their neighborhoods, which come to the host."""
    solved, rows = zip(*parts, strict=True)
    return concatenate_results(list(solved)), stack_neighbors([np.asarray(each) for each in rows])


class PlacedBackend(ForwardingBackend):
    """See `Backend`: a device by its number, or the current one without a number.

    Failures of the device are told, and queries are halved until they fit its memory.
    """

    def __init__(self, number: int | None = None) -> None:
        self.number = number
        self.name = "cuda" if number is None else f"cuda:{number}"
        self.solves = CudaBackend()
        self.dense = DeviceDense(self.place)

    @property
    def device_name(self) -> str:
        return find_device(self.number).name

    def why_not(self) -> str | None:
        """Why it cannot be used here; None if it can."""
        return why_not(self.number)

    def place(self) -> AbstractContextManager[None]:
        return working_on(self.number, self.name)

    @property
    def takes_from(self) -> int | None:
        """Its own device while that is current, on which other work on the queries runs."""
        own = current_number(self.number)
        return own if own == current_number() else None

    def run(self, ask: Callable[[LocalSystems], Result]) -> Result:
        with self.place():
            return ask(self.solves)

    def knows(self, kernel: Kernel) -> bool:
        """Also where there is no device."""
        return self.solves.knows(kernel)

    def knows_metric(self, localizer_metric: str) -> bool:
        return self.solves.knows_metric(localizer_metric)

    search = halved("search", stack_neighbors)
    search_units = halved("search_units", stack_neighbors)
    predict = halved("predict", concatenate_results)
    predict_at = halved("predict_at", _join_predicted)
    coefficients = halved("coefficients", concatenate_results)
    score = halved("score", concatenate_results)

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
            available = int(SHARE_FOR_BLOCKS * free_memory())
            budget = max(1, min(resources.memory_budget, available))
            own = resources._replace(memory_budget=budget)
            return self.solves.plan(size, n_queries, own)

    def _halving(
        self,
        answer: Callable[[Request], Result],
        request: Request,
        join: Callable[[list[Result]], Result],
    ) -> Result:
        """The answer for all queries, or for halves of them where the device lacks memory."""
        try:
            with self.place():
                return answer(request)
        except DeviceMemoryError:
            if request.size <= 1:
                raise
        # Not inside the handler, whose exception holds the arrays that were too large.
        half = request.size // 2
        with self.place():
            release_memory()
            # What a half keeps on the device leaves it before the next one.
            parts = request.block(0, half), request.block(half, request.size)
            return join([join([self._halving(answer, part, join)]) for part in parts])


# -- all devices ---------------------------------------------------------------------------------


def dealt(name: str) -> Any:
    """A method that the next device answers, which is this thread's from now on."""

    def ask(self: DealtBackend, *given: Any) -> Any:
        self._own.number = next(self._turns)
        return self.run(lambda backend: getattr(backend, name)(*given))

    return ask


class DealtBackend(ForwardingBackend):
    """See `Backend`. Blocks are dealt to all devices in turn, and solved where they were found.

    Whoever searches gets the next device, and its thread keeps that until it searches again. As
    many threads as there are devices run at least, and devices take the same arrays of the host,
    each when it first needs them. Exact GPs have one factor, on the first device.
    """

    takes_from: int | None = None

    def __init__(self, name: str, find_members: Callable[[], Sequence[Backend]]) -> None:
        self.name = name
        self._find_members = find_members
        self._turns = itertools.count()
        self._own = threading.local()

    @property
    def members(self) -> Sequence[Backend]:
        return self._find_members()

    @property
    def device_name(self) -> str:
        return f"{len(self.members)} x {self.members[0].device_name}"

    @property
    def dense(self) -> Dense:
        return self.members[0].dense

    def run(self, ask: Callable[[Backend], Result]) -> Result:
        """The answer of the device of this thread."""
        if not hasattr(self._own, "number"):
            self._own.number = next(self._turns)
        members = self.members
        return ask(members[self._own.number % len(members)])

    search = dealt("search")
    search_units = dealt("search_units")
    predict_at = dealt("predict_at")

    def plan(self, size: SystemSize, n_queries: int, resources: Resources) -> Plan:
        """Blocks of one device, on at least as many threads as there are devices."""
        plan = self.run(lambda backend: backend.plan(size, n_queries, resources))
        n_threads = max(plan.n_threads, len(self.members))
        share = max(1, -(-n_queries // n_threads))
        return plan._replace(block_size=min(plan.block_size, share), n_threads=n_threads)


# -- a device, or this machine -------------------------------------------------------------------


class FallbackBackend(ForwardingBackend):
    """See `Backend`. The first one that fails is not asked again, and one warning says so.

    Arrays that a backend takes and gives are those of the host, or are brought here, so that a
    block which failed on the device is done again, and the work goes on.
    """

    def __init__(self, name: str, first: Backend, second: Backend) -> None:
        self.name, self.first, self.second = name, first, second
        self.is_lost = False
        self.dense = FallbackDense(self)

    @property
    def device_name(self) -> str | None:
        return self.run(lambda backend: backend.device_name)

    @property
    def takes_from(self) -> int | None:
        return self.run(lambda backend: backend.takes_from)

    def run(self, ask: Callable[[Backend], Result]) -> Result:
        if not self.is_lost:
            try:
                return ask(self.first)
            except DeviceError as error:
                self.lose(error)
        return ask(self.second)

    def lose(self, error: DeviceError) -> None:
        """Do without the device from now on."""
        if not self.is_lost:
            self.is_lost, self.is_device = True, False
            warn_user(
                f"The device failed, and backend='auto' goes on with {self.second.name!r}: {error}"
            )


class FallbackDense:
    """As `Dense`."""

    def __init__(self, backend: FallbackBackend) -> None:
        self.backend = backend

    def run(self, ask: Callable[[Dense], Result]) -> Result:
        return self.backend.run(lambda backend: ask(backend.dense))

    is_fast = property(lambda self: self._own.is_fast)
    block_size = property(lambda self: self._own.block_size)
    room = forwarded("room")
    host_bytes = forwarded("host_bytes")
    evidence_bytes = forwarded("evidence_bytes")
    alone = forwarded("alone")

    @property
    def _own(self) -> Dense:
        return self.backend.second.dense if self.backend.is_lost else self.backend.first.dense

    def invert(self, z: Matrix, problem: LocalProblem, jitter: float = 0.0) -> Inverted:
        inverted: list[Inverted] = []

        def make(dense: Dense) -> InverseFactor:
            inverted[:] = [dense.invert(z, problem, jitter)]
            return inverted[0].factor

        factor = _Remade(self.backend, len(z), make)
        factor.run(lambda made: made)
        return inverted[0]._replace(factor=factor)

    def covariance(self, z: Matrix, model: LocalModel, noise: Array) -> Covariance | None:
        found = _Remade(self.backend, len(z), lambda dense: dense.covariance(z, model, noise))
        return None if found.run(lambda made: made) is None else found


class _Remade:
    """A factor or a covariance on the device, made again on the host when that is lost."""

    def __init__(self, backend: FallbackBackend, n: int, make: Callable[[Dense], object]) -> None:
        self.backend, self.n, self.make = backend, n, make
        self._first: Any = None
        self._second: Any = None

    def run(self, ask: Callable[[Any], Any]) -> Any:
        if not self.backend.is_lost:
            try:
                if self._first is None:
                    self._first = self.make(self.backend.first.dense)
                return ask(self._first)
            except DeviceError as error:
                if self.n > MOST_ON_HOST:
                    raise
                self.backend.lose(error)
        self._first = None
        if self._second is None:
            self._second = self.make(self.backend.second.dense)
        return ask(self._second)

    # Of factors,
    half = forwarded("half")
    columns = forwarded("columns")
    inverse_columns = forwarded("inverse_columns")
    diagonal = forwarded("diagonal")
    correlate = forwarded("correlate")
    products = forwarded("products")
    to_host = forwarded("to_host")

    def extended(self, z: Matrix, noise: Matrix) -> InverseFactor | None:
        return None

    # of both, and of covariances.
    solve = forwarded("solve")
    adjoint_sums = forwarded("adjoint_sums")

    @property
    def half_log_determinant(self) -> float:
        return float(self.run(lambda made: made.half_log_determinant))
