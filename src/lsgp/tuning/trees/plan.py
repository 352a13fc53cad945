# SPDX-License-Identifier: BSD-3-Clause
"""How boosted trees are fitted and weighed, each number with its reason."""

from __future__ import annotations

from typing import NamedTuple

# Set on splits 10 to 29 of yacht, boston and concrete. The best share that is the same for all
# predictions lowers squared errors by 11, 4 and 9 %, and the best for CRPS lowers that by 1.9, 1.5
# and 1.5 %; shares in proportion to scales by 19, 5 and 11 %, and by 4.3, 1.9 and 3.1 %.

#: Shares of trees in a location of the usual scale that are tried.
BOOSTED_SHARES = tuple(0.05 * k for k in range(11))
#: What a share is beforehand, and how many rows' worth of loss it is to be off by 1. With 900, and
#: errors taken for a fifth too small up to 1,000 rows, trees had a share of .18 of 800 rows of the
#: kin8nm table, where .05 is best: CRPS was 1.4 % higher, and 3.1 % of squared errors; of 2,000
#: rows .9 and 1.9 %. Of 19 tables of 120 to 41,000 rows none is worse by more than .1 % (replayed).
BOOSTED_PRIOR_SHARE, BOOSTED_PRIOR_ROWS = 0.25, 500
#: Of more rows than these, fewer: models are tuned on a small part of them, and errors are honest.
#: With a million rows of a smooth function with noise, trees that changed nothing were fitted for
#: a minute and more.
MOST_FOR_BOOSTED_PRIOR = 9000
#: Nor more than so many times as many as there are: of 120 rows of a smooth function, noise alone
#: spoke for trees, and errors were a fifth larger with them.
MOST_PRIOR_OF_ROWS = 2.0
#: By which fraction leave-one-out errors of models are too small, as they were tuned on these rows:
#: of other rows, CRPS is higher by .17 on yacht (277 rows), .13 with 250 of kin8nm, .1 on boston
#: and diabetes (455 and 398), .02 with 800 of kin8nm, and no higher on concrete (927); while that
#: of trees is lower by up to a quarter, as queries have the mean of all folds. Of more rows than
#: these, less, by the power.
OPTIMISM, MOST_OPTIMISTIC, FADING_OF_OPTIMISM = 0.2, 350, 2.0 / 3.0
#: What trees must lower the loss by, as a fraction, to be worth their time, where that matters.
WORTH_BOOSTING = 0.005
#: Up to this many rows, all folds are fitted, in tenths of a second: a single one of yacht, of 55
#: rows, said in 4 of 20 splits that trees do not pay, which do.
ALWAYS_BOOSTED = 1500
#: Rows that trees are fitted to at most: a fold of these takes some seconds.
MOST_BOOSTED_ROWS = 300_000
#: Fewer rows have leaves of next to none of them,
FEWEST_BOOSTED_ROWS = 100
#: and of one or two inputs, predictions are maps or curves, which people want without steps.
FEWEST_BOOSTED_INPUTS = 3
#: How many times as many trees as a previous fit had are grown from it on.
WARM_TREES = 1.1
#: Held-out rows of a fold by which the number of trees is chosen.
N_WATCHED = 4096


class Boosting(NamedTuple):
    """How trees are fitted."""

    n_folds: int
    n_trees: int  # at most
    n_leaves: tuple[int, ...]  # of which those are taken that suit the first fold
    n_rows_of_leaf: int
    #: Trees that may be grown since the fold which they do not see was predicted best.
    patience: int = 100
    learning_rate: float = 0.1


def boosted_prior_rows(n: int) -> float:
    """Of n training rows."""
    return min(BOOSTED_PRIOR_ROWS * min(1.0, MOST_FOR_BOOSTED_PRIOR / n), MOST_PRIOR_OF_ROWS * n)


def optimism(n: int) -> float:
    """By which fraction leave-one-out errors of models of n rows are too small."""
    return OPTIMISM * min(1.0, MOST_OPTIMISTIC / n) ** FADING_OF_OPTIMISM


def plan_boosting(n: int) -> Boosting:
    """By the number of rows: more of them bear larger trees, and take fewer folds.

    Squared errors of trees alone, in the variance of targets, with 100 to 200 trees of 8 leaves,
    and with these: yacht .00166 and .00085, concrete .066 and .052 (splits 10 to 24, 10 to 17).
    """
    if n < 500:
        return Boosting(5, 1500, (4, 8), 3)
    if n < 1000:
        return Boosting(5, 1500, (8, 16), 3)
    if n < 5000:
        return Boosting(5, 1000, (8, 31), 5)
    if n < 20_000:
        return Boosting(4, 600, (31,), 5)
    return Boosting(3, 400, (127,), 20)
