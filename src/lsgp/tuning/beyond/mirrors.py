# SPDX-License-Identifier: BSD-3-Clause
"""Gaps like those that the queries lie in, cut elsewhere into the rows of a map.

Balls and ends of the data have the size of a gap, but not its shape, nor other gaps beside it. The
queries themselves have both: mirrored, or shifted over the map, they fall on rows, and moved aside
on those that are most like what is in the gaps. A row is held out if it is there nearer to a query
than to any row. Of the held-out rows, those are predicted that together are as far from the kept
ones as the queries are from the rows: the farther a query, the larger its error, and the fewer rows
in the gaps that are as far away.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.search.arrays import numbered
from lsgp.search.exclusions import Exclusions
from lsgp.search.index import SearchIndex, build_index
from lsgp.tuning.beyond.plan import (
    ALIKE_DISTANCE,
    FAR_ASIDE,
    FEWEST_FOR_MIRRORS,
    LARGEST_MIRRORED,
    LARGEST_MISMATCH,
    MOST_MIRRORED_INPUTS,
    N_BLOCKS,
    N_MIRRORED_TARGETS,
    N_MIRRORS,
    N_PROPOSED_MIRRORS,
)
from lsgp.tuning.beyond.regions import Layer, Regions, closed, nearest_distances

Array = NDArray[np.float64]
Rows = NDArray[np.int32]

#: Held-out rows of a mirror whose distances are looked at.
_N_LOOKED_AT = 4000
#: The quantile of distances that gaps are moved aside by some times.
_FAR = 0.9
#: Quantiles of distances by which mirrors are compared with the queries.
_QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97)


class Mirrors(NamedTuple):
    """The same gaps, with rows to judge models on, and others to tune them on."""

    judging: Regions
    tuning: Regions


class _Mirror(NamedTuple):
    number: Rows  # (n,) 0 for rows that are held out, else -1
    rows: Rows  # some of these
    distances: Array  # from the kept rows
    mismatch: float


def mirror_gaps(
    X: Array,
    index: SearchIndex,
    queries: Array,
    groups: Rows | None,
    rng: np.random.Generator,
) -> Mirrors | None:
    """Mirrored gaps; None if there are few rows or many inputs, or none is like the queries'."""
    n, d = X.shape
    if n < FEWEST_FOR_MIRRORS or d > MOST_MIRRORED_INPUTS:
        return None
    near = nearest_distances(index, queries, Exclusions())
    of_queries = build_index(np.ascontiguousarray(queries), np.ones(d))
    low = np.minimum(X.min(axis=0), queries.min(axis=0))
    high = np.maximum(X.max(axis=0), queries.max(axis=0))

    def best_of(moves: Iterator[Array]) -> list[_Mirror]:
        mirrors = []
        for moved in moves:
            to_rows = nearest_distances(index, moved, Exclusions())
            is_held = nearest_distances(of_queries, moved, Exclusions()) < to_rows
            is_held &= ((moved >= low) & (moved <= high)).all(axis=1)
            members = closed(numbered(np.flatnonzero(is_held), n), groups)
            if 0 < len(members) <= LARGEST_MIRRORED * n:
                mirrors.append(_mirror(X, index, members, near, rng))
        mirrors = [mirror for mirror in mirrors if mirror.mismatch <= LARGEST_MISMATCH]
        return sorted(mirrors, key=lambda mirror: mirror.mismatch)[: N_MIRRORS // 2]

    aside = FAR_ASIDE * float(np.quantile(near, _FAR))
    mirrors = best_of(_mirrored(X, low, high, rng)) + best_of(_moved_aside(X, aside))
    if not mirrors:
        return None
    return Mirrors(_draw(X, mirrors, near, rng), _draw(X, mirrors, near, rng))


def draw_alike(distances: Array, wanted: Array, size: int, rng: np.random.Generator) -> Array:
    """Numbers of points whose distances together are as those that are wanted.

    For each of evenly spaced quantiles of these, one of the points that are about as far, or the
    nearest to that.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.tuning.beyond.mirrors import draw_alike
    >>> rng = np.random.default_rng(0)
    >>> distances = rng.uniform(0.0, 10.0, 5000)
    >>> chosen = draw_alike(distances, np.array([1.0, 2.0, 8.0]), 300, rng)
    >>> np.quantile(distances[chosen], [0.1, 0.9]).round()
    array([1., 7.])
    """
    shares = (np.arange(size) + rng.random(size)) / size
    aim = np.quantile(wanted, shares)
    order = rng.permutation(len(distances))
    order = order[np.argsort(distances[order], kind="stable")]
    sorted_ones = distances[order]
    first = np.searchsorted(sorted_ones, aim / ALIKE_DISTANCE)
    last = np.searchsorted(sorted_ones, aim * ALIKE_DISTANCE, side="right")
    first = np.minimum(first, len(distances) - 1)
    span = np.maximum(last - first, 1)
    return np.unique(order[first + (rng.random(size) * span).astype(int)])


def _moved_aside(X: Array, aside: float) -> Iterator[Array]:
    """The rows moved along each axis, by so much that gaps fall on the rows beside them."""
    for axis in range(X.shape[1]):
        for way in (aside, -aside):
            moved = X.copy()
            moved[:, axis] += way
            yield moved


def _mirrored(X: Array, low: Array, high: Array, rng: np.random.Generator) -> Iterator[Array]:
    """The rows mirrored, and shifted by half of the map along one axis, in the box of all."""
    d = X.shape[1]
    flips = list(product((False, True), repeat=d))
    plain = [(flip, None) for flip in flips if any(flip)]
    shifted = [(flip, axis) for flip in flips for axis in range(d)]
    for k in [*rng.permutation(len(plain)), *(len(plain) + rng.permutation(len(shifted)))][
        :N_PROPOSED_MIRRORS
    ]:
        flip, axis = [*plain, *shifted][k]
        moved = np.where(flip, low + high - X, X)
        if axis is not None:
            width = high[axis] - low[axis]
            beyond = moved[:, axis] + 0.5 * width
            moved[:, axis] = np.where(beyond > high[axis], beyond - width, beyond)
        yield np.ascontiguousarray(moved)


def _mirror(
    X: Array, index: SearchIndex, members: Rows, near: Array, rng: np.random.Generator
) -> _Mirror:
    number = np.full(len(X), -1, dtype=np.int32)
    number[members] = 0
    rows = np.sort(rng.permutation(members)[:_N_LOOKED_AT])
    own = np.zeros(len(rows), dtype=np.int32)
    distances = nearest_distances(index, X[rows], Exclusions(None, None, number, own))
    tiny = 1e-9 * (float(near.max()) or 1.0)
    found, wanted = (
        np.log(np.maximum(np.quantile(each, _QUANTILES), tiny)) for each in (distances, near)
    )
    return _Mirror(number, rows, distances, float(np.abs(found - wanted).mean()))


def _draw(X: Array, mirrors: list[_Mirror], near: Array, rng: np.random.Generator) -> Regions:
    layers, blocks, n_blocks = [], [], N_BLOCKS // len(mirrors)
    for k, mirror in enumerate(mirrors):
        size = N_MIRRORED_TARGETS // len(mirrors)
        targets = np.sort(mirror.rows[draw_alike(mirror.distances, near, size, rng)])
        layers.append(Layer(mirror.number, targets))
        blocks.append(k * n_blocks + _cut(X[targets], n_blocks))
    return Regions(tuple(layers), np.concatenate(blocks))


def _cut(points: Array, n_blocks: int) -> NDArray[np.intp]:
    """Numbers of blocks of points near each other: halves along the widest axis, again and again.

    Errors within one are alike, so that by chance they differ from block to block.
    """
    number = np.zeros(len(points), dtype=np.intp)
    if n_blocks < 2 or len(points) < 2:
        return number
    axis = int(np.argmax(np.ptp(points, axis=0)))
    order = np.argsort(points[:, axis], kind="stable")
    left = n_blocks // 2
    middle = len(points) * left // n_blocks
    halves = order[:middle], order[middle:]
    number[halves[0]] = _cut(points[halves[0]], left)
    number[halves[1]] = left + _cut(points[halves[1]], n_blocks - left)
    return number
