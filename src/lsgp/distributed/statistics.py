# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of all rows, from exact sums of those of each partition."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from lsgp.distributed import parts as tasks
from lsgp.distributed.job import Job
from lsgp.distributed.partitioning import Partitioned, has_weights
from lsgp.distributed.parts import Extents, Means, Moments, Rows
from lsgp.distributed.reading import Inputs, Known
from lsgp.distributed.space import Sampled, Source
from lsgp.distributed.store import RowStore
from lsgp.inputs.labels import Labels, prior_of
from lsgp.inputs.rows import require_alike
from lsgp.inputs.specification import Specification
from lsgp.inputs.target_scale import target_scale
from lsgp.inputs.transforms import TargetScaler
from lsgp.inputs.transforms.column_statistics import Range, statistics_of
from lsgp.inputs.transforms.exact_sums import add_exactly, rounded

Array = NDArray[np.float64]


def source_of(
    job: Job,
    known: Known,
    inputs: Inputs,
    partitioned: Partitioned,
    specification: Specification,
) -> Source:
    """Rows on the cluster, with what tuning knows of all of them."""
    cluster, store = job.cluster, partitioned.store
    extents = Extents(inputs.extent, known.targets)
    if has_weights(job, known):
        largest = _largest_weight(job, store)
        extents = Extents._make(own._replace(largest_weight=largest) for own in extents)
    if known.classes is not None:
        extents = extents._replace(y=_range_of_classes(len(known.classes), extents.X))

    def total(what: str, function: Callable[..., Moments], *arguments: object) -> Moments:
        futures = [cluster.submit(what, function, part, *arguments) for part in store.parts]
        return reduce(Moments.join, cluster.gather(futures, "Adding up"))

    first = total("mean", tasks.first_sums, extents)
    weight = rounded(first.weight)
    means = Means(rounded(first.X) / weight, rounded(first.y) / weight)
    second = total("spread", tasks.second_sums, extents, means)
    of_inputs = statistics_of(extents.X, means.X, rounded(second.X) / weight)
    of_targets = statistics_of(extents.y, means.y, rounded(second.y) / weight)
    scaler = TargetScaler(
        of_targets.center, np.where(np.isinf(of_targets.scale), 1.0, of_targets.scale)
    )
    n_targets = len(of_targets.center)
    if not job.is_of_labels:
        ends, mean = np.array([extents.y.low, extents.y.high]), job.estimator.prior_mean
        scaler = target_scale(scaler, ends, specification, mean, job.estimator.dtype)
    has_groups = known.coding.groups is not None or partitioned.has_copies
    weight_unit = extents.X.largest_weight if has_weights(job, known) else None
    return Source(store, of_inputs, Sampled(store), scaler, has_groups, n_targets, weight_unit)


def _largest_weight(job: Job, store: RowStore) -> float:
    """Of classes too."""
    cluster = job.cluster
    ends = cluster.gather(
        [cluster.submit("weights", tasks.weight_range, part) for part in store.parts]
    )
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    remedy = "Give rows that do not count the weight 0."
    require_alike("sample_weight", np.array([low, high]), remedy)
    return float(high)


def _range_of_classes(n_classes: int, like: Range) -> Range:
    width = 1 if n_classes == 2 else n_classes
    low, high = np.zeros(width), np.ones(width)
    if n_classes == 1:
        low = np.ones(1)
    return Range(low, high, like.largest_weight)


def labels_of(job: Job, source: Source, n_classes: int) -> Labels:
    """The labels of all rows, of which those that are asked for are fetched."""
    cluster, store = job.cluster, source.store
    mean_weight, largest = None, source.largest_weight
    if largest is not None:
        weights_of = cluster.gather(
            [cluster.submit("weights", tasks.weight_sums, p, largest) for p in store.parts]
        )
        total = reduce(add_exactly, weights_of)
        mean_weight = largest * (float(rounded(total)[0]) / store.n)
        top = largest / mean_weight
        sums = cluster.gather(
            [
                cluster.submit("classes", tasks.class_sums, p, mean_weight, top, n_classes)
                for p in store.parts
            ]
        )
        prior = prior_of(top * rounded(reduce(add_exactly, sums)))
    else:
        counts = cluster.gather(
            [cluster.submit("classes", tasks.class_counts, p, n_classes) for p in store.parts]
        )
        prior = prior_of(sum(counts).astype(float))

    def codes(rows: Rows) -> NDArray[np.int64]:
        return tasks.codes_of(rows.y, n_classes)

    def weights(rows: Rows) -> Array:
        if mean_weight is None or rows.weight is None:
            return np.ones(rows.n)
        return rows.weight / mean_weight

    return Labels(
        source.columns((store.n,), codes, np.int64),
        source.columns((store.n,), weights, np.float64),
        prior,
        source.scaler,
    )
