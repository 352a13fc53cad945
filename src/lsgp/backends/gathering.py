# SPDX-License-Identifier: BSD-3-Clause
"""Candidates of a stage on a device: what they ask for at the same time is launched together.

Each candidate is optimized by a thread of its own, and SciPy's optimizer asks for one value after
another. So a thread that asks leaves its core to another candidate. Only when no candidate has
anything left to do on this machine, all that was asked for goes to the device, and the machine
waits once for all of it: on one core, once for each step of all optimizers.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from lsgp.backends.contract import Backend, Plan, Resources, ScoreRequest, SystemSize
from lsgp.method.contract import Scores

#: Jobs that ask a device for losses together, at most: each has a thread, and arrays there.
MOST_GATHERED = 32
#: Of these, so many work on this machine at a time: more threads make Python slower.
CORES_OF_GATHERED = 2


@dataclass(eq=False)
class _Waiting:
    """A candidate that waits for a core, and what it has asked for before."""

    request: ScoreRequest | None = None
    scores: Scores | None = None
    error: BaseException | None = None
    #: Held until there is a core for it: the fastest way to wake one thread, and no others.
    gate: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.gate.acquire()


class Gathering:
    """The candidates of a stage, at most ``n_cores`` of which have work of this machine at a time.

    The device is not asked before ``n_expected`` of them have come. What each is told does not
    depend on who else has asked.
    """

    def __init__(self, backend: Backend, n_cores: int, n_expected: int) -> None:
        self.backend = backend
        self._n_free, self._n_expected = n_cores, n_expected
        self._plans: dict[tuple[object, ...], Plan] = {}
        self._ready: deque[_Waiting] = deque()  # for a core
        self._asked: list[_Waiting] = []
        self._lock = threading.Lock()

    @contextmanager
    def candidate(self) -> Iterator[None]:
        """A candidate, from its beginning to its end."""
        own = _Waiting()
        self._make_ready([own], n_come=1)
        own.gate.acquire()
        try:
            yield
        finally:
            self._leave_core()

    def expect_no_more(self) -> None:
        """Of those that have not come, which nobody is to wait for.

        On the thread that runs the stage, whose Ctrl-C is not for the candidates alone.
        """
        self._make_ready([], n_come=self._n_expected)

        def take() -> list[_Waiting]:
            with self._lock:
                return self._take_asked()

        error = self._answer(take)
        if error is not None and not isinstance(error, Exception):
            raise error

    def plan(self, size: SystemSize, n_queries: int, resources: Resources) -> Plan:
        """As `Backend.plan`, on the thread of the candidate alone.

        Once for each size: a device is asked for its free memory.
        """
        key = (size, n_queries, resources.memory_budget)
        if key not in self._plans:
            plan = self.backend.plan(size, n_queries, resources)
            self._plans[key] = plan._replace(n_threads=1)
        return self._plans[key]

    def score(self, request: ScoreRequest) -> Scores:
        """As `Backend.score`, for a candidate."""
        own = _Waiting(request)
        self._leave_core(own)
        own.gate.acquire()
        if own.error is not None:
            raise own.error
        assert own.scores is not None
        return own.scores

    def _leave_core(self, asked: _Waiting | None = None) -> None:
        """To the next that is ready; without one, all that was asked for goes to the device."""
        with self._lock:
            if asked is not None:
                self._asked.append(asked)
            if self._ready:
                self._ready.popleft().gate.release()
                return
            self._n_free += 1
            taken = self._take_asked()
        self._answer(lambda: taken)

    def _take_asked(self) -> list[_Waiting]:
        """What is to go to the device now; the lock is held."""
        if self._ready or self._n_expected > 0:
            return []
        taken, self._asked = self._asked, []
        return taken

    def _answer(self, take: Callable[[], list[_Waiting]]) -> BaseException | None:
        """What is taken is answered; the error if that fails."""
        asked: list[_Waiting] = []
        failed: BaseException | None = None
        try:
            asked = take()
            requests = [each.request for each in asked if each.request is not None]
            if requests:
                for each, scores in zip(asked, self.backend.score_many(requests), strict=True):
                    each.scores = scores
        except BaseException as error:
            # Each candidate hears of it: none may wait forever.
            failed = error
            for each in asked:
                each.error = error
        self._make_ready(asked)
        return failed

    def _make_ready(self, waiting: Sequence[_Waiting], n_come: int = 0) -> None:
        with self._lock:
            self._n_expected = max(0, self._n_expected - n_come)
            for each in waiting:
                if self._n_free > 0:
                    self._n_free -= 1
                    each.gate.release()
                else:
                    self._ready.append(each)
