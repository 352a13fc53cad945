# SPDX-License-Identifier: BSD-3-Clause
"""The first pass over the data: what is in it, and rows as numbers.

Of tables with texts, dates and holes, the levels and kinds of columns are those of all partitions,
and the encoder is fitted as on one machine, to rows that stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed
from distributed import Future
from numpy.typing import NDArray

from lsgp.distributed import chunks as tasks
from lsgp.distributed.chunks import Coding, Look, Survey
from lsgp.distributed.job import Job
from lsgp.distributed.spread import Spread
from lsgp.inputs.encoding import Encoder, Given, Rows, fit_parts
from lsgp.inputs.encoding.columns import Reading
from lsgp.inputs.encoding.contents import Contents
from lsgp.inputs.encoding.table import declared_numbers
from lsgp.inputs.labels import classes_of
from lsgp.inputs.transforms.column_statistics import Range

#: Distinct cells of a column, of all partitions, that this machine takes.
MOST_DISTINCT = 5_000_000


class Known(NamedTuple):
    """What the first pass tells of all rows."""

    surveys: list[Survey]
    coding: Coding
    n: int
    targets: Range  # of numbers; of labels, one-hot columns are known later
    noise: tuple[float, float]
    classes: NDArray[Any] | None
    group_names: tuple[str | int | float, ...]

    @property
    def is_mixed(self) -> bool:
        """Whether the table has more than numbers."""
        return any(each.contents is not None for each in self.surveys)

    @property
    def first_numbers(self) -> list[int]:
        """Numbers of the first rows of all chunks."""
        first: list[int] = np.cumsum([0, *(each.n for each in self.surveys)])[:-1].tolist()
        return first


class Inputs(NamedTuple):
    """All rows that count, in chunks, with inputs that are numbers."""

    chunks: list[Delayed | Future]  # of Rows; those chunks that have any
    first: list[int]  # numbers of their first rows
    sizes: list[int]
    looks: list[Look]
    encoder: Encoder | None

    @property
    def extent(self) -> Range:
        """Of the inputs."""
        return reduce(Range.join, [each.X for each in self.looks if each.X is not None])

    @property
    def n_inputs(self) -> int:
        return self.looks[0].sample.shape[1]


def look_over(job: Job) -> Known:
    """Read all chunks once."""
    cluster, table = job.cluster, job.table
    class_weight = None if job.classifier is None else job.classifier.class_weight
    is_balanced = isinstance(class_weight, str)
    coding = Coding(
        job.is_of_labels,
        None if isinstance(class_weight, str) else class_weight,
        categorical=job.estimator._listed_categories(),
    )
    with dask.annotate(lsgp="survey", retries=5):
        looked = cluster.client.compute(
            [
                dask.delayed(tasks.survey)(chunk, coding, k, dask_key_name=cluster.key("survey"))
                for k, chunk in enumerate(table.chunks)
            ]
        )
    surveys: list[Survey] = cluster.gather(looked, "Reading")
    filled = [each for each in surveys if each.n]
    if not filled:
        raise ValueError(
            f"There are no rows to learn from among {sum(s.n_given for s in surveys)}."
        )
    classes = None
    if job.is_of_labels:
        labels = [each.labels for each in surveys if each.labels is not None]
        classes = classes_of(np.concatenate(labels), None)
        if is_balanced:
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
    targets = reduce(_join_first, [each.y for each in filled if each.y is not None])
    noise = min(each.noise[0] for each in filled), max(each.noise[1] for each in filled)
    n = sum(each.n for each in surveys)
    return Known(surveys, coding, n, targets, noise, classes, names)


def _join_first(a: Range, b: Range) -> Range:
    # Chunks of labels have as many columns as they have labels, until all are known.
    return a.join(b) if a.low.shape == b.low.shape else a


def _balanced(surveys: Sequence[Survey], classes: NDArray[Any]) -> dict[Any, float]:
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
    first, sizes = known.first_numbers, [known.surveys[k].n for k in filled]
    starts = [first[k] for k in filled]
    raws = [job.table.chunks[k] for k in filled]
    if known.is_mixed:
        return _encode(job, known, raws, starts, sizes)
    with dask.annotate(lsgp="partition", retries=5):
        own = [
            dask.delayed(tasks.read)(raw, known.coding, dask_key_name=job.cluster.key("read"))
            for raw in raws
        ]
    looks = [look for k in filled if (look := known.surveys[k].look) is not None]
    return Inputs(own, starts, sizes, looks, None)


def _encode(
    job: Job, known: Known, raws: list[Delayed], starts: list[int], sizes: list[int]
) -> Inputs:
    """Fit the encoder of one machine, and encode all rows."""
    cluster = job.cluster
    readings = cluster.send(_readings(job, known))

    def read(what: str, function: Callable[..., Any], *arguments: object) -> Spread[Any]:
        with dask.annotate(lsgp="encode", retries=5):
            made = cluster.client.compute(
                [
                    dask.delayed(function)(
                        raw, known.coding, *arguments, dask_key_name=cluster.key(what)
                    )
                    for raw in raws
                ]
            )
        return Spread(cluster, made, "Encoding")

    parts: Spread[Given] = read("encode-read", tasks.given, readings)
    rows = Rows.of(parts)
    encoder, inputs = fit_parts(rows, job.estimator._choose_plan(rows))
    noise = read("encode-noise", tasks.noise) if job.table.has_noise else None
    made = inputs.map(tasks.encoded, parts, noise)
    looks = made.map(tasks.look, parts.beside(range(len(raws)))).each(_same)
    assert isinstance(made, Spread)
    cluster.finish(made.own, "Encoding", sizes=lambda k: sizes[k], total=known.n)
    return Inputs(made.own, starts, sizes, looks, encoder)


def _same(value: Look) -> Look:
    return value


def _readings(job: Job, known: Known) -> list[Reading]:
    """How the cells of each column are read, by those of all partitions."""
    cluster = job.cluster
    missing = [k for k, each in enumerate(known.surveys) if each.contents is None and each.n_given]
    looked = cluster.client.compute(
        [
            dask.delayed(tasks.contents)(
                job.table.chunks[k], known.coding, dask_key_name=cluster.key("encode-contents")
            )
            for k in missing
        ]
    )
    added = dict(zip(missing, cluster.gather(looked, "Encoding"), strict=True))
    found: list[list[Contents]] = [
        own
        for k, each in enumerate(known.surveys)
        if (own := added.get(k, each.contents)) is not None and each.n_given
    ]
    joined = _joined(found)
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
