# SPDX-License-Identifier: BSD-3-Clause
"""What a stage is, what it is given, and how its jobs run in parallel."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Resources
from lsgp.compute.blas import one_blas_thread
from lsgp.compute.interrupts import ThreadPool, wait_some
from lsgp.method.contract import LocalModel
from lsgp.method.distribution import PredictiveDistribution
from lsgp.solvers.boosted import BoostedTrees
from lsgp.tuning.classes.laplace import LaplaceCandidate
from lsgp.tuning.classes.linear import LinearCandidate
from lsgp.tuning.clock import OutOfTimeError
from lsgp.tuning.comparison import Comparison
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.descent import descend_on_sample
from lsgp.tuning.gathering import Gathering
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.narrowing import Inputs
from lsgp.tuning.objective import Objective, Scorer
from lsgp.tuning.plan import CORES_OF_GATHERED, MOST_GATHERED, Effort
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.trees.boosting import Folds

Result = TypeVar("Result")

#: Numbers of the stages' random streams. A new stage takes a new one, wherever it stands in the
#: list, so that the others find what they found.
LIKELY_STREAM, RANK_STREAM, POLISH_STREAM, MIX_STREAM, VARY_STREAM = range(5)
ENLARGE_STREAM, EXACT_STREAM, ENLARGE_MORE_STREAM = range(5, 8)
FIRST_STREAM, INTEGRATE_STREAM, LINEAR_STREAM, WIDEN_STREAM, LAPLACE_STREAM = range(8, 13)
COARSEN_STREAM = 13
BOOST_STREAM = 14
LOOSEN_STREAM, WHOLE_STREAM, BOOST_REGIONS_STREAM, GAPS_STREAM = 40, 41, 42, 43
NOISELESS_STREAM = 15
NARROW_STREAM = 16
COMPOSE_STREAM = 17


@dataclass
class Found:
    """What the stages have found so far, in the order of the stages."""

    first: list[Contender] = field(default_factory=list)
    integrated: list[Contender] = field(default_factory=list)
    likely: list[tuple[Contender, float]] = field(default_factory=list)  # with odds
    ranked: list[Contender] = field(default_factory=list)
    #: Likewise, but judged on part of the points: starts, and not for combinations.
    outlined: list[Contender] = field(default_factory=list)
    polished: list[Contender] = field(default_factory=list)
    varied: list[Contender] = field(default_factory=list)
    coarse: list[Contender] = field(default_factory=list)
    enlarged: list[Contender] = field(default_factory=list)
    frontier: list[Contender] = field(default_factory=list)  # of each leader, its best size
    exact: list[Contender] = field(default_factory=list)
    linear: list[LinearCandidate] = field(default_factory=list)  # of labels
    laplace: list[LaplaceCandidate] = field(default_factory=list)  # of labels
    #: Of labels, with weights that sum to 1.
    integrated_laplace: list[tuple[LaplaceCandidate, float]] = field(default_factory=list)
    boosted: BoostedTrees | None = None
    folds: Folds | None = None  # of trees that are being fitted
    inputs: Inputs | None = None  # those that matter, of many; None: all of them
    #: What trees say of targets of regions (k, t) that they have not seen; None: not known.
    boosted_regions: NDArray[np.float64] | None = None
    is_noiseless: bool = False  # whether the likely ones have no noise
    #: What the likely ones together say of the compared rows, where hyperparameters have not seen
    #: them: then nothing else has a share. None: not known.
    unseen: PredictiveDistribution | None = None
    is_on_levels: bool = False  # whether that is so of levels: then these have set all scales

    def of_all_searches(self) -> Found:
        """What searches that draw other rows would find again."""
        return Found(
            integrated=self.integrated,
            likely=self.likely,
            exact=self.exact,
            is_noiseless=self.is_noiseless,
        )

    @property
    def all(self) -> list[Contender]:
        """All but the integrated and the likely ones, which have shares of their own."""
        return [
            *self.first,
            *self.ranked,
            *self.polished,
            *self.varied,
            *self.coarse,
            *self.enlarged,
            *self.exact,
        ]

    @property
    def leaders(self) -> list[Contender]:
        """The polished ones, best first."""
        return sorted(self.polished, key=lambda c: c.loss)

    @property
    def enlargeable(self) -> list[Contender]:
        """Those that larger neighborhoods may make better, best first."""
        return sorted(self.coarse, key=lambda c: c.loss) or self.leaders


@dataclass(frozen=True, eq=False)
class Job:
    """One of the things that a stage tries: it works with its own threads and random stream."""

    problem: TuningProblem
    comparison: Comparison
    rng: np.random.Generator
    share: Callable[[], Resources]  # what there is for it now
    report: Callable[..., None]
    found: list[Contender]  # filled as it goes, so that what is found counts if time is up
    scorer: Scorer | None = None  # who computes losses; None: the backend

    def take(self, space: LeaveOneOut) -> LeaveOneOut:
        """A space with what this job has."""
        return space.with_share(self.share, self.scorer)

    def optimize(
        self, start: Start, effort: Effort, objective: Objective | None = None
    ) -> Contender:
        """Rounds of L-BFGS-B with refreshed samples and neighborhoods; keeps the best round."""
        problem, began = self.problem, time.monotonic()
        parameters, model = problem.parameters, start.model
        space = self.take(start.space)
        best: Contender | None = None
        try:
            for _ in range(effort.n_rounds):
                problem.clock.check()
                space = space.suited(model)
                if problem.specification.tunes_bandwidth:
                    # Other lengthscales are another ellipsoid, which may reach more.
                    model = problem.with_radius(space, model, model.bandwidth)
                sample = space.sample(
                    model, problem.draw(effort.n_targets, self.rng), start.n_neighbors
                )
                model = descend_on_sample(
                    space,
                    sample,
                    model,
                    parameters,
                    objective or problem.objective,
                    effort.n_iterations,
                    problem.clock,
                )
                space = space.suited(model)
                if problem.specification.tunes_bandwidth:
                    model = problem.with_radius(space, model, model.bandwidth)
                judged = problem.evaluate(
                    Start(space, model, start.n_neighbors), self.comparison, began
                )
                contender = judged._replace(space=start.space)
                if best is None or contender.loss < best.loss:
                    best = contender
                else:
                    model = _between(problem, model, best.model)
        finally:
            # When time is up or on Ctrl-C too.
            if best is not None:
                self.found.append(best)
        assert best is not None
        self.report(effort.work, best)
        return best

    def evaluate(self, start: Start, began: float) -> Contender:
        space = self.take(start.space).suited(start.model)
        judged = self.problem.evaluate(start._replace(space=space), self.comparison, began)
        # The index of one metric is not kept: there may be many.
        return judged._replace(space=start.space)


def resized(problem: TuningProblem, start: Start, n_neighbors: int | None) -> Start:
    """With another number of neighbors, of the same weights at the same distances."""
    model, before = start.model, start.n_neighbors
    if n_neighbors is None or before is None or n_neighbors == before:
        return start
    if "localizer_decay" not in problem.parameters.given:
        # The bandwidth grows with m^(1/d).
        growth = (n_neighbors / before) ** (2.0 / problem.rows.X.shape[1])
        model = model.replace(localizer_decay=model.localizer_decay * growth)
    return Start(start.space, model, n_neighbors)


def _between(problem: TuningProblem, model: LocalModel, best: LocalModel) -> LocalModel:
    pair = (problem.parameters.pack(model), problem.parameters.pack(best))
    return problem.parameters.unpack(0.5 * (pair[0] + pair[1]), model)


class _Shares:
    """How threads are shared by the jobs of a stage: the last ones have more of them."""

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


class Runner:
    """Runs the jobs of a stage on the threads that tuning was given."""

    def __init__(
        self,
        problem: TuningProblem,
        comparison: Comparison,
        stream: int,
        report: Callable[..., None],
    ) -> None:
        self.problem, self.comparison = problem, comparison
        self.stream, self.report = stream, report

    def run(
        self,
        tasks: Sequence[Callable[[Job], Result]],
        keep: list[Contender],
        first_number: int = 0,
    ) -> list[Result]:
        """Run every task; what each has found is appended to ``keep``, in the order of the tasks.

        Whatever stops it, what was found until then is kept. Tasks of other numbers draw other
        rows.
        """
        n_threads, backend = self.problem.resources.n_threads, self.problem.backend
        shares = _Shares(self.problem.resources, len(tasks))
        gathering = None
        if backend.is_device and len(tasks) > 1:
            n_cores = min(n_threads, CORES_OF_GATHERED)
            gathering = Gathering(backend, n_cores, min(MOST_GATHERED, len(tasks)))
        jobs = [
            Job(
                self.problem,
                self.comparison,
                self.problem.random(self.stream, first_number + k),
                shares.of_each,
                self.report,
                [],
                gathering,
            )
            for k in range(len(tasks))
        ]
        try:
            if len(tasks) <= 1 or (n_threads == 1 and gathering is None):
                return [task(job) for task, job in zip(tasks, jobs, strict=True)]
            return _run_threaded(self.problem, tasks, jobs, shares, gathering)
        finally:
            for job in jobs:
                keep.extend(job.found)


def _run_threaded(
    problem: TuningProblem,
    tasks: Sequence[Callable[[Job], Result]],
    jobs: Sequence[Job],
    shares: _Shares,
    gathering: Gathering | None,
) -> list[Result]:
    def work(task: Callable[[Job], Result], job: Job) -> Result:
        # Some BLAS libraries have a setting for each thread.
        taking_turns = nullcontext() if gathering is None else gathering.candidate()
        with one_blas_thread(), shares.one_less(), taking_turns:
            return task(job)

    n_parallel = min(problem.resources.n_threads, len(tasks))
    if gathering is not None:
        n_parallel = min(MOST_GATHERED, len(tasks))
    pool = ThreadPool(n_parallel, thread_name_prefix="lsgp-tuning")
    try:
        futures = [pool.submit(work, task, job) for task, job in zip(tasks, jobs, strict=True)]
        pending = set(futures)
        while pending:
            done, pending = wait_some(pending)
            for future in done:
                # Another error than running out of time is not worth waiting for the others.
                if not isinstance(future.exception(), OutOfTimeError):
                    future.result()
        return [future.result() for future in futures]
    except BaseException:
        problem.clock.stop()
        if gathering is not None:
            gathering.expect_no_more()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class Stage(Protocol):
    """One step of the search."""

    stream: int  # number of its random stream

    def work(self, problem: TuningProblem) -> int:
        """What the stage will take, as far as it is known in advance, in local solves."""

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        """Try what the stage tries, and add it to ``found``."""
