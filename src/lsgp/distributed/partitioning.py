# SPDX-License-Identifier: BSD-3-Clause
"""The second pass: rows of one region of space come together, and stay there.

Each chunk is cut once, and each partition is joined once from its pieces, so that all of the data
cross the network once, as in Dask's shuffles. Those (``p2p``) would do the same for data frames,
but write every piece to disk, and start anew as a whole if a worker is lost.
"""

from __future__ import annotations

from operator import getitem
from typing import NamedTuple

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from lsgp.distributed import rows as tasks
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.reading import Inputs, Job, Known
from lsgp.distributed.regions import Boxes, Regions
from lsgp.distributed.rows import Summary
from lsgp.distributed.store import RowStore
from lsgp.inputs.rows import require_alike

#: Rows of a partition, unless told otherwise: about 100 MB of two inputs with the index of a model.
ROWS_PER_PARTITION = 2_000_000


class Partitioned(NamedTuple):
    """Rows by region, as models have them."""

    store: RowStore
    summary: Summary
    regions: Regions
    part_of_region: NDArray[np.int64]
    mean_noise: float | None
    has_copies: bool  # which are groups then


def partition(job: Job, known: Known, inputs: Inputs, n_partitions: int | None) -> Partitioned:
    """Bring the rows of each region together, and mark equal rows."""
    cluster = job.cluster
    if n_partitions is None:
        n_partitions = max(-(-known.n // ROWS_PER_PARTITION), cluster.n_threads)
    regions = _regions(inputs, int(n_partitions))
    joined = _shuffle(cluster, inputs, regions)
    n_classes = 0 if known.classes is None else len(known.classes)
    futures = cluster.each("summary", Summary.of, joined, n_classes)
    summaries: list[Summary] = cluster.gather(futures, "Adding up")
    summary = Summary.joined(summaries)
    mean_noise = float(summary.noise.center[0]) if job.table.has_noise else None
    _require_alike(summary)
    filled = [p for p, each in enumerate(summaries) if each.n]
    own, sizes = [summaries[p].X for p in filled], [summaries[p].n for p in filled]
    boxes = Boxes(np.array([each.low for each in own]), np.array([each.high for each in own]))
    parts = cluster.each("settle", tasks.settle, [joined[p] for p in filled], mean_noise)
    has_copies = False
    if job.estimator.objective is not None and not (job.is_of_labels or known.has_groups):
        parts, has_copies = _with_copies(cluster, parts)
    # A region without rows is answered by the partition before it.
    is_filled = np.array([each.n > 0 for each in summaries])
    part_of_region = np.maximum(np.cumsum(is_filled) - 1, 0)
    store = RowStore(cluster, parts, sizes, boxes)
    return Partitioned(store, summary, regions, part_of_region, mean_noise, has_copies)


def _regions(inputs: Inputs, n_partitions: int) -> Regions:
    # From each chunk as large a share of the sample as it has of the rows.
    own = list(zip(inputs.samples, inputs.sizes, strict=True))
    smallest = min(len(sample) / n for sample, n in own)
    samples = [sample[: max(1, round(smallest * n))] for sample, n in own]
    return Regions.of_sample(np.concatenate(samples), n_partitions)


def _shuffle(cluster: Cluster, inputs: Inputs, regions: Regions) -> list[Future]:
    pieces = []
    first = np.cumsum([0, *inputs.sizes]).tolist()
    for rows, number in zip(inputs.chunks, first, strict=False):
        (split,) = cluster.delay("split", tasks.split, [rows], number, regions)
        pieces.append(
            [cluster.delay("piece", getitem, [split], p)[0] for p in range(regions.n_regions)]
        )
    joined = cluster.compute("partition", tasks.join, list(zip(*pieces, strict=True)))
    cluster.finish(joined, "Partitioning", [first[-1] // len(joined)] * len(joined))
    return joined


def _require_alike(summary: Summary) -> None:
    """Refuse weights and noise of which some are too small beside others."""
    noise, weight = summary.noise, summary.weight
    remedy = "Check the units of the rows that stand out."
    ends = np.array([noise.low[0], noise.high[0]])
    require_alike("noise_variance", ends / noise.center[0], remedy)
    if weight is not None:
        ends = np.array([weight.low[0], weight.high[0]])
        require_alike("sample_weight", ends, "Give rows that do not count the weight 0.")


def _with_copies(cluster: Cluster, parts: list[Future]) -> tuple[list[Future], bool]:
    """With equal rows as groups, which tuning leaves out together: they prove nothing."""
    marked = cluster.each("copies", tasks.mark_copies, parts)
    counts = cluster.gather(cluster.each("count", tasks.n_groups, marked))
    first = np.cumsum([0, *counts[:-1]]).tolist()
    pairs = zip(marked, first, strict=True)
    renumber = tasks.renumber_groups
    found = [cluster.submit("copies", renumber, part, number) for part, number in pairs]
    return (found, True) if any(counts) else (parts, False)
