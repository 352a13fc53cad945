# SPDX-License-Identifier: BSD-3-Clause
"""How a model searches, as stored: the arrays of its tree, and what of an approximate search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.search.approximate import ApproximateIndex, Codes, code_shapes
from lsgp.search.contract import SearchIndex
from lsgp.search.index import LEAF_SIZE, NeighborIndex
from lsgp.storage.checks import require

#: Leaves of a tree that are checked at a time: they stay in the cache.
LEAVES_AT_A_TIME = 64
#: Before the names of arrays of codes.
CODES = "code_"

Array = NDArray[Any]
Arrays = dict[str, Array]


def index_arrays(index: SearchIndex) -> Arrays:
    """Of an index in one tree."""
    if isinstance(index, ApproximateIndex):
        codes = {CODES + name: array for name, array in index.codes._asdict().items()}
        return {**index_arrays(index.tree), **codes}
    if not isinstance(index, NeighborIndex):
        raise TypeError(f"{index.describe()} is not in one tree.")
    arrays: Arrays = {name: getattr(index, name) for name in ("leaves", "order", "boxes")}
    return {**arrays, "unit": index.unit}


def search_record(index: SearchIndex) -> dict[str, Any]:
    """What an approximate search needs beside arrays; nothing of an exact one."""
    if not isinstance(index, ApproximateIndex):
        return {}
    return {"search": {"reach": index.reach, "recall": index.recall}}


def read_index(arrays: Arrays, X: Array, check_values: bool) -> NeighborIndex:
    """The tree of the rows X, which nothing in the native core can leave."""
    n, n_inputs = X.shape
    names = ("leaves", "order", "boxes", "unit")
    leaves, order, boxes, unit = (arrays[name] for name in names)
    n_leaves = -(-n // LEAF_SIZE)
    for name, array, dtype, shape in (
        ("leaves", leaves, np.float64, (n_leaves, n_inputs, LEAF_SIZE)),
        ("order", order, np.int32, (n_leaves, LEAF_SIZE)),
        ("boxes", boxes, np.float64, (2 * n_leaves - 1, 2, n_inputs)),
        ("unit", unit, np.float64, (n_inputs,)),
    ):
        require(array.dtype == dtype and array.shape == shape, f"{name} has shape {array.shape}")
    require(np.isfinite(unit).all() and (unit > 0).all(), "a scale is not positive")
    # Every row once, and -1 in the rest: rows are addresses in the native core.
    require(order.min() >= -1 and order.max() < n, "order has rows that do not exist")
    seen = np.zeros(n + 1, bool)
    seen[order] = True  # -1 is the last
    n_unused = np.count_nonzero(order == -1)
    require(seen[:n].all() and order.size - n_unused == n, "order has not every row once")
    # A place without a row must not be found: the search would look for its end for ever.
    leaf, place = np.nonzero(order < 0)
    require(np.isnan(leaves[leaf, :, place]).all(), "a leaf has points without a row")
    index = NeighborIndex(leaves, order, boxes, unit, n)
    if check_values:
        _require_rows_are_found(index, X)
    return index


def _require_rows_are_found(index: NeighborIndex, X: Array) -> None:
    """Refuse a tree whose points are not the rows, or whose boxes do not bound its points.

    A pass over the arrays, leaves by leaves (0.4 s for a million rows of 8 inputs).
    """
    n_leaves = len(index.leaves)
    bounds = np.empty((n_leaves, 2, index.d))
    nearness = 16 * float(np.finfo(X.dtype).eps) * np.maximum(X.max(axis=0), -X.min(axis=0))
    for start in range(0, n_leaves, LEAVES_AT_A_TIME):
        block = slice(start, start + LEAVES_AT_A_TIME)
        leaves, order = index.leaves[block], index.order[block]
        is_point = order >= 0
        if is_point.all():
            bounds[block, 0], bounds[block, 1] = leaves.min(axis=2), leaves.max(axis=2)
        else:
            padded = np.where(is_point[:, None, :], leaves, leaves[:, :, :1])
            bounds[block, 0], bounds[block, 1] = padded.min(axis=2), padded.max(axis=2)
        points = leaves.transpose(0, 2, 1)[is_point] * index.unit
        # NaN is not near either.
        is_near = np.abs(points - X[order[is_point]]) <= nearness
        require(is_near.all(), "leaves are not those of X")
    require(np.array_equal(_boxes_of(bounds), index.boxes), "boxes do not bound their points")


def _boxes_of(bounds: Array) -> Array:
    """Boxes of the nodes of a tree, numbered as a heap, from those of its leaves (k, 2, d).

    The heap's deepest level comes last, and holds the first leaves: see `_core/tree.h`.
    """
    k = len(bounds)
    boxes = np.empty((2 * k - 1, *bounds.shape[1:]))
    first_deepest = (1 << ((2 * k - 1).bit_length() - 1)) - 1
    n_deepest = 2 * k - 1 - first_deepest
    boxes[first_deepest:] = bounds[:n_deepest]
    boxes[k - 1 : first_deepest] = bounds[n_deepest:]
    end = k - 1
    while end:
        start = end // 2  # from here on, both children are there
        left, right = boxes[2 * start + 1 : 2 * end + 1 : 2], boxes[2 * start + 2 : 2 * end + 2 : 2]
        boxes[start:end, 0] = np.minimum(left[:, 0], right[:, 0])
        boxes[start:end, 1] = np.maximum(left[:, 1], right[:, 1])
        end = start
    return boxes


def read_search(record: dict[str, Any], arrays: Arrays, tree: NeighborIndex) -> SearchIndex:
    """The index that the record asks for: wrong codes cost recall, but nothing else."""
    if "search" not in record:
        return tree
    reach, recall = (record["search"][name] for name in ("reach", "recall"))
    for name, value in (("reach", reach), ("recall", recall)):
        require(isinstance(value, float) and 0 < value <= 1, f"{name} is {value!r}")
    shapes = code_shapes(len(tree.leaves), tree.d)
    codes = {name: arrays[CODES + name] for name in shapes}
    for name, array in codes.items():
        is_right = array.dtype == np.uint8 and array.shape == shapes[name]
        require(is_right, f"{CODES}{name} is {array.dtype} of shape {array.shape}")
    return ApproximateIndex(tree, Codes(**codes), reach, recall)
