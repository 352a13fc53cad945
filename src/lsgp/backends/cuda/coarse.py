# SPDX-License-Identifier: BSD-3-Clause
"""Units of coarse neighborhoods [E9] on the device: those that the host finds, by the same walk."""

from __future__ import annotations

import numpy as np

from lsgp.backends.cuda import search
from lsgp.backends.cuda.device import cupy
from lsgp.backends.cuda.modules import kernel_of
from lsgp.backends.cuda.residence import DeviceArray, Residence
from lsgp.search.coarse import UnitRequest, search_units
from lsgp.search.index import NeighborIndex

#: Nodes that a walk may have open, for each unit, and beside. Those whose box is within the limit
#: and whose mean is not are among them and no units, the more of them the more inputs there are.
OPEN_PER_UNIT, OPEN_BESIDE = 3, 128
#: Bytes of shared memory of each; as in source/coarse.cuh.
BYTES_OF_OPEN = 28
#: What is found at a time, beside the units that are kept.
ROOM_BESIDE = 64
#: In place of the first unit of a query whose walk had too little room; as in source/coarse.cuh.
NO_ROOM = -2


def find_units(request: UnitRequest, index: NeighborIndex, residence: Residence) -> DeviceArray:
    """As `search_units` of the host, on the device; by the host where a warp has no room."""
    tree, _, queries, n_units, reach, exclusions = request
    n_found, n_open = search.power_of_two(n_units + ROOM_BESIDE), n_open_of(n_units)
    per_warp = search.bytes_of(n_found) + BYTES_OF_OPEN * n_open
    if not search.has_room(per_warp):
        return cupy().asarray(search_units(request))
    q = len(queries)
    units = cupy().empty((q, n_units), np.int32)
    if q == 0:
        return units
    farthest = cupy().empty(q)
    nearest = search.find_nearest(index, request.of_rows, residence, farthest)
    limits = reach * cupy().sqrt(farthest)
    nodes = (
        residence.upload(tree.leaves),
        residence.upload(tree.order),
        residence.upload(tree.boxes),
        residence.upload(tree.means),
        residence.upload(tree.squared_radii),
        residence.upload(tree.places),
    )
    n_leaves, in_units = len(tree.order), cupy().asarray(queries / tree.unit)
    arguments = (
        *nodes,
        np.int64(n_leaves),
        np.int64(tree.n),
        np.int32(queries.shape[1]),
        in_units,
        limits * limits,
        nearest,
        np.int32(nearest.shape[1]),
        *search.exclusion_arguments(exclusions, tree.unit),
        np.int64(q),
        search.turns_of(nodes[2], n_leaves, in_units, search.optional(None)),
        np.int32(n_units),
        np.int32(n_found),
        np.int32(n_open),
        units,
    )
    search.launch_warps(kernel_of("coarse", "find_units"), q, per_warp, arguments)
    _ask_host(units, request)
    return units


def n_open_of(n_units: int) -> int:
    """Nodes that the walk of a query may have open."""
    return OPEN_PER_UNIT * n_units + OPEN_BESIDE


def _ask_host(units: DeviceArray, request: UnitRequest) -> None:
    """Write the units of those whose walk had too little room, if there are any."""
    again = cupy().asnumpy(cupy().flatnonzero(units[:, 0] == NO_ROOM))
    if len(again):
        found = search_units(request.of_queries(again))
        units[cupy().asarray(again)] = cupy().asarray(found)
