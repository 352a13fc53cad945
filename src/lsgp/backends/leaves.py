# SPDX-License-Identifier: BSD-3-Clause
"""Trees as arrays, and the leaves that rows fall into, which the native core sums up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp import _core

Array = NDArray[np.float64]


class Nodes(NamedTuple):
    """Trees as arrays, one behind the other; children lie behind their parents."""

    feature: NDArray[np.int32]  # (N,) the input that is asked for; -1: a leaf
    threshold: Array  # (N,) up to which a row goes to the left
    left: NDArray[np.int32]  # (N,)
    right: NDArray[np.int32]  # (N,)
    value: Array  # (N,) of leaves
    roots: NDArray[np.int32]  # (T,)
    ends: NDArray[np.int64]  # (k,) of the trees that are summed up, for each sum

    @property
    def n_leaves(self) -> int:
        """Of the tree that has the most."""
        is_leaf = (self.feature < 0).astype(np.int64)
        return int(np.add.reduceat(is_leaf, self.roots).max())

    def first(self, n_trees: int) -> Nodes:
        """So many trees of those of one sum, without the nodes of the others."""
        stop = int(self.roots[n_trees]) if n_trees < len(self.roots) else len(self.feature)
        return self._replace(
            feature=self.feature[:stop],
            threshold=self.threshold[:stop],
            left=self.left[:stop],
            right=self.right[:stop],
            value=self.value[:stop],
            roots=self.roots[:n_trees],
            ends=np.array([n_trees], dtype=np.int64),
        )

    def only(self, first: int, last: int) -> Nodes:
        """Those of the sums from the first to before the last."""
        start = int(self.ends[first - 1]) if first else 0
        stop = int(self.ends[last - 1])
        return self._replace(roots=self.roots[start:stop], ends=self.ends[first:last] - start)

    def sums(self, X: Array) -> Array:
        """(q, k) of the leaves that rows (q, d) fall into."""
        found = np.empty((len(X), len(self.ends)))
        _core.core.sum_leaves(np.ascontiguousarray(X, dtype=float), *self, found)
        return found


def join(parts: Sequence[Nodes]) -> Nodes:
    """The trees of all, with the sums of all."""
    offsets = np.cumsum([0, *(len(part.feature) for part in parts)])
    before = np.cumsum([0, *(len(part.roots) for part in parts)])
    moved = [
        part._replace(
            left=part.left + np.int32(offset),
            right=part.right + np.int32(offset),
            roots=part.roots + np.int32(offset),
            ends=part.ends + earlier,
        )
        for part, offset, earlier in zip(parts, offsets, before, strict=False)
    ]
    return Nodes(*(np.concatenate(arrays) for arrays in zip(*moved, strict=True)))
