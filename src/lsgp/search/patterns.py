# SPDX-License-Identifier: BSD-3-Clause
"""What rows show of themselves: copies of each other, a lattice, how far neighborhoods reach."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lsgp.search.contract import Array, Exclusions, Rows, SearchIndex, SearchRequest

#: Copies have targets that agree to this fraction of their standard deviation,
SAME_TARGET = 1e-6
#: and are nearer to each other than this fraction of the usual distance to a row that is no copy.
SAME_PLACE = 0.1
#: Neighbors of a row that are looked at for copies of it.
N_LOOKED_AT = 32
#: With more rows of equal targets than this, only copies that are equal in all digits are found
#: (by `lsgp.inputs.copies`): the search would take longer than the fit.
MOST_SUSPECTS = 20_000
#: An input has levels if it has at least this many rows for each of its values.
ROWS_PER_LEVEL = 3
#: Share of all combinations of levels that a complete lattice has at least.
LEAST_COMPLETE = 0.5
#: Levels of an input at least where one is held out: without one of three, two are left.
FEWEST_LEVELS = 3
#: Lengthscales of functions without noise are no shorter than this many spacings of levels, over
#: one less than the number of levels, and than one spacing.
SPACINGS_OF_FEW_LEVELS = 6.0
#: Neighbors that no query may have within a radius.
MOST_WITHIN = 512


def find_copies(X: Array, y: Array, index: SearchIndex) -> Rows | None:
    """Number (n,) of each row's copies, -1 for rows without any; None if there are none.

    Copies have equal targets (which are scaled to a standard deviation of 1) and are far nearer to
    each other than rows usually are: the same observation, entered more than once. Rows with equal
    inputs and other targets are replicates, which are observations of their own.
    """
    n = len(y)

    def agree(one: Array, other: Array) -> NDArray[np.bool_]:
        return np.asarray((np.abs(one - other) <= SAME_TARGET).all(axis=-1))

    order = np.argsort(y[:, 0], kind="stable")
    is_next = agree(y[order[1:], :1], y[order[:-1], :1])
    is_suspect = np.append(is_next, False) | np.append(False, is_next)
    suspects = np.sort(order[is_suspect]).astype(np.int32)
    if n < 3 or not 0 < len(suspects) <= MOST_SUSPECTS:
        return None
    k, unit = min(N_LOOKED_AT, n - 1), np.ones(X.shape[1])
    queries, own = np.ascontiguousarray(X[suspects]), Exclusions(suspects)
    found = index.measure(SearchRequest(queries, unit, k, own))
    rows, distances = found.neighbors, found.distances
    close = agree(y[suspects][:, None, :], y[np.maximum(rows, 0)])
    is_same = close & (rows >= 0) & np.isfinite(distances)
    others = np.where(is_same | (rows < 0), np.inf, distances).min(axis=1)
    usual = float(np.median(others))
    if not math.isfinite(usual):
        return None
    first, place = np.nonzero(is_same & (distances < SAME_PLACE * usual))
    if not len(first):
        return None
    edges = coo_array((np.ones(len(first)), (suspects[first], rows[first, place])), shape=(n, n))
    number = connected_components(edges, directed=False)[1]
    counts = np.bincount(number)
    return np.where(counts[number] > 1, number, -1).astype(np.int32)


def distinct_rows(n: int, copies: Rows | None) -> Rows:
    """One row of each observation, in order: the first of its copies."""
    if copies is None:
        return np.arange(n, dtype=np.int32)
    numbers = np.where(copies < 0, int(copies.max()) + 1 + np.arange(n), copies)
    return np.sort(np.unique(numbers, return_index=True)[1]).astype(np.int32)


def inner_levels(X: Array) -> list[Rows]:
    """The number (n,) of each row's level, for each input of a complete lattice.

    Rows of the first and the last level have -1, and inputs without others are left out. Empty if
    the rows are not on a lattice: inputs of few values, of which most combinations occur.
    """
    n, d = X.shape
    number, n_levels = np.zeros((n, d), dtype=np.int32), []
    for j in range(d):
        values, number[:, j] = np.unique(X[:, j], return_inverse=True)
        if ROWS_PER_LEVEL * len(values) > n:
            return []
        n_levels.append(len(values))
    if len(np.unique(number, axis=0)) < LEAST_COMPLETE * math.prod(n_levels):
        return []
    return [
        np.where((own > 0) & (own < count - 1), own, -1).astype(np.int32)
        for own, count in zip(number.T, n_levels, strict=True)
        if count >= FEWEST_LEVELS
    ]


def shortest_on_levels(X: Array) -> Array:
    """The shortest lengthscale (d,) of a function that rows can show; 0 for inputs without levels.

    Where an input has few values, all shorter ones are equally likely, and disagree between the
    values.
    """
    shortest = np.zeros(X.shape[1])
    for j, column in enumerate(X.T):
        values = np.unique(column)
        if 1 < len(values) <= len(column) / ROWS_PER_LEVEL:
            spacing = float(np.median(np.diff(values)))
            shortest[j] = spacing * max(1.0, SPACINGS_OF_FEW_LEVELS / (len(values) - 1))
    return shortest


def radii_of(
    index: SearchIndex,
    queries: Array,
    unit: Array,
    n_usual: int,
    n_others: int,
    exclusions: Exclusions,
) -> tuple[float, float]:
    """The radius in which half of the queries have ``n_usual`` rows, and the longest there may be.

    In units of the metric; ``n_others`` are the rows that a query can have, at most.
    """
    width = min(MOST_WITHIN, n_others)
    distances = index.measure(SearchRequest(queries, unit, width, exclusions)).distances
    # Queries of few other rows have those at infinity.
    longest = float(distances[:, -1].min()) if n_others >= MOST_WITHIN else math.inf
    return float(np.median(distances[:, min(n_usual, n_others) - 1])), longest
