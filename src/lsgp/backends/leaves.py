# SPDX-License-Identifier: BSD-3-Clause
"""Trees as arrays, and the leaves that rows fall into, which the native core sums up."""

from __future__ import annotations

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
