# SPDX-License-Identifier: BSD-3-Clause
"""Searches on the device: the neighborhoods, and the units [E9], that the host finds.

Neighbors are found in the tree of `search.index`, units by the walk of `search.coarse`, each by one
warp for each query. What a warp has no room for is searched by the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lsgp.backends.contract import Matrix, Rows
from lsgp.backends.cuda.device import cupy, find_device
from lsgp.backends.cuda.modules import NOTHING, Kernel, allow_shared_memory, kernel_of
from lsgp.backends.cuda.residence import DeviceArray, Residence
from lsgp.method.arrays import beside, on_host
from lsgp.search.coarse import UnitRequest, search_units
from lsgp.search.contract import Exclusions, SearchRequest
from lsgp.search.index import LEAF_SIZE, NeighborIndex, factor_between

#: Bytes of shared memory that each warp needs beside its candidates, 12 each; as in
#: source/search.cuh.
BYTES_OF_STACK = 40 * 16
BYTES_OF_CANDIDATE = 12
WARPS_PER_BLOCK = 4
#: So many queries are worth sorting, so that those that are near each other read the same leaves.
MANY_QUERIES = 8192
#: Nodes that a walk may have open, for each unit, and beside. Those whose box is within the limit
#: and whose mean is not are among them and no units, the more of them the more inputs there are.
OPEN_PER_UNIT, OPEN_BESIDE = 3, 128
#: Bytes of shared memory of each; as in source/coarse.cuh.
BYTES_OF_OPEN = 28
#: What is found at a time, beside the units that are kept.
ROOM_BESIDE = 64
#: In place of the first unit of a query whose walk had too little room; as in source/coarse.cuh.
NO_ROOM = -2


def find(index: NeighborIndex, request: SearchRequest, residence: Residence) -> DeviceArray:
    """As `Backend.search`, on the device."""
    if request.n_neighbors is not None:
        return find_nearest(index, request, residence)
    # All rows within the radius: counted first, then found.
    queries, square = request.queries, float(request.radius) ** 2
    asked = index, index.enter(request), request.exclusions, residence, square
    counts = cupy().zeros(len(queries), np.int32)
    _launch(*asked, 0, cupy().empty((len(queries), 0), np.int32), counts)
    found = cupy().asnumpy(counts).astype(np.int64)
    request.require_few(found)
    width = int(found.max(initial=0))
    size = _power_of_two(width)
    if not _has_room(_bytes_of(size)):
        return cupy().asarray(index.search(request))
    neighbors = cupy().empty((len(queries), width), np.int32)
    if width:
        _launch(*asked, size, neighbors, counts)
    return neighbors


def find_nearest(
    index: NeighborIndex,
    request: SearchRequest,
    residence: Residence,
    farthest: DeviceArray | None = None,
) -> DeviceArray:
    """The nearest rows, of queries of the host or on the device; no more than there are.

    The squared distances of the last of them are written to ``farthest`` (q,), infinite where
    there are fewer: whoever asks for them looks before whether there `_has_room`.
    """
    assert request.n_neighbors is not None
    m = min(request.n_neighbors, index.n)
    size = _power_of_two(m + LEAF_SIZE)
    if farthest is None and not _has_room(_bytes_of(size)):
        own = request._replace(queries=on_host(request.queries), n_neighbors=m)
        return cupy().asarray(index.search(own))
    entered = enter(index, request)
    neighbors = cupy().empty((len(request.queries), m), np.int32)
    asked = index, entered, request.exclusions, residence, -1.0, size, neighbors
    _launch(*asked, None, farthest)
    return neighbors


def enter(index: NeighborIndex, request: SearchRequest) -> tuple[Matrix, Matrix | None]:
    """As `NeighborIndex.enter`; queries on the device are divided and checked there."""
    queries = request.queries
    if isinstance(queries, np.ndarray):
        return index.enter(request)
    in_units = queries / beside(index.unit, queries)
    if not bool(np.isfinite(in_units).all()):
        raise ValueError("queries divided by the unit is not finite. Remove NaN and infinity.")
    request.exclusions.require_fit(len(queries), index.n)
    return in_units, factor_between(index.unit, request.lengthscale)


def find_units(request: UnitRequest, index: NeighborIndex, residence: Residence) -> DeviceArray:
    """As `search_units` of the host, on the device; by the host where a warp has no room."""
    tree, _, queries, n_units, reach, exclusions = request
    n_found, n_open = _power_of_two(n_units + ROOM_BESIDE), OPEN_PER_UNIT * n_units + OPEN_BESIDE
    per_warp = _bytes_of(n_found) + BYTES_OF_OPEN * n_open
    if not _has_room(per_warp):
        return cupy().asarray(search_units(request))
    q = len(queries)
    units = cupy().empty((q, n_units), np.int32)
    if q == 0:
        return units
    farthest = cupy().empty(q)
    nearest = find_nearest(index, request.of_rows, residence, farthest)
    limits = reach * cupy().sqrt(farthest)
    nodes = tree.leaves, tree.order, tree.boxes, tree.means, tree.squared_radii, tree.places
    there = [residence.upload(array) for array in nodes]
    n_leaves, in_units = len(tree.order), cupy().asarray(queries / tree.unit)
    arguments = (
        *there,
        np.int64(n_leaves),
        np.int64(tree.n),
        np.int32(queries.shape[1]),
        in_units,
        limits * limits,
        nearest,
        np.int32(nearest.shape[1]),
        *_exclusion_arguments(exclusions, tree.unit),
        np.int64(q),
        _turns_of(there[2], n_leaves, in_units, NOTHING),
        np.int32(n_units),
        np.int32(n_found),
        np.int32(n_open),
        units,
    )
    _launch_warps(kernel_of("coarse", "find_units"), q, per_warp, arguments)
    _ask_host(units, request)
    return units


def _ask_host(units: DeviceArray, request: UnitRequest) -> None:
    """Write the units of queries whose walk had too little room, if there are any."""
    again = cupy().asnumpy(cupy().flatnonzero(units[:, 0] == NO_ROOM))
    if len(again):
        found: Rows = search_units(request.of_queries(again))
        units[cupy().asarray(again)] = cupy().asarray(found)


def _launch(
    index: NeighborIndex,
    entered: tuple[Matrix, Matrix | None],
    exclusions: Exclusions,
    residence: Residence,
    squared_radius: float,
    size: int,
    neighbors: DeviceArray,
    counts: DeviceArray | None,
    farthest: DeviceArray | None = None,
) -> None:
    q, k = neighbors.shape
    if q == 0:
        return
    tree = [residence.upload(array) for array in index.arrays]
    places, factor = cupy().asarray(entered[0]), _optional(entered[1])
    arguments = (
        *tree,
        np.int64(len(index.leaves)),
        np.int32(index.d),
        places,
        factor,
        *_exclusion_arguments(exclusions, index.unit),
        np.int64(q),
        _turns_of(tree[2], len(index.leaves), places, factor),
        np.int32(k),
        np.float64(squared_radius),
        np.int32(size),
        neighbors,
        _optional(counts),
        _optional(farthest),
    )
    _launch_warps(kernel_of("search", "find"), q, _bytes_of(size), arguments)


def _bytes_of(n_candidates: int) -> int:
    """Shared memory of a warp."""
    return BYTES_OF_STACK + BYTES_OF_CANDIDATE * n_candidates


def _has_room(per_warp: int) -> bool:
    """Whether one warp has so much shared memory; else the host searches."""
    return per_warp <= find_device().shared_memory


def _optional(array: Any) -> Any:
    return NOTHING if array is None else cupy().asarray(array)


def _exclusion_arguments(exclusions: Exclusions, unit: Matrix) -> tuple[Any, ...]:
    """As the kernels of source/search.cuh and source/coarse.cuh take them."""
    rows, radius, groups, query_groups = exclusions
    n_groups = np.int64(0 if groups is None else len(groups))
    there = (_optional(array) for array in (rows, radius, unit, groups, query_groups))
    return (*there, n_groups)


def _launch_warps(kernel: Kernel, q: int, per_warp: int, arguments: tuple[Any, ...]) -> None:
    """One warp for each query, with so many bytes of shared memory."""
    n_warps = WARPS_PER_BLOCK
    while n_warps > 1 and n_warps * per_warp > find_device().shared_memory:
        n_warps //= 2
    allow_shared_memory(kernel, n_warps * per_warp)
    kernel((-(-q // n_warps),), (32 * n_warps,), arguments, shared_mem=n_warps * per_warp)


def _turns_of(boxes: DeviceArray, n_leaves: int, queries: DeviceArray, factor: Any) -> Any:
    """Numbers of the queries in the order of the leaves that they are in, (q,); none of few."""
    (q, d), n_threads = queries.shape, 128
    if q < MANY_QUERIES:
        return NOTHING
    leaves = cupy().empty(q, np.int32)
    sizes = np.int64(n_leaves), np.int32(d)
    arguments = (boxes, *sizes, queries, factor, np.int64(q), leaves)
    kernel_of("search", "home")((-(-q // n_threads),), (n_threads,), arguments)
    return cupy().argsort(leaves)


def _power_of_two(n: int) -> int:
    """The least that is not less, from 2 on."""
    return 1 << max(n - 1, 1).bit_length()
