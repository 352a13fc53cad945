# SPDX-License-Identifier: BSD-3-Clause
"""Boosted trees beside the local models, where they have something to add."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from lsgp.compute.warn import warn_user
from lsgp.tuning.boosting import (
    BoostingProblem,
    FoldFit,
    Folds,
    FoldsBeside,
    UnknownTreesError,
)
from lsgp.tuning.plan import MANY_REGIONS, boosted_prior_rows
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import (
    BOOST_REGIONS_STREAM,
    BOOST_STREAM,
    CORES_OF_GATHERED,
    Found,
    Job,
    Runner,
)


class Boost:
    """A fold shows whether they would: then all of them are fitted."""

    stream = BOOST_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if not problem.admits_boosting or not found.all:
            return
        runner.report(0, "boosted trees")
        n_threads = problem.resources.n_threads
        folds = found.folds or Folds(_boosting(problem, runner.stream, n_threads), problem.clock)
        (first,) = runner.run([partial(_fit, folds, 0)], [])
        if not _pays(first, found, runner):
            return
        others = [
            fit
            for fold in range(1, folds.boosting.plan.n_folds)
            for fit in runner.run([partial(_fit, folds, fold)], [])
        ]
        try:
            found.boosted = folds.boosting.assemble([first, *others])
        except UnknownTreesError as error:
            warn_user(f"{error} The model has none of them: boosting=False says so beforehand.")


@contextmanager
def fitting_beside(problem: TuningProblem, found: Found, stream: int) -> Iterator[None]:
    """Where a device has the other stages, trees are fitted by this machine in the meantime.

    Before anyone knows whether they pay: its cores have nothing else to do.
    """
    if not (problem.backend.is_device and problem.admits_boosting):
        yield
        return
    # Threads of OpenMP that have to wait for a core take many times as long.
    n_left = max(1, problem.resources.n_threads - CORES_OF_GATHERED)
    boosting = _boosting(problem, stream + Boost.stream, n_left)
    found.folds = FoldsBeside(boosting, problem.clock)
    try:
        yield
    finally:
        found.folds.close()
        found.folds = None


class BoostRegions:
    """Where queries lie beyond the rows: what trees say of regions that they have not seen.

    As many trees as among the rows, if they have a share there.
    """

    stream = BOOST_REGIONS_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        regions = runner.comparison.regions
        if found.boosted is None or regions is None or regions.n_regions >= MANY_REGIONS:
            return
        runner.report(0, "boosted trees without regions")
        boosting = _boosting(problem, runner.stream, problem.resources.n_threads)
        n_trees = found.boosted.n_trees // found.boosted.baseline.size
        plan = boosting.plan._replace(n_trees=n_trees)
        said = []
        for number, targets in regions.layers:
            # Rows of no region are a fold that is always seen.
            folds = np.where(number < 0, number.max() + 1, number).astype(np.int64)
            of_layer = Folds(replace(boosting, folds=folds, plan=plan), problem.clock)
            own, found_here = number[targets], np.empty((len(targets), problem.y.shape[1]))
            for k in np.unique(own):
                (fit,) = runner.run([partial(_fit, of_layer, int(k))], [])
                found_here[own == k] = fit.predict(problem.rows.X[targets[own == k]], n_trees)
            said.append(found_here)
        found.boosted_regions = np.concatenate(said)


def _boosting(problem: TuningProblem, stream: int, n_threads: int) -> BoostingProblem:
    rows = problem.rows
    return BoostingProblem.build(
        rows.X,
        problem.y,
        rows.noise,
        rows.group_numbers,
        problem.random(stream),
        n_threads,
    )


def _fit(folds: Folds, fold: int, job: Job) -> FoldFit:
    return folds.fit(fold)


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
