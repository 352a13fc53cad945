# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs of functions without noise, where none was found.

A noise at the floor of its range says that the targets are a function of the inputs, as those of a
computer experiment are: then the floor itself is what limits how well they are predicted. These GPs
have less, as far as their factors allow, and a signal variance and lengthscales to suit; and their
inputs may be bent (`tuning/functions/bending.py`).
"""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lsgp.method.combination import combine
from lsgp.method.kernels import KernelSetting
from lsgp.solvers.exact_system import ExactSystem
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.evidence import evidence_of
from lsgp.tuning.functions.bending import Bent
from lsgp.tuning.functions.judging import (
    Judged,
    Tuned,
    bendable_rows,
    judge_function,
    maximize_noiseless,
    odds_of,
    solve_function,
)
from lsgp.tuning.functions.on_levels import add_on_levels, trends_of, weigh_unseen
from lsgp.tuning.functions.plan import (
    LARGEST_DROP,
    LITTLE_NOISE,
    N_FIRST_NOISELESS,
    N_NOISELESS_ROWS,
    NOISELESS_KERNELS,
    SMALLEST_FIRST_ODDS,
    SOME_NOISE,
    TINY_NOISE,
    WORST_UNSEEN,
    WORTH_DESCENT,
)
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.parameters import finds_no_noise
from lsgp.tuning.plan import (
    BAD_EVIDENCE,
    FEW_ROWS,
    MOST_FOR_EVIDENCE,
    SMALLEST_ODDS,
)
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import NOISELESS_STREAM, Found, Job, Runner

Array = NDArray[np.float64]
Rows = NDArray[np.int32]


class Noiseless:
    stream = NOISELESS_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if not problem.admits_noiseless or _is_known_noisy(problem):
            return
        best = _best_exact(found)
        rows = problem.draw(N_NOISELESS_ROWS, problem.random(runner.stream))
        if best is None or not _may_be_function(problem, found, best, rows):
            return
        runner.report(0, "exact GPs without noise")
        lattice = problem.lattice
        some = _few(problem, rows, runner)
        is_last = len(some) == len(rows)
        plain = runner.run(
            [
                partial(
                    _tune_plain,
                    kind=kind,
                    best=best,
                    rows=some,
                    is_last=is_last,
                    has_trend=has_trend,
                )
                for kind in _kinds(problem, best)
                for has_trend in trends_of(problem)
            ],
            [],
        )
        # Bending takes most of the time: not what would have no share all the same.
        bendable = [each for each in _likely(plain, some) if _is_bendable(problem, each.space)]
        bent = runner.run(
            [partial(_bend, plain=each, rows=some, is_last=is_last) for each in bendable], []
        )
        tuned = plain + bent
        if not is_last:
            # What holds between the levels of a lattice, the evidence does not say.
            is_told = lattice is None or not lattice.is_complete
            left = _likely(tuned, some, SMALLEST_FIRST_ODDS) if is_told else tuned
            tuned = _tune_further(runner, left, list(zip(bendable, bent, strict=True)), rows)
        if len(problem.y) > MOST_FOR_EVIDENCE:
            _judge_one(problem, found, runner, tuned, best, rows)
            return
        judged = [
            each
            for each in runner.run([partial(judge_function, tuned=each) for each in tuned], [])
            if each is not None
        ]
        if lattice is not None and lattice.is_complete:
            add_on_levels(problem, lattice, found, runner, judged)
        else:
            _add(problem, found, runner, judged)


def _is_known_noisy(problem: TuningProblem) -> bool:
    """Whether a previous fit has found noise."""
    starts = (*problem.starts, *problem.exact_starts, *problem.composite_starts)
    return problem.is_warm and not any(finds_no_noise(start.model) for start in starts)


def _add(problem: TuningProblem, found: Found, runner: Runner, judged: list[Judged]) -> None:
    """What was found, in the place of those with noise if it is better and rows are few."""
    contenders = [each.contender for each in judged]
    likely = [contender for contender, _ in found.likely]
    lowest = min((c.loss for c in contenders), default=math.inf)
    is_few = likely or len(problem.y) <= FEW_ROWS
    with_noise = min((c.loss for c in likely or found.all), default=math.inf)
    is_better = lowest < with_noise or (
        any(finds_no_noise(c.model) for c in likely)
        and problem.objective.is_promising(lowest, with_noise)
    )
    unseen = [each.unseen for each in judged if each.unseen is not None]
    is_unseen_known = len(unseen) == len(judged)
    if not contenders or not is_few or not is_better:
        found.exact += contenders
        found.is_noiseless = not likely and problem.objective.is_promising(lowest, with_noise)
        return
    if is_unseen_known:
        y = runner.comparison.y
        odds = weigh_unseen(problem, unseen, judged, y)
        used = np.flatnonzero(odds)
        combined = combine([unseen[int(k)] for k in used], odds[used])
        mean_loss = float(problem.objective.losses(combined, y).mean())
        if mean_loss > WORST_UNSEEN * min(c.loss for c in [*likely, *found.all]):
            found.exact += contenders
            return
        # What says how well they do on other rows leaves nothing to leave-one-out.
        found.unseen, found.is_on_levels = combined, problem.lattice is not None
    else:
        odds = np.array(odds_of([each.log_evidence for each in judged], len(problem.y)))
    # They have the share of those with noise, which are candidates like any other now. Not by the
    # loss alone: where rows are few, these are, at a tenth more, the better ones.
    found.exact += likely
    found.is_noiseless = True
    pairs = zip(contenders, odds.tolist(), strict=True)
    found.likely[:] = [(c, one) for c, one in pairs if one > SMALLEST_ODDS]


def _best_exact(found: Found) -> Contender | None:
    """The best exact GP there is; without any, the best of all."""
    exact = [*found.exact, *(contender for contender, _ in found.likely)]
    return min(exact or found.all, key=lambda c: c.loss, default=None)


def _may_be_function(problem: TuningProblem, found: Found, best: Contender, rows: Rows) -> bool:
    """Whether the best exact GP has no noise, or the best of all has none; of few rows, little.

    The prior of exact GPs keeps some. Where it is more, the rows must be about as likely without.
    """
    all_of_them = min(found.all, key=lambda c: c.loss, default=best)
    noise = best.model.noise_variance
    if finds_no_noise(best.model) or finds_no_noise(all_of_them.model):
        return True
    if len(problem.y) > MOST_FOR_EVIDENCE or noise > SOME_NOISE:
        return False
    return noise <= LITTLE_NOISE or _is_likely_without(problem, best, rows)


def _is_likely_without(problem: TuningProblem, best: Contender, rows: Rows) -> bool:
    """Whether the metric of the best explains rows without noise, about as well as with it.

    Not tuned for that: rows that have noise are less likely by hundreds, or thousands.
    """
    own = best.space.part(rows).problem(problem.make_exact(best.model))
    with_noise = -evidence_of(own, problem.backend.dense).value
    without = [
        maximize_noiseless(
            problem,
            bendable_rows(problem, space).part(rows),
            _cold(problem, kernel, lengthscale=best.model.lengthscale),
            n=0,
        ).log_evidence
        for space, kernel in _kinds(problem, best)
    ]
    return max(without) >= with_noise - LARGEST_DROP * len(rows)


def _kinds(problem: TuningProblem, best: Contender) -> list[tuple[LeaveOneOut, KernelSetting]]:
    """Each kernel with standardized inputs, which are bent too; the best where ranks are better."""
    known = problem.specification.kernels
    kernels: list[KernelSetting] = [k for k in NOISELESS_KERNELS if k in known]
    kernels = kernels or [best.model.kernel]
    if not problem.admits_bending:
        return [(best.space, kernel) for kernel in kernels]
    kinds = problem.specification.kinds_of("standardize")
    made = {start.space.kinds: start.space for start in problem.starts}
    space = made.get(kinds) or problem.space(kinds)
    found = [(space, kernel) for kernel in kernels]
    if "half-rank" in best.space.kinds:
        found.append((best.space, kernels[-1]))
    return found


def _is_bendable(problem: TuningProblem, space: LeaveOneOut) -> bool:
    lattice = problem.lattice
    has_inputs = lattice is None or bool(lattice.is_bendable.any())
    return problem.admits_bending and set(space.kinds) == {"standardize"} and has_inputs


def _few(problem: TuningProblem, rows: Rows, runner: Runner) -> Rows:
    """Those that are tuned on first: steps cost their cube."""
    step = max(1, round(len(rows) / N_FIRST_NOISELESS))
    if problem.lattice is not None and step > 1:
        # In the order of a table, every second row may have every second level alone.
        rng = problem.random(runner.stream)
        return np.sort(rng.choice(rows, len(rows) // step, replace=False))
    return rows[::step]


def _likely(tuned: list[Tuned], rows: Rows, least_odds: float = SMALLEST_ODDS) -> list[Tuned]:
    """Those that may have a share, by the evidence of these rows."""
    odds = odds_of([each.found.log_evidence for each in tuned], len(rows))
    return [each for each, own in zip(tuned, odds, strict=True) if own > least_odds]


def _tune_further(
    runner: Runner, left: list[Tuned], bent: list[tuple[Tuned, Tuned]], rows: Rows
) -> list[Tuned]:
    """What is left, with more rows; ``bent`` are pairs of one before and after its inputs were.

    Bends begin again from inputs as they are: from the bends of few rows, steps along the valley
    where the signal grows with all lengthscales get small long before its end.
    """
    origins = {id(after): before for before, after in bent}
    plain = {id(one): one for one in (origins.get(id(each), each) for each in left)}
    gone_on = runner.run([partial(_go_on, tuned=one, rows=rows) for one in plain.values()], [])
    further = dict(zip(plain, gone_on, strict=True))
    bends = [
        partial(_bend_further, plain=further[id(origins[id(each)])], few=each, rows=rows)
        for each in left
        if each.is_bent
    ]
    return _finished(gone_on + runner.run(bends, []))


def _finished(tuned: list[Tuned]) -> list[Tuned]:
    """Without bends that are less likely than none: their descent ended before its end."""

    def is_outdone(one: Tuned) -> bool:
        return one.is_bent and any(
            each.space is one.space
            and each.found.model.kernel == one.found.model.kernel
            and each.found.log_evidence > one.found.log_evidence
            for each in tuned
        )

    return [each for each in tuned if not is_outdone(each)]


def _tune_plain(
    job: Job,
    kind: tuple[LeaveOneOut, KernelSetting],
    best: Contender,
    rows: Rows,
    is_last: bool,
    has_trend: bool = True,
) -> Tuned:
    """With inputs as they are."""
    problem, (space, kernel) = job.problem, kind
    part = bendable_rows(problem, space).part(rows)
    # From the metric of the best as well, in whatever transform: all are in standard deviations.
    starts = [
        _cold(problem, kernel, has_trend, lengthscale)
        for lengthscale in (None, best.model.lengthscale)
    ]
    if not is_last:
        # More rows go on from there, and from either they come to much the same.
        starts = [
            max(
                starts,
                key=lambda each: maximize_noiseless(problem, part, each, n=0).log_evidence,
            )
        ]
    found = [maximize_noiseless(problem, part, start, is_last=is_last) for start in starts]
    return Tuned(space, max(found, key=lambda each: each.log_evidence), False)


def _bend(job: Job, plain: Tuned, rows: Rows, is_last: bool) -> Tuned:
    """From there on with bent inputs."""
    problem, found = job.problem, plain.found
    start = _cold(problem, found.model.kernel, found.model.constant_variance > 0)
    return _bend_from(problem, plain, start, rows, is_last)


def _bend_further(job: Job, plain: Tuned, few: Tuned, rows: Rows) -> Tuned:
    """The same with more rows, of which few have been bent already."""
    return _bend_from(job.problem, plain, few.found, rows, True)


def _bend_from(
    problem: TuningProblem, plain: Tuned, other: Bent, rows: Rows, is_last: bool
) -> Tuned:
    """From what is not bent, or if that gains nothing, from another start."""
    part = bendable_rows(problem, plain.space).part(rows)
    bent = maximize_noiseless(problem, part, plain.found, True, is_last)
    if bent.log_evidence < plain.found.log_evidence + WORTH_DESCENT:
        # Where it begins the evidence may be too steep for a step.
        again = maximize_noiseless(problem, part, other, True, is_last)
        bent = max(bent, again, key=lambda each: each.log_evidence)
    return Tuned(plain.space, bent, True)


def _go_on(job: Job, tuned: Tuned, rows: Rows) -> Tuned:
    """With more rows."""
    problem = job.problem
    part = bendable_rows(problem, tuned.space).part(rows)
    found = maximize_noiseless(problem, part, tuned.found)
    if found.log_evidence <= -BAD_EVIDENCE:
        # They cannot be factored where fewer have ended.
        start = _cold(problem, found.model.kernel, found.model.constant_variance > 0)
        found = maximize_noiseless(problem, part, start)
    return tuned._replace(found=found)


def _cold(
    problem: TuningProblem,
    kernel: KernelSetting,
    has_trend: bool = True,
    lengthscale: NDArray[np.floating] | None = None,
) -> Bent:
    """Where nothing is known yet, but for lengthscales if they are given."""
    model = problem.make_exact(problem.specification.model)
    model = model.replace(kernel=kernel, noise_variance=TINY_NOISE / model.signal_variance)
    if not has_trend:
        model = model.replace(constant_variance=0.0, slope_variance=0.0)
    if lengthscale is not None:
        model = model.replace(lengthscale=lengthscale)
    return Bent(model, np.zeros(len(model.lengthscale)), -math.inf)


def _judge_one(
    problem: TuningProblem,
    found: Found,
    runner: Runner,
    tuned: list[Tuned],
    best: Contender,
    rows: Rows,
) -> None:
    """The best of part of the rows, of all of them, where it is better than one with noise."""
    comparison = problem.compare_on(rows)
    starts = [each.start(problem) for each in tuned]
    rival = best.start._replace(model=problem.make_exact(best.model))

    def judge(start: Start, job: Job) -> float:
        problem.clock.check()
        own = start.space.part(rows).problem(start.model)
        system = ExactSystem.solve(own, problem.backend.dense)
        predictions = system.leave_out(np.arange(len(rows), dtype=np.int32))
        return comparison.judge(start.model, predictions, calibrates_scale=True).loss

    losses = runner.run([partial(judge, start) for start in [*starts, rival]], [])
    k = int(np.argmin(losses[:-1]))
    if not problem.objective.is_worthwhile(losses[k], losses[-1]):
        return
    if problem.exact_room < 2:
        found.exact.clear()  # there is no room for both

    def make(job: Job) -> None:
        began = time.monotonic()
        solved = solve_function(problem, tuned[k])
        if solved is not None:
            start, system = solved
            job.found.append(problem.judge_exact(start, system, comparison_of_all, True, began))

    comparison_of_all = runner.comparison
    runner.run([make], found.exact)
