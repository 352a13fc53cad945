# SPDX-License-Identifier: BSD-3-Clause
"""How the rows of a level are dealt into folds, so that no row tells its own target.

Each row knows its fold from its level and from how many rows of that level come before it: rows in
parts, on other machines, are dealt as all of them would be.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]

#: Folds that the rows of a level are dealt into: two of a level of few rows, because the more there
#: are, the better what is left tells what was left out. With 8 rows each, leave-one-out had an RMSE
#: of .231 where test rows had .241; with two folds .245 and .240.
N_FOLDS, N_FOLDS_OF_FEW, FEW_ROWS = 5, 2, 50

_DEALS = {size: np.array(list(permutations(range(size)))) for size in (N_FOLDS, N_FOLDS_OF_FEW)}


def ranks_in_level(codes: Codes, n_levels: int) -> Codes:
    """How many rows of the same level come before each, (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.encoding.folds import ranks_in_level
    >>> ranks_in_level(np.array([0, 1, 0, 0, 1]), 2)
    array([0, 0, 1, 2, 1])
    """
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n_levels))])
    ranks = np.empty(len(codes), np.int64)
    ranks[order] = np.arange(len(codes)) - starts[codes[order]]
    return ranks


def deal(codes: Codes, ranks: Codes, level_rows: Codes) -> Codes:
    """The fold of each row: as many of a level go to each, in an order drawn for every round.

    ``ranks`` are those among all rows of the level, of which there are ``level_rows`` (k,).

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.encoding.folds import deal
    >>> folds = deal(np.zeros(100, int), np.arange(100), np.array([100]))
    >>> np.bincount(folds), bool((folds[:50] == folds[50:]).all())
    (array([20, 20, 20, 20, 20]), False)
    """
    folds = np.empty(len(codes), np.int64)
    is_few = level_rows[codes] < FEW_ROWS
    for size, own in ((N_FOLDS_OF_FEW, is_few), (N_FOLDS, ~is_few)):
        turn, place = np.divmod(ranks[own], size)
        drawn = _scramble(codes[own], turn) % np.uint64(len(_DEALS[size]))
        folds[own] = _DEALS[size][drawn.astype(np.int64), place]
    return folds


def deal_groups(codes: Codes, groups: NDArray[np.integer], last: int, level_rows: Codes) -> Codes:
    """The same, with a group of rows in one fold; rows of no group (-1) by their places."""
    of_group = np.random.default_rng(0).permutation(last + 1)
    alone = (_scramble(codes, np.arange(len(codes))) >> np.uint64(33)).astype(np.int64)
    own = np.where(groups >= 0, np.append(of_group, 0)[groups], alone)
    return own % np.where(level_rows[codes] < FEW_ROWS, N_FOLDS_OF_FEW, N_FOLDS)


def fold_keys(
    codes: Codes,
    level_rows: Codes,
    groups: NDArray[np.integer] | None,
    last_group: int,
    before: Codes,
) -> Codes:
    """Number of the fold that each row is in, among those of all levels.

    ``before`` (k,) are the rows of each level that come before these, elsewhere.
    """
    if groups is None:
        ranks = ranks_in_level(codes, len(level_rows)) + before[codes]
        folds = deal(codes, ranks, level_rows)
    else:
        folds = deal_groups(codes, groups, last_group, level_rows)
    return codes * N_FOLDS + folds


def _scramble(a: Codes, b: Codes) -> NDArray[np.uint64]:
    """A number that looks random, from two (splitmix64)."""
    x = a.astype(np.uint64) * np.uint64(0xD1342543DE82EF95) + b.astype(np.uint64)
    x = x * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
