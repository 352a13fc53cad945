# SPDX-License-Identifier: BSD-3-Clause
"""All devices at once: blocks are dealt to them in turn."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Backend, Plan, Resources, RowsOfQueries, SystemSize
from lsgp.backends.dense import Dense
from lsgp.backends.forwarding import ForwardingBackend
from lsgp.method.arrays import is_on_device
from lsgp.method.contract import LocalProblem, Predictions
from lsgp.search.coarse import UnitRequest
from lsgp.search.contract import SearchIndex, SearchRequest

Result = TypeVar("Result")


class DealtBackend(ForwardingBackend):
    """See `Backend`. What a thread finds is on the device where it then solves.

    Whoever searches gets the next device, and its thread keeps that until it searches again: so
    neighborhoods are solved where they were found. As many threads as there are devices run at
    least, and devices take the same arrays of the host, each when it first needs them. Exact GPs
    have one factor, on the first device.
    """

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

    @property
    def own(self) -> Backend:
        """That of this thread."""
        return self.next() if not hasattr(self._own, "number") else self._kept()

    def next(self) -> Backend:
        """The one whose turn it is, for this thread from now on."""
        self._own.number = next(self._turns)
        return self._kept()

    def _kept(self) -> Backend:
        members = self.members
        return members[self._own.number % len(members)]

    def takes(self, queries: NDArray[np.floating]) -> bool:
        """Those of the host, of which any device takes its share."""
        return not is_on_device(queries)

    def run(self, ask: Callable[[Backend], Result]) -> Result:
        return ask(self.own)

    def search(self, index: SearchIndex, request: SearchRequest) -> NDArray[np.int32]:
        return self.next().search(index, request)

    def search_units(self, request: UnitRequest) -> NDArray[np.int32]:
        return self.next().search_units(request)

    def predict_at(
        self, problem: LocalProblem, index: SearchIndex, request: SearchRequest
    ) -> tuple[Predictions, RowsOfQueries]:
        return self.next().predict_at(problem, index, request)

    def plan(self, size: SystemSize, n_queries: int, resources: Resources) -> Plan:
        """Blocks of one device, on at least as many threads as there are devices."""
        plan = self.own.plan(size, n_queries, resources)
        n_threads = max(plan.n_threads, len(self.members))
        share = max(1, -(-n_queries // n_threads))
        return plan._replace(block_size=min(plan.block_size, share), n_threads=n_threads)
