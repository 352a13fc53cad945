# SPDX-License-Identifier: BSD-3-Clause
"""The second pass: rows of one region of space come together in a partition, and stay there.

Each chunk is cut once, and each partition is joined once from its pieces, so that all of the data
cross the network once, as in Dask's shuffles. Those (``p2p``) would do the same for data frames,
but write every piece to disk, and start anew as a whole if a worker is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from operator import getitem
from typing import NamedTuple

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from lsgp.distributed import rows as tasks
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.reading import Inputs, Job, Known
from lsgp.distributed.rows import Rows, Summary
from lsgp.inputs.rows import require_alike
from lsgp.inputs.transforms import InputTransform

Array = NDArray[np.float64]

#: Rows of a partition, unless told otherwise: about 100 MB of two inputs with the index of a model.
ROWS_PER_PARTITION = 2_000_000
#: Boxes are taken for a little nearer than they are: rounding must not hide one.
SLACK = 1e-9


class Partitioned(NamedTuple):
    """Rows by region, as models have them."""

    parts: list[Future]  # of Rows, none of them empty
    sizes: list[int]
    boxes: Boxes
    regions: Regions
    part_of_region: NDArray[np.int64]
    summary: Summary
    mean_noise: float | None
    has_copies: bool  # which are groups then


def partition(job: Job, known: Known, inputs: Inputs, n_partitions: int | None) -> Partitioned:
    """Bring the rows of each region together, and mark equal rows."""
    cluster = job.cluster
    if n_partitions is None:
        n_partitions = max(-(-known.n // ROWS_PER_PARTITION), cluster.n_threads)
    # From each chunk as large a share of the sample as it has of the rows.
    own = list(zip(inputs.samples, inputs.sizes, strict=True))
    share = min(len(sample) / n for sample, n in own)
    sample = np.concatenate([sample[: max(1, round(share * n))] for sample, n in own])
    regions = Regions.of_sample(sample, int(n_partitions))
    joined = _shuffle(cluster, inputs, regions)
    summaries: list[Summary] = cluster.gather(
        cluster.each("summary", Summary.of, joined), "Adding up"
    )
    summary = Summary.joined(summaries)
    noise, weight = summary.noise, summary.weight
    mean_noise = float(noise.center[0]) if job.table.has_noise else None
    ends = np.array([noise.low[0], noise.high[0]]) / noise.center[0]
    require_alike("noise_variance", ends, "Check the units of the rows that stand out.")
    ends = np.array([weight.low[0], weight.high[0]])
    require_alike("sample_weight", ends, "Give rows that do not count the weight 0.")
    is_filled = np.array([each.n > 0 for each in summaries])
    filled = np.flatnonzero(is_filled)
    low, high = (
        np.array([getattr(summaries[p].X, end) for p in filled]) for end in ("low", "high")
    )
    parts = cluster.each("settle", tasks.settle, [joined[p] for p in filled], mean_noise)
    has_copies = False
    if job.estimator.objective is not None and not (job.is_of_labels or known.has_groups):
        parts, has_copies = _with_copies(cluster, parts)
    return Partitioned(
        parts,
        [summaries[p].n for p in filled],
        Boxes(low, high),
        regions,
        # A region without rows is answered by the partition before it.
        np.maximum(np.cumsum(is_filled) - 1, 0),
        summary,
        mean_noise,
        has_copies,
    )


def _shuffle(cluster: Cluster, inputs: Inputs, regions: Regions) -> list[Future]:
    pieces = []
    first = np.cumsum([0, *inputs.sizes]).tolist()
    for rows, number in zip(inputs.chunks, first, strict=False):
        (own,) = cluster.delay("split", split, [rows], number, regions)
        pieces.append(
            [cluster.delay("piece", getitem, [own], p)[0] for p in range(regions.n_regions)]
        )
    joined = cluster.compute("partition", Rows.join, list(zip(*pieces, strict=True)))
    cluster.finish(joined, "Partitioning", [first[-1] // len(joined)] * len(joined))
    return joined


def split(chunk: Rows, first_number: int, regions: Regions) -> list[Rows]:
    """The rows of a chunk, by region."""
    chunk = chunk._replace(numbers=chunk.numbers + first_number)
    found = regions.find(chunk.X)
    order = np.argsort(found, kind="stable")
    ends = np.searchsorted(found[order], np.arange(regions.n_regions + 1))
    return [chunk.pick(order[start:stop]) for start, stop in pairwise(ends)]


def _with_copies(cluster: Cluster, parts: list[Future]) -> tuple[list[Future], bool]:
    """Equal rows become groups, which tuning leaves out together: they prove nothing."""
    marked = cluster.each("copies", tasks.mark_copies, parts)
    counts = cluster.gather(cluster.each("count", tasks.n_groups, marked))
    if not any(counts):
        return parts, False
    first = np.cumsum([0, *counts[:-1]]).tolist()
    renumber = tasks.renumber_groups
    pairs = zip(marked, first, strict=True)
    return [cluster.submit("copies", renumber, part, number) for part, number in pairs], True


# -- regions of space ------------------------------------------------------------------------------


class Cut(NamedTuple):
    """Rows below the threshold go to one side; a side is another cut, or region ~side."""

    column: int
    threshold: float
    below: int
    above: int


@dataclass(frozen=True, eq=False)
class Regions:
    """Cuts of space, the first of which is the root; without any there is one region.

    Cuts are across single inputs, in their own units: a monotone transform of the inputs moves the
    sides of a box, and leaves it a box. So one partition serves all transforms and all metrics.
    """

    cuts: tuple[Cut, ...]
    n_regions: int

    @classmethod
    def of_sample(cls, sample: Array, n_regions: int) -> Regions:
        """About so many regions, with about as much of the sample (s, d) each.

        Rows that are equal stay together, so that there may be fewer.
        """
        spread = sample.std(axis=0) if len(sample) else np.ones(sample.shape[1])
        scaled = sample / np.where(spread > 0, spread, 1.0)
        cuts: list[Cut] = []
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
            cuts.append(Cut(column, threshold, 0, 0))
            is_below = sample[rows, column] < threshold
            below = grow(rows[is_below], n_wanted // 2)
            above = grow(rows[~is_below], n_wanted - n_wanted // 2)
            cuts[place] = Cut(column, threshold, below, above)
            return place

        grow(np.arange(len(sample)), n_regions)
        return cls(tuple(cuts), n_leaves)

    def find(self, X: Array) -> NDArray[np.int64]:
        """The region of each row, (n,)."""
        found = np.zeros(len(X), np.int64)
        waiting = [(0, np.arange(len(X)))] if self.cuts else []
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
    """Cut across the widest input that has two values, so that sides are about equally long."""
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
        """Whether boxes have a point within the squared distance (q,) of each query, (P, q)."""
        return self.squares(queries, lengthscale) * (1.0 - SLACK) <= limits
