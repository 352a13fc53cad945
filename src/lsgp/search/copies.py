# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are nearly copies of each other: the same observation, entered more than once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lsgp.search.contract import SearchIndex, SearchRequest
from lsgp.search.exclusions import Exclusions

Array = NDArray[np.float64]
Rows = NDArray[np.int32]

#: Copies have targets that agree to this fraction of their standard deviation,
SAME_TARGET = 1e-6
#: and are nearer to each other than this fraction of the usual distance to a row that is no copy.
SAME_PLACE = 0.1
#: Neighbors of a row that are looked at for copies of it.
N_LOOKED_AT = 32
#: With more rows of equal targets than this, only copies that are equal in all digits are found
#: (by `lsgp.inputs.copies`): the search would take longer than the fit.
MOST_SUSPECTS = 20_000


def find_copies(X: Array, y: Array, index: SearchIndex) -> Rows | None:
    """Number (n,) of each row's copies, -1 for rows without any; None if there are none.

    Copies have equal targets and are far nearer to each other than rows usually are: the same
    observation, entered more than once. Rows with equal inputs and other targets are replicates,
    which are observations of their own.
    """
    n = len(y)
    suspects = _with_equal_targets(y)
    if n < 3 or not 0 < len(suspects) <= MOST_SUSPECTS:
        return None
    k, unit = min(N_LOOKED_AT, n - 1), np.ones(X.shape[1])
    queries, own = np.ascontiguousarray(X[suspects]), Exclusions(suspects)
    found = index.measure(SearchRequest(queries, unit, k, own))
    rows, distances = found.neighbors, found.distances
    close = _are_close(y[suspects][:, None, :], y[np.maximum(rows, 0)])
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


def _with_equal_targets(y: Array) -> Rows:
    """Rows whose first target is about equal to that of another row, in order."""
    order = np.argsort(y[:, 0], kind="stable")
    is_next = _are_close(y[order[1:], :1], y[order[:-1], :1])
    is_suspect = np.append(is_next, False) | np.append(False, is_next)
    return np.sort(order[is_suspect]).astype(np.int32)


def _are_close(one: Array, other: Array) -> NDArray[np.bool_]:
    """Whether scaled targets agree; they have a standard deviation of 1."""
    return np.asarray((np.abs(one - other) <= SAME_TARGET).all(axis=-1))


def distinct_rows(n: int, copies: Rows | None) -> Rows:
    """One row of each observation, in order: the first of its copies."""
    if copies is None:
        return np.arange(n, dtype=np.int32)
    numbers = np.where(copies < 0, int(copies.max()) + 1 + np.arange(n), copies)
    return np.sort(np.unique(numbers, return_index=True)[1]).astype(np.int32)
