# SPDX-License-Identifier: BSD-3-Clause
"""Running the jobs of a search in parallel, with progress, a clock and Ctrl-C.

Every job has a random stream of its own, so that results do not depend on the number of threads.
Results are kept if the search stops early.
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
from lsgp.compute.progress import progress_bar
from lsgp.compute.text import placed, warn_user
from lsgp.compute.threads import ThreadPool, wait_some
from lsgp.solvers.objective import Scorer
from lsgp.tuning.data import Data, Stream
from lsgp.tuning.space import Space

Result = TypeVar("Result")
Task = Callable[["Job"], Result]


@dataclass(frozen=True, eq=False)
class Job:
    """The random stream, clock and threads of one trial."""

    rng: np.random.Generator
    clock: Clock
    share: Callable[[], Resources]  # the current resources of the job
    scorer: Scorer | None = None  # computes losses; None: the backend

    def take(self, space: Space) -> Space:
        """Return a space that uses the resources and the scorer of this job."""
        return replace(space, share=self.share, scorer=self.scorer)


class _Shares:
    """Divides the threads among the running jobs; the last jobs get more of them."""

    def __init__(self, resources: Resources, n_jobs: int) -> None:
        self.resources, self.n_left = resources, n_jobs
        self._lock = threading.Lock()

    def of_each(self) -> Resources:
        """The current resources of each job."""
        n_running = max(1, min(self.resources.n_threads, self.n_left))
        return self.resources._replace(n_threads=max(1, self.resources.n_threads // n_running))

    @contextmanager
    def one_less(self) -> Iterator[None]:
        """Release the threads of a job to the others when it ends."""
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
    advance: Callable[..., None]  # reports finished work, with its description
    is_complete: bool = True
    _n_run: int = field(default=0)

    def run(self, tasks: Sequence[Task[Result]], keep: list[Result]) -> list[Result]:
        """Run every task; results are appended to ``keep`` in the order of the tasks.

        If an exception stops the run, the results so far are appended too.
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
            # Some BLAS libraries keep this setting per thread.
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
                    # After running out of time, other jobs may still finish; other errors stop all.
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
        """Turn running out of time, or Ctrl-C, into a warning; results so far are used."""
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
    """Provide workers, and a progress bar for ``work`` nominal milliseconds.

    BLAS has one thread: matrices of the optimizer are tiny, and sums must not depend on the number
    of threads.
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
                # The last percent is for the end, because the total is only an estimate.
                now = min(round(0.99 * total), round(state[0]))
                bar(now - state[1], f"{title}: {text}")
                state[1] = now

        yield Workers(pooled, clock, advance)
        bar(total - state[1])


@contextmanager
def _with_pool(data: Data) -> Iterator[Data]:
    """Provide the data with a pool of threads for the blocks of all evaluations."""
    n_threads = data.resources.n_threads
    if n_threads == 1:
        yield data
        return
    # One less, because the thread of a job computes blocks too.
    with ThreadPool(n_threads - 1, thread_name_prefix="lsgp-block") as pool:
        yield replace(data, resources=data.resources._replace(pool=pool))
