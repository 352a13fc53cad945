# SPDX-License-Identifier: BSD-3-Clause
"""How a model searches, as stored: the arrays of its tree, and what of an approximate search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.search.approximate import ApproximateIndex, bounds_shape
from lsgp.search.index import NeighborIndex, SearchIndex
from lsgp.storage.checks import require

Arrays = dict[str, NDArray[Any]]


def index_arrays(index: SearchIndex) -> Arrays:
    """Of an index in one tree."""
    if isinstance(index, ApproximateIndex):
        return {**index_arrays(index.tree), "codes": index.codes, "bounds": index.bounds}
    if not isinstance(index, NeighborIndex):
        raise TypeError(f"{index.describe()} is not in one tree.")
    arrays: Arrays = {name: getattr(index, name) for name in ("leaves", "order", "boxes")}
    return {**arrays, "lengthscale": index.unit}  # as version 0.1.0 called it


def search_record(index: SearchIndex) -> dict[str, Any]:
    """What an approximate search needs beside arrays; nothing of an exact one."""
    if not isinstance(index, ApproximateIndex):
        return {}
    return {"search": {"reach": index.reach, "recall": index.recall}}


def read_search(record: dict[str, Any], arrays: Arrays, tree: NeighborIndex) -> SearchIndex:
    """The index that the record asks for: wrong codes cost recall, but nothing else."""
    if "search" not in record:
        return tree
    reach, recall = (record["search"][name] for name in ("reach", "recall"))
    for name, value in (("reach", reach), ("recall", recall)):
        require(isinstance(value, float) and 0 < value <= 1, f"{name} is {value!r}")
    codes, bounds = arrays["codes"], arrays["bounds"]
    require(codes.dtype == bounds.dtype == np.uint8, f"codes are of {codes.dtype}")
    require(codes.shape == tree.leaves.shape, f"codes have shape {codes.shape}")
    expected = bounds_shape(len(tree.leaves), tree.d)
    require(bounds.shape == expected, f"bounds have shape {bounds.shape}")
    return ApproximateIndex(tree, codes, bounds, reach, recall)
