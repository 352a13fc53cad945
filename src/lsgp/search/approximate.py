# SPDX-License-Identifier: BSD-3-Clause
"""Search that finds nearly all neighbors, several times faster in many inputs.

Leaves that touch the ball of the neighbors at its rim hold hardly any of them, and in many inputs
they are most of those that an exact search opens. This one opens a leaf only if its squared
distance is at most `reach` times that of the farthest neighbor so far, nearest first, and compares
points in half a byte per input, then in a byte (see `_core/approximate.h`). The reach is the least
that finds `CHOSEN_RECALL` of the neighbors of some rows, without themselves, and `recall` is
measured on others. A reach rather than a number of leaves, because it serves as well for other
numbers of neighbors, in sparse regions, and around points that are left out. Distances and their
order are exact, as is the search within a radius. What is found depends on the rows, the metric and
the query alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp import _core
from lsgp.search.contract import Neighborhoods, SearchIndex, SearchRequest
from lsgp.search.exclusions import Exclusions
from lsgp.search.growing import grow
from lsgp.search.index import LEAF_SIZE, NeighborIndex, build_index

#: With fewer inputs an exact search opens few leaves more, and is nearly as fast: see
#: `benchmarks/approximate_search.py`.
FEWEST_INPUTS = 8
#: So few rows are searched in a few microseconds.
FEWEST_ROWS = 10_000
#: Share of the neighbors that is to be found, of rows on which the reach is chosen; a little more
#: than the 0.99 that others shall have.
CHOSEN_RECALL = 0.992
#: Rows on which the reach is chosen, and as many on which the recall is measured: both known to
#: about 0.001.
N_PROBES = 200
REACHES = np.linspace(0.02, 1.0, 50)


class Codes(NamedTuple):
    """The points of a tree, and its boxes, in few bits: see `_core/approximate.h`."""

    halves: NDArray[np.uint8]  # (n_leaves, d, LEAF_SIZE / 2)
    points: NDArray[np.uint8]  # (n_leaves, LEAF_SIZE, d)
    leaf_boxes: NDArray[np.uint8]  # (n_groups, 2, d, GROUP)
    group_boxes: NDArray[np.uint8]  # (n_regions, 2, d, GROUP)


def code_shapes(n_leaves: int, d: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays of `Codes`."""
    boxes = 2, d, _core.core.GROUP
    return {
        "halves": (n_leaves, d, LEAF_SIZE // 2),
        "points": (n_leaves, LEAF_SIZE, d),
        "leaf_boxes": (_core.core.n_groups(n_leaves), *boxes),
        "group_boxes": (_core.core.n_regions(n_leaves), *boxes),
    }


@dataclass(frozen=True, eq=False)
class ApproximateIndex:
    """A tree with its points in codes, a `SearchIndex`."""

    tree: NeighborIndex
    codes: Codes
    reach: float
    recall: float

    @property
    def n(self) -> int:
        return self.tree.n

    @property
    def d(self) -> int:
        return self.tree.d

    @property
    def unit(self) -> NDArray[np.float64]:
        return self.tree.unit

    def describe(self) -> str:
        return (
            f"approximate search (recall {self.recall:.3f}) among {self.n} points of {self.d} "
            f"inputs, bounding-box tree with {len(self.tree.leaves)} leaves"
        )

    def search(self, request: SearchRequest) -> NDArray[np.int32]:
        if request.n_neighbors is None:
            return self.tree.search(request)
        return self._nearest(request, request.n_neighbors, None)

    def measure(self, request: SearchRequest) -> Neighborhoods:
        if request.n_neighbors is None:
            return self.tree.measure(request)
        squares = np.empty((len(request.queries), max(request.n_neighbors, 0)))
        return Neighborhoods(self._nearest(request, request.n_neighbors, squares), squares)

    def count(self, request: SearchRequest) -> NDArray[np.int64]:
        return self.tree.count(request)

    def add_rows(self, X: NDArray[np.float64]) -> SearchIndex:
        return grow(self, X / self.unit)

    def keep_rows(self, kept: NDArray[np.bool_]) -> ApproximateIndex:
        return self.of_tree(self.tree.keep_rows(kept))

    def compact(self) -> ApproximateIndex:
        return self.of_tree(self.tree.compact())

    def points(self) -> NDArray[np.float64]:
        return self.tree.points()

    def of_points(self, points: NDArray[np.float64]) -> ApproximateIndex:
        return self.of_tree(self.tree.of_points(points))

    def of_tree(self, tree: NeighborIndex) -> ApproximateIndex:
        """Another tree, searched with the same reach."""
        return self if tree is self.tree else encode(tree, self.reach, self.recall)

    def _nearest(
        self,
        request: SearchRequest,
        n_neighbors: int,
        squares: NDArray[np.float64] | None,  # (q, n_neighbors), written
    ) -> NDArray[np.int32]:
        coded = self.tree.tree, *self.codes, self.reach
        entered, exclusions = self.tree.enter(request), request.exclusions.arguments(self.unit)
        neighbors = np.empty((len(request.queries), n_neighbors), np.int32)
        _core.core.find_near(*coded, *entered, exclusions, neighbors, squares)
        return neighbors


def encode(tree: NeighborIndex, reach: float, recall: float) -> ApproximateIndex:
    """The tree with its points in codes."""
    shapes = code_shapes(len(tree.leaves), tree.d)
    codes = Codes(**{name: np.empty(shape, np.uint8) for name, shape in shapes.items()})
    _core.core.encode_tree(tree.tree, *codes)
    return ApproximateIndex(tree, codes, reach, recall)


def approximate(
    index: SearchIndex, lengthscale: NDArray[np.float64], n_neighbors: int | None
) -> SearchIndex:
    """The index for approximate searches of so many neighbors in a metric, if these pay.

    None: all within a radius, which are searched exactly.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.search.approximate import approximate
    >>> from lsgp.search.index import build_index
    >>> X = np.random.default_rng(0).uniform(size=(20_000, 8))
    >>> index = approximate(build_index(X, np.ones(8)), np.ones(8), 64)
    >>> bool(0.985 < index.recall < 1)
    True
    """
    tree = index.tree if isinstance(index, ApproximateIndex) else index
    is_many = tree.n >= FEWEST_ROWS and tree.d >= FEWEST_INPUTS
    if not isinstance(tree, NeighborIndex) or n_neighbors is None or not is_many:
        return tree
    # Evenly over the leaves, so over the data; the one for the choice, the next for the measure.
    rows = tree.order.reshape(-1)
    rows = rows[rows >= 0]
    probes = rows[np.linspace(0, len(rows) - 1, 2 * N_PROBES).astype(np.intp)]
    chosen_on = _Probes(tree, probes[::2], lengthscale, n_neighbors)
    measured_on = _Probes(tree, probes[1::2], lengthscale, n_neighbors)
    coded = index if isinstance(index, ApproximateIndex) else encode(tree, 1.0, 1.0)
    low, high = 0, len(REACHES)  # the least that suffices is among these
    while low < high:
        middle = (low + high) // 2
        if chosen_on.recall(replace(coded, reach=float(REACHES[middle]))) >= CHOSEN_RECALL:
            high = middle
        else:
            low = middle + 1
    if low == len(REACHES):  # codes are too coarse, as where a point is very far from all others
        return tree
    chosen = replace(coded, reach=float(REACHES[low]))
    return replace(chosen, recall=measured_on.recall(chosen))


def rebuild(
    index: SearchIndex, X: NDArray[np.float64], unit: NDArray[np.float64], n_threads: int = 1
) -> SearchIndex:
    """An index of the rows X in another unit, searched as this one is."""
    tree = build_index(X, unit, n_threads)
    return index.of_tree(tree) if isinstance(index, ApproximateIndex) else tree


class _Probes:
    """Some rows whose neighbors, without themselves, are known."""

    def __init__(
        self,
        tree: NeighborIndex,
        rows: NDArray[np.int32],
        lengthscale: NDArray[np.float64],
        n_neighbors: int,
    ) -> None:
        place = np.flatnonzero(np.isin(tree.order, rows))
        leaf, within = np.divmod(place, tree.order.shape[1])
        queries = np.ascontiguousarray(tree.leaves[leaf, :, within] * tree.unit)
        themselves = Exclusions(np.ascontiguousarray(tree.order.reshape(-1)[place]))
        self.request = SearchRequest(queries, lengthscale, n_neighbors, themselves)
        exact = tree.measure(self.request)
        is_there = exact.neighbors >= 0
        self.last = np.max(exact.squares, axis=1, where=is_there, initial=0.0)
        self.n_true = max(int(np.count_nonzero(is_there)), 1)

    def recall(self, index: ApproximateIndex) -> float:
        """Share of the neighbors that are found; of equally distant ones, any counts."""
        found = index.measure(self.request)
        is_right = (found.neighbors >= 0) & (found.squares <= self.last[:, None])
        return float(np.count_nonzero(is_right)) / self.n_true
