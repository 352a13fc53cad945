# SPDX-License-Identifier: BSD-3-Clause
"""The cluster as the rest of the room sees it: tasks with names, progress, and one clear error."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import dask
from dask.delayed import Delayed
from distributed import Client, Future, wait

from lsgp.compute.progress import progress_bar
from lsgp.distributed.transfer import running_client

#: Seconds without any worker after which nobody is expected to come.
PATIENCE = 15.0
#: Seconds between looks at tasks, workers and Ctrl-C.
POLL = 0.5
#: How often a task may take its worker with it before it is given up.
N_RETRIES = 5


T = TypeVar("T")


class NoWorkerError(RuntimeError):
    """All workers of a cluster are gone, or none ever came."""


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

    def key(self, what: str) -> str:
        """A name of a task that says what it does, and whose it is."""
        self._n_tasks += 1
        return f"lsgp-{what}-{self.job}-{self._n_tasks}"

    def submit(self, what: str, function: Callable[..., Any], *arguments: object) -> Future:
        """A task on a worker; its futures among the arguments are what they stand for."""
        return self.client.submit(
            function, *arguments, key=self.key(what), retries=N_RETRIES, pure=False
        )

    def each(
        self, what: str, function: Callable[..., Any], parts: Sequence[object], *arguments: object
    ) -> list[Future]:
        """A task for each of the parts, on a worker that has it."""
        return [self.submit(what, function, part, *arguments) for part in parts]

    def delay(
        self, what: str, function: Callable[..., Any], chunks: Sequence[object], *arguments: object
    ) -> list[Delayed]:
        """What a function makes of each chunk of a collection, when it is asked for."""
        with dask.annotate(lsgp=what, retries=N_RETRIES):
            return [
                dask.delayed(function)(chunk, *arguments, dask_key_name=self.key(what))
                for chunk in chunks
            ]

    def compute(
        self, what: str, function: Callable[..., Any], chunks: Sequence[object], *arguments: object
    ) -> list[Future]:
        """A task for each chunk of a collection."""
        found: list[Future] = self.client.compute(self.delay(what, function, chunks, *arguments))
        return found

    def send(self, value: object) -> Future:
        """Something that many tasks need, once to each worker that needs it.

        As a task rather than scattered: that can be done again when its worker is gone.
        """
        return self.submit("send", _same, value)

    def finish(
        self, futures: Sequence[Future], phase: str = "", sizes: Sequence[int] | None = None
    ) -> None:
        """Wait until all are done; where each has so many rows, show how many a second are.

        Whatever ends it, Ctrl-C too, cancels the tasks.
        """
        pending = dict(zip(futures, sizes or [1] * len(futures), strict=True))
        alone_since: float | None = None
        began, n_done, is_shown = time.monotonic(), 0, bool(phase) and self.verbose > 0
        with (
            self.cancels(futures),
            progress_bar(phase, sum(pending.values()), is_shown) as advance,
        ):
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
                alone_since = None if done else self._require_workers(alone_since, phase)

    def gather(self, futures: Sequence[Future], phase: str = "") -> list[Any]:
        """The results, in order."""
        self.finish(futures, phase)
        found: list[object] = self.client.gather(list(futures))
        return found

    @contextlib.contextmanager
    def cancels(self, futures: Sequence[Future]) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with contextlib.suppress(Exception):
                self.client.cancel(list(futures), force=True)
            raise

    def _require_workers(self, alone_since: float | None, phase: str) -> float | None:
        """Since when there is no worker; an error after a while."""
        if self.client.scheduler_info(n_workers=-1)["workers"]:
            return None
        now = time.monotonic()
        since = now if alone_since is None else alone_since
        if now - since > PATIENCE:
            raise NoWorkerError(
                f"No worker is left of the cluster at {self.client.scheduler.address}, while "
                f"{phase.lower() or 'tasks'} had to be done. Start workers, and call again."
            )
        return since

    @property
    def n_threads(self) -> int:
        return max(1, sum(self.client.nthreads().values()))


def _same(value: T) -> T:
    return value
