# SPDX-License-Identifier: BSD-3-Clause
"""Neighbors on the device, in the tree of `search.index`: the neighborhoods that the host finds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.cuda.device import cupy, find_device
from lsgp.backends.cuda.modules import Kernel, allow_shared_memory, kernel_of
from lsgp.backends.cuda.residence import DeviceArray, Residence
from lsgp.method.arrays import beside, is_on_device, on_host
from lsgp.search.contract import Exclusions, SearchRequest
from lsgp.search.index import LEAF_SIZE, NeighborIndex, factor_between

#: Bytes of shared memory that each warp needs beside its candidates, 12 each; as in
#: source/search.cuh.
BYTES_OF_STACK = 40 * 16
BYTES_OF_CANDIDATE = 12
WARPS_PER_BLOCK = 4
#: So many queries are worth sorting, so that those that are near each other read the same leaves.
MANY_QUERIES = 8192
#: An array that there is not.
_NOTHING = np.uint64(0)


def find(index: NeighborIndex, request: SearchRequest, residence: Residence) -> DeviceArray:
    """As `Backend.search`, on the device."""
    if request.n_neighbors is not None:
        return find_nearest(index, request, residence)
    return _find_within(index, request, residence)


def find_nearest(
    index: NeighborIndex,
    request: SearchRequest,
    residence: Residence,
    farthest: DeviceArray | None = None,
) -> DeviceArray:
    """The nearest rows, of queries of the host or on the device; no more than there are.

    The squared distances of the last of them are written to ``farthest`` (q,), infinite where
    there are fewer: whoever asks for them looks before whether there `has_room`.
    """
    assert request.n_neighbors is not None
    m = min(request.n_neighbors, index.n)
    size = power_of_two(m + LEAF_SIZE)
    if farthest is None and not has_room(bytes_of(size)):
        own = request._replace(queries=on_host(request.queries), n_neighbors=m)
        return cupy().asarray(index.search(own))
    entered = enter(index, request)
    neighbors = cupy().empty((len(request.queries), m), np.int32)
    limits = -1.0, size, neighbors, None, farthest
    _launch(index, entered, request.exclusions, residence, *limits)
    return neighbors


def _find_within(index: NeighborIndex, request: SearchRequest, residence: Residence) -> DeviceArray:
    """All rows within the radius: counted first, then found."""
    queries, exclusions, square = request.queries, request.exclusions, float(request.radius) ** 2
    entered = index.enter(request)
    counts = cupy().zeros(len(queries), np.int32)
    nobody = cupy().empty((len(queries), 0), np.int32)
    _launch(index, entered, exclusions, residence, square, 0, nobody, counts)
    found = cupy().asnumpy(counts).astype(np.int64)
    request.require_few(found)
    width = int(found.max(initial=0))
    size = power_of_two(width)
    if not has_room(bytes_of(size)):
        return cupy().asarray(index.search(request))
    neighbors = cupy().empty((len(queries), width), np.int32)
    if width:
        _launch(index, entered, exclusions, residence, square, size, neighbors, counts)
    return neighbors


def enter(
    index: NeighborIndex, request: SearchRequest
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """As `NeighborIndex.enter`; what is on the device is divided and checked there."""
    queries = request.queries
    if not is_on_device(queries):
        return index.enter(request)
    in_units = queries / beside(index.unit, queries)
    if not bool(np.isfinite(in_units).all()):
        raise ValueError("queries divided by the unit are not finite. Remove NaN and inf.")
    request.exclusions.require_fit(len(queries), index.n)
    return in_units, factor_between(index.unit, request.lengthscale)


def _launch(
    index: NeighborIndex,
    entered: tuple[NDArray[np.float64], NDArray[np.float64] | None],
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
    in_units, factor = entered
    places = cupy().asarray(in_units)
    arguments = (
        *tree,
        np.int64(len(index.leaves)),
        np.int32(index.d),
        places,
        optional(factor),
        *exclusion_arguments(exclusions, index.unit),
        np.int64(q),
        turns_of(tree[2], len(index.leaves), places, optional(factor)),
        np.int32(k),
        np.float64(squared_radius),
        np.int32(size),
        neighbors,
        optional(counts),
        optional(farthest),
    )
    launch_warps(kernel_of("search", "find"), q, bytes_of(size), arguments)


def bytes_of(n_candidates: int) -> int:
    """Shared memory of a warp."""
    return BYTES_OF_STACK + BYTES_OF_CANDIDATE * n_candidates


def has_room(per_warp: int) -> bool:
    """Whether one warp has so much shared memory; else the host searches."""
    return per_warp <= find_device().shared_memory


def optional(array: Any) -> Any:
    """The array on the device, or what a kernel takes for none."""
    return _NOTHING if array is None else cupy().asarray(array)


def exclusion_arguments(exclusions: Exclusions, unit: NDArray[np.float64]) -> tuple[Any, ...]:
    """As the kernels of source/search.cuh and source/coarse.cuh take them."""
    rows, radius, groups, query_groups = exclusions
    return (
        optional(rows),
        optional(radius),
        cupy().asarray(unit),
        optional(groups),
        optional(query_groups),
        np.int64(0 if groups is None else len(groups)),
    )


def launch_warps(kernel: Kernel, q: int, per_warp: int, arguments: tuple[Any, ...]) -> None:
    """One warp for each query, with so many bytes of shared memory."""
    n_warps = WARPS_PER_BLOCK
    while n_warps > 1 and n_warps * per_warp > find_device().shared_memory:
        n_warps //= 2
    allow_shared_memory(kernel, n_warps * per_warp)
    kernel((-(-q // n_warps),), (32 * n_warps,), arguments, shared_mem=n_warps * per_warp)


def turns_of(boxes: DeviceArray, n_leaves: int, queries: DeviceArray, factor: Any) -> Any:
    """Numbers of the queries in the order of the leaves that they are in, (q,); none of few."""
    (q, d), n_threads = queries.shape, 128
    if q < MANY_QUERIES:
        return _NOTHING
    leaves = cupy().empty(q, np.int32)
    sizes = np.int64(n_leaves), np.int32(d)
    arguments = (boxes, *sizes, queries, factor, np.int64(q), leaves)
    kernel_of("search", "home")((-(-q // n_threads),), (n_threads,), arguments)
    return cupy().argsort(leaves)


def power_of_two(n: int) -> int:
    """The least that is not less, from 2 on."""
    return 1 << max(n - 1, 1).bit_length()
