# SPDX-License-Identifier: BSD-3-Clause
"""Regions of rows that are held out as a whole, each as far from the rest as the queries are.

A single row with its surroundings left out is like a query in the middle of a round hole, and one
at the edge of the data like the nearest of them. Whether a model is right about a region that it
has seen nothing of, only regions tell: balls around rows, and ends of the data in the direction of
rows. Each is as large as makes its rows as far from all others as the queries around one of them,
and of several that are drawn that one is kept whose distances are most alike, also to the farther
rows: these tell a hole from an end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from lsgp.method.contract import Predictions, concatenate_results
from lsgp.search.arrays import numbered
from lsgp.search.exclusions import Exclusions
from lsgp.search.index import SearchIndex
from lsgp.solvers.exact_system import ExactSystem
from lsgp.tuning.beyond.plan import (
    BEYOND_RATIO,
    FEWEST_FOR_REGIONS,
    LARGEST_REGION,
    LARGEST_WITH_GROUPS,
    N_PROPOSED_REGIONS,
    N_REGION_TARGETS,
)
from lsgp.tuning.plan import n_regions

Array = NDArray[np.float64]
Rows = NDArray[np.int32]

#: Queries, rows and members of a region that are looked at, at the most.
_N_QUERIES, _N_ROWS, _N_MEMBERS = 2000, 1000, 100
#: Queries around one are those within so many times its distance from the rows.
_AROUND = 4.0
#: Shares of the nearest distances, and of the rows, whose quantiles are compared.
_NEAREST, _FARTHER = (0.1, 0.5, 0.9), (0.1, 0.5)
#: How often the size of a region is halved in search of the one that suits.
_N_STEPS = 6


class Layer(NamedTuple):
    """Regions that have no row in common."""

    number: Rows  # (n,) of the region that each row is held out with, -1 for none
    targets: Rows  # rows of regions, to be predicted from the rows outside of theirs


class Regions(NamedTuple):
    """All regions: those that overlap are in different layers.

    ``blocks`` are the numbers of parts that targets are of, where a region is as large as the map.
    """

    layers: tuple[Layer, ...]
    blocks: NDArray[np.intp] | None = None  # of all targets

    @property
    def targets(self) -> Rows:
        return np.concatenate([layer.targets for layer in self.layers])

    @property
    def of_targets(self) -> NDArray[np.intp]:
        """Which region, or part of one, each target is of, from 0 on."""
        if self.blocks is not None:
            return self.blocks
        numbers, n = [], 0
        for layer in self.layers:
            numbers.append(layer.number[layer.targets].astype(np.intp) + n)
            n += int(layer.number.max()) + 1
        return np.concatenate(numbers)

    @property
    def n_independent(self) -> float:
        """How many regions without a common row would say as much.

        If errors of rows are independent, those of two regions are correlated as far as these
        have rows in common: so is the mean of all.
        """
        if self.blocks is not None:
            return float(self.n_regions)
        members = np.concatenate(
            [layer.number == np.arange(layer.number.max() + 1)[:, None] for layer in self.layers]
        ).astype(float)
        members /= np.linalg.norm(members, axis=1, keepdims=True)
        return float(len(members) ** 2 / np.square(members.sum(axis=0)).sum())

    @property
    def n_regions(self) -> int:
        if self.blocks is not None:
            return int(self.blocks.max()) + 1
        return sum(int(layer.number.max()) + 1 for layer in self.layers)


class Whereabouts(NamedTuple):
    """Some of the queries, and how far they are from the rows, and these from each other."""

    queries: Array
    near: Array
    usual: float

    @property
    def are_beyond(self) -> bool:
        """Whether queries lie beyond the rows, rather than among them."""
        return bool(np.median(self.near) > BEYOND_RATIO * self.usual)


class _Proposal(NamedTuple):
    members: Rows
    mismatch: float


def locate_queries(
    X: Array,
    index: SearchIndex,
    queries: Array,
    groups: Rows | None,
    rng: np.random.Generator,
) -> Whereabouts:
    """Where queries lie; rows of a group do not count for each other."""
    n = len(X)
    if len(queries) > _N_QUERIES:
        queries = queries[np.sort(rng.choice(len(queries), _N_QUERIES, replace=False))]
    near = nearest_distances(index, queries, Exclusions())
    own = numbered(np.sort(rng.choice(n, min(n, _N_QUERIES), replace=False)), n)
    between = nearest_distances(index, X[own], Exclusions.of_rows(own, groups))
    return Whereabouts(queries, near, float(np.median(between)))


def hold_out_regions(
    X: Array,
    index: SearchIndex,
    where: Whereabouts,
    groups: Rows | None,
    rng: np.random.Generator,
) -> Regions | None:
    """Regions like those of queries beyond the rows; None if rows, or their groups, are few.

    Rows of a group are held out together.
    """
    n, (queries, near, usual) = len(X), where
    if n < FEWEST_FOR_REGIONS:
        return None
    some = np.sort(rng.choice(n, min(n, _N_ROWS), replace=False))
    count = n_regions(n)
    # Around queries of all distances alike, so that the regions together are like all of them.
    by_distance = np.argsort(near, kind="stable")
    at = (len(queries) * (np.arange(count) + 0.5) / count).astype(int)
    chosen = []
    for one in by_distance[at]:
        apart = np.linalg.norm(queries - queries[one], axis=1)
        around = np.flatnonzero(apart <= _AROUND * max(near[one], usual))
        around = rng.permutation(around)[:_N_MEMBERS]
        wanted = _profile(near[around], cdist(queries[around], X[some]))
        proposals = []
        for k in range(N_PROPOSED_REGIONS):
            order = _order(X, int(rng.integers(n)), is_end=bool(k % 2))
            members = _sized(X, index, order, groups, wanted, rng)
            if len(members) <= LARGEST_WITH_GROUPS * n:
                mismatch = _mismatch(X, index, members, some, wanted, rng)
                proposals.append(_Proposal(members, mismatch))
        if proposals:
            chosen.append(min(proposals, key=lambda proposal: proposal.mismatch).members)
    return _layered(n, chosen, rng) if chosen else None


def _mismatch(
    X: Array,
    index: SearchIndex,
    members: Rows,
    some: NDArray[np.integer],
    wanted: Array,
    rng: np.random.Generator,
) -> float:
    """How much the distances of a region's rows from the others differ from those wanted."""
    outside = some[~np.isin(some, members)]
    looked_at = rng.permutation(members)[:_N_MEMBERS]
    near = _nearest_outside(X, index, looked_at, members)
    found = _profile(near, cdist(X[looked_at], X[outside]))
    return float(np.abs(found - wanted).mean())


def nearest_distances(index: SearchIndex, points: Array, exclusions: Exclusions) -> Array:
    """Distances of points from the nearest row, as the inputs are."""
    ones = np.ones(points.shape[1])
    found = index.nearest_with_distances(np.ascontiguousarray(points), ones, 1, exclusions)
    return np.asarray(found.distances[:, 0])


def _nearest_outside(X: Array, index: SearchIndex, rows: Rows, members: Rows) -> Array:
    """Distances of rows from the nearest that is not a member."""
    number = np.full(len(X), -1, dtype=np.int32)
    number[members] = 0
    own = np.zeros(len(rows), dtype=np.int32)
    return nearest_distances(index, X[rows], Exclusions(None, None, number, own))


def _profile(near: Array, far: Array) -> Array:
    """Logarithms of how far points are from the nearest row, and from shares of all rows."""
    tiny = 1e-9 * (float(near.max()) or 1.0)
    shares = np.quantile(far, _FARTHER, axis=1).mean(axis=1)
    return np.log(np.maximum(np.concatenate([np.quantile(near, _NEAREST), shares]), tiny))


def _order(X: Array, row: int, is_end: bool) -> Rows:
    """All rows, from the first of a region to the last."""
    if is_end:
        away = X[row] - X.mean(axis=0)
        key = -(X @ away)
    else:
        key = np.linalg.norm(X - X[row], axis=1)
    return numbered(np.argsort(key, kind="stable"), len(X))


def _sized(
    X: Array,
    index: SearchIndex,
    order: Rows,
    groups: Rows | None,
    wanted: Array,
    rng: np.random.Generator,
) -> Rows:
    """As many of the rows as have the median distance from the others that is wanted."""
    low, high = 1.0, max(2.0, LARGEST_REGION * len(order))
    for _ in range(_N_STEPS):
        size = np.sqrt(low * high)
        members = closed(order[: int(size)], groups)
        looked_at = rng.permutation(members)[:_N_MEMBERS]
        middle = float(np.median(_nearest_outside(X, index, looked_at, members)))
        if middle < np.exp(wanted[1]):
            low = size
        else:
            high = size
    return closed(order[: int(np.sqrt(low * high))], groups)


def closed(members: Rows, groups: Rows | None) -> Rows:
    """With all rows of their groups."""
    if groups is None:
        return np.sort(members)
    own = groups[members]
    of_groups = np.flatnonzero(np.isin(groups, own[own >= 0]))
    return np.union1d(members, of_groups).astype(np.int32)


def _layered(n: int, regions: list[Rows], rng: np.random.Generator) -> Regions:
    numbers: list[Rows] = []
    targets: list[list[Rows]] = []
    for members in regions:
        free = [k for k, number in enumerate(numbers) if (number[members] < 0).all()]
        k = free[0] if free else len(numbers)
        if not free:
            numbers.append(np.full(n, -1, dtype=np.int32))
            targets.append([])
        numbers[k][members] = len(targets[k])
        targets[k].append(np.sort(rng.permutation(members)[: N_REGION_TARGETS // len(regions)]))
    layers = zip(numbers, targets, strict=True)
    return Regions(tuple(Layer(number, np.concatenate(own)) for number, own in layers))


def leave_regions_out(system: ExactSystem, regions: Regions) -> Predictions:
    """Predictions of the regions' targets, each from all rows outside of its region."""
    parts = []
    for number, targets in regions.layers:
        own = number[targets]
        for k in np.unique(own):
            without = system.without(np.flatnonzero(number == k))
            parts.append(system.leave_group_out(targets[own == k], without))
    predictions: Predictions = concatenate_results(parts)
    return predictions
