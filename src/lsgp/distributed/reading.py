# SPDX-License-Identifier: BSD-3-Clause
"""The first pass over the data: what is in it, and rows as numbers.

Of tables with texts, dates and holes, the levels and kinds of columns are those of all partitions,
and the encoder is fitted as on one machine, to rows that stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed
from distributed import Future
from numpy.typing import NDArray

from lsgp.distributed import chunks as tasks
from lsgp.distributed.chunks import Coding, Survey
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.spread import Spread
from lsgp.distributed.table import Table
from lsgp.inputs.encoding import Encoder, TableInParts, fit_parts
from lsgp.inputs.encoding.columns import Contents, Reading
from lsgp.inputs.encoding.table import declared_numbers
from lsgp.inputs.labels import classes_of

Array = NDArray[np.float64]

#: Distinct cells of a column, of all partitions, that this machine takes.
MOST_DISTINCT = 5_000_000


@dataclass(frozen=True)
class Job:
    """What is to be fitted, to what, and where."""

    estimator: Any  # a copy of the user's, asked for what its own `fit` asks itself for
    table: Table
    cluster: Cluster
    is_of_labels: bool


class Known(NamedTuple):
    """What the first pass tells of all rows."""

    surveys: list[Survey]
    coding: Coding
    classes: NDArray[Any] | None
    group_names: tuple[str | int | float, ...]

    @property
    def n(self) -> int:
        return sum(each.n for each in self.surveys)

    @property
    def has_groups(self) -> bool:
        return self.coding.groups is not None

    @property
    def is_mixed(self) -> bool:
        """Whether the table has more than numbers."""
        return any(each.contents is not None for each in self.surveys)


class Inputs(NamedTuple):
    """All rows that count, in chunks, with inputs that are numbers."""

    chunks: list[Delayed | Future]  # of Rows; those chunks that have any
    sizes: list[int]
    samples: list[Array]  # of the inputs of each
    encoder: Encoder | None

    @property
    def n_inputs(self) -> int:
        return self.samples[0].shape[1]


def look_over(job: Job) -> Known:
    """Read all chunks once."""
    cluster, chunks = job.cluster, job.table.chunks
    weights = job.estimator.class_weight if job.is_of_labels else None
    coding = Coding(
        job.is_of_labels,
        None if isinstance(weights, str) else weights,
        categorical=job.estimator._listed_categories(),
    )
    looked = cluster.compute("survey", tasks.survey, chunks, coding)
    surveys: list[Survey] = cluster.gather(looked, "Reading")
    if not any(each.n for each in surveys):
        n_given = sum(each.n_given for each in surveys)
        raise ValueError(f"There are no rows to learn from among {n_given}.")
    classes = None
    if job.is_of_labels:
        labels = [each.labels for each in surveys if each.labels is not None]
        classes = classes_of(np.concatenate(labels))
        if isinstance(weights, str):
            coding = coding._replace(class_weight=_balanced(surveys, classes))
        coding = coding._replace(classes=classes)
    names: tuple[str | int | float, ...] = ()
    if surveys[0].groups is not None:
        distinct = np.unique(np.concatenate([s.groups for s in surveys if s.groups is not None]))
        coding = coding._replace(groups=distinct)
        names = tuple(
            label if isinstance(label, str | int | float) else str(label)
            for label in distinct.tolist()
        )
    return Known(surveys, coding, classes, names)


def _balanced(surveys: list[Survey], classes: NDArray[Any]) -> dict[Any, float]:
    """As scikit-learn's "balanced": weights by which all classes count alike."""
    counts = np.zeros(len(classes))
    for each in surveys:
        if each.labels is not None and each.counts is not None:
            counts[np.searchsorted(classes, each.labels)] += each.counts
    weights = counts.sum() / (len(classes) * counts)
    return dict(zip(classes.tolist(), weights.tolist(), strict=True))


# -- rows as numbers ---------------------------------------------------------------------------


def read_inputs(job: Job, known: Known) -> Inputs:
    """Chunks of rows with inputs that are numbers: as they are, or encoded."""
    filled = [k for k, each in enumerate(known.surveys) if each.n]
    sizes = [known.surveys[k].n for k in filled]
    chunks = [job.table.chunks[k] for k in filled]
    if known.is_mixed:
        return _encode(job, known, chunks, sizes)
    samples = [each for k in filled if (each := known.surveys[k].sample) is not None]
    return Inputs(job.cluster.delay("read", tasks.read, chunks, known.coding), sizes, samples, None)


def _encode(job: Job, known: Known, chunks: list[Delayed], sizes: list[int]) -> Inputs:
    """Fit the encoder of one machine, and encode all rows."""
    cluster, coding = job.cluster, known.coding
    readings = cluster.send(_readings(job, known))
    parts = cluster.compute("encode-read", tasks.given, chunks, coding, readings)
    parts = _with_places(cluster, parts)
    rows = TableInParts.of(Spread(cluster, parts, "Encoding"))
    encoder, inputs = fit_parts(rows, job.estimator._choose_plan(rows))
    assert isinstance(inputs, Spread)
    noise: list[Future | None] = [None] * len(parts)
    if job.table.has_noise:
        noise = list(cluster.compute("encode-noise", tasks.noise, chunks, coding))
    made = [
        cluster.submit("encoding-rows", tasks.encoded, *own)
        for own in zip(inputs.own, parts, noise, strict=True)
    ]
    cluster.finish(made, "Encoding", sizes)
    samples = cluster.gather(cluster.each("encoding-sample", tasks.sample, made))
    return Inputs(made, sizes, samples, encoder)


def _with_places(cluster: Cluster, parts: list[Future]) -> list[Future]:
    """The parts of the rows, which know how many rows come before them, of each level too."""
    counts = cluster.gather(cluster.each("encoding-count", tasks.counts, parts))
    first, before, found = 0, [np.zeros_like(own) for own in counts[0][1]], []
    for part, (n, levels) in zip(parts, counts, strict=True):
        found.append(cluster.submit("encoding-place", tasks.placed, part, first, tuple(before)))
        first += n
        before = [a + b for a, b in zip(before, levels, strict=True)]
    return found


def _readings(job: Job, known: Known) -> list[Reading]:
    """How the cells of each column are read, by those of all partitions."""
    given = [k for k, each in enumerate(known.surveys) if each.n_given]
    missing = [k for k in given if known.surveys[k].contents is None]
    chunks = [job.table.chunks[k] for k in missing]
    looked = job.cluster.compute("encode-contents", tasks.contents, chunks, known.coding)
    added = dict(zip(missing, job.cluster.gather(looked, "Encoding"), strict=True))
    contents = [added.get(k, known.surveys[k].contents) for k in given]
    joined = _joined([own for own in contents if own is not None])
    declared = declared_numbers(known.coding.categorical, [each.name for each in joined])
    return [Reading.of(each, j in declared) for j, each in enumerate(joined)]


def _joined(found: list[list[Contents]]) -> list[Contents]:
    """What the columns of all chunks hold."""
    # Neighbors first, so that long lists of cells are gone through a few times only.
    while len(found) > 1:
        pairs = zip(found[::2], [*found[1::2], None], strict=False)
        found = [own if other is None else _join(own, other) for own, other in pairs]
    return found[0]


def _join(own: list[Contents], other: list[Contents]) -> list[Contents]:
    joined = [a.join(b) for a, b in zip(own, other, strict=True)]
    for each in joined:
        if len(each.distinct) > MOST_DISTINCT:
            raise ValueError(
                f"Column {each.name!r} has more than {MOST_DISTINCT} distinct cells that are no "
                "numbers. Leave it out, or make numbers of them."
            )
    return joined
