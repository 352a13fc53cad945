# SPDX-License-Identifier: BSD-3-Clause
"""How the jobs of a search run in parallel, with progress, a clock and Ctrl-C.

Every job has a random stream of its own, so that results do not depend on the number of threads.
What was found counts even if the search is cut short.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from lsgp.backends.contract import Resources
from lsgp.backends.gathering import CORES_OF_GATHERED, MOST_GATHERED, Gathering
from lsgp.compute.blas import one_blas_thread
from lsgp.compute.clock import INTERRUPTS, Clock, OutOfTimeError, TuningStoppedWarning
from lsgp.compute.interrupts import ThreadPool, wait_some
from lsgp.compute.progress import progress_bar
from lsgp.compute.text import placed
from lsgp.compute.warn import warn_user
from lsgp.solvers.objective import Scorer
from lsgp.tuning.data import Data, Stream
from lsgp.tuning.space import Space

Result = TypeVar("Result")
Task = Callable[["Job"], Result]


@dataclass(frozen=True, eq=False)
class Job:
    """One thing that is tried: it has its own threads and random stream."""

    rng: np.random.Generator
    clock: Clock
    share: Callable[[], Resources]  # what there is for it at this moment
    scorer: Scorer | None = None  # what computes losses; None: the backend

    def take(self, space: Space) -> Space:
        """A space with what this job has."""
        return space.with_share(self.share, self.scorer)


class _Shares:
    """How threads are shared by jobs: the last ones have more of them."""

    def __init__(self, resources: Resources, n_jobs: int) -> None:
        self.resources, self.n_left = resources, n_jobs
        self._lock = threading.Lock()

    def of_each(self) -> Resources:
        n_running = max(1, min(self.resources.n_threads, self.n_left))
        return self.resources._replace(n_threads=max(1, self.resources.n_threads // n_running))

    @contextmanager
    def one_less(self) -> Iterator[None]:
        """A job that leaves its threads to the others when it is done."""
        try:
            yield
        finally:
            with self._lock:
                self.n_left -= 1


@dataclass(eq=False)
class Workers:
    """Runs jobs on the threads that tuning was given."""

    data: Data
    clock: Clock
    advance: Callable[..., None]  # told of work that is done, and of what it was
    is_complete: bool = True
    _n_run: int = field(default=0)

    def run(self, tasks: Sequence[Task[Result]], keep: list[Result]) -> list[Result]:
        """Run every task; results are appended to ``keep`` in the order of the tasks.

        Whatever stops it, the results until then are kept.
        """
        data, n_tasks = self.data, len(tasks)
        n_threads, backend = data.resources.n_threads, data.backend
        shares = _Shares(data.resources, n_tasks)
        gathering = None
        if backend.is_device and n_tasks > 1:
            n_cores = min(n_threads, CORES_OF_GATHERED)
            gathering = Gathering(backend, n_cores, min(MOST_GATHERED, n_tasks))
        jobs = [
            Job(data.random(Stream.JOB, self._n_run + k), self.clock, shares.of_each, gathering)
            for k in range(n_tasks)
        ]
        self._n_run += n_tasks
        results: dict[int, Result] = {}

        def work(k: int) -> None:
            self.clock.check()
            results[k] = tasks[k](jobs[k])

        try:
            if n_tasks <= 1 or (n_threads == 1 and gathering is None):
                for k in range(n_tasks):
                    work(k)
            else:
                self._run_threaded(work, n_tasks, shares, gathering)
        finally:
            kept = [results[k] for k in sorted(results)]
            keep.extend(kept)
        return kept

    def _run_threaded(
        self,
        work: Callable[[int], None],
        n_tasks: int,
        shares: _Shares,
        gathering: Gathering | None,
    ) -> None:
        def one(k: int) -> None:
            # Some BLAS libraries have a setting for each thread.
            taking_turns = nullcontext() if gathering is None else gathering.candidate()
            with one_blas_thread(), shares.one_less(), taking_turns:
                work(k)

        n_parallel = min(self.data.resources.n_threads, n_tasks)
        if gathering is not None:
            n_parallel = min(MOST_GATHERED, n_tasks)
        pool = ThreadPool(n_parallel, thread_name_prefix="lsgp-tuning")
        try:
            pending = {pool.submit(one, k) for k in range(n_tasks)}
            futures = list(pending)
            while pending:
                done, pending = wait_some(pending)
                for future in done:
                    # Another error than running out of time is not worth waiting for the others.
                    if not isinstance(future.exception(), OutOfTimeError):
                        future.result()
            for future in futures:
                future.result()
        except BaseException:
            self.clock.stop()
            if gathering is not None:
                gathering.expect_no_more()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Work that ends when time is up, or with Ctrl-C: what was found until then counts."""
        clock = self.clock
        try:
            yield
        except OutOfTimeError:
            warn_user(
                f"Tuning stopped after {clock.elapsed:.1f} s (max_time="
                f"{clock.max_seconds:g}), before all that it tries: the model uses the best "
                "hyperparameters found so far. More time, or more threads (n_jobs), may find "
                "better ones.",
                TuningStoppedWarning,
            )
            self.is_complete = False
        except KeyboardInterrupt:
            if INTERRUPTS.is_second():
                raise
            warn_user(
                "Tuning was interrupted: the model uses the best hyperparameters found so far.",
                TuningStoppedWarning,
            )
            self.is_complete = False


@contextmanager
def at_work(
    data: Data, clock: Clock, work: float, watch: Callable[[float], None] | None
) -> Iterator[Workers]:
    """Workers for so much work, in nominal milliseconds, with a progress bar.

    The optimizer's own matrices are tiny: threads of BLAS only spin on them, and sums must not
    depend on how many there are.
    """
    title = placed("Tuning", data.backend.device_name) if data.resources.verbose else "Tuning"
    total, lock, state = max(1, round(work)), threading.Lock(), [0.0, 0]  # done, and shown
    with (
        one_blas_thread(),
        _with_pool(data) as pooled,
        progress_bar(title, total, data.resources.verbose > 0, watch) as bar,
    ):

        def advance(amount: float, text: str) -> None:
            with lock:
                state[0] += amount
                # The last percent is for the end: nobody knows how much grows on the way.
                now = min(round(0.99 * total), round(state[0]))
                bar(now - state[1], f"{title}: {text}")
                state[1] = now

        yield Workers(pooled, clock, advance)
        bar(total - state[1])


@contextmanager
def _with_pool(data: Data) -> Iterator[Data]:
    """The data with threads for the blocks of evaluations, made once for all of them."""
    n_threads = data.resources.n_threads
    if n_threads == 1:
        yield data
        return
    # The thread of a job works on a block too.
    with ThreadPool(n_threads - 1, thread_name_prefix="lsgp-block") as pool:
        yield replace(data, resources=data.resources._replace(pool=pool))
