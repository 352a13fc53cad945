# SPDX-License-Identifier: BSD-3-Clause
"""How space is cut into regions, one for each partition of the rows.

Cuts are across single inputs, in their own units: a monotone transform of the inputs moves the
sides of a box, and leaves it a box. So one partition serves all transforms and all metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.transforms import InputTransform

Array = NDArray[np.float64]

#: Boxes are taken for a little nearer than they are: rounding must not hide one.
SLACK = 1e-9


class Cut(NamedTuple):
    """Rows below the threshold go to one side; a side is another cut, or region ~side."""

    column: int
    threshold: float
    below: int
    above: int


@dataclass(frozen=True, eq=False)
class Regions:
    """Cuts, the first of which is the root; without any there is one region."""

    cuts: tuple[Cut, ...]
    n_regions: int

    @classmethod
    def of_sample(cls, sample: Array, n_regions: int) -> Regions:
        """About so many regions, with about as much of the sample (s, d) each.

        Rows that are equal stay together, so that there may be fewer.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp.distributed.regions import Regions
        >>> X = np.random.default_rng(0).uniform(size=(1000, 2))
        >>> np.bincount(Regions.of_sample(X, 4).find(X))
        array([250, 250, 250, 250])
        """
        spread = sample.std(axis=0) if len(sample) else np.ones(sample.shape[1])
        scaled = sample / np.where(spread > 0, spread, 1.0)
        cuts: list[Cut | None] = []
        n_leaves = 0

        def grow(rows: NDArray[np.int64], n_wanted: int) -> int:
            nonlocal n_leaves
            found = None
            if n_wanted > 1 and len(rows) > 1:
                found = _cut(sample[rows], scaled[rows], n_wanted)
            if found is None:
                n_leaves += 1
                return ~(n_leaves - 1)
            column, threshold = found
            place = len(cuts)
            cuts.append(None)
            is_below = sample[rows, column] < threshold
            below = grow(rows[is_below], n_wanted // 2)
            above = grow(rows[~is_below], n_wanted - n_wanted // 2)
            cuts[place] = Cut(column, threshold, below, above)
            return place

        grow(np.arange(len(sample)), n_regions)
        return cls(tuple(cut for cut in cuts if cut is not None), n_leaves)

    def find(self, X: Array) -> NDArray[np.int64]:
        """The region of each row, (n,)."""
        found = np.zeros(len(X), np.int64)
        if not self.cuts:
            return found
        waiting = [(0, np.arange(len(X)))]
        while waiting:
            place, rows = waiting.pop()
            if place < 0:
                found[rows] = ~place
                continue
            cut = self.cuts[place]
            is_below = X[rows, cut.column] < cut.threshold
            waiting += [(cut.below, rows[is_below]), (cut.above, rows[~is_below])]
        return found


def _cut(sample: Array, scaled: Array, n_wanted: int) -> tuple[int, float] | None:
    """Across the widest input that has two values, so that sides are as they are wanted."""
    for column in np.argsort(-np.ptp(scaled, axis=0), kind="stable"):
        values = np.sort(sample[:, column])
        if values[0] == values[-1]:
            continue
        threshold = values[len(values) * (n_wanted // 2) // n_wanted]
        if threshold == values[0]:
            threshold = values[np.searchsorted(values, threshold, side="right")]
        return int(column), float(threshold)
    return None


class Boxes(NamedTuple):
    """Bounds of the rows of each partition, (P, d) each."""

    low: Array
    high: Array

    def transformed(self, transform: InputTransform) -> Boxes:
        low, high = (np.asarray(transform.transform(side), dtype=float) for side in self)
        # Monotone, but for rounding.
        return Boxes(np.minimum(low, high), np.maximum(low, high))

    def squares(self, queries: Array, lengthscale: Array) -> Array:
        """Squared distance of queries (q, d) from each box in the metric, (P, q); 0 inside."""
        squares = np.zeros((len(self.low), len(queries)))
        with np.errstate(over="ignore"):
            for j, length in enumerate(lengthscale):
                x = queries[:, j]
                gap = np.maximum(self.low[:, j, None] - x, x - self.high[:, j, None])
                squares += (np.maximum(gap, 0.0) / length) ** 2
        return squares

    def reached(self, queries: Array, lengthscale: Array, limits: Array) -> NDArray[np.bool_]:
        """Which boxes have a point within the squared distance (q,) of each query, (P, q)."""
        return self.squares(queries, lengthscale) * (1.0 - SLACK) <= limits
