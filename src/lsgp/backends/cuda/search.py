# SPDX-License-Identifier: BSD-3-Clause
"""Neighbors on the device, in the tree of `search.index`: the neighborhoods that the host finds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.cuda.device import cupy, find_device
from lsgp.backends.cuda.entry import enter
from lsgp.backends.cuda.modules import allow_shared_memory, kernel_of
from lsgp.backends.cuda.residence import DeviceArray, Residence
from lsgp.search.exclusions import Exclusions
from lsgp.search.index import LEAF_SIZE, NeighborIndex
from lsgp.search.neighborhoods import require_few

#: Bytes of shared memory that each warp needs beside its candidates, 12 each; as in
#: source/search.cuh.
BYTES_OF_STACK = 40 * 16
BYTES_OF_CANDIDATE = 12
WARPS_PER_BLOCK = 4
#: So many queries are worth sorting, so that those that are near each other read the same leaves.
MANY_QUERIES = 8192
#: An array that there is not.
_NOTHING = np.uint64(0)


def find_nearest(
    index: NeighborIndex,
    queries: NDArray[np.float64],
    lengthscale: NDArray[np.float64],
    n_neighbors: int,
    exclusions: Exclusions,
    residence: Residence,
) -> DeviceArray:
    """As `NeighborIndex.nearest`, on the device, of queries of the host or there."""
    in_units, factor = enter(index, queries, lengthscale, exclusions)
    neighbors = cupy().empty((len(queries), n_neighbors), np.int32)
    size = _power_of_two(n_neighbors + LEAF_SIZE)
    _launch(index, in_units, factor, exclusions, residence, -1.0, size, neighbors, None)
    return neighbors


def find_within(
    index: NeighborIndex,
    queries: NDArray[np.float64],
    lengthscale: NDArray[np.float64],
    radius: float,
    max_neighbors: int,
    first_query: int,
    exclusions: Exclusions,
    residence: Residence,
) -> DeviceArray:
    """As `NeighborIndex.within`, on the device: counted first, then found."""
    if not (np.isfinite(radius) and radius >= 0):
        raise ValueError(f"radius={radius} is not a finite distance.")
    in_units, factor = index.enter(queries, lengthscale, exclusions)
    counts = cupy().zeros(len(queries), np.int32)
    nobody = cupy().empty((len(queries), 0), np.int32)
    square = float(radius) ** 2
    _launch(index, in_units, factor, exclusions, residence, square, 0, nobody, counts)
    found = cupy().asnumpy(counts).astype(np.int64)
    require_few(found, max_neighbors, radius, lengthscale, first_query)
    width = int(found.max(initial=0))
    neighbors = cupy().empty((len(queries), width), np.int32)
    if width:
        size = _power_of_two(width)
        _launch(index, in_units, factor, exclusions, residence, square, size, neighbors, counts)
    return neighbors


def _launch(
    index: NeighborIndex,
    in_units: NDArray[np.float64],
    factor: NDArray[np.float64] | None,
    exclusions: Exclusions,
    residence: Residence,
    squared_radius: float,
    size: int,
    neighbors: DeviceArray,
    counts: DeviceArray | None,
) -> None:
    q, k = neighbors.shape
    if q == 0:
        return
    kernel = kernel_of("search", "find")
    per_warp = BYTES_OF_STACK + BYTES_OF_CANDIDATE * size
    n_warps = WARPS_PER_BLOCK
    while n_warps > 1 and n_warps * per_warp > find_device().shared_memory:
        n_warps //= 2
    allow_shared_memory(kernel, n_warps * per_warp)

    def optional(array: NDArray[Any] | None) -> Any:
        return _NOTHING if array is None else cupy().asarray(array)

    n_groups = 0 if exclusions.groups is None else len(exclusions.groups)
    tree = [residence.upload(array) for array in (index.leaves, index.order, index.boxes)]
    places = cupy().asarray(in_units)
    arguments = (
        *tree,
        np.int64(len(index.leaves)),
        np.int32(index.d),
        places,
        optional(factor),
        optional(exclusions.rows),
        optional(exclusions.radius),
        cupy().asarray(index.unit),
        optional(exclusions.groups),
        optional(exclusions.query_groups),
        np.int64(n_groups),
        np.int64(q),
        _turns(index, tree[2], places, optional(factor)) if q >= MANY_QUERIES else _NOTHING,
        np.int32(k),
        np.float64(squared_radius),
        np.int32(size),
        neighbors,
        _NOTHING if counts is None else counts,
    )
    kernel((-(-q // n_warps),), (32 * n_warps,), arguments, shared_mem=n_warps * per_warp)


def _turns(
    index: NeighborIndex, boxes: DeviceArray, queries: DeviceArray, factor: Any
) -> DeviceArray:
    """Numbers of the queries in the order of the leaves that they are in, (q,)."""
    q, n_threads = len(queries), 128
    leaves = cupy().empty(q, np.int32)
    sizes = np.int64(len(index.leaves)), np.int32(index.d)
    arguments = (boxes, *sizes, queries, factor, np.int64(q), leaves)
    kernel_of("search", "home")((-(-q // n_threads),), (n_threads,), arguments)
    return cupy().argsort(leaves)


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 1).bit_length()
