# SPDX-License-Identifier: BSD-3-Clause
"""The search for models: successive halving over families, then stacking of the models found.

Settings, warm starts, efforts and queries change the inputs of the search (families, starts,
budget, hold-out), never its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.clock import Clock
from lsgp.solvers.objective import Objective
from lsgp.tuning.average import Average
from lsgp.tuning.budget import Budget, Rung
from lsgp.tuning.data import Data, Problem
from lsgp.tuning.exact import Exact
from lsgp.tuning.family import Contender, Family, Judged, Spec, Tuned
from lsgp.tuning.hold_out import HoldOut, of_levels
from lsgp.tuning.jobs import Job, Workers, at_work
from lsgp.tuning.local import Local
from lsgp.tuning.log_odds import LaplaceAverage, Logistic
from lsgp.tuning.outcome import Outcome, Weighed, finds_function, finish, weigh, weigh_beyond
from lsgp.tuning.regions import like_queries
from lsgp.tuning.trees import Trees

Array = NDArray[np.float64]

#: Assumed time of growing for the progress bar, relative to the last rung.
GROWTH = 1.0
#: Largest number of rounds of growing; neighborhoods grow from 64 to 384 in three.
MOST_GROWN = 3
#: Number of models of the fit without queries that are tuned further for queries.
N_BEYOND = 4


#: A family is removed by deleting its file and its name here.
FAMILIES: tuple[Family, ...] = (
    Average(),
    Exact(),
    LaplaceAverage(),
    Logistic(),
    Trees(),
    Local(),
)


def tune(
    data: Data,
    budget: Budget,
    starts: Sequence[Spec] = (),
    queries: Array | None = None,
    objective_of_queries: Objective | None = None,
    families: Sequence[Family] = FAMILIES,
    watch: Callable[[float], None] | None = None,
) -> Outcome:
    """Search for models, and combine them.

    ``starts`` are models of a previous fit, which are tuned in the last rung only, without growing.
    If ``queries`` (q, d) of later predictions lie beyond the rows, the models found compete with
    models that are tuned for the queries, on held-out regions like theirs and with an objective of
    their own. ``watch`` is called with the share of the work that is done.
    """
    clock = Clock(budget.seconds)
    hold_out = data.hold_out(budget.n_compared)
    problem = Problem(data, hold_out, budget)
    rungs = budget.rungs(len(hold_out.tuned.targets))
    if starts:
        # Earlier rungs have fewer targets, and would make tuned models worse.
        rungs = (rungs[-1]._replace(n_kept=len(starts)),)
    pool = list(starts) or offered(problem, families)
    if len(pool) <= rungs[-1].n_kept:
        rungs = rungs[-2:]  # no rung would drop a model
    work = _work(problem, families, pool, rungs)
    with at_work(data, clock, work, watch) as workers:
        search = Search(workers, families, problem, rungs)
        found = search.run(pool, grows=not starts, needs_trial=not starts)
        weighed = weigh(data, found, hold_out, budget)
        with workers.stoppable():
            if not workers.is_complete:
                pass
            elif queries is not None:
                regions = like_queries(data, queries, [c.space for c, _ in weighed.members])
                if regions is not None:
                    objective = objective_of_queries or data.objective
                    weighed, found = search.beyond(weighed, objective, regions)
                    hold_out = regions
            elif finds_function(data, weighed) and (levels := of_levels(data.rows.X)) is not None:
                judged = search.judge_again(_contenders(found), levels)
                weighed, found = weigh(data, judged, levels, budget, widens=True), list(judged)
                hold_out = levels
        return finish(data, found, weighed, hold_out, clock.elapsed, workers.is_complete)


def offered(problem: Problem, families: Sequence[Family] = FAMILIES) -> list[Spec]:
    """Return the starts of all families that fit the targets."""
    has_labels = problem.data.labels is not None
    fitting = [f for f in families if f.of_labels in (None, has_labels)]
    starts = {f.name: f.starts(problem) for f in fitting}
    is_enough = any(f.suffices(problem) and starts[f.name] for f in fitting)
    return [spec for f in fitting if not (f.yields and is_enough) for spec in starts[f.name]]


def _work(
    problem: Problem, families: Sequence[Family], pool: Sequence[Spec], rungs: Sequence[Rung]
) -> float:
    """Estimate the nominal milliseconds of a search."""
    total, last = 0.0, 0.0
    for family in families:
        specs = [spec for spec in pool if spec.family == family.name]
        for rung in rungs:
            last = sum(family.work_of(problem, spec, rung) for spec in specs)
            total += last
            specs = specs[: rung.n_kept]
        total += GROWTH * last
    return total


class Search:
    """One search: rungs of tuning, judging, growing."""

    def __init__(
        self, workers: Workers, families: Sequence[Family], problem: Problem, rungs: Sequence[Rung]
    ) -> None:
        self.workers, self.data = workers, workers.data
        self.problem = problem._replace(data=workers.data)
        self.families = {family.name: family for family in families}
        self.rungs = rungs
        self.tuned: list[Tuned] = []  # in the last rung

    def run(self, pool: list[Spec], grows: bool, needs_trial: bool = True) -> list[Judged]:
        """Tune and judge models; returns at least one, even if time was up at once.

        Models of a previous fit need no trial: all of them are judged.
        """
        tuned: list[Tuned] = []
        found: list[Judged] = []
        with self.workers.stoppable():
            for rung in self.rungs:
                tuned = self._best(self._tune(pool, rung, tuned), rung.n_kept)
                pool = [each.spec for each in tuned]
            self.tuned = tuned
            self._predict(self._ready(tuned) if needs_trial else tuned, found)
            for _ in range(MOST_GROWN if grows else 0):
                grown = self._each_family(
                    lambda family, tuned, job: family.grow(self.problem, tuned, found, job), tuned
                )
                if not grown:
                    break
                self._predict(grown, found)
        if not found:
            # Time is up: judge tuned models of quick families, and a local model. Local models are
            # last in the pool, because they are last in FAMILIES.
            ready = [each.spec for each in self._ready(self._best(tuned, 1))]
            specs = [spec for spec in ready if self.families[spec.family].is_quick]
            specs += [s for s in pool[-1:] if all(s.family != one.family for one in specs)]
            job = Job(self.data.random(0), Clock(), lambda: self.data.resources)
            found += [self.families[s.family].predict(self.problem, s, job) for s in specs]
        return found

    def beyond(
        self, plain: Weighed, objective: Objective, regions: HoldOut
    ) -> tuple[Weighed, list[Judged]]:
        """Weigh the fit without queries and models tuned for queries, by held-out regions."""
        data, budget, members = self.data, self.problem.budget, plain.members
        contenders = [contender for contender, _ in members]
        judged = self.judge_again(contenders, regions)
        specs = [c.spec for c in contenders if not c.candidate.is_integrated][:N_BEYOND]
        # Families add models for queries beyond the rows.
        added = self._each_family(
            lambda family, tuned, job: family.beyond(self.problem, tuned, job), self.tuned
        )
        specs += [new.spec for new in added if all(new.spec.model is not s.model for s in specs)]
        # Far from the rows, predictions without a trend return to the mean of the targets.
        pool = list(specs)
        if data.specification.model.constant_variance > 0:
            bare = (s.model.replace(constant_variance=0.0, slope_variance=0.0) for s in specs)
            pool += [s._replace(model=model) for s, model in zip(specs, bare, strict=True)]
        rung = budget.rungs(data.n)[1]._replace(n_kept=len(pool))
        tuned_for = replace(data, objective=objective)
        workers = Workers(tuned_for, self.workers.clock, self.workers.advance)
        problem = Problem(tuned_for, regions, budget)
        search = Search(workers, list(self.families.values()), problem, (rung,))
        found = search.run(pool, grows=False, needs_trial=False) if pool else []
        self.workers.is_complete = workers.is_complete
        weights = np.array([weight for _, weight in members])
        known = (plain.calibration, regions, budget)
        weighed = weigh_beyond(data, judged, weights, _contenders(found), *known)
        return weighed, [*judged, *found]

    def _each_family(
        self, ask: Callable[[Family, list[Tuned], Job], list[Tuned]], tuned: list[Tuned]
    ) -> list[Tuned]:
        """Ask all families at a time for further models, given their tuned ones."""

        def one(name: str, job: Job) -> list[Tuned]:
            return ask(self.families[name], _of_family(name, tuned), job)

        found: list[list[Tuned]] = []
        self.workers.run([partial(one, name) for name in self.families], found)
        return [each for part in found for each in part]

    def judge_again(self, contenders: list[Contender], hold_out: HoldOut) -> list[Contender]:
        """Judge models on another hold-out, without tuning."""
        # Scales stay as calibrated by leave-one-out.
        as_is = replace(self.data.objective, calibrates_scale=False)
        data = replace(self.data, objective=as_is)
        problem = self.problem._replace(data=data, hold_out=hold_out)

        def one(contender: Contender, job: Job) -> Contender:
            family = self.families[contender.family]
            judged = family.judge_again(problem, contender, job)
            # The evidence of the rows does not rank models for this hold-out.
            return judged._replace(family=contender.family, log_evidence=0.0)

        judged: list[Contender] = []
        self.workers.run([partial(one, each) for each in contenders], judged)
        return judged

    def _tune(self, pool: list[Spec], rung: Rung, before: list[Tuned]) -> list[Tuned]:
        def one(spec: Spec, job: Job) -> Tuned:
            family = self.families[spec.family]
            found = family.tune(self.problem, spec, rung, job)
            work = family.work_of(self.problem, spec, rung)
            self.workers.advance(work, f"{spec.family} {spec.model.kernel}")
            return found

        tuned: list[Tuned] = []
        try:
            self.workers.run([partial(one, spec) for spec in pool], tuned)
        except BaseException:
            # Keep the last rung's models of families that this rung did not reach.
            seen = {each.spec.family for each in tuned}
            before[:] = tuned + [each for each in before if each.spec.family not in seen]
            raise
        return tuned

    def _best(self, tuned: list[Tuned], n_kept: int) -> list[Tuned]:
        """Return the best ``n_kept`` models of each family, best first."""
        kept = []
        for name in self.families:
            kept += sorted(_of_family(name, tuned), key=lambda each: each.score)[:n_kept]
        return kept

    def _ready(self, tuned: list[Tuned]) -> list[Tuned]:
        ready = []
        for name, family in self.families.items():
            ready += family.ready(self.problem, _of_family(name, tuned))
        return ready

    def _predict(self, tuned: list[Tuned], found: list[Judged]) -> None:
        def one(each: Tuned, job: Job) -> Judged:
            family = self.families[each.spec.family]
            judged = family.predict(self.problem, each.spec, job)
            self.workers.advance(0.0, f"{judged.describe()}, loss {judged.loss:.4g}")
            return judged._replace(log_evidence=judged.log_evidence or each.log_evidence)

        self.workers.run([partial(one, each) for each in tuned], found)


def _of_family(name: str, tuned: Sequence[Tuned]) -> list[Tuned]:
    return [each for each in tuned if each.spec.family == name]


def _contenders(found: Sequence[Judged]) -> list[Contender]:
    return [judged for judged in found if isinstance(judged, Contender)]
