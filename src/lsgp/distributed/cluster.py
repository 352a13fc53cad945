# SPDX-License-Identifier: BSD-3-Clause
"""The cluster as the rest of the room sees it: tasks with names, progress, warnings, one error."""

from __future__ import annotations

import contextlib
import re
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import dask
from dask.delayed import Delayed
from distributed import Client, Future, get_client, get_worker, wait

from lsgp.compute.progress import progress_bar
from lsgp.compute.text import listening, warn_user

#: Seconds without any worker after which none is expected to come.
PATIENCE = 15.0
#: Seconds between looks at tasks, workers and Ctrl-C.
POLL = 0.5
#: How often a task may take its worker with it before it is given up.
N_RETRIES = 5

T = TypeVar("T")


class NoWorkerError(RuntimeError):
    """All workers of a cluster are gone, or none ever came."""


def running_client() -> Client | None:
    """Return the client of this process, or None."""
    try:
        return get_client()
    except ValueError:
        return None


class Cluster:
    """A client, and the tasks that one job has given it."""

    def __init__(self, client: Client | None = None, verbose: int = 0) -> None:
        found = client or running_client()
        if found is None:
            raise ValueError(
                "There is no Dask client. Start one, e.g. distributed.Client() for this machine, "
                "or distributed.Client('tcp://...:8786') for a cluster, or give client=."
            )
        self.client: Client = found
        self.verbose = verbose
        self.job = uuid.uuid4().hex[:8]
        self._n_tasks = 0

    @property
    def n_threads(self) -> int:
        return max(1, sum(self.client.nthreads().values()))

    def key(self, what: str) -> str:
        """Name a task by its work and its job."""
        self._n_tasks += 1
        return f"lsgp-{what}-{self.job}-{self._n_tasks}"

    def submit(self, what: str, function: Callable[..., Any], *arguments: object) -> Future:
        """Start a task on a worker; it gets the results of the futures among its arguments."""
        return self.client.submit(
            function, *arguments, key=self.key(what), retries=N_RETRIES, pure=False
        )

    def each(
        self, what: str, function: Callable[..., Any], parts: Sequence[object], *arguments: object
    ) -> list[Future]:
        """Start a task for each part, on a worker that holds it."""
        return [self.submit(what, function, part, *arguments) for part in parts]

    def delay(
        self, what: str, function: Callable[..., Any], chunks: Sequence[object], *arguments: object
    ) -> list[Delayed]:
        """Return the lazy result of a function for each chunk of a collection."""
        with dask.annotate(lsgp=what, retries=N_RETRIES):
            return [
                dask.delayed(function)(chunk, *arguments, dask_key_name=self.key(what))
                for chunk in chunks
            ]

    def compute(
        self, what: str, function: Callable[..., Any], chunks: Sequence[object], *arguments: object
    ) -> list[Future]:
        """Start a task for each chunk of a collection."""
        found: list[Future] = self.client.compute(self.delay(what, function, chunks, *arguments))
        return found

    def send(self, value: object) -> Future:
        """Send a value that many tasks need once to each of their workers.

        A task, unlike a scattered value, is done again when its worker is gone.
        """
        return self.submit("send", lambda own: own, value)

    def gather(self, futures: Sequence[Future], phase: str = "") -> list[Any]:
        """Return the results, in order."""
        self.finish(futures, phase)
        found: list[object] = self.client.gather(list(futures))
        return found

    def finish(
        self, futures: Sequence[Future], phase: str = "", sizes: Sequence[int] | None = None
    ) -> None:
        """Wait for all tasks; with the rows of each (``sizes``), show the rows per second.

        Any error cancels the tasks, Ctrl-C too.
        """
        pending = dict(zip(futures, sizes or [1] * len(futures), strict=True))
        began, n_done, seen = time.monotonic(), 0, time.monotonic()
        total, is_shown = sum(pending.values()), bool(phase) and self.verbose > 0
        try:
            with progress_bar(phase, total, is_shown) as advance:
                while pending:
                    with contextlib.suppress(TimeoutError):
                        wait(list(pending), timeout=POLL, return_when="FIRST_COMPLETED")
                    done = [future for future in pending if future.status != "pending"]
                    for future in done:
                        if future.status != "finished":
                            future.result(timeout=PATIENCE)
                            raise NoWorkerError(f"{phase or future.key} was {future.status}.")
                        size = pending.pop(future)
                        n_done += size
                        rate = n_done / max(time.monotonic() - began, 1e-9)
                        advance(size, f"{phase}: {rate:,.0f} rows a second" if sizes else phase)
                    if done or self.client.scheduler_info(n_workers=-1)["workers"]:
                        seen = time.monotonic()
                    elif time.monotonic() - seen > PATIENCE:
                        raise NoWorkerError(
                            "No worker is left of the cluster at "
                            f"{self.client.scheduler.address}, while {phase.lower() or 'tasks'} "
                            "had to be done. Start workers, and call again."
                        )
        except BaseException:
            with contextlib.suppress(Exception):
                self.client.cancel(list(futures), force=True)
            raise


# -- warnings --------------------------------------------------------------------------------------

#: Topic of Dask's events that hold the warnings of tasks: each has the job and the message.
TOPIC = "lsgp-warnings"
Event = tuple[float, dict[str, str]]
#: The beginning of a warning that counts queries.
_COUNT = re.compile(r"(\d+) of \d+(?= )")

_hearing: weakref.WeakSet[Client] = weakref.WeakSet()
#: Kinds of messages that were said, and (job, "") of jobs whose messages `heard` collects.
_seen: set[tuple[str, str]] = set()
_lock = threading.Lock()


def telling(job: str, function: Callable[[], T]) -> T:
    """Call a function; on a worker, its warnings go to the client instead of the worker's log."""
    try:
        worker = get_worker()
    except ValueError:
        return function()
    with listening() as messages:
        found = function()
    for message in messages:
        worker.log_event(TOPIC, {"job": job, "message": message})
    return found


def _kind(event: Event) -> tuple[str, str]:
    """The job and the text without numbers, in which messages of different chunks differ."""
    return event[1]["job"], re.sub(r"\d[\d.e+-]*", "#", event[1]["message"])


def hear(client: Client) -> None:
    """Warn in this process about the warnings of lazy predictions, each kind once."""
    with _lock:
        if client in _hearing:
            return
        _hearing.add(client)
    client.subscribe_topic(TOPIC, _hear)


def _hear(event: Event) -> None:
    kind = _kind(event)
    with _lock:
        if kind in _seen or (kind[0], "") in _seen:
            return
        _seen.add(kind)
    warn_user(f"{event[1]['message']} (of one chunk of the queries; others may say the like)")


@contextlib.contextmanager
def heard(client: Client, job: str, n_queries: int) -> Iterator[None]:
    """Warn after the block about the warnings of its tasks, in the thread of the caller."""
    with _lock:
        _seen.add((job, ""))
    yield
    by_kind: dict[tuple[str, str], list[str]] = {}
    for event in client.get_events(TOPIC) or ():
        if event[1]["job"] == job:
            by_kind.setdefault(_kind(event), []).append(event[1]["message"])
    for messages in by_kind.values():
        # "2 of 9 (first: query 3, with ...)" and "1 of 4 (...)" become "3 of 20 (one with ...)".
        message = re.sub(r"first: query \d+, with", "one with", messages[0])
        counts = [found for each in messages if (found := _COUNT.match(each))]
        if counts:
            total = sum(int(each[1]) for each in counts)
            message = f"{total} of {n_queries}{message[counts[0].end() :]}"
        warn_user(message)
