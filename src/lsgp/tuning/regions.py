# SPDX-License-Identifier: BSD-3-Clause
"""The hold-out for queries beyond the rows: whole regions are left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.projections import Kinds
from lsgp.search.contract import Exclusions
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

#: Number of held-out targets in all regions.
N_TARGETS = 1200
#: A region that overlaps no other counts as this many independent targets.
TARGETS_OF_REGION = 20.0


def like_queries(data: Data, queries: Array, spaces: list[Space]) -> HoldOut | None:
    """Return regions as far from other rows as the queries are; None for queries among the rows.

    Models are judged by whole regions. They are tuned on rows that leave out all rows within a
    radius, drawn from the distances between queries and rows. ``spaces`` are the spaces in which
    models are tuned.
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
        transformed = np.asarray(space.transform.transform(queries[:N_QUERIES]), dtype=float)
        near = nearest_distances(space.index, transformed, Exclusions())
        largest = 0.5 * float(np.linalg.norm(space.X.max(axis=0) - space.X.min(axis=0)))
        radius[space.kinds] = CLEARANCE * rng.choice(np.minimum(near, largest), size=data.n)
    everything = np.arange(data.n, dtype=np.int32)
    n_independent = TARGETS_OF_REGION * _n_independent(members)
    return HoldOut(layers, Layer(everything, groups, radius), n_independent)


def _n_independent(members: Array) -> float:
    """Effective number of disjoint regions.

    If errors of rows are independent, mean errors of two regions are correlated by their common
    rows, which increases the variance of the mean over all regions. ``members`` (r, n) are 1 for
    rows of a region, else 0.
    """
    scaled = members / np.linalg.norm(members, axis=1, keepdims=True)
    return float(len(scaled) ** 2 / np.square(scaled.sum(axis=0)).sum())


def _layered(
    n: int, regions: list[Rows], rng: np.random.Generator
) -> tuple[tuple[Layer, ...], Array]:
    """Distribute regions to layers without common rows; returns these and all members (r, n)."""
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
    return tuple(Layer(np.concatenate(parts), number) for number, parts in pairs), is_member
