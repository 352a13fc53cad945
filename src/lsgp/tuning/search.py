# SPDX-License-Identifier: BSD-3-Clause
"""The search for models: the list of its stages, and the ways to run them.

Candidates of a stage run in parallel, each with a random stream of its own, so the result does not
depend on the number of threads. What is found counts even if the search is cut short.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.blas import one_blas_thread
from lsgp.compute.interrupts import ThreadPool
from lsgp.compute.progress import progress_bar
from lsgp.compute.text import placed
from lsgp.compute.warn import warn_user
from lsgp.tuning.beyond.competition import Pool, choose_beyond, judge_pool, taken_on
from lsgp.tuning.calibration import ScaleAndShape
from lsgp.tuning.classes.plan import LAPLACE_SHARE
from lsgp.tuning.clock import INTERRUPTS, OutOfTimeError, TuningStoppedWarning
from lsgp.tuning.comparison import Comparison
from lsgp.tuning.contender import Contender
from lsgp.tuning.given import FIRST_STAGE_STREAM
from lsgp.tuning.narrowing import Widening, inputs_of_previous, narrow
from lsgp.tuning.outcome import (
    Tuned,
    finish,
    have_one,
    merge,
    result_of,
    usable_ones,
    weigh,
    with_share,
)
from lsgp.tuning.plan import SMALLEST_ODDS
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.boost import Boost, BoostRegions, fitting_beside
from lsgp.tuning.stages.coarsen import Coarsen
from lsgp.tuning.stages.compose import Compose
from lsgp.tuning.stages.enlarge import Enlarge, EnlargeMore
from lsgp.tuning.stages.exact import Exact
from lsgp.tuning.stages.first import First
from lsgp.tuning.stages.gaps import Gaps
from lsgp.tuning.stages.integrate import Integrate
from lsgp.tuning.stages.laplace import Laplace
from lsgp.tuning.stages.likely import Likely
from lsgp.tuning.stages.linear import Linear
from lsgp.tuning.stages.loosen import Loosen
from lsgp.tuning.stages.mix import Mix
from lsgp.tuning.stages.narrow import Narrow
from lsgp.tuning.stages.noiseless import Noiseless
from lsgp.tuning.stages.polish import Polish
from lsgp.tuning.stages.rank import Rank
from lsgp.tuning.stages.stage import Found, Runner, Stage
from lsgp.tuning.stages.vary import Vary
from lsgp.tuning.stages.whole import Whole
from lsgp.tuning.stages.widen import Widen

Array = NDArray[np.float64]

STAGES: tuple[Stage, ...] = (
    First(),
    Integrate(),
    Likely(),
    Linear(),
    Rank(),
    Polish(),
    Mix(),
    Widen(),
    Coarsen(),
    Enlarge(),
    Exact(),
    EnlargeMore(),
    Vary(),
    Noiseless(),
    Compose(),
    Boost(),
)

#: What another search does again: the others draw no rows.
STAGES_AGAIN: tuple[Stage, ...] = (
    First(),
    Rank(),
    Polish(),
    Mix(),
    Widen(),
    Coarsen(),
    Enlarge(),
    EnlargeMore(),
    Vary(),
)
#: Random streams of one search.
STREAMS_OF_SEARCH = 100

#: Where queries lie beyond the rows, after the fit without them.
BEYOND_STAGES: tuple[Stage, ...] = (
    Rank(),
    Polish(),
    Loosen(),
    Enlarge(),
    Whole(),
    BoostRegions(),
)
#: Where they lie in gaps, and gaps like these are held out.
GAP_STAGES: tuple[Stage, ...] = (Gaps(),)


def tune(problem: TuningProblem, watch: Callable[[float], None] | None = None) -> Tuned:
    """Search, and combine the best; ``watch`` hears which share of the work is done.

    Where rows are few and set apart, twice, with both halves. Where queries lie beyond the rows,
    without them first.
    """
    if problem.regions is not None:
        return _tune_beyond(problem, watch)
    if problem.admits_narrowing:
        return _tune_narrowed(problem, watch)
    if not problem.tunes_twice:
        tuned = _tune_once(problem, watch)
    else:
        tuned = _tune_once(problem, _part_of(watch, 0))
        if tuned.result.is_complete:
            tuned = merge(tuned, _tune_once(problem.exchanged(), _part_of(watch, 1)))
    if problem.admits_laplace and tuned.result.is_complete:
        return _with_laplace(problem, tuned)
    return tuned


def _tune_narrowed(problem: TuningProblem, watch: Callable[[float], None] | None) -> Tuned:
    """With the inputs that matter alone, of many; a previous fit has seen which those are."""
    found, comparison = Found(), problem.comparison()
    if problem.is_warm:
        found.inputs = inputs_of_previous(problem)
    else:
        with one_blas_thread(), _with_pool(problem) as pooled:
            if not _run_stages((Narrow(),), pooled, comparison, found, None):
                return _stopped(pooled, comparison, found)
    if found.inputs is None:
        return _tune_once(problem, watch)
    tuned = _tune_once(narrow(problem, found.inputs), watch)
    widening, result = Widening(problem, found.inputs), tuned.result
    return tuned._replace(
        members=tuple((widening.contender(each), weight) for each, weight in tuned.members),
        result=replace(result, candidates=tuple(map(widening.candidate, result.candidates))),
        boosted=None if tuned.boosted is None else widening.trees(tuned.boosted),
    )


def _tune_beyond(problem: TuningProblem, watch: Callable[[float], None] | None) -> Tuned:
    """The fit without queries, then what is tuned for them; regions of rows choose."""
    assert problem.plain is not None
    plain = _tune_once(problem.plain, _part_of(watch, 0))
    pool = Pool(
        [contender for contender, _ in plain.members],
        np.array([weight for _, weight in plain.members]),
        ScaleAndShape(plain.result.scale_factor, plain.result.shape),
        plain.result.boosted_share,
    )
    found, comparison = Found(boosted=plain.boosted), problem.comparison()
    is_complete = plain.result.is_complete
    with one_blas_thread(), _with_pool(problem) as pooled:
        pool = judge_pool(pooled, pool, comparison)
        if is_complete:
            started = taken_on(pooled, pool)
            watch = _part_of(watch, 1)
            stages = BEYOND_STAGES if problem.gaps_to_tune_on is None else GAP_STAGES
            is_complete = _run_stages(stages, started, comparison, found, watch)
        contenders, choice = choose_beyond(pooled, comparison, pool, found)
    tuned = result_of(problem, comparison, contenders, choice, is_complete)
    return tuned._replace(boosted=with_share(plain.boosted, choice.boosted_share))


def _with_laplace(problem: TuningProblem, tuned: Tuned) -> Tuned:
    """Exact GP classification, averaged by its evidence, with its share of the pool.

    Where labels are few, that which is integrated over its hyperparameters has nearly all of it.
    """
    found = Found()
    with one_blas_thread(), _with_pool(problem) as pooled:
        if not _run_stages((Laplace(),), pooled, pooled.comparison(), found, None):
            return tuned._replace(result=replace(tuned.result, is_complete=False))
    log_evidence = np.array([candidate.log_evidence for candidate in found.laplace])
    odds = np.exp(log_evidence - log_evidence.max())
    odds = np.where(odds > SMALLEST_ODDS, odds, 0.0)
    integrated = problem.integrated_label_share
    shares = (1.0 - integrated) * LAPLACE_SHARE * odds / odds.sum()
    rest = (1.0 - integrated) * (1.0 - LAPLACE_SHARE)
    laplace = [(c, float(w)) for c, w in zip(found.laplace, shares, strict=True) if w]
    laplace += [(c, integrated * w) for c, w in found.integrated_laplace]
    return tuned._replace(
        members=tuple((contender, rest * weight) for contender, weight in tuned.members),
        linear=tuple((candidate, rest * weight) for candidate, weight in tuned.linear),
        laplace=tuple(laplace),
        result=replace(
            tuned.result,
            weights=rest * tuned.result.weights,
            seconds=problem.clock.elapsed,
        ),
    )


def _part_of(
    watch: Callable[[float], None] | None, k: int, n: int = 2
) -> Callable[[float], None] | None:
    """What hears of one of n searches."""
    return None if watch is None else lambda share: watch((k + share) / n)


def _tune_once(problem: TuningProblem, watch: Callable[[float], None] | None) -> Tuned:
    comparison, n_searches = problem.comparison(), problem.n_searches
    searched: list[Found] = []
    # The optimizer's own matrices are tiny: the threads of BLAS only spin on them, for half of
    # the time of a fit; and sums must not depend on how many there are.
    with one_blas_thread(), _with_pool(problem) as problem:
        for k in range(n_searches):
            found = Found() if k == 0 else searched[0].of_all_searches()
            part = _part_of(watch, k, n_searches)
            is_complete = _search(problem, comparison, found, part, k)
            if k == 0 or is_complete:
                searched.append(found)
            if not is_complete:
                break
            if found.unseen is not None:
                if watch is not None:
                    watch(1.0)
                break  # nothing else would have a share
        first = searched[0]
        have_one(problem, comparison, first)
        weighed = weigh(problem, comparison, searched)
        return finish(problem, comparison, weighed, first.boosted, is_complete)


def _stopped(problem: TuningProblem, comparison: Comparison, found: Found) -> Tuned:
    """What there is when the search was cut short before its stages."""
    have_one(problem, comparison, found)
    return finish(problem, comparison, weigh(problem, comparison, [found]), None, False)


@contextmanager
def _with_pool(problem: TuningProblem) -> Iterator[TuningProblem]:
    """The problem with threads for the blocks of its evaluations, made once for all of them."""
    n_threads = problem.resources.n_threads
    if n_threads == 1:
        yield problem
        return
    # The thread of a job works on a block too.
    with ThreadPool(n_threads - 1, thread_name_prefix="lsgp-block") as pool:
        yield replace(problem, resources=problem.resources._replace(pool=pool))


def _search(
    problem: TuningProblem,
    comparison: Comparison,
    found: Found,
    watch: Callable[[float], None] | None,
    number: int = 0,
) -> bool:
    """Run the stages; False if they were cut short. Searches of other numbers draw other rows."""
    stages = STAGES if number == 0 else STAGES_AGAIN
    if problem.is_exact_on_request:
        stages = (Likely(),)
    first_stream = STREAMS_OF_SEARCH * number
    if Boost not in map(type, stages):
        return _run_stages(stages, problem, comparison, found, watch, first_stream)
    with fitting_beside(problem, found, FIRST_STAGE_STREAM + first_stream):
        return _run_stages(stages, problem, comparison, found, watch, first_stream)


def _run_stages(
    stages: tuple[Stage, ...],
    problem: TuningProblem,
    comparison: Comparison,
    found: Found,
    watch: Callable[[float], None] | None,
    first_stream: int = 0,
) -> bool:
    work = sum(stage.work(problem) for stage in stages)
    try:
        with progress_bar("Tuning", work, problem.resources.verbose > 0, watch) as advance:
            for stage in stages:
                if _is_settled(problem, found):
                    break
                report = _reporter(problem, advance)
                stream = FIRST_STAGE_STREAM + first_stream + stage.stream
                stage.run(problem, found, Runner(problem, comparison, stream, report))
    except OutOfTimeError:
        clock = problem.clock
        warn_user(
            f"Tuning stopped after {clock.elapsed:.1f} s (max_tuning_time={clock.max_seconds:g}), "
            "before all that it tries: the model uses the best hyperparameters found so far. More "
            "time, or more threads (n_jobs), may find better ones.",
            TuningStoppedWarning,
        )
        return False
    except KeyboardInterrupt:
        if INTERRUPTS.is_second():
            raise
        warn_user(
            "Tuning was interrupted: the model uses the best hyperparameters found so far.",
            TuningStoppedWarning,
        )
        return False
    return True


def _is_settled(problem: TuningProblem, found: Found) -> bool:
    """Whether the integrated models have all of the weight, whatever else would be found."""
    return len(usable_ones(found.integrated)) > 0 and problem.integrated_share == 1.0


def _reporter(problem: TuningProblem, advance: Callable[..., None]) -> Callable[..., None]:
    """What jobs call when they have done some work: with what they found, or with a text."""
    lock = threading.Lock()
    lowest = [np.inf]
    title = "Tuning"
    if problem.resources.verbose > 0:
        title = placed(title, problem.backend.device_name)

    def report(work: int, what: Contender | str) -> None:
        with lock:
            if isinstance(what, Contender):
                lowest[0] = min(lowest[0], what.loss)
                scored = f"best {problem.objective.name} {lowest[0]:.4g}"
                advance(work, f"{title}: {what.candidate.describe()}, {scored}")
            else:
                advance(work, f"{title}: {what}")

    return report
