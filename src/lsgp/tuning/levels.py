# SPDX-License-Identifier: BSD-3-Clause
"""What each `effort` comes to: every number that it decides, in one record for each.

Stages read the record of their problem and never ask for the name of an effort. What is given by
hand (`n_tuning_points`, `n_models`, `n_neighbors`, `kernel`, ...) wins over it.
"""

from __future__ import annotations

from typing import NamedTuple

from lsgp.tuning.plan import N_COMPARED, Effort, Efforts


class Level(NamedTuple):
    """How hard tuning tries, and what predictions may cost."""

    # What the settings of these names are where they are None.
    n_tuning_points: int
    n_models: int
    #: Points on which candidates are compared.
    n_compared: int
    #: Short optimizations of the first kernel in each input transform, and of the others in the
    #: best of these transforms, from the optimum of the first on; at most so many targets.
    ranking: Effort
    relaying: Effort
    n_relayed: int
    n_relayed_of_few: int
    #: Rounds and iterations for the best of them, and how many those are; more of few rows, whose
    #: scores are noisy, and cheap.
    polishing: Effort
    n_polished: int
    n_polished_of_few: int
    #: The same where queries lie in gaps, and where one solve takes a millisecond.
    in_gaps: Efforts
    slowly: Efforts


LEVELS = {
    "balanced": Level(
        n_tuning_points=2000,
        n_models=8,
        n_compared=N_COMPARED,
        ranking=Effort(500, 2, 15),
        relaying=Effort(500, 1, 12),
        n_relayed=2,
        n_relayed_of_few=3,
        polishing=Effort(2000, 1, 15),
        n_polished=4,
        n_polished_of_few=6,
        in_gaps=Efforts(Effort(250, 1, 10), Effort(250, 1, 10), 1, Effort(1000, 2, 15), 6),
        slowly=Efforts(Effort(50, 1, 10), Effort(50, 1, 10), 3, Effort(200, 2, 15), 6),
    ),
}


def plan_efforts(
    level: Level,
    n_tuning_points: int,
    n_eligible: int,
    is_slow: bool,
    is_in_gaps: bool,
    is_ranked: bool,
) -> Efforts:
    """By how many points there are to tune on, and how fast they can be solved.

    Single runs of L-BFGS stop in poor optima (protein with 32 neighbors: MSE 16.5 instead of 10.5);
    a second round on another sample, in the metric that the first has found, cures it. Where starts
    are ranked, that was the first.
    """
    n = n_tuning_points
    if is_slow:
        # NumPy, query by query, 100 times slower: small samples.
        return _at_most(level.slowly, n)
    # At most half of the rows at a time: optimizing further on all of few rows fits them.
    n = min(n, max(n_eligible // 2, 1))
    if is_in_gaps:
        # Four times the neighbors: a quarter of the points.
        return _at_most(level.in_gaps, n)
    has_few = n < n_tuning_points
    # Scores of few rows are noisy, and cheap: more tries.
    n_rounds = level.polishing.n_rounds + has_few + (not is_ranked)
    polishing = level.polishing._replace(n_targets=n, n_rounds=n_rounds)
    n_relayed = level.n_relayed_of_few if has_few else level.n_relayed
    n_polished = level.n_polished_of_few if has_few else level.n_polished
    efforts = Efforts(level.ranking, level.relaying, n_relayed, polishing, n_polished)
    return _at_most(efforts, n)


def _at_most(efforts: Efforts, n: int) -> Efforts:
    """The same with no more targets than these."""

    def least(effort: Effort) -> Effort:
        return effort._replace(n_targets=min(effort.n_targets, n))

    return efforts._replace(
        ranking=least(efforts.ranking),
        relaying=least(efforts.relaying),
        polishing=least(efforts.polishing),
    )
