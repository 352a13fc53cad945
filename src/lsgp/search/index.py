# SPDX-License-Identifier: BSD-3-Clause
"""Exact neighbor search in the scaled metric.

Neighbors are ordered by distance, equal distances by row, so that a neighborhood is unique: it
depends neither on the block of queries nor on the instruction set of the machine. Distances are
between inputs divided by the lengthscale. In few dimensions the native tree visits a few leaves
per query; in many it degenerates to a scan of all points at the speed of the memory or better.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from lsgp import _core
from lsgp.compute.memory import empty_aligned

#: Points per leaf of the tree.
LEAF_SIZE = 64


class NeighborIndex(NamedTuple):
    """Points arranged for the search: plain arrays, which can be saved and memory-mapped."""

    leaves: NDArray[np.float64]  # (n_leaves, d, LEAF_SIZE) points divided by the lengthscale
    order: NDArray[np.int32]  # (n_leaves, LEAF_SIZE) row of each point, -1 for padding
    boxes: NDArray[np.float64]  # (2 * n_leaves - 1, 2, d) bounds of the points of each node
    lengthscale: NDArray[np.float64]  # (d,)
    n: int

    @property
    def d(self) -> int:
        return int(self.leaves.shape[1])

    @property
    def recall(self) -> float:
        """Fraction of the true neighbors that a search finds."""
        return 1.0

    def describe(self) -> str:
        return (
            f"exact search (recall 1.0) among {self.n} points of {self.d} inputs, "
            f"bounding-box tree with {len(self.leaves)} leaves"
        )


class Exclusions(TypedDict, total=False):
    """Which points are not admissible as neighbors; each may be left out.

    ``exclude`` is one row per query, -1 for none (leave-one-out). ``exclusion_radius`` excludes
    the points nearer than this to the query, in the units of X rather than in the scaled metric;
    0 for none. ``groups`` and ``query_groups`` exclude the points of the query's own group, -1
    for none.
    """

    exclude: NDArray[np.int32] | None  # (q,)
    exclusion_radius: NDArray[np.float64] | None  # (q,)
    groups: NDArray[np.int32] | None  # (n,)
    query_groups: NDArray[np.int32] | None  # (q,)


class Neighborhoods(NamedTuple):
    """Neighbors of each query, nearest first, and their distances in the scaled metric."""

    neighbors: NDArray[np.int32]  # (q, w), -1 where there are fewer
    distances: NDArray[np.float64]  # (q, w), infinite where there are fewer


def build_index(X: NDArray[np.float64], lengthscale: NDArray[np.float64]) -> NeighborIndex:
    """Arrange the rows of X, divided by the lengthscale, for the search."""
    _require_array("X", X, np.float64, (None, None))
    n, d = X.shape
    if n == 0 or d == 0:
        raise ValueError(f"X has shape {X.shape}. Neighbor search needs a row and a column.")
    _require_array("lengthscale", lengthscale, np.float64, (d,))
    if not (np.all(np.isfinite(lengthscale)) and np.all(lengthscale > 0)):
        raise ValueError(f"lengthscale={lengthscale} is not positive and finite in every input.")
    n_leaves = -(-n // LEAF_SIZE)
    if n_leaves * LEAF_SIZE > np.iinfo(np.int32).max:
        raise ValueError(f"X has {n} rows, more than 32-bit row numbers can count. Split the data.")
    # The tree is built inside this array, the only copy of the points.
    points = empty_aligned((n_leaves * LEAF_SIZE, d))
    with np.errstate(over="ignore"):
        np.divide(X, lengthscale, out=points[:n])
    if not _is_finite(points[:n]):
        raise ValueError("X divided by the lengthscale is not finite. Remove NaN and infinity.")
    order = np.empty((n_leaves, LEAF_SIZE), np.int32)
    boxes = np.empty((2 * n_leaves - 1, 2, d))
    _core.core.build_tree(points, n, order, boxes)
    return NeighborIndex(
        points.reshape(n_leaves, d, LEAF_SIZE), order, boxes, lengthscale.copy(), n
    )


def find_nearest(
    index: NeighborIndex,
    queries: NDArray[np.float64],
    n_neighbors: int,
    **exclusions: Unpack[Exclusions],
) -> NDArray[np.int32]:
    """Rows of the nearest admissible points of each query, (q, n_neighbors), nearest first.

    Rows are -1 where fewer exist.
    """
    scaled = _scale(index, queries)
    checked = _check_exclusions(index, queries, **exclusions)
    return _nearest(index, scaled, n_neighbors, checked, None)


def find_nearest_with_distances(
    index: NeighborIndex,
    queries: NDArray[np.float64],
    n_neighbors: int,
    **exclusions: Unpack[Exclusions],
) -> Neighborhoods:
    """`find_nearest`, and the distances in the scaled metric."""
    neighbors, squared = find_nearest_with_squares(index, queries, n_neighbors, **exclusions)
    return Neighborhoods(neighbors, np.sqrt(squared, out=squared))


def find_nearest_with_squares(
    index: NeighborIndex,
    queries: NDArray[np.float64],
    n_neighbors: int,
    **exclusions: Unpack[Exclusions],
) -> Neighborhoods:
    """`find_nearest`, and the squares of the distances, by which neighbors are ordered."""
    scaled = _scale(index, queries)
    checked = _check_exclusions(index, queries, **exclusions)
    squared = np.empty((len(scaled), max(n_neighbors, 0)))
    return Neighborhoods(_nearest(index, scaled, n_neighbors, checked, squared), squared)


def find_within(
    index: NeighborIndex,
    queries: NDArray[np.float64],
    radius: float,
    *,
    max_neighbors: int,
    first_query: int = 0,
    **exclusions: Unpack[Exclusions],
) -> NDArray[np.int32]:
    """Rows of all admissible points within a radius of each query in the scaled metric.

    The result has shape (q, w), w the largest number found, padded with -1; nearest first.
    Exclusions as in `find_nearest`. ``first_query`` is the number of the block's first query,
    for the error that is raised when a query reaches more than ``max_neighbors`` points.
    """
    checked = _check_exclusions(index, queries, **exclusions)
    found, counts = _within(index, queries, radius, max_neighbors, checked)
    require_few(counts, max_neighbors, radius, index.lengthscale, first_query)
    neighbors = np.full((len(queries), counts.max(initial=0)), -1, np.int32)
    neighbors[np.arange(neighbors.shape[1]) < counts[:, None]] = found
    return neighbors


def count_within(
    index: NeighborIndex,
    queries: NDArray[np.float64],
    radius: float,
    **exclusions: Unpack[Exclusions],
) -> NDArray[np.int64]:
    """Number of admissible points within a radius of each query, (q,), as in `find_within`."""
    checked = _check_exclusions(index, queries, **exclusions)
    return _within(index, queries, radius, 0, checked)[1]


def require_few(
    counts: NDArray[np.int64],
    max_neighbors: int,
    radius: float,
    lengthscale: NDArray[np.float64],
    first_query: int,
) -> None:
    """Refuse a radius in which a query has more points than a local system may have."""
    too_many = np.flatnonzero(counts > max_neighbors)
    if too_many.size:
        bandwidth = radius * np.exp(np.mean(np.log(lengthscale)))  # see scaled_bandwidth
        raise ValueError(
            f"bandwidth={bandwidth:.6g} reaches {counts[too_many[0]]} training points at query "
            f"{first_query + too_many[0]}, more than the {max_neighbors} that a local system may "
            "have. Reduce the bandwidth, or use bandwidth='adaptive'."
        )


def _within(
    index: NeighborIndex,
    queries: NDArray[np.float64],
    radius: float,
    max_neighbors: int,
    exclusions: tuple[NDArray[Any] | None, ...],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Neighbors of all queries one after another, and the number of each query's."""
    scaled = _scale(index, queries)
    if not (np.isfinite(radius) and radius >= 0):
        raise ValueError(f"radius={radius} is not a finite distance.")
    counts = np.empty(len(scaled), np.int64)
    found = _core.core.find_within(
        *index[:3], scaled, float(radius) ** 2, max_neighbors, *exclusions, counts
    )
    return found, counts


def _nearest(
    index: NeighborIndex,
    scaled: NDArray[np.float64],
    n_neighbors: int,
    exclusions: tuple[NDArray[Any] | None, ...],
    squared_distances: NDArray[np.float64] | None,
) -> NDArray[np.int32]:
    if n_neighbors < 1:
        raise ValueError(f"n_neighbors={n_neighbors} is not positive.")
    neighbors = np.empty((len(scaled), n_neighbors), np.int32)
    _core.core.find_nearest(*index[:3], scaled, *exclusions, neighbors, squared_distances)
    return neighbors


def _scale(index: NeighborIndex, queries: NDArray[np.float64]) -> NDArray[np.float64]:
    _require_array("queries", queries, np.float64, (None, index.d))
    with np.errstate(over="ignore"):
        scaled = queries / index.lengthscale
    if not _is_finite(scaled):
        raise ValueError("queries divided by the lengthscale are not finite. Remove NaN and inf.")
    return scaled


def _check_exclusions(
    index: NeighborIndex,
    queries: NDArray[np.float64],
    exclude: NDArray[np.int32] | None = None,
    exclusion_radius: NDArray[np.float64] | None = None,
    groups: NDArray[np.int32] | None = None,
    query_groups: NDArray[np.int32] | None = None,
) -> tuple[NDArray[Any] | None, ...]:
    """The native functions' arguments from exclude to query_groups."""
    q = len(queries)
    if exclude is not None:
        _require_array("exclude", exclude, np.int32, (q,))
    if exclusion_radius is not None:
        _require_array("exclusion_radius", exclusion_radius, np.float64, (q,))
        if not (np.all(np.isfinite(exclusion_radius)) and np.all(exclusion_radius >= 0)):
            raise ValueError("exclusion_radius has a negative, infinite or NaN value.")
    if (groups is None) != (query_groups is None):
        raise ValueError("groups and query_groups exclude only together. Give both, or none.")
    if groups is not None:
        _require_array("groups", groups, np.int32, (index.n,))
        _require_array("query_groups", query_groups, np.int32, (q,))
    return exclude, exclusion_radius, index.lengthscale, groups, query_groups


def _require_array(name: str, value: Any, dtype: type, shape: tuple[int | None, ...]) -> None:
    if not isinstance(value, np.ndarray) or value.dtype != dtype or not value.flags.c_contiguous:
        raise TypeError(f"{name} must be a C-contiguous NumPy array of {np.dtype(dtype)}.")
    matches = value.ndim == len(shape) and all(
        size in (None, actual) for size, actual in zip(shape, value.shape, strict=True)
    )
    if not matches:
        expected = str(tuple("any" if size is None else size for size in shape)).replace("'", "")
        raise ValueError(f"{name} has shape {value.shape}, expected {expected}.")


def _is_finite(values: NDArray[np.float64]) -> bool:
    """Whether all values are finite, without an array of flags as long as the data."""
    extremes = np.min(values, initial=0.0), np.max(values, initial=0.0)
    return bool(np.all(np.isfinite(extremes)))
