# SPDX-License-Identifier: BSD-3-Clause
"""Boosted trees beside the local models, where they have something to add."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from lsgp.method.combination import usual_scale
from lsgp.tuning.beyond.plan import MANY_REGIONS
from lsgp.tuning.plan import CORES_OF_GATHERED
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.stages.stage import (
    BOOST_REGIONS_STREAM,
    BOOST_STREAM,
    Found,
    Job,
    Runner,
)
from lsgp.tuning.trees.boosting import BoostingProblem, FoldFit, Folds, FoldsBeside, WarmTrees
from lsgp.tuning.trees.plan import ALWAYS_BOOSTED, WARM_TREES


class Boost:
    """A fold shows whether they would: then all of them are fitted."""

    stream = BOOST_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if not problem.admits_boosting or not found.all:
            return
        if found.unseen is not None:
            return  # nothing else has a share, and leave-one-out says nothing of theirs
        if found.is_noiseless and not found.likely:
            # Of a function, trees are steps: leave-one-out gives them more than they earn. Of few
            # rows it may be none after all (yacht, split 13: a CRPS of .131 with trees, else .161).
            return
        runner.report(0, "boosted trees")
        folds = found.folds or Folds(_boosting(problem, runner.stream), problem.clock)
        if not folds.boosting.is_possible:
            return
        (first,) = runner.run([partial(_fit, folds, 0)], [])
        if not _pays(first, found, runner):
            return
        others = range(1, folds.boosting.plan.n_folds)
        fits = runner.run([partial(_fit, folds, fold) for fold in others], [])
        found.boosted = folds.boosting.assemble(
            [first, *fits], problem.clock.check, problem.resources.n_threads
        )


@contextmanager
def fitting_beside(problem: TuningProblem, found: Found, stream: int) -> Iterator[None]:
    """Where a device has the other stages, trees are fitted by this machine in the meantime.

    Before anyone knows whether they pay: its cores have nothing else to do.
    """
    if not (problem.backend.is_device and problem.admits_boosting):
        yield
        return
    n_left = max(1, problem.resources.n_threads - CORES_OF_GATHERED)
    boosting = _boosting(problem, stream + Boost.stream)
    if not boosting.is_possible:
        yield
        return
    found.folds = FoldsBeside(boosting, problem.clock, n_left)
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
        boosting = _boosting(problem, runner.stream)
        seen = WarmTrees.of(found.boosted)
        n_trees, plan = seen.n_trees, seen.plan(boosting.plan)
        said = []
        for number, targets in regions.layers:
            # Rows of no region are a fold that is always seen.
            folds = np.where(number < 0, number.max() + 1, number).astype(np.int64)
            of_layer = Folds(replace(boosting, folds=folds, plan=plan), problem.clock)
            own, found_here = number[targets], np.empty((len(targets), problem.y.shape[1]))
            numbers = np.unique(own).tolist()
            fits = runner.run([partial(_fit, of_layer, k) for k in numbers], [])
            for k, fit in zip(numbers, fits, strict=True):
                found_here[own == k] = fit.predict(problem.rows.X[targets[own == k]], n_trees)
            said.append(found_here)
        found.boosted_regions = np.concatenate(said)


def _boosting(problem: TuningProblem, stream: int) -> BoostingProblem:
    rows = problem.rows
    boosting = BoostingProblem.build(
        rows.X,
        problem.y,
        rows.noise,
        rows.group_numbers,
        problem.random(stream),
    )
    if problem.warm_trees is None or not problem.is_warm:
        return boosting
    # A previous fit has found how many: a few more, of rows that may be more.
    return replace(boosting, plan=problem.warm_trees.plan(boosting.plan, WARM_TREES))


def _fit(folds: Folds, fold: int, job: Job) -> FoldFit:
    return folds.fit(fold)


def _pays(fit: FoldFit, found: Found, runner: Runner) -> bool:
    """Whether the best model is worth more with them, on those compared rows that they lack."""
    problem, comparison = runner.problem, runner.comparison
    is_held_out = np.isin(comparison.rows, fit.held_out)
    if len(problem.y) <= ALWAYS_BOOSTED or not is_held_out.any():
        return True
    n_trees = int(np.argmin(fit.error_by_length)) + 1
    said = fit.predict(problem.rows.X[comparison.rows[is_held_out]], n_trees)
    best = min(found.all, key=lambda contender: contender.loss).candidate.predicted[is_held_out]
    y = comparison.y[is_held_out]
    return comparison.share_of(said, best, y, len(problem.y), usual_scale(best)) > 0.0
