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

from dataclasses import replace

import numpy as np

from lsgp.search.contract import Array, Exclusions, Rows, SearchIndex, SearchRequest
from lsgp.search.index import NeighborIndex

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


def approximate(index: SearchIndex, lengthscale: Array, n_neighbors: int | None) -> SearchIndex:
    """The index for approximate searches of so many neighbors in a metric, if these pay.

    None: all within a radius, which are searched exactly.
    """
    if not isinstance(index, NeighborIndex):
        return index
    tree = index if index.codes is None else replace(index, codes=None, reach=1.0, recall=1.0)
    if n_neighbors is None or tree.n < FEWEST_ROWS or tree.d < FEWEST_INPUTS:
        return tree
    # Evenly over the leaves, so over the data; the one for the choice, the next for the measure.
    rows = tree.order.reshape(-1)
    rows = rows[rows >= 0]
    probes = rows[np.linspace(0, len(rows) - 1, 2 * N_PROBES).astype(np.intp)]
    chosen_on = _Probes(tree, probes[::2], lengthscale, n_neighbors)
    measured_on = _Probes(tree, probes[1::2], lengthscale, n_neighbors)
    coded = tree.encoded(1.0, 1.0) if index.codes is None else index
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


class _Probes:
    """Some rows whose neighbors, without themselves, are known."""

    def __init__(self, tree: NeighborIndex, rows: Rows, lengthscale: Array, m: int) -> None:
        place = np.flatnonzero(np.isin(tree.order, rows))
        leaf, within = np.divmod(place, tree.order.shape[1])
        queries = np.ascontiguousarray(tree.leaves[leaf, :, within] * tree.unit)
        themselves = Exclusions(np.ascontiguousarray(tree.order.reshape(-1)[place]))
        self.request = SearchRequest(queries, lengthscale, m, themselves)
        exact = tree.measure(self.request)
        is_there = exact.neighbors >= 0
        self.last = np.max(exact.squares, axis=1, where=is_there, initial=0.0)
        self.n_true = max(int(np.count_nonzero(is_there)), 1)

    def recall(self, index: NeighborIndex) -> float:
        """Share of the neighbors that are found; of equally distant ones, any counts."""
        found = index.measure(self.request)
        is_right = (found.neighbors >= 0) & (found.squares <= self.last[:, None])
        return float(np.count_nonzero(is_right)) / self.n_true
