# SPDX-License-Identifier: BSD-3-Clause
"""The hold-out for queries beyond the rows: regions that are left out as a whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.projections import Kinds
from lsgp.search.exclusions import Exclusions
from lsgp.search.regions import (
    CLEARANCE,
    FEWEST_ROWS,
    N_QUERIES,
    apart_in_one_input,
    hold_out_regions,
    locate_queries,
    nearest_distances,
)
from lsgp.tuning.data import Data, Stream
from lsgp.tuning.hold_out import HoldOut, Layer
from lsgp.tuning.space import Space

Array = NDArray[np.float64]
Rows = NDArray[np.int32]

#: Rows of all regions that are predicted.
N_TARGETS = 1200
#: A region without a row of others says as much as so many targets that err by themselves.
TARGETS_OF_REGION = 20.0


def like_queries(data: Data, queries: Array, spaces: list[Space]) -> HoldOut | None:
    """Regions as far from the other rows as the queries are; None if queries are where rows are.

    Models are judged by whole regions, and tuned on rows that leave out what is nearer to them than
    rows are to queries. ``spaces`` are those that models are tuned in.
    """
    settings, first = data.specification, data.space(data.specification.input_transforms[0])
    is_possible = (
        data.n >= FEWEST_ROWS
        and data.is_in_memory
        and data.labels is None
        and data.objective.judges_predictions
        and not data.is_slow
        and settings.model.bandwidth is None
        and not settings.tunes_bandwidth
    )
    if not is_possible:
        return None
    rng, groups = data.random(Stream.REGION), data.rows.group_numbers
    inside = np.asarray(first.transform.transform(queries), dtype=float)
    where = locate_queries(first.X, first.index, inside, groups, rng)
    in_one = apart_in_one_input(first.X, where, groups, rng)
    if where.are_beyond:
        where.warn_if_far(first.X)
    regions: list[Rows] = []
    if in_one is not None:
        regions = hold_out_regions(*in_one, groups, rng)
    if not regions and where.are_beyond:
        regions = hold_out_regions(first.X, first.index, where, groups, rng)
    if not regions:
        return None
    layers, members = _layered(data.n, regions, rng)
    radius: dict[Kinds, Array] = {}
    for space in spaces:
        own = np.asarray(space.transform.transform(queries[:N_QUERIES]), dtype=float)
        near = nearest_distances(space.index, own, Exclusions())
        largest = 0.5 * float(np.linalg.norm(space.X.max(axis=0) - space.X.min(axis=0)))
        radius[space.kinds] = CLEARANCE * rng.choice(np.minimum(near, largest), size=data.n)
    everything = np.arange(data.n, dtype=np.int32)
    n_independent = TARGETS_OF_REGION * _n_independent(members)
    return HoldOut(layers, Layer(everything, groups, radius), n_independent)


def _n_independent(members: Array) -> float:
    """How many regions without a common row would say as much.

    If errors of rows are independent, those of two regions are correlated as far as these have rows
    in common: so is the mean of all. ``members`` (r, n) are ones where a region has a row.
    """
    scaled = members / np.linalg.norm(members, axis=1, keepdims=True)
    return float(len(scaled) ** 2 / np.square(scaled.sum(axis=0)).sum())


def _layered(
    n: int, regions: list[Rows], rng: np.random.Generator
) -> tuple[tuple[Layer, ...], Array]:
    """Layers of regions without a common row, and the members (r, n) of all regions."""
    numbers: list[Rows] = []
    targets: list[list[Rows]] = []
    for members in regions:
        free = [k for k, number in enumerate(numbers) if (number[members] < 0).all()]
        k = free[0] if free else len(numbers)
        if not free:
            numbers.append(np.full(n, -1, dtype=np.int32))
            targets.append([])
        numbers[k][members] = len(targets[k])
        targets[k].append(np.sort(rng.permutation(members)[: N_TARGETS // len(regions)]))
    is_member = np.zeros((len(regions), n))
    for k, rows in enumerate(regions):
        is_member[k, rows] = 1.0
    pairs = zip(numbers, targets, strict=True)
    return tuple(Layer(np.concatenate(own), number) for number, own in pairs), is_member
