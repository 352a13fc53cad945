# SPDX-License-Identifier: BSD-3-Clause
"""What each `effort` comes to: every number that it decides, in one record for each.

Stages read the record of their problem and never ask for the name of an effort. What is given by
hand (`n_tuning_points`, `n_models`, `n_neighbors`, `kernel`, ...) wins over it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lsgp.tuning.composite_plan import ROUGH_SUM, SMOOTH_SUM
from lsgp.tuning.plan import MANY_INPUTS, N_COMPARED, Effort, Efforts
from lsgp.tuning.trees.plan import WORTH_BOOSTING

#: Rows of an exact GP: as many as there is room and time for where it is solved.
MOST_EXACT = 1_000_000
#: Models of a previous fit that tuning starts from: all of them.
MOST_WARM = 1000


class Level(NamedTuple):
    """How hard tuning tries, and what predictions may cost."""

    # What the settings of these names are where they are None.
    n_tuning_points: int
    n_models: int
    #: Searches, each with a sample of its own; what they choose is averaged.
    n_searches: int
    #: Points on which candidates are compared.
    n_compared: int
    #: Short optimizations that rank kernels and input transforms, of at most so many targets; or,
    #: for less, of the first kernel in each transform, and of the others in so many of the best
    #: transforms from the optimum of the first on. 0: each from its own start (kin8nm, whose exact
    #: GP has the hyperparameters of a local model: CRPS 2.7 % lower).
    ranking: Effort
    relaying: Effort
    n_relayed: int
    n_relayed_of_few: int
    #: Rounds and iterations for the best of them, and how many those are; more of few rows, whose
    #: scores are noisy, and cheap. (Balanced with four of few and not six, splits 10 to 19 of
    #: yacht: CRPS the same; one round and not two: 3 % higher. Best with twelve of few in three
    #: rounds was 4.3 % worse than balanced on yacht, splits 10 to 17, and .8 % better on boston;
    #: with four in two, and one search more, .9 and 1.3 % better.)
    polishing: Effort
    n_polished: int
    n_polished_of_few: int
    n_rounds_of_few: int
    #: The same of many inputs, where an evaluation takes the longer, the more there are.
    n_relayed_of_many_inputs: int
    n_polished_of_many_inputs: int
    #: The same where queries lie in gaps, and where one solve takes a millisecond.
    in_gaps: Efforts
    slowly: Efforts
    #: For each model of a previous fit that tuning starts from: nothing else is tried then.
    warming: Effort
    #: How many of the polished are varied and enlarged, and whether single inputs are transformed.
    n_varied: int
    n_enlarged: int
    mixes_transforms: bool
    #: Whether inputs that say nothing are tuned with the others, where there are many.
    keeps_all_inputs: bool
    #: Whether boosted trees may stand beside the models, and by which fraction they must lower the
    #: loss. (Best on powerplant, split 10: with .005 they had no share, and CRPS was 1.435; with 0
    #: they had one of .15, and it was 1.403.)
    boosts: bool
    worth_boosting: float
    #: The largest neighborhood, that of few rows and of labels, and the most rows of an exact GP.
    most_neighbors: int
    most_of_few: int
    #: The same where queries are known and lie in gaps, whatever they take: with fewer, nobody sees
    #: round the rim (satellite: CRPS .775 with 256, .74 with 512).
    most_in_gaps: int
    most_exact: int
    #: Whether exact GPs of many rows are factored in double precision even where single will do.
    factors_in_double: bool
    #: Exact GPs of few rows that are averaged, at most, and whether all kernels are tried for them.
    n_averaged: int
    tries_all_exact: bool
    #: Sums that are tried, each by its correlations of long and of short distances. (Boston, splits
    #: 10 to 17: CRPS 1.339 without, 1.335 with the first, 1.330 with both, for half a second each.)
    sums: tuple[tuple[str, str], ...]
    #: What a millisecond of a prediction must lower the loss by, as a fraction,
    worth_of_millisecond: float
    #: and how many there may be: those beyond must lower it by several times as much.
    most_milliseconds: float
    #: Of labels. Up to so many rows, tuning goes twice, with tuned and compared rows exchanged, and
    #: both pools are averaged: on pima, two splits of the same rows differ by .06 in log loss.
    #: Means of splits 10 to 13: spambase .1367 to .1354, satimage (two) .203 to .194, phoneme
    #: (three) .189 to .188;
    most_exchanged: int
    #: and GP classification has a share.
    most_laplace: int


#: Measured on splits 10 and 11 of the six tables of `benchmarks/accuracy.py`: `docs/tuning.md`.
LEVELS = {
    "fast": Level(
        n_tuning_points=600,
        n_models=4,
        n_searches=1,
        n_compared=1000,
        ranking=Effort(250, 1, 8),
        relaying=Effort(250, 1, 4),
        n_relayed=1,
        n_relayed_of_few=1,
        polishing=Effort(600, 1, 8),
        n_polished=2,
        n_polished_of_few=2,
        n_rounds_of_few=1,
        n_relayed_of_many_inputs=1,
        n_polished_of_many_inputs=2,
        in_gaps=Efforts(Effort(128, 1, 6), Effort(128, 1, 6), 0, Effort(300, 1, 12), 2),
        slowly=Efforts(Effort(25, 1, 6), Effort(25, 1, 6), 0, Effort(80, 1, 10), 2),
        warming=Effort(300, 1, 3),
        n_varied=0,
        n_enlarged=1,
        mixes_transforms=False,
        keeps_all_inputs=False,
        boosts=False,
        worth_boosting=WORTH_BOOSTING,
        most_neighbors=256,
        most_of_few=128,
        most_in_gaps=256,
        most_exact=0,
        factors_in_double=False,
        n_averaged=1,
        tries_all_exact=False,
        sums=(),
        worth_of_millisecond=0.05,
        most_milliseconds=0.2,
        most_exchanged=0,
        most_laplace=300,
    ),
    "balanced": Level(
        n_tuning_points=2000,
        n_models=8,
        n_searches=1,
        n_compared=N_COMPARED,
        ranking=Effort(500, 2, 15),
        relaying=Effort(500, 1, 15),
        n_relayed=0,
        n_relayed_of_few=0,
        polishing=Effort(2000, 1, 15),
        n_polished=4,
        n_polished_of_few=4,
        n_rounds_of_few=2,
        n_relayed_of_many_inputs=2,
        n_polished_of_many_inputs=3,
        in_gaps=Efforts(Effort(250, 1, 10), Effort(250, 1, 10), 0, Effort(1000, 2, 15), 6),
        slowly=Efforts(Effort(50, 1, 10), Effort(50, 1, 10), 0, Effort(200, 2, 15), 6),
        warming=Effort(500, 1, 5),
        n_varied=2,
        n_enlarged=2,
        mixes_transforms=True,
        keeps_all_inputs=False,
        boosts=True,
        worth_boosting=WORTH_BOOSTING,
        most_neighbors=384,
        most_of_few=384,
        most_in_gaps=512,
        most_exact=MOST_EXACT,
        factors_in_double=False,
        n_averaged=4,
        tries_all_exact=True,
        sums=(SMOOTH_SUM,),
        worth_of_millisecond=0.01,
        most_milliseconds=1.0,
        # Of magic, with 17,000 rows, .2751 to .2696, but for 170 seconds instead of 40.
        most_exchanged=6000,
        most_laplace=1000,
    ),
    "best": Level(
        n_tuning_points=4000,
        n_models=8,
        n_searches=4,
        n_compared=2 * N_COMPARED,
        ranking=Effort(1000, 2, 15),
        relaying=Effort(1000, 2, 15),
        n_relayed=0,
        n_relayed_of_few=0,
        polishing=Effort(4000, 2, 15),
        n_polished=8,
        n_polished_of_few=4,
        n_rounds_of_few=2,
        n_relayed_of_many_inputs=3,
        n_polished_of_many_inputs=8,
        in_gaps=Efforts(Effort(500, 2, 10), Effort(500, 2, 10), 0, Effort(2000, 2, 15), 6),
        slowly=Efforts(Effort(100, 1, 10), Effort(100, 1, 10), 0, Effort(400, 2, 15), 6),
        warming=Effort(1000, 1, 10),
        n_varied=5,
        n_enlarged=3,
        mixes_transforms=True,
        keeps_all_inputs=True,
        boosts=True,
        worth_boosting=0.0,
        most_neighbors=512,
        most_of_few=512,
        most_in_gaps=512,
        most_exact=MOST_EXACT,
        factors_in_double=True,
        n_averaged=4,
        tries_all_exact=True,
        sums=(SMOOTH_SUM, ROUGH_SUM),
        worth_of_millisecond=0.0,
        most_milliseconds=math.inf,
        most_exchanged=20_000,
        most_laplace=2000,
    ),
}


def plan_efforts(
    level: Level,
    n_tuning_points: int,
    n_eligible: int,
    is_slow: bool,
    is_in_gaps: bool,
    is_ranked: bool,
    is_warm: bool,
    n_inputs: int = 1,
) -> Efforts:
    """By how many points there are to tune on, and how fast they can be solved.

    Single runs of L-BFGS stop in poor optima (protein with 32 neighbors: MSE 16.5 instead of 10.5);
    a second round on another sample, in the metric that the first has found, cures it. Where starts
    are ranked, that was the first. Models of a previous fit are polished, each, a little.
    """
    if is_warm:
        n_warm = min(n_tuning_points, max(n_eligible // 2, 1))
        warming = level.slowly.ranking if is_slow else level.warming
        return _at_most(Efforts(warming, warming, 0, warming, MOST_WARM), n_warm)
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
    n_rounds = level.n_rounds_of_few if has_few else level.polishing.n_rounds
    if not is_ranked:
        n_rounds = max(2, n_rounds)
    polishing = level.polishing._replace(n_targets=n, n_rounds=n_rounds)
    # Scores of few rows are noisy, and cheap: more tries.
    n_relayed = level.n_relayed_of_few if has_few else level.n_relayed
    n_polished = level.n_polished_of_few if has_few else level.n_polished
    if n_inputs >= MANY_INPUTS:
        n_relayed, n_polished = level.n_relayed_of_many_inputs, level.n_polished_of_many_inputs
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
