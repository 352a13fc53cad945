# SPDX-License-Identifier: BSD-3-Clause
"""Regions of rows, each as far from all other rows as queries are.

A single row with its surroundings left out is like a query in the middle of a round hole, and one
at the edge of the data like the nearest of them. Whether a model is right about a region that it
has seen nothing of, only regions tell: balls around rows, and ends of the data in the direction of
rows. Each is as large as makes its rows as far from all others as the queries around one of them,
and of several that are drawn that one is kept whose distances are most alike, also to the farther
rows: these tell a hole from an end. Where queries lie apart in one input, such as missing days,
distances are those in this input: in all inputs, a row of the day before may be as near as ever.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from lsgp.compute.text import warn_user
from lsgp.search.contract import Array, Exclusions, Rows, SearchIndex, SearchRequest, numbered
from lsgp.search.index import build_index

#: Queries lie beyond the rows if the median of their distances from the rows is so many times that
#: of rows from each other, of random test rows it is 1, and larger than medians of as few distances
#: of rows are by chance: beyond so many of their standard deviations, or this quantile.
BEYOND_RATIO, BEYOND_CHANCE, BEYOND_QUANTILE = 1.1, 3.0, 0.98
#: Of fewer rows there are no regions to speak of.
FEWEST_ROWS = 60
#: Distances that agree to this fraction are the same.
NEARLY = 1.0 - 1e-6
#: Regions that are held out, and how many are drawn for each, of which the one most like the
#: queries is taken.
N_REGIONS, N_PROPOSED = 24, 4
#: The largest share of the rows that a region holds out, and with the rest of their groups.
LARGEST_REGION, LARGEST_WITH_GROUPS = 0.25, 0.5
#: Queries, rows and members of a region that are looked at, at the most.
N_QUERIES, N_ROWS, N_MEMBERS = 2000, 1000, 100
#: A target's exclusion radius is a little less than the query's distance that it imitates.
CLEARANCE = 0.999
#: Queries around one are those within so many times its distance from the rows.
AROUND = 4.0
#: A warning says that this share of the queries, or more, is farther from all rows than half of the
#: diagonal of the rows: nothing is like them.
FAR_SHARE = 0.1
#: Shares of the nearest distances, and of the rows, whose quantiles are compared.
NEAREST, FARTHER = (0.1, 0.5, 0.9), (0.1, 0.5)
#: How often the size of a region is halved in search of the one that suits.
N_STEPS = 6


class Whereabouts(NamedTuple):
    """Some of the queries, and how far they are from the rows, and these from each other."""

    queries: Array
    near: Array
    between: Array

    @property
    def usual(self) -> float:
        """The median distance of a row from the nearest other."""
        return float(np.median(self.between))

    @property
    def are_beyond(self) -> bool:
        """Whether queries lie beyond the rows, rather than among them."""
        rank_error = 0.5 * np.sqrt(1.0 / len(self.near) + 1.0 / len(self.between))
        rank = min(0.5 + BEYOND_CHANCE * rank_error, BEYOND_QUANTILE)
        limit = max(BEYOND_RATIO * self.usual, float(np.quantile(self.between, rank)))
        return bool(np.median(self.near) > limit)

    def warn_if_far(self, X: Array) -> None:
        """Say that tuning cannot be for queries that nothing is like."""
        largest = 0.5 * float(np.linalg.norm(X.max(axis=0) - X.min(axis=0)))
        share = float(np.mean(self.near > largest))
        if share > FAR_SHARE:
            warn_user(
                f"{share:.0%} of the queries are farther from all training rows than half of the "
                "diagonal of the training inputs (in the first input transform): no row is like "
                "them, so tuning cannot be for them. Predictions there follow the trend; check "
                "them with explain().",
            )


def locate_queries(
    X: Array,
    index: SearchIndex,
    queries: Array,
    groups: Rows | None,
    rng: np.random.Generator,
) -> Whereabouts:
    """Where queries lie; rows of a group do not count for each other."""
    n = len(X)
    if len(queries) > N_QUERIES:
        queries = queries[np.sort(rng.choice(len(queries), N_QUERIES, replace=False))]
    near = nearest_distances(index, queries, Exclusions())
    own = numbered(np.sort(rng.choice(n, min(n, N_QUERIES), replace=False)), n)
    between = nearest_distances(index, X[own], Exclusions.of_rows(own, groups))
    return Whereabouts(queries, near, between)


def apart_in_one_input(
    X: Array, where: Whereabouts, groups: Rows | None, rng: np.random.Generator
) -> tuple[Array, SearchIndex, Whereabouts] | None:
    """The rows in the input in which queries lie apart, their index, and where queries are there.

    None if there is no such input: the largest gap must be as wide as rows are apart in all inputs,
    and at least half of the way from the queries to the rows.
    """
    if X.shape[1] == 1:
        return None
    gaps = []
    for asked, own in zip(where.queries.T, X.T, strict=True):
        ordered = np.concatenate([[-np.inf], np.sort(own), [np.inf]])
        above = np.searchsorted(ordered, asked).clip(1)
        nearest = np.minimum(asked - ordered[above - 1], ordered[above] - asked)
        gaps.append(float(np.median(nearest)))
    widest = int(np.argmax(gaps))
    if gaps[widest] < max(NEARLY * where.usual, 0.5 * float(np.median(where.near))):
        return None
    alone = np.ascontiguousarray(X[:, [widest]])
    index = build_index(alone, np.ones(1), 1)
    # Queries of one value say it once.
    asked = np.unique(where.queries[:, [widest]], axis=0)
    found = locate_queries(alone, index, asked, groups, rng)
    return (alone, index, found) if found.are_beyond else None


def hold_out_regions(
    X: Array,
    index: SearchIndex,
    where: Whereabouts,
    groups: Rows | None,
    rng: np.random.Generator,
) -> list[Rows]:
    """Rows of regions like those of queries beyond the rows; none if groups are too large.

    Rows of a group are held out together.
    """
    n, queries, near = len(X), where.queries, where.near
    some = np.sort(rng.choice(n, min(n, N_ROWS), replace=False))

    def profile_of(members: Rows) -> Array:
        outside = some[~np.isin(some, members)]
        looked_at = rng.permutation(members)[:N_MEMBERS]
        distances = _nearest_outside(X, index, looked_at, members)
        return _profile(distances, cdist(X[looked_at], X[outside]))

    # Around queries of all distances alike, so that the regions together are like all of them.
    by_distance = np.argsort(near, kind="stable")
    at = (len(queries) * (np.arange(N_REGIONS) + 0.5) / N_REGIONS).astype(int)
    chosen = []
    for one in by_distance[at]:
        apart = np.linalg.norm(queries - queries[one], axis=1)
        around = np.flatnonzero(apart <= AROUND * max(near[one], where.usual))
        around = rng.permutation(around)[:N_MEMBERS]
        wanted = _profile(near[around], cdist(queries[around], X[some]))
        proposals: list[tuple[float, Rows]] = []
        for k in range(N_PROPOSED):
            row = int(rng.integers(n))
            # Rows are taken from an end of the data in the direction of the row, or around it.
            key = -(X @ (X[row] - X.mean(axis=0))) if k % 2 else np.linalg.norm(X - X[row], axis=1)
            members = _sized(X, index, key, groups, wanted, rng)
            if len(members) <= LARGEST_WITH_GROUPS * n:
                mismatch = float(np.abs(profile_of(members) - wanted).mean())
                proposals.append((mismatch, members))
        if proposals:
            chosen.append(min(proposals, key=lambda proposal: proposal[0])[1])
    return chosen


def nearest_distances(index: SearchIndex, points: Array, exclusions: Exclusions) -> Array:
    """Distances of points from the nearest row, as the inputs are."""
    ones = np.ones(points.shape[1])
    request = SearchRequest(np.ascontiguousarray(points), ones, 1, exclusions)
    return index.measure(request).distances[:, 0]


def _nearest_outside(X: Array, index: SearchIndex, rows: Rows, members: Rows) -> Array:
    """Distances of rows from the nearest that is not a member."""
    number = np.full(len(X), -1, dtype=np.int32)
    number[members] = 0
    own = np.zeros(len(rows), dtype=np.int32)
    return nearest_distances(index, X[rows], Exclusions(None, None, number, own))


def _profile(near: Array, far: Array) -> Array:
    """Logarithms of how far points are from the nearest row, and from shares of all rows."""
    tiny = 1e-9 * (float(near.max()) or 1.0)
    shares = np.quantile(far, FARTHER, axis=1).mean(axis=1)
    return np.log(np.maximum(np.concatenate([np.quantile(near, NEAREST), shares]), tiny))


def _sized(
    X: Array,
    index: SearchIndex,
    key: Array,
    groups: Rows | None,
    wanted: Array,
    rng: np.random.Generator,
) -> Rows:
    """The first rows by the key (n,), as many as have the wanted median distance from the others.

    Rows of one key leave together, and so do rows of one group.
    """
    order = numbered(np.argsort(key, kind="stable"), len(X))
    ordered = key[order]

    def first(size: float) -> Rows:
        members = order[: np.searchsorted(ordered, ordered[int(size) - 1], side="right")]
        if groups is None:
            return np.sort(members)
        own = groups[members]
        of_groups = np.flatnonzero(np.isin(groups, own[own >= 0]))
        return np.union1d(members, of_groups).astype(np.int32)

    low, high = 1.0, max(2.0, LARGEST_REGION * len(order))
    for _ in range(N_STEPS):
        size = np.sqrt(low * high)
        members = first(size)
        if len(members) == len(X):  # there are no others
            high = size
            continue
        looked_at = rng.permutation(members)[:N_MEMBERS]
        middle = float(np.median(_nearest_outside(X, index, looked_at, members)))
        if middle < np.exp(wanted[1]):
            low = size
        else:
            high = size
    return first(np.sqrt(low * high))
