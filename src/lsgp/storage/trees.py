# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the tree of a model's rows, which the native core walks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.search.index import LEAF_SIZE, Codes, NeighborIndex
from lsgp.storage.rules import require

#: Leaves of a tree that are checked at a time: they stay in the cache.
LEAVES_AT_A_TIME = 64

Array = NDArray[Any]


def check_index(index: NeighborIndex, X: Array, check_values: bool) -> None:
    """Refuse an index that the native core could leave, or that is not of the rows X (n, d).

    Of approximate searches, codes are not compared with rows: wrong ones cost recall, no more.
    """
    leaves, order, n, d = index.leaves, index.order, len(X), len(index.unit)
    n_leaves = -(-n // LEAF_SIZE)
    require(index.n == n, f"a tree of {index.n} rows for {n}")
    expected = {
        "leaves": (n_leaves, d, LEAF_SIZE),
        "order": (n_leaves, LEAF_SIZE),
        "boxes": (2 * n_leaves - 1, 2, d),
    }
    shapes = {name: getattr(index, name).shape for name in expected}
    if index.codes is not None:
        expected |= {name: own.shape for name, own in Codes.empty(n_leaves, d)._asdict().items()}
        shapes |= {name: own.shape for name, own in index.codes._asdict().items()}
    require(shapes == expected, f"the tree has shapes {shapes}, not {expected}")
    # Every row once, and -1 in the rest: rows are addresses in the native core.
    require(order.min() >= -1 and order.max() < n, "order has rows that do not exist")
    seen = np.zeros(n + 1, bool)
    seen[order] = True  # -1 is the last
    n_unused = np.count_nonzero(order == -1)
    require(seen[:n].all() and order.size - n_unused == n, "order has not every row once")
    # A place without a row must not be found: the search would look for its end for ever.
    leaf, place = np.nonzero(order < 0)
    require(np.isnan(leaves[leaf, :, place]).all(), "a leaf has points without a row")
    if check_values:
        _check_rows_are_found(index, X)


def _check_rows_are_found(index: NeighborIndex, X: Array) -> None:
    """Refuse a tree whose points are not the rows, or whose boxes do not bound its points.

    A pass over the arrays, leaves by leaves.
    """
    n_leaves = len(index.leaves)
    bounds = np.empty((n_leaves, 2, index.d))
    nearness = 16 * float(np.finfo(X.dtype).eps) * np.maximum(X.max(axis=0), -X.min(axis=0))
    for start in range(0, n_leaves, LEAVES_AT_A_TIME):
        block = slice(start, start + LEAVES_AT_A_TIME)
        leaves, order = index.leaves[block], index.order[block]
        is_point = order >= 0
        # The first place of a leaf always has a row.
        bounded = np.where(is_point[:, None, :], leaves, leaves[:, :, :1])
        bounds[block, 0], bounds[block, 1] = bounded.min(axis=2), bounded.max(axis=2)
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
