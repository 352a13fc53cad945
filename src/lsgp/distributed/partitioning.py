# SPDX-License-Identifier: BSD-3-Clause
"""The second pass: rows of one region of space come together, and stay there.

Each chunk is cut once, and each partition is joined once from its pieces, so that all of the data
cross the network once, as in Dask's shuffles. Those (``p2p``) would do the same for data frames,
but write every piece to disk, and start anew as a whole if a worker is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import getitem
from typing import NamedTuple

import dask
import numpy as np
from distributed import Future
from numpy.typing import NDArray

from lsgp.distributed import rows as tasks
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.job import Job
from lsgp.distributed.reading import Inputs, Known
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
    joined = _shuffle(cluster, inputs, regions, known.n)
    n_classes = 0 if known.classes is None else len(known.classes)
    futures = [cluster.submit("summary", Summary.of, part, n_classes) for part in joined]
    own: list[Summary] = cluster.gather(futures, "Adding up")
    store, summary = _store(cluster, joined, own), Summary.joined(own)
    mean_noise = _mean_noise(summary) if job.table.has_noise else None
    if summary.weight is not None:
        ends = np.array([summary.weight.low[0], summary.weight.high[0]])
        require_alike("sample_weight", ends, "Give rows that do not count the weight 0.")
    settled = [cluster.submit("settle", tasks.settle, part, mean_noise) for part in store.parts]
    store = RowStore(cluster, settled, store.sizes, store.boxes)
    found = Partitioned(store, summary, regions, _part_of_region(own), mean_noise, False)
    is_checked = job.estimator.objective is not None and not job.is_of_labels
    has_more = known.coding.groups is not None
    return _with_copies(job, found) if is_checked and not has_more else found


def _regions(inputs: Inputs, n_partitions: int) -> Regions:
    # From each chunk as large a share of the sample as it has of the rows.
    own = list(zip(inputs.samples, inputs.sizes, strict=True))
    smallest = min(len(sample) / n for sample, n in own)
    samples = [sample[: max(1, round(smallest * n))] for sample, n in own]
    return Regions.of_sample(np.concatenate(samples), n_partitions)


def _shuffle(cluster: Cluster, inputs: Inputs, regions: Regions, n: int) -> list[Future]:
    pieces: list[list[object]] = [[] for _ in range(regions.n_regions)]
    with dask.annotate(lsgp="partition", retries=5):
        for rows, first in zip(inputs.chunks, inputs.first, strict=True):
            split = dask.delayed(tasks.split)(
                rows, first, regions, dask_key_name=cluster.key("split")
            )
            for p, own in enumerate(pieces):
                own.append(dask.delayed(getitem)(split, p, dask_key_name=cluster.key("piece")))
        joined: list[Future] = cluster.client.compute(
            [
                dask.delayed(tasks.join)(own, dask_key_name=cluster.key("partition"))
                for own in pieces
            ]
        )
    cluster.finish(joined, "Partitioning", [n // len(joined)] * len(joined))
    return joined


def _mean_noise(summary: Summary) -> float:
    noise = summary.noise
    mean = float(noise.center[0])
    remedy = "Check the units of the rows that stand out."
    require_alike("noise_variance", np.array([noise.low[0], noise.high[0]]) / mean, remedy)
    return mean


def _with_copies(job: Job, whole: Partitioned) -> Partitioned:
    """With equal rows as groups, which tuning leaves out together: they prove nothing."""
    cluster, store = job.cluster, whole.store
    marked = [cluster.submit("copies", tasks.mark_copies, part) for part in store.parts]
    counts = cluster.gather([cluster.submit("count", tasks.n_groups, part) for part in marked])
    if not any(counts):
        return whole
    first = np.cumsum([0, *counts[:-1]]).tolist()
    parts: list[object] = [
        cluster.submit("copies", tasks.renumber_groups, part, number)
        for part, number in zip(marked, first, strict=True)
    ]
    store = RowStore(cluster, parts, store.sizes, store.boxes)
    return whole._replace(store=store, has_copies=True)


def _store(cluster: Cluster, joined: Sequence[Future], own: Sequence[Summary]) -> RowStore:
    """The partitions that have rows."""
    filled = [p for p, each in enumerate(own) if each.n]
    low, high = (np.array([getattr(own[p].X, side) for p in filled]) for side in ("low", "high"))
    sizes = [own[p].n for p in filled]
    return RowStore(cluster, [joined[p] for p in filled], sizes, Boxes(low, high))


def _part_of_region(own: Sequence[Summary]) -> NDArray[np.int64]:
    """The partition of each region; that before it where it is empty."""
    is_filled = np.array([each.n > 0 for each in own])
    return np.maximum(np.cumsum(is_filled) - 1, 0)
