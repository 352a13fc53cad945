# SPDX-License-Identifier: BSD-3-Clause
"""Boosted trees beside the local models, where they have something to add."""

from __future__ import annotations

from functools import partial

import numpy as np

from lsgp.compute.warn import warn_user
from lsgp.tuning.boosting import BoostingProblem, FoldFit, UnknownTreesError
from lsgp.tuning.plan import boosted_prior_rows
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import BOOST_STREAM, Found, Job, Runner


class Boost:
    """A fold shows whether they would: then all of them are fitted."""

    stream = BOOST_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if not problem.admits_boosting or not found.all:
            return
        runner.report(0, "boosted trees")
        rows = problem.rows
        boosting = BoostingProblem.build(
            rows.X,
            problem.y,
            rows.noise,
            rows.group_numbers,
            problem.random(runner.stream),
            problem.resources.n_threads,
        )
        (first,) = runner.run([partial(_fit, boosting, 0)], [])
        if not _pays(first, found, runner):
            return
        others = [
            fit
            for fold in range(1, boosting.plan.n_folds)
            for fit in runner.run([partial(_fit, boosting, fold)], [])
        ]
        try:
            found.boosted = boosting.assemble([first, *others])
        except UnknownTreesError as error:
            warn_user(f"{error} The model has none of them: boosting=False says so beforehand.")


def _fit(boosting: BoostingProblem, fold: int, job: Job) -> FoldFit:
    job.problem.clock.check()
    return boosting.fit_without(fold)


def _pays(fit: FoldFit, found: Found, runner: Runner) -> bool:
    """Whether the best model is worth more with them, on those compared rows that they lack."""
    problem, comparison = runner.problem, runner.comparison
    is_held_out = np.isin(comparison.rows, fit.held_out)
    if not is_held_out.any():
        return True
    n_trees = int(np.argmin(fit.error_by_length)) + 1
    said = fit.predict(problem.rows.X[comparison.rows[is_held_out]], n_trees)
    best = min(found.all, key=lambda contender: contender.loss).candidate.predicted[is_held_out]
    y = comparison.y[is_held_out]
    return comparison.share_of(said, best, y, boosted_prior_rows(len(problem.y))) > 0.0
