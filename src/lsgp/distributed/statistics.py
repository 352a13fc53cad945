# SPDX-License-Identifier: BSD-3-Clause
"""What tuning knows of all rows, from the statistics of each partition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.distributed.job import Job
from lsgp.distributed.partitioning import Partitioned
from lsgp.distributed.reading import Known
from lsgp.distributed.rows import Rows
from lsgp.distributed.space import Sampled, Source
from lsgp.inputs.labels import Labels, codes_of, prior_of
from lsgp.inputs.specification import Specification
from lsgp.inputs.target_scale import target_scale
from lsgp.inputs.transforms import TargetScaler

Array = NDArray[np.float64]


def source_of(
    job: Job, known: Known, partitioned: Partitioned, specification: Specification
) -> Source:
    """Rows on the cluster, with what tuning knows of all of them."""
    store, summary = partitioned.store, partitioned.summary
    y = summary.y
    scaler = TargetScaler(y.center, y.unit)
    if not job.is_of_labels:
        ends, mean = np.array([y.low, y.high]), job.estimator.prior_mean
        scaler = target_scale(scaler, ends, specification, mean, job.estimator.dtype)
    has_groups = known.coding.groups is not None or partitioned.has_copies
    return Source(store, summary, Sampled(store), scaler, has_groups)


def labels_of(source: Source) -> Labels:
    """The labels of all rows, of which those that are asked for are fetched."""
    n, classes = source.store.n, source.summary.classes
    n_classes = len(classes)
    mean_weight = classes.sum() / n

    def codes(rows: Rows) -> NDArray[np.int64]:
        return codes_of(rows.y, n_classes)

    def weights(rows: Rows) -> Array:
        return np.ones(rows.n) if rows.weight is None else rows.weight / mean_weight

    return Labels(
        source.columns((n,), codes, np.int64),
        source.columns((n,), weights, np.float64),
        prior_of(classes / mean_weight),
        source.scaler,
    )
